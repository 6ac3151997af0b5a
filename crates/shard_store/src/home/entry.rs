//! The records of a home as JSON.
//!
//! What always holds: an entry says which epoch it follows by its key and by its difference, and has an id
//! that no other has, by which its writer knows it again.

use serde::{Deserialize, Serialize};
use shard_map::Diff;

/// The newest format, which is written.
pub(crate) const FORMAT: u64 = 1;

/// The record `catalog`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) format: u64,
    pub(crate) name: String,
    pub(crate) id: String,
}

/// A change, as history shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What the change made different, and the epochs before and after.
    pub diff: Diff,
    /// When it was made, by its writer's clock: `2026-11-28T01:02:03.5Z`.
    pub at: String,
    /// What its writer says of it, in a few words.
    pub note: String,
}

/// A change, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredEntry {
    pub(crate) format: u64,
    /// Which try of which writer this is, and the id of its parts.
    pub(crate) id: String,
    pub(crate) at: String,
    pub(crate) note: String,
    /// Absent if it is in parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) diff: Option<Diff>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) part_count: usize,
}

/// A catalog at an epoch, as it is stored: always in parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredSnapshot {
    pub(crate) format: u64,
    pub(crate) id: String,
    pub(crate) part_count: usize,
}

/// What every record has.
#[derive(Deserialize)]
struct Format {
    format: u64,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Why a record can't be read.
#[derive(Debug)]
pub(crate) enum Unreadable {
    /// A newer version wrote it.
    Newer(u64),
    /// It is not what it should be.
    Damaged(String),
}

/// Reads a record of this or an earlier format.
pub(crate) fn read<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T, Unreadable> {
    let damaged = |error: serde_json::Error| Unreadable::Damaged(error.to_string());
    let Format { format } = serde_json::from_str(text).map_err(damaged)?;
    if format > FORMAT {
        return Err(Unreadable::Newer(format));
    }
    serde_json::from_str(text).map_err(damaged)
}

/// Writes a record.
pub(crate) fn write<T: Serialize>(record: &T) -> String {
    // Numbers and texts have a form in JSON.
    serde_json::to_string(record).unwrap_or_default()
}
