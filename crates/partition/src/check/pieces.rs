//! Rows whose blob data is not there: each names bytes behind the end of an extent, or in one that its range
//! does not have.
//!
//! Every block of every extent may read all the same, so nothing else would tell before a reader does.

use crate::blob_data::data_ends::DataEnds;
use crate::blob_data::piece::take_pieces;
use crate::key::partition_prefix;
use crate::operation::{RowRef, Scan, Visit};
use base::codec::Decoder;
use bytes::Bytes;
use std::sync::Arc;

/// Names that are reported of one range; of others only how many there are.
const NAMES_TOLD_MAX: usize = 1000;

/// The names whose rows name what is not there.
pub(super) struct FindMissing {
    ends: Arc<DataEnds>,
    /// A key of each, and what it names.
    pub(super) names: Vec<(Bytes, String)>,
    /// Those that there was no room for.
    pub(super) untold_count: u64,
    last: Bytes,
}

impl FindMissing {
    pub(super) fn new(ends: DataEnds) -> Self {
        FindMissing { ends: Arc::new(ends), names: Vec::new(), untold_count: 0, last: Bytes::new() }
    }
}

impl Scan for FindMissing {
    fn needs_overflow(&self) -> bool {
        false
    }

    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        // A row that does not read is reported as such by its reader.
        let pieces = take_pieces(&mut Decoder::new(row.value)).unwrap_or_default();
        let Some(problem) = pieces.iter().find_map(|piece| self.ends.problem_of(piece)) else {
            return Visit::Continue;
        };
        if partition_prefix(row.key) == partition_prefix(&self.last) && !self.last.is_empty() {
            return Visit::Continue;
        }
        self.last = Bytes::copy_from_slice(row.key);
        if self.names.len() < NAMES_TOLD_MAX {
            self.names.push((self.last.clone(), problem));
        } else {
            self.untold_count += 1;
        }
        Visit::Continue
    }
}
