//! Rows on their way into a checkpoint whose tails, or tails of rows before them, have no place yet.
//!
//! What always holds: rows keep their order, and tails have that of their rows. How many bytes wait is for the writer to
//! bound, which appends the tails once they are a batch.

use super::tail::StoredTail;
use crate::data_writer::UnderWay;
use crate::operation::RowVersion;
use bytes::Bytes;
use std::ops::Range;

/// Rows, copied, without their tails.
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
    /// `None`: it has none that is kept apart.
    tail_size_bytes: Option<u32>,
}

/// A row that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Headed<'a> {
    pub(super) key: &'a [u8],
    pub(super) version: RowVersion,
    pub(super) value: Option<&'a [u8]>,
    pub(super) tail_size_bytes: Option<u32>,
}

impl WaitingRows {
    pub(super) fn iter(&self) -> impl Iterator<Item = Headed<'_>> {
        self.rows.iter().map(|row| Headed {
            key: &self.bytes[row.key.clone()],
            version: row.version,
            value: row.value.clone().map(|value| &self.bytes[value]),
            tail_size_bytes: row.tail_size_bytes,
        })
    }
}

/// Rows whose tails are being appended, and where these will be.
pub(super) struct Placed {
    pub(super) rows: WaitingRows,
    pub(super) places: UnderWay,
}

/// Rows that wait for the next append of tails.
#[derive(Default)]
pub(super) struct Waiting {
    rows: WaitingRows,
    tails: Vec<Bytes>,
    tails_size_bytes: usize,
}

impl Waiting {
    pub(super) fn add(
        &mut self,
        key: &[u8],
        version: RowVersion,
        value: Option<&[u8]>,
        tail: Option<StoredTail>,
    ) {
        let mut copy = |part: &[u8]| {
            let start = self.rows.bytes.len();
            self.rows.bytes.extend_from_slice(part);
            start..self.rows.bytes.len()
        };
        let (key, value) = (copy(key), value.map(&mut copy));
        let tail_size_bytes = tail.as_ref().map(|tail| tail.size_bytes);
        if let Some(StoredTail { payload, .. }) = tail {
            self.tails_size_bytes += payload.len();
            self.tails.push(payload);
        }
        self.rows.rows.push(WaitingRow { key, version, value, tail_size_bytes });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.rows.is_empty()
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.rows.bytes.len() + self.tails_size_bytes
    }

    /// The tails' payloads, and the rows; none wait any more.
    pub(super) fn take(&mut self) -> (Vec<Bytes>, WaitingRows) {
        self.tails_size_bytes = 0;
        (std::mem::take(&mut self.tails), std::mem::take(&mut self.rows))
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
