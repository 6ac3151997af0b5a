//! Rows on their way into a checkpoint whose overflows, or overflows of rows before them, have no place yet.
//!
//! What always holds: rows keep their order, and overflows have that of their rows. How many bytes wait is
//! for the writer to bound, which appends the overflows once they are a batch; how much memory of reads they
//! keep besides is bounded here.

use crate::blob_data::data_writer::UnderWay;
use crate::checkpoint::overflow::{OverflowPlace, StoredOverflow};
use crate::operation::RowVersion;
use bytes::Bytes;
use std::ops::Range;
use stream::Location;

/// Reads whose memory the overflows of a batch keep, at most: some half MiB each, of which perhaps one
/// overflow is left where a merge drops most rows. Overflows of further reads are copied.
const KEPT_READ_COUNT_MAX: usize = 48;

/// Rows, copied, without their overflows.
#[derive(Default)]
pub(super) struct WaitingRows {
    rows: Vec<WaitingRow>,
    /// Their keys and values.
    bytes: Vec<u8>,
}

struct WaitingRow {
    key: Range<usize>,
    version: RowVersion,
    value: Option<Range<usize>>,
    overflow: WaitingOverflow,
}

/// The overflow of a row that waits, if one is kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitingOverflow {
    None,
    /// It stays where it is.
    Left(OverflowPlace),
    /// Its place is known once it was appended.
    Appended {
        size_bytes: u32,
    },
}

/// A row that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Headed<'a> {
    pub(super) key: &'a [u8],
    pub(super) version: RowVersion,
    pub(super) value: Option<&'a [u8]>,
    pub(super) overflow: WaitingOverflow,
}

impl WaitingRows {
    pub(super) fn iter(&self) -> impl Iterator<Item = Headed<'_>> {
        self.rows.iter().map(|row| Headed {
            key: &self.bytes[row.key.clone()],
            version: row.version,
            value: row.value.clone().map(|value| &self.bytes[value]),
            overflow: row.overflow,
        })
    }
}

/// Rows whose overflows are being appended, and where these will be.
pub(super) struct Placed {
    pub(super) rows: WaitingRows,
    pub(super) places: UnderWay,
}

/// Rows that wait for the next append of overflows.
#[derive(Default)]
pub(super) struct Waiting {
    rows: WaitingRows,
    overflows: Vec<Bytes>,
    overflow_size_bytes: usize,
    /// Reads whose memory they keep.
    kept: Vec<Location>,
}

impl Waiting {
    /// Adds a row; its overflow, if one is kept apart, is `stored` with the others or `left` where it is.
    pub(super) fn add(
        &mut self,
        key: &[u8],
        version: RowVersion,
        value: Option<&[u8]>,
        stored: Option<StoredOverflow>,
        left: Option<OverflowPlace>,
    ) {
        let mut copy = |part: &[u8]| {
            let start = self.rows.bytes.len();
            self.rows.bytes.extend_from_slice(part);
            start..self.rows.bytes.len()
        };
        let (key, value) = (copy(key), value.map(&mut copy));
        let mut overflow = left.map_or(WaitingOverflow::None, WaitingOverflow::Left);
        if let Some(StoredOverflow { payload, size_bytes, read }) = stored {
            overflow = WaitingOverflow::Appended { size_bytes };
            self.overflow_size_bytes += payload.len();
            let is_kept = read.is_none_or(|read| self.keep(read.run));
            self.overflows.push(if is_kept { payload } else { Bytes::copy_from_slice(&payload) });
        }
        self.rows.rows.push(WaitingRow { key, version, value, overflow });
    }

    /// Whether the memory of a read may be kept.
    fn keep(&mut self, run: Location) -> bool {
        // Neighbours mostly come from the same few reads, the latest.
        let is_known = self.kept.iter().rev().any(|kept| *kept == run);
        if !is_known && self.kept.len() < KEPT_READ_COUNT_MAX {
            self.kept.push(run);
            return true;
        }
        is_known
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.rows.is_empty()
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.rows.bytes.len() + self.overflow_size_bytes
    }

    /// The overflows' payloads, and the rows; none wait any more.
    pub(super) fn take(&mut self) -> (Vec<Bytes>, WaitingRows) {
        self.overflow_size_bytes = 0;
        self.kept.clear();
        (std::mem::take(&mut self.overflows), std::mem::take(&mut self.rows))
    }

    /// What waits next may take the memory of rows that were written.
    pub(super) fn reuse(&mut self, mut rows: WaitingRows) {
        if self.is_empty() {
            rows.rows.clear();
            rows.bytes.clear();
            self.rows = rows;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stream::ExtentId;

    /// Where a merge dropped nearly all rows, each overflow that was left kept the half MiB that it had been
    /// read with: a batch of 4 MiB held 500 MiB.
    #[test]
    fn tails_of_many_reads_keep_the_memory_of_few() {
        let mut waiting = Waiting::default();
        let read_count = 4 * KEPT_READ_COUNT_MAX;
        let memory: Vec<Bytes> = (0..read_count).map(|read| Bytes::from(vec![read as u8; 1000])).collect();
        for turn in 0..2 {
            for (read, memory) in memory.iter().enumerate() {
                for at in [0, 100] {
                    let location = |offset| Location { extent: ExtentId(read as u64), offset, len: 100 };
                    let place = OverflowPlace { location: location(at), size_bytes: 100 };
                    let payload = memory.slice(at as usize..at as usize + 100);
                    let overflow = StoredOverflow::at(place, location(0), payload);
                    waiting.add(b"key", RowVersion(turn), Some(b"head"), Some(overflow), None);
                }
            }
            let kept = memory.iter().filter(|memory| !memory.is_unique()).count();
            assert_eq!(kept, KEPT_READ_COUNT_MAX);
            let (overflows, rows) = waiting.take();
            assert_eq!(rows.iter().count(), 2 * read_count);
            for (index, overflow) in overflows.iter().enumerate() {
                assert_eq!(overflow, &vec![(index / 2) as u8; 100]);
            }
            drop(overflows);
            assert!(waiting.is_empty() && memory.iter().all(Bytes::is_unique));
        }
    }
}
