//! Moves over shards in memory, in virtual time: killed and resumed at every operation, undone at every step,
//! with operations that arrive late; and random histories of several movers and clients with old maps.
//!
//! What is checked: each acknowledged write is on the shard that the map names, and on no other once sources
//! are deleted. A failure names its operation or seed; `LARIMAR_SIM_SEED` runs a seed alone.

mod clients;
mod ended;
mod former;
mod frozen;
mod gate;
mod histories;
mod integrity;
mod kills;
mod readers;
mod rot;
mod shards;
mod thawed;
