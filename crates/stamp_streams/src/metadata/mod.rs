//! The metadata store with its meaning: keys and values of `stamp` as bytes, and who answers.
//!
//! | file | content |
//! |---|---|
//! | `wire.rs` | the bytes of keys and values |
//! | `forget_former.rs` | former values go, or they would fill the store |
//! | `metadata_store.rs` | transactions, reads, and whether it is still the same store |

pub(crate) mod forget_former;
pub(crate) mod metadata_store;
pub(crate) mod wire;
