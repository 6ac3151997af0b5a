//! Headers of an extent's parts, read side by side before a walk asks for them one after the other.
//!
//! A walk from the beginning of an extent of a thousand parts would wait for a thousand answers. What a
//! listing names is read ahead; the listing is a hint only: the walk computes the next name by itself, and
//! what was not read ahead is read then. A process that keeps what it reads for a load reads small parts of
//! what that reads whole at once, those that are in bundles from there. What always holds: only headers that
//! are there are read ahead; that something is not there is never taken from here.

use crate::extents::bundles::PARTS_WORTH_BUNDLES;
use crate::surroundings::Surroundings;
use futures_util::StreamExt;
use futures_util::stream;
use stamp::{ExtentName, Found};
use std::collections::BTreeMap;

/// Headers that are read at a time, of each walk of several: more would only queue before a small store.
const READS_AT_ONCE_MAX: usize = 16;
/// Headers that are held at a time.
const HELD_COUNT_MAX: usize = 1024;

/// Bytes of a part that is read whole where its header is asked for, if what is read is kept.
const WHOLE_SIZE_BYTES_MAX: u64 = 256 << 10;

/// Reads a header; where what is read is kept, with its part, which is one request then, and not two.
async fn read_header(
    surroundings: &Surroundings,
    extent: ExtentName,
    offset: u64,
    behind: Option<u64>,
    keeps_whole: bool,
) -> Found {
    let size = behind.and_then(|behind| behind.checked_sub(offset));
    let is_whole =
        |size: &u64| keeps_whole && *size <= WHOLE_SIZE_BYTES_MAX && surroundings.ahead.is_keeping();
    match size.filter(is_whole) {
        Some(size) => match surroundings.read_part_sized(extent, offset, size).await {
            Ok((header, _)) => Found::Header(header),
            Err(found) => found,
        },
        None => surroundings.read_header(extent, offset).await,
    }
}

/// Headers that were read ahead.
#[derive(Default)]
pub(crate) struct HeadersAhead {
    /// Offsets that a listing named and that are not read yet, the next one last; none before the listing.
    listed: Option<Vec<u64>>,
    held: BTreeMap<u64, Found>,
    /// The header before was read before the walk began.
    was_known: bool,
    keeps_whole: bool,
    has_read_bundles: bool,
}

impl HeadersAhead {
    /// Of an extent whose small parts are read whole, if what is read is kept.
    pub(crate) fn new(keeps_whole: bool) -> Self {
        HeadersAhead { keeps_whole, ..HeadersAhead::default() }
    }

    /// The header at `offset`, behind which the walk asks for the next one.
    pub(crate) async fn read(
        &mut self,
        surroundings: &Surroundings,
        extent: ExtentName,
        offset: u64,
    ) -> Found {
        if let Some(header) = surroundings.ahead.header(extent, offset) {
            self.was_known = true;
            self.held.remove(&offset);
            return Found::Header(header);
        }
        // Most tails are empty or short, and have not grown since they were read ahead: the first header that
        // is not known is read without a listing.
        if offset > 0 && self.held.is_empty() && !std::mem::take(&mut self.was_known) {
            self.fill(surroundings, extent, offset).await;
        }
        match self.held.remove(&offset) {
            Some(found) => found,
            None => surroundings.read_header(extent, offset).await,
        }
    }

    async fn fill(&mut self, surroundings: &Surroundings, extent: ExtentName, from: u64) {
        if self.listed.is_none() {
            // Without a listing the walk goes on alone.
            let mut offsets = surroundings.list_offsets(extent, from).await.unwrap_or_default();
            offsets.sort_unstable_by(|a, b| b.cmp(a));
            self.listed = Some(offsets);
        }
        let Some(listed) = &mut self.listed else { return };
        while listed.last().is_some_and(|offset| *offset < from) {
            listed.pop();
        }
        let uses_bundles = self.keeps_whole && listed.len() >= PARTS_WORTH_BUNDLES;
        if uses_bundles && !std::mem::replace(&mut self.has_read_bundles, true) {
            // What is read below is taken from them.
            surroundings.keep_bundles(extent, from).await;
        }
        let next = listed.split_off(listed.len().saturating_sub(HELD_COUNT_MAX));
        let mut reads = Vec::with_capacity(next.len());
        let (mut behind, keeps_whole) = (None, self.keeps_whole);
        for offset in next {
            let read = read_header(surroundings, extent, offset, behind, keeps_whole);
            reads.push(async move { (offset, read.await) });
            behind = Some(offset);
        }
        // The next one of them is the last one of the list.
        reads.reverse();
        let read: Vec<_> = stream::iter(reads).buffered(READS_AT_ONCE_MAX).collect().await;
        self.held.extend(read.into_iter().filter(|(_, found)| matches!(found, Found::Header(_))));
    }
}
