//! Changes of the metadata store as data: keys, transactions, and what an answer means.
//!
//! | file | content |
//! |---|---|
//! | `transaction.rs` | keys, values, compares, puts, deletes |
//! | `choose_after_transaction.rs` | what an answer and a read say about a transaction |
//! | `held_range.rs` | a range's document in the hands of its owner, one change at a time |
//!
//! What always holds: each change of a document compares the document's revision and its own entry.

pub(crate) mod choose_after_transaction;
pub(crate) mod held_range;
pub(crate) mod transaction;
