//! One ordered read of a table over several shards.
//!
//! What always holds: keys come in their order, each with its rows of all shards at once; memory holds a
//! batch of each shard, and all batches together are bounded.

use crate::error::MoveError;
use crate::limits::{MERGE_BYTES_MAX, MERGE_ROWS_MAX};
use crate::rows::reader::{Found, Reader};
use crate::rows::side::Side;
use futures_util::future::try_join_all;
use shard_backend::{BatchBounds, Row, RowKey, TableSchema};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The rows of one key.
pub(crate) struct SameKey {
    pub(crate) key: RowKey,
    /// Each with its side, by its place.
    pub(crate) rows: Vec<(usize, Row)>,
}

/// Rows of several sides in the order of their keys.
pub(crate) struct Merged<'a> {
    readers: Vec<Reader<'a>>,
    heads: Vec<Option<Found>>,
    /// The heads' keys, the least first.
    order: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
}

/// Bounds of a batch of each of so many sides.
pub(crate) fn bounds_of(sides: usize) -> BatchBounds {
    let sides = sides.max(1);
    let usual = BatchBounds::default();
    BatchBounds {
        rows_max: usual.rows_max.min(MERGE_ROWS_MAX / sides).max(1),
        bytes_max: usual.bytes_max.min(MERGE_BYTES_MAX / sides),
        ..usual
    }
}

impl<'a> Merged<'a> {
    pub(crate) async fn new(sides: &'a [Side], table: &'a TableSchema) -> Result<Self, MoveError> {
        let mut readers: Vec<Reader<'a>> = sides.iter().map(|side| Reader::new(side, table)).collect();
        let heads = try_join_all(readers.iter_mut().map(Reader::next)).await?;
        let key =
            |(index, head): (usize, &Option<Found>)| Some(Reverse((head.as_ref()?.encoded.clone(), index)));
        let order = heads.iter().enumerate().filter_map(key).collect();
        Ok(Merged { readers, heads, order })
    }

    /// The next key.
    pub(crate) async fn next(&mut self) -> Result<Option<SameKey>, MoveError> {
        let Some(Reverse((least, first))) = self.order.pop() else { return Ok(None) };
        let Some(found) = self.take(first).await? else { return Ok(None) };
        let mut same = SameKey { key: found.key, rows: vec![(first, found.row)] };
        while self.order.peek().is_some_and(|Reverse((key, _))| *key == least) {
            let Some(Reverse((_, index))) = self.order.pop() else { break };
            if let Some(found) = self.take(index).await? {
                same.rows.push((index, found.row));
            }
        }
        Ok(Some(same))
    }

    /// The head of a side, in whose place comes the next one.
    async fn take(&mut self, index: usize) -> Result<Option<Found>, MoveError> {
        let next = self.readers[index].next().await?;
        if let Some(next) = &next {
            self.order.push(Reverse((next.encoded.clone(), index)));
        }
        Ok(std::mem::replace(&mut self.heads[index], next))
    }
}
