//! An exhaustive search of the protocol of a stamp of several processes.
//!
//! Two or three processes, an object store and a metadata store; messages that come late, twice or never,
//! answers that are lost, pauses anywhere. The decisions are those of the crate `stamp`, the same functions
//! that a process runs. Every state that can be reached within the bounds of a setting is visited and
//! checked, and from every state one must be reachable in which the stamp goes on. Planted faults show that
//! the search can fail.
//!
//! | file | content |
//! |---|---|
//! | `setting.rs` | what happens how often, and which rules are broken |
//! | `configs.rs`, `faults.rs` | the settings without and with a fault |
//! | `object_store.rs`, `backup_store.rs`, `metadata_store.rs` | models of the stores |
//! | `world/` | a state, and what must hold in it |
//! | `actions/` | what can happen next |
//! | `start.rs` | the first state |
//! | `search/` | the search |
//! | `report.rs` | what is printed |
//!
//! What always holds: the same setting gives the same states, in the same order; nothing here is linked into
//! the server.

mod actions;
pub mod backup_store;
mod configs;
mod faults;
pub mod metadata_store;
pub mod object_store;
mod report;
mod search;
mod setting;
mod start;
mod world;

pub use report::{Arguments, run};
