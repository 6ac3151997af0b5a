//! Clients with old maps beside movers: real routers, each with a map of its own, real movers, several moves at
//! once, and an operator who splits, merges and pins meanwhile; over shards in memory, in virtual time.
//!
//! Shards of both fences are mixed: those that check and hold it until the commit, and those whose right to
//! write ends. Homes, copies and shards fail before or after an operation was done; movers are killed and
//! followed by others, or stop for longer than a signature holds; operations arrive late.
//!
//! What is checked: each read, and the end, have each acknowledged write on the shard that the map names, no
//! acknowledged delete undone, and of a write of which it is open whether it was done at most one; no row is on
//! a second shard once sources are deleted; a certificate says what was there. `cargo xtask sim shard` runs
//! many seeds; a failure names its seed, and `LARIMAR_SIM_SEED` runs it alone.

mod clients;
mod faults;
#[path = "../moves/gate.rs"]
#[allow(dead_code)] // The tests of single moves use more of it.
mod gate;
mod held;
mod histories;
mod ledger;
mod mover_rows;
mod movers;
mod operator;
mod setting;
mod signed;
mod verified;
