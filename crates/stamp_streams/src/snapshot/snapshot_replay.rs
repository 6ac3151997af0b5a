//! A stream of a snapshot from a place to its end, parts read ahead.
//!
//! What always holds: blocks come in order; a part that is missing, damaged or of another length is an error,
//! never an end.

use crate::extents::bundles::PARTS_WORTH_BUNDLES;
use crate::layer::replay::block_in;
use crate::snapshot::parts_ahead::{ObjectRead, PartsAhead};
use crate::snapshot::snapshot_streams::SnapshotStreams;
use base::BoxFuture;
use bytes::Bytes;
use stamp::{ExtentName, PartKind};
use std::collections::VecDeque;
use std::sync::Arc;
use stream::{Location, ReplayBlocks, StreamError, StreamName};

/// The parts of the extent that is being read: where they begin and end.
struct Reading {
    extent: ExtentName,
    parts: VecDeque<(u64, u64)>,
    ahead: PartsAhead,
}

/// The part whose blocks are being shown, and how much of it was.
struct Current {
    extent: ExtentName,
    start: u64,
    body: Bytes,
    at: usize,
}

/// Reads the blocks of a stream.
pub(super) struct SnapshotReplay {
    inner: Arc<SnapshotStreams>,
    /// Extents not begun, with their lengths.
    extents: VecDeque<(ExtentName, u64)>,
    /// Blocks of this extent before this offset are passed over.
    skipped: Option<(ExtentName, u64)>,
    /// Whether its parts are kept for a load.
    is_kept: bool,
    reading: Option<Reading>,
    current: Option<Current>,
}

impl SnapshotReplay {
    /// Reads `stream` from the block at `from`, or from its start.
    pub(super) fn new(
        inner: Arc<SnapshotStreams>,
        stream: &StreamName,
        from: Option<Location>,
    ) -> Result<Self, StreamError> {
        let mut extents: VecDeque<_> = inner.extents(stream)?.into();
        let mut skipped = None;
        if let Some(from) = from {
            while extents.front().is_some_and(|(extent, _)| extent.short() != from.extent) {
                extents.pop_front();
            }
            let (first, _) = extents.front().ok_or(StreamError::NoExtent(from.extent))?;
            skipped = Some((*first, from.offset));
        }
        let is_kept = inner.surroundings.ahead.keeps_whole(stream.as_str());
        Ok(SnapshotReplay { inner, extents, skipped, is_kept, reading: None, current: None })
    }

    /// The next extent's parts; false: there is none.
    async fn begin_extent(&mut self) -> Result<bool, StreamError> {
        let Some((extent, _)) = self.extents.pop_front() else { return Ok(false) };
        let from = self.skipped.filter(|(skipped, _)| *skipped == extent).map_or(0, |(_, from)| from);
        let parts = self.inner.parts_from(extent, from).await?;
        let surroundings = &self.inner.surroundings;
        let is_kept = |(start, _): &(u64, u64)| surroundings.ahead.part(extent, *start, false).is_some();
        if self.is_kept
            && parts.iter().filter(|part| !is_kept(part)).take(PARTS_WORTH_BUNDLES).count()
                == PARTS_WORTH_BUNDLES
        {
            surroundings.keep_bundles(extent, from).await;
        }
        let hints: VecDeque<_> = parts.iter().map(|(start, end)| (*start, end - start)).collect();
        let ahead = PartsAhead::new(&self.inner.surroundings, extent, hints);
        self.reading = Some(Reading { extent, parts: parts.into(), ahead });
        Ok(true)
    }

    /// The next part; none behind the last one.
    async fn next_part(&mut self) -> Result<Option<Current>, StreamError> {
        loop {
            let Some(reading) = &mut self.reading else {
                match self.begin_extent().await? {
                    true => continue,
                    false => return Ok(None),
                }
            };
            let Some((start, end)) = reading.parts.pop_front() else {
                self.reading = None;
                continue;
            };
            let extent = reading.extent;
            let what = || format!("part at {start} of extent {extent}");
            return match reading.ahead.read(start).await {
                ObjectRead::There(header, body) if header.kind == PartKind::Part && header.end() == end => {
                    match header.check_body(&body) {
                        Ok(()) => Ok(Some(Current { extent, start, body, at: 0 })),
                        Err(error) => Err(StreamError::Corrupt(error.to_string())),
                    }
                }
                ObjectRead::There(..) => {
                    Err(StreamError::Corrupt(format!("{} does not end at {end}", what())))
                }
                ObjectRead::NotThere => Err(StreamError::Corrupt(format!("{} is missing", what()))),
                ObjectRead::Damaged(error) => Err(StreamError::Corrupt(error.to_string())),
                ObjectRead::NoAnswer => Err(StreamError::Unavailable(format!("{}: no answer", what()))),
            };
        }
    }

    async fn next_block(&mut self) -> Result<Option<(Location, Bytes)>, StreamError> {
        loop {
            if let Some(current) = &mut self.current
                && current.at < current.body.len()
            {
                let extent = current.extent;
                let (location, payload, behind) = block_in(extent, current.start, &current.body, current.at)?;
                current.at = behind;
                if self.skipped.is_some_and(|(of, from)| of == extent && location.offset < from) {
                    continue;
                }
                return Ok(Some((location, payload)));
            }
            self.current = self.next_part().await?;
            if self.current.is_none() {
                return Ok(None);
            }
        }
    }
}

impl ReplayBlocks for SnapshotReplay {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<(Location, Bytes)>, StreamError>> {
        Box::pin(self.next_block())
    }
}
