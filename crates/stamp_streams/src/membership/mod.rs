//! Processes of a stamp: incarnations, leases, beats.
//!
//! | file | content |
//! |---|---|
//! | `forget.rs` | an operator takes out a process that is gone |
//! | `life.rs` | one life of a process, from joining to the end of its lease |
//! | `beats.rs` | what keeps a life alive, and ends it |
//! | `loops.rs` | whether the loops of its ranges go round, without which there is no beat |
//! | `beats_seen.rs` | for how long the beats of others have not changed |

pub(crate) mod beats;
pub(crate) mod beats_seen;
pub(crate) mod forget;
pub(crate) mod life;
pub(crate) mod loops;
