//! The simulation of what the live service does on purpose: limits, page boundaries, balancing, faults
//! (`larimar serve --simulate`, `docs/simulate.md`).
//!
//! Vocabulary: a *target* is what a published limit speaks of (a partition, a queue, a blob, an account); a
//! *place* is one that is not an account; a *rule* is a fault rule of the file. Decisions are pure functions
//! of settings, time and counts (`token_bucket.rs`, `balancing.rs`, `boundaries.rs`, `fault_rule.rs`);
//! `simulation.rs` holds the counts, `simulated_request.rs` acts.
//!
//! What always holds: without `--simulate` there is no [`Simulation`], and a request meets one branch; with
//! it the same seed, requests and times give the same decisions; all that is held is bounded.

mod balancing;
mod boundaries;
mod chance;
mod fault_rule;
mod operation;
mod places;
mod rule_file;
mod settings;
mod simulated_request;
mod simulation;
mod token_bucket;

pub use rule_file::parse_rule_file;
pub use settings::{PROFILES, SimulationSettings};
pub use simulation::Simulation;

pub(crate) use boundaries::PageEnd;
pub(crate) use operation::{Operation, Target};
pub(crate) use simulated_request::{ListedPage, SimulatedRequest};
pub(crate) use simulation::Requester;
