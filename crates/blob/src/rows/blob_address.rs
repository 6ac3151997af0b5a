//! Where the rows of one blob's name are, and the order of their kinds.
//!
//! ```text
//! row key = (account, container id, blob name, row name), where a row name starts with its kind:
//!   0g OWNER             garbage marker, without pieces: the pages that OWNER had are being removed
//!   1s SNAPSHOT          record of a snapshot
//!   1v VERSION           record of a former version
//!   2h                   head: lease, counts, and the base blob's record
//!   3c GENERATION INDEX  chunk of a list of blocks
//!   4p OWNER REGION      ranges of pages
//!   5u ID                staged block
//! ```
//!
//! Rows sort in this order. Garbage markers come first because a walk over all names sees the first rows of
//! each. Each kind has a file in this folder: its name and its value.

use partition::{KeyRange, RowKey};
use std::sync::Arc;

/// Where a blob's rows are; each step of a request has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlobAddress {
    pub(crate) account: Arc<str>,
    pub(crate) container_id: u64,
    pub(crate) name: Arc<str>,
}

impl BlobAddress {
    /// Keys of the rows whose names start so.
    pub(crate) fn rows_with_prefix(&self, prefix: &str) -> KeyRange {
        let all = KeyRange::partition(&self.account, self.container_id, &self.name);
        // A key ends with its text's terminator; without it the key is the start of all rows whose names
        // start so.
        let first = self.key(prefix);
        let bytes = first.as_bytes();
        KeyRange::prefix(bytes[..bytes.len() - 2].to_vec()).intersect(&all)
    }

    pub(crate) fn key(&self, row: &str) -> RowKey {
        RowKey::new(&self.account, self.container_id, &self.name, row)
    }
}
