//! Interleavings that broke earlier wordings of the contract of a stamp of several processes, each played
//! step by step with the functions that a process runs. Each test ends with the rule that makes the
//! interleaving harmless.
//!
//! W is the writer that was the owner, N its successor. The stores are those of the model: a message arrives
//! when the test says so.

mod late_parts;
mod owners;
mod restores;
mod stage;
mod sweeps;
