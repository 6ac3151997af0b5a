//! Who has a range, and how it changes hands.
//!
//! | file | content |
//! |---|---|
//! | `lease.rs` | how long a process may serve |
//! | `choose_take.rs` | whether a range may be taken, and the first transaction |
//! | `taking.rs` | taking a range: seal, record, load |
//! | `release.rs` | giving a range up on purpose |
//! | `choose_after_stop.rs` | what an owner does when its log stopped, and after a broken chain |
//!
//! What always holds: a range is taken by raising its epoch and sealing every open extent; nothing is served
//! by a process whose lease is past its deadline.

pub(crate) mod choose_after_stop;
pub(crate) mod choose_take;
pub(crate) mod lease;
pub(crate) mod release;
pub(crate) mod taking;
