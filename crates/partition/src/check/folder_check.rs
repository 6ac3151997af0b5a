//! What an offline check of a data folder reports.
//!
//! Why a file of its own: the check as a whole and the check of the ranges both add to the report. What
//! always holds: a report without damages is one of a healthy folder.

use crate::key::KeyRange;
use crate::operation::ObjectTable;

/// One damaged thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where: a file of the folder, or a part of a range.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
    /// What that means for which rows.
    pub meaning: String,
    /// Which rows, if it is known.
    pub rows: Option<(ObjectTable, KeyRange)>,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderCheck {
    /// All that is damaged; empty: the folder is healthy.
    pub damages: Vec<Damage>,
    /// Extents that were read.
    pub extent_count: u64,
    /// Those of them that were begun before digests were kept: that their blocks are the right ones can't be
    /// checked.
    pub undigested_extent_count: u64,
    /// Whole blocks in the extents.
    pub block_count: u64,
    /// Bytes of the extents.
    pub size_bytes: u64,
    /// Ranges that the partition map names, its own included.
    pub range_count: u64,
    /// Rows in checkpoints, those that are replaced by newer ones or hidden included.
    pub row_count: u64,
    /// Changes in the logs that are not in checkpoints yet.
    pub log_change_count: u64,
    /// Bytes that only the journal holds: the next start writes them to their extents.
    pub journaled_bytes: u64,
    /// Nothing was ever stored in the folder.
    pub is_fresh: bool,
    /// That the journal's last record is not whole, as a crash leaves it: no damage as far as anybody can
    /// tell.
    pub torn: Option<String>,
}
