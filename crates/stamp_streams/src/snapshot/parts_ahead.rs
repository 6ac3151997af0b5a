//! Objects of an extent read whole, ahead of the reader that asks for one after the other.
//!
//! Where the next ones lie comes as hints, from a seal or a listing; the reader computes each offset by
//! itself. What always holds: at most [`OBJECTS_AHEAD_MAX`] objects and, unless one alone is larger,
//! [`READ_AHEAD_SIZE_BYTES`] of hinted sizes are under way; a hint that is wrong costs a request and changes
//! nothing.

use crate::surroundings::Surroundings;
use base::BoxFuture;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use stamp::{ExtentName, Found, PartHeader, StoredError};
use std::collections::VecDeque;

/// Objects that are read ahead.
const OBJECTS_AHEAD_MAX: usize = 16;
/// Their bytes.
const READ_AHEAD_SIZE_BYTES: u64 = 32 << 20;
/// How often an object is tried to read.
const TRIES_MAX: usize = 8;

/// What is at an offset of an extent.
pub(super) enum ObjectRead {
    /// A part or a seal. Its body is not checked.
    There(PartHeader, Bytes),
    NotThere,
    /// Its header does not read.
    Damaged(StoredError),
    /// The store does not say.
    NoAnswer,
}

/// An object that is hinted: its offset, and how many bytes its body likely has.
pub(super) type Hint = (u64, u64);

/// Reads objects of one extent.
pub(super) struct PartsAhead {
    surroundings: Surroundings,
    extent: ExtentName,
    /// Not begun, in the order of their offsets.
    hints: VecDeque<Hint>,
    under_way: VecDeque<Hint>,
    reads: FuturesOrdered<BoxFuture<'static, ObjectRead>>,
    size_bytes: u64,
}

impl PartsAhead {
    /// Of `extent`, whose objects likely lie there.
    pub(super) fn new(
        surroundings: &Surroundings,
        extent: ExtentName,
        hints: impl Into<VecDeque<Hint>>,
    ) -> Self {
        PartsAhead {
            surroundings: surroundings.clone(),
            extent,
            hints: hints.into(),
            under_way: VecDeque::new(),
            reads: FuturesOrdered::new(),
            size_bytes: 0,
        }
    }

    /// The object at `offset`, behind which the reader asks for the next one.
    pub(super) async fn read(&mut self, offset: u64) -> ObjectRead {
        loop {
            self.fill();
            let Some((at, size_bytes)) = self.under_way.front().copied().filter(|(at, _)| *at <= offset)
            else {
                return read_object(self.surroundings.clone(), self.extent, offset, None).await;
            };
            self.under_way.pop_front();
            self.size_bytes -= size_bytes;
            let read = self.reads.next().await;
            if at == offset {
                return read.unwrap_or(ObjectRead::NoAnswer);
            }
        }
    }

    fn fill(&mut self) {
        while let Some((offset, size_bytes)) = self.hints.front().copied() {
            let is_full = self.under_way.len() >= OBJECTS_AHEAD_MAX
                || self.size_bytes.saturating_add(size_bytes) > READ_AHEAD_SIZE_BYTES;
            if is_full && !self.under_way.is_empty() {
                return;
            }
            self.hints.pop_front();
            self.under_way.push_back((offset, size_bytes));
            self.size_bytes += size_bytes;
            let read = read_object(self.surroundings.clone(), self.extent, offset, Some(size_bytes));
            self.reads.push_back(Box::pin(read));
        }
    }
}

/// Reads a whole object, for a bounded number of tries: with one request, if its body has the size that is
/// hinted.
async fn read_object(
    surroundings: Surroundings,
    extent: ExtentName,
    offset: u64,
    hint: Option<u64>,
) -> ObjectRead {
    let mut back_off = surroundings.back_off();
    for _ in 0..TRIES_MAX {
        let read = match hint.filter(|size_bytes| *size_bytes > 0) {
            Some(size_bytes) => surroundings.read_part_sized(extent, offset, size_bytes).await,
            None => surroundings.read_part_unchecked(extent, offset).await,
        };
        match read {
            Ok((header, body)) => return ObjectRead::There(header, body),
            Err(Found::NotThere) => return ObjectRead::NotThere,
            Err(Found::Damaged(error)) => return ObjectRead::Damaged(error),
            Err(_) => back_off.wait().await,
        }
    }
    ObjectRead::NoAnswer
}
