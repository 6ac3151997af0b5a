//! What one front end takes on at most: limits, requests under way, memory for large bodies and answers.
//!
//! What always holds: a bound refuses at once; nothing here queues.

pub(crate) mod answer_memory;
pub(crate) mod in_flight;
pub(crate) mod limits;
pub(crate) mod peer_shares;
