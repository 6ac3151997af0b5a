//! Fairness between accounts: whatever one account sends, another gets its part of each place where requests
//! wait.
//!
//! Two means. Where work waits for a worker thread, accounts take turns by what their requests have cost
//! (`turn_queue.rs` decides, `worker_turns.rs` has the requests wait, `request_turn.rs` is one request's
//! side of it). Of what is bounded (requests under way, connections, memory of large bodies and of answers)
//! one account holds at most its share (`account_bounds.rs`).
//!
//! What always holds: with one account nothing waits and nothing is measured; a worker is never idle while a
//! request waits for its turn.

pub(crate) mod account_bounds;
pub(crate) mod request_turn;
mod turn_queue;
pub(crate) mod worker_turns;
