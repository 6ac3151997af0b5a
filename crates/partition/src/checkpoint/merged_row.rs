//! One row as a walk over sorted sources shows it, borrowed from the source that has its newest change.
//!
//! What always holds: the value and its overflow together are the row's whole value; no part is in both.

use super::overflow::{OverflowPlace, StoredOverflow};
use crate::operation::RowVersion;
use bytes::Bytes;

/// One row of the walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergedRow<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) version: RowVersion,
    /// `None`: deleted. Without an overflow that is stored apart.
    pub(crate) value: Option<&'a [u8]>,
    /// That overflow.
    pub(crate) overflow: RowOverflow<'a>,
}

impl MergedRow<'_> {
    /// Bytes of its key and its value, with its overflow.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.at_hand_bytes()
            + if let RowOverflow::Stored(place) = self.overflow { u64::from(place.size_bytes) } else { 0 }
    }

    /// Bytes of its key and its value, with an overflow that is at hand.
    pub(crate) fn at_hand_bytes(&self) -> u64 {
        let overflow = match self.overflow {
            RowOverflow::InValue | RowOverflow::Stored(_) => 0,
            RowOverflow::Read(overflow) => overflow.size_bytes as usize,
            RowOverflow::InMemory(overflow) => overflow.len(),
        };
        (self.key.len() + self.value.map_or(0, <[u8]>::len) + overflow) as u64
    }
}

/// The overflow of the row that a walk stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowOverflow<'a> {
    /// It is in the value, or there is none.
    InValue,
    /// It is kept apart, there, and was not read.
    Stored(OverflowPlace),
    /// It is kept apart, and was read.
    Read(&'a StoredOverflow),
    /// It is to be kept apart.
    InMemory(&'a Bytes),
}
