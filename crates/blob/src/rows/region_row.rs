//! Rows of ranges of pages, and the garbage markers of those that one operation is too small to remove.
//!
//! ```text
//! row name = 4p OWNER REGION   ranges of pages, see `page/pages.rs`; OWNER is 0, a snapshot, or a version
//!                              with its highest bit set; 16 hexadecimal digits each
//!            0g OWNER          garbage marker, without pieces: the pages of OWNER are of a deleted blob
//! ```
//!
//! What always holds: a garbage marker stays until the last region of its owner is removed.

use crate::rows::blob_address::BlobAddress;
use partition::{Decision, ObjectTable, Operation, Read, RowChange, RowVersion, Rows};

/// Start of the row names of garbage markers. They come first, where a walk over all names sees them.
pub(crate) const GARBAGE_PREFIX: &str = "0g";

/// Rows of pages that are removed together.
const REMOVED_TOGETHER_MAX: usize = 4096;

/// Row name of a region of pages.
pub(crate) fn region_row(owner: u64, region: u64) -> String {
    format!("{}{region:016x}", regions_prefix(owner))
}

/// Start of the row names of an owner's regions.
pub(crate) fn regions_prefix(owner: u64) -> String {
    format!("4p{owner:016x}")
}

/// Row name of the marker that an owner's regions are garbage.
pub(crate) fn garbage_row(owner: u64) -> String {
    format!("{GARBAGE_PREFIX}{owner:016x}")
}

/// The owner in the name of a garbage marker.
pub(crate) fn garbage_owner(row: &str) -> Option<u64> {
    row.strip_prefix(GARBAGE_PREFIX).and_then(|digits| u64::from_str_radix(digits, 16).ok())
}

/// Removes the first of the pages that are garbage, and with the last of them their marker.
pub(crate) struct RemovePages {
    pub(crate) address: BlobAddress,
    pub(crate) owner: u64,
}

impl Operation for RemovePages {
    /// Whether none is left.
    type Reply = bool;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Blob
    }

    fn reads(&self) -> Vec<Read> {
        let range = self.address.rows_with_prefix(&regions_prefix(self.owner));
        let mark = self.address.key(&garbage_row(self.owner));
        vec![Read::Range { range, limit: REMOVED_TOGETHER_MAX }, Read::Point(mark)]
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<bool> {
        let Some(mark) = rows.point(1) else { return Decision::unchanged(true) };
        let regions = rows.range(0);
        let mut changes: Vec<RowChange> =
            regions.iter().map(|row| RowChange::Delete { key: row.key.clone() }).collect();
        let is_last = regions.len() < REMOVED_TOGETHER_MAX;
        if is_last {
            changes.push(RowChange::Delete { key: mark.key.clone() });
        }
        Decision { changes, reply: is_last }
    }
}
