//! Overflows of the rows that are being written: which are stored with the checkpoint, and which stay.
//!
//! What always holds: a row waits as long as an overflow of it, or of a row before it, has no place; so rows
//! come into blocks in their order.

use super::waiting::{Placed, Waiting};
use crate::checkpoint::damage::damaged_row;
use crate::checkpoint::merged_row::RowOverflow;
use crate::checkpoint::overflow::{OverflowPlace, StoredOverflow};
use crate::error::PartitionError;
use std::collections::BTreeSet;
use std::sync::Arc;
use stream::ExtentId;

/// Overflows that have no place yet, and their rows.
pub(super) struct Overflows {
    /// Extents that the stream lists already, with overflows that stay where they are.
    left: Arc<BTreeSet<ExtentId>>,
    /// So many overflows are kept as they are before one is compressed again.
    not_tried: u32,
    /// Rows that wait for the append of overflows, theirs or those of rows before them.
    pub(super) waiting: Waiting,
    /// Rows whose overflows' append is under way.
    pub(super) under_way: Option<Placed>,
    /// Bytes of overflows since they last counted as much as a row block.
    pub(super) uncounted_bytes: usize,
}

impl Overflows {
    /// Those in the extents `left` stay where they are.
    pub(super) fn new(left: Arc<BTreeSet<ExtentId>>) -> Self {
        let waiting = Waiting::default();
        Overflows { left, not_tried: 0, waiting, under_way: None, uncounted_bytes: 0 }
    }

    /// Whether no row waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_none()
    }

    /// What is to be stored of a row's overflow.
    pub(super) fn stored(&mut self, overflow: RowOverflow<'_>) -> Option<StoredOverflow> {
        match overflow {
            RowOverflow::InValue | RowOverflow::Stored(_) => None,
            RowOverflow::InMemory(overflow) => Some(StoredOverflow::of(overflow, &mut self.not_tried)),
            RowOverflow::Read(overflow) => Some(overflow.clone()),
        }
    }

    /// Where a row's overflow stays, if it does.
    pub(super) fn left(&self, overflow: RowOverflow<'_>) -> Result<Option<OverflowPlace>, PartitionError> {
        match overflow {
            RowOverflow::Stored(place) if self.left.contains(&place.location.extent) => Ok(Some(place)),
            RowOverflow::Stored(_) => Err(damaged_row("its overflow was not read")),
            _ => Ok(None),
        }
    }
}
