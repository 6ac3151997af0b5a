//! Processes of a stamp: incarnations, leases, beats.
//!
//! | file | content |
//! |---|---|
//! | `forget.rs` | an operator takes out a process that is gone |
//! | `life.rs` | one life of a process, from joining to the end of its lease |
//! | `beats.rs` | what keeps a life alive, and ends it |
//! | `cut_off.rs` | lets others know that the object store does not answer |
//! | `parts_answered.rs` | whether the object store answers, and what others should know of it |
//! | `loops.rs` | whether the loops of its ranges go round, without which there is no beat |
//! | `beats_seen.rs` | for how long the beats of others have not changed |

pub(crate) mod beats;
pub(crate) mod beats_seen;
pub(crate) mod cut_off;
pub(crate) mod forget;
pub(crate) mod life;
pub(crate) mod loops;
pub(crate) mod parts_answered;
