//! The partition server: every range of this process, and which of them owns a key.
//!
//! `server` has its fields and the way to a range; each verb is a sibling: `open` (from the partition map),
//! `hand_over` (splits and merges of ranges), `open_map` and `keep_map_copy` (the map itself, which is kept
//! twice), `balance` (which of them, and when), `operate` (what operators want at once), `heat` (which keys
//! are hot), `collect` (rows of deleted containers), `pin` (scans of one moment, over `pinned_snapshots`).
//! What always holds: the routes are those of the partition map, so a key that no range owns is an error,
//! never "no rows", and so is a key whose range is damaged (`owner`).

mod balance;
mod choose_pins;
mod collect;
mod hand_over;
mod heat;
mod keep_map_copy;
mod map_copy_stream;
mod open;
mod open_map;
mod operate;
mod owner;
mod pin;
mod pinned_snapshots;
mod range_ids;
mod remove_unnamed_ranges;
mod server;
mod unnamed_range;

pub(crate) use hand_over::Change;
pub(crate) use open_map::{MapLook, look_at_map};
pub use pinned_snapshots::{
    PINNED_SNAPSHOT_AGE_MAX, PINNED_SNAPSHOT_FIRST_IDLE_MAX, PINNED_SNAPSHOT_IDLE_MAX, PINNED_SNAPSHOTS_MAX,
    PINNED_SNAPSHOTS_OF_ACCOUNT_MAX,
};
pub(crate) use range_ids::{FIRST_RANGE_ID, range_ids};
pub(crate) use server::PartitionServer;
