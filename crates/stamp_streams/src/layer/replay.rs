//! A stream from a place to its present end, parts read ahead.
//!
//! Small parts are read many at a time where bundles have them. What always holds: parts come in order, each
//! with the right checksum and length; at most [`PARTS_AHEAD_MAX`] requests and, unless one alone is for
//! more, [`READ_AHEAD_SIZE_BYTES`] are under way.

use crate::error::StampError;
use crate::extents::bundles::PARTS_WORTH_BUNDLES;
use crate::extents::parts::ReadPart;
use crate::layer::held::{Held, of_stamp};
use crate::layer::part_starts::Starts;
use base::BoxFuture;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use stamp::{BundlePath, ExtentName, Found, PartKind, StoredError};
use std::collections::VecDeque;
use std::sync::Arc;
use stream::{Location, ReplayBlocks, StreamError, StreamName, step_over_block, verify_block};

/// Parts, or bundles of them, that are read ahead.
const PARTS_AHEAD_MAX: usize = 16;
/// Their bytes.
const READ_AHEAD_SIZE_BYTES: u64 = 16 << 20;

/// A part to be read.
#[derive(Clone, Copy)]
struct PartToRead {
    extent: ExtentName,
    start: u64,
    end: u64,
}

/// What is read with one request: a part, or a bundle of several.
struct Piece {
    parts: Vec<PartToRead>,
    bundle: Option<BundlePath>,
}

impl Piece {
    fn size(&self) -> u64 {
        self.parts.iter().map(|part| part.end - part.start).sum()
    }
}

type PartRead = (PartToRead, Result<Bytes, StampError>);

/// Reads the blocks of a stream.
pub(super) struct StampReplay {
    held: Arc<Held>,
    /// Extents not begun, with their lengths.
    extents: VecDeque<(ExtentName, Option<u64>)>,
    /// Blocks of this extent before this offset are passed over.
    skipped: Option<(ExtentName, u64)>,
    /// Whether its small parts are in bundles.
    is_bundled: bool,
    pieces: VecDeque<Piece>,
    ahead: FuturesOrdered<BoxFuture<'static, Vec<PartRead>>>,
    ahead_size: u64,
    /// Parts of a bundle that are shown next.
    read: VecDeque<PartRead>,
    /// The part whose blocks are being shown, and how much of it was.
    current: Option<(PartToRead, Bytes, usize)>,
}

impl StampReplay {
    /// Reads `stream` from the block at `from`, or from its start.
    pub(super) fn new(
        held: Arc<Held>,
        stream: &StreamName,
        from: Option<Location>,
    ) -> Result<Self, StreamError> {
        let mut extents: VecDeque<_> = held.extents(stream)?.into();
        let mut skipped = None;
        if let Some(from) = from {
            while extents.front().is_some_and(|(extent, _)| extent.short() != from.extent) {
                extents.pop_front();
            }
            let (first, _) = extents.front().ok_or(StreamError::NoExtent(from.extent))?;
            skipped = Some((*first, from.offset));
        }
        let is_bundled = (held.range.surroundings().settings.bundles.of)(stream.as_str());
        // What is open has been sealed before a range is loaded.
        let listed: u64 = extents.iter().filter_map(|(_, length)| *length).sum();
        held.replay_progress.note_begun(listed.saturating_sub(skipped.map_or(0, |(_, from)| from)));
        Ok(StampReplay {
            held,
            extents,
            skipped,
            is_bundled,
            pieces: VecDeque::new(),
            ahead: FuturesOrdered::new(),
            ahead_size: 0,
            read: VecDeque::new(),
            current: None,
        })
    }

    /// Has as much read ahead as is allowed.
    async fn read_ahead(&mut self) -> Result<(), StreamError> {
        loop {
            if self.pieces.is_empty() && !self.begin_extent().await? {
                return Ok(());
            }
            let Some(size) = self.pieces.front().map(Piece::size) else { continue };
            let is_full =
                self.ahead.len() >= PARTS_AHEAD_MAX || self.ahead_size + size > READ_AHEAD_SIZE_BYTES;
            if is_full && !self.ahead.is_empty() {
                return Ok(());
            }
            let Some(piece) = self.pieces.pop_front() else { continue };
            self.ahead_size += size;
            let held = self.held.clone();
            self.ahead.push_back(Box::pin(async move { held.read_piece(piece).await }));
        }
    }

    /// The next extent's parts; false: there is none.
    async fn begin_extent(&mut self) -> Result<bool, StreamError> {
        let Some((extent, length)) = self.extents.pop_front() else { return Ok(false) };
        let from = self.skipped.filter(|(skipped, _)| *skipped == extent).map_or(0, |(_, from)| from);
        let held = &self.held;
        // It may have been sealed since the replay began.
        let length = length.or_else(|| held.listing().extents.get(&extent).and_then(|listed| listed.length));
        let starts = match length {
            Some(0) => return Ok(true),
            Some(length) => {
                let surroundings = held.range.surroundings();
                let starts = held.starts.sealed(surroundings, extent, length, || held.may_go_on());
                starts.await.map_err(of_stamp)?
            }
            None => Arc::new(held.starts.open(extent, held.open_length(extent))),
        };
        let parts = Starts::parts_from(&starts, from);
        let bundles = match self.is_bundled {
            true => self.held.bundles_worth_reading(extent, &parts).await,
            false => Vec::new(),
        };
        self.pieces.extend(pieces(extent, &parts, &bundles));
        Ok(true)
    }

    async fn next_block(&mut self) -> Result<Option<(Location, Bytes)>, StreamError> {
        loop {
            if let Some((part, body, at)) = &mut self.current {
                if *at < body.len() {
                    let (location, payload, behind) = block_in(part.extent, part.start, body, *at)?;
                    *at = behind;
                    let extent = part.extent;
                    if self.skipped.is_some_and(|(of, from)| of == extent && location.offset < from) {
                        continue;
                    }
                    return Ok(Some((location, payload)));
                }
                self.current = None;
            }
            let Some((part, read)) = self.read.pop_front() else {
                self.read_ahead().await?;
                let Some(read) = self.ahead.next().await else { return Ok(None) };
                self.ahead_size -= read.iter().map(|(part, _)| part.end - part.start).sum::<u64>();
                self.read.extend(read);
                continue;
            };
            let from = self.skipped.filter(|(of, _)| *of == part.extent).map_or(0, |(_, from)| from);
            self.held.replay_progress.note_read(part.end.saturating_sub(part.start.max(from)));
            self.current = Some((part, read.map_err(of_stamp)?, 0));
        }
    }
}

/// With which requests these parts of an extent are read: those that fill a bundle with one.
fn pieces(extent: ExtentName, parts: &[(u64, u64)], bundles: &[BundlePath]) -> Vec<Piece> {
    let (mut pieces, mut rest) = (Vec::new(), parts);
    while let Some((offset, _)) = rest.first() {
        let bundle = bundles.iter().find(|bundle| bundle.offset == *offset);
        let count = bundle.and_then(|bundle| rest.iter().position(|(_, end)| *end == bundle.end));
        let (bundle, count) = match count {
            Some(last) => (bundle.copied(), last + 1),
            None => (None, 1),
        };
        let (of_piece, behind) = rest.split_at(count);
        let parts = of_piece.iter().map(|(start, end)| PartToRead { extent, start: *start, end: *end });
        pieces.push(Piece { parts: parts.collect(), bundle });
        rest = behind;
    }
    pieces
}

/// The block at `at` of the body of the part at `start`: its place, its payload, and what is behind it.
pub(crate) fn block_in(
    extent: ExtentName,
    start: u64,
    body: &Bytes,
    at: usize,
) -> Result<(Location, Bytes, usize), StreamError> {
    let offset = start + at as u64;
    let extent = extent.short();
    let (size, _) = step_over_block(&body[at..], extent, offset)?;
    let len = (size - stream::BLOCK_HEADER_SIZE) as u32;
    let location = Location { extent, offset, len };
    let payload = verify_block(&body.slice(at..at + size), location)?;
    Ok((location, payload, at + size))
}

impl ReplayBlocks for StampReplay {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<(Location, Bytes)>, StreamError>> {
        Box::pin(self.next_block())
    }
}

impl Held {
    /// The bundles of an extent, if enough of these parts would be read one by one.
    async fn bundles_worth_reading(&self, extent: ExtentName, parts: &[(u64, u64)]) -> Vec<BundlePath> {
        let surroundings = self.range.surroundings();
        let to_read = parts.iter().filter(|(start, _)| surroundings.ahead.header(extent, *start).is_none());
        match to_read.take(PARTS_WORTH_BUNDLES).count() == PARTS_WORTH_BUNDLES {
            true => surroundings.list_bundles_of(extent).await,
            false => Vec::new(),
        }
    }

    /// The bodies of parts that must be there. What the bundle does not give as it should be is read one by
    /// one.
    async fn read_piece(&self, piece: Piece) -> Vec<PartRead> {
        let surroundings = self.range.surroundings();
        if let Some(bundle) = piece.bundle
            && let Ok(read) = surroundings.read_bundle(bundle).await
            && read
                .iter()
                .map(|(header, _)| (header.offset, header.end()))
                .eq(piece.parts.iter().map(|part| (part.start, part.end)))
        {
            let bodies = read.into_iter().map(|(_, body)| Ok(body));
            return piece.parts.into_iter().zip(bodies).collect();
        }
        let mut read = Vec::with_capacity(piece.parts.len());
        for part in piece.parts {
            read.push((part, self.read_whole(part).await));
        }
        read
    }

    /// The body of a part that must be there.
    async fn read_whole(&self, part: PartToRead) -> Result<Bytes, StampError> {
        let surroundings = self.range.surroundings();
        let mut back_off = surroundings.back_off();
        let what = || format!("part at {} of extent {}", part.start, part.extent);
        loop {
            if !self.may_go_on() {
                return Err(StampError::LeaseEnded);
            }
            match surroundings.read_part_of(part.extent, part.start, part.end - part.start).await {
                ReadPart::There(header, body)
                    if header.kind == PartKind::Part && header.end() == part.end =>
                {
                    return Ok(body);
                }
                ReadPart::There(..) => {
                    let why = format!("it does not end at {}", part.end);
                    return Err(StoredError::Malformed { what: what(), why }.into());
                }
                // Whoever has the range now may have deleted it.
                ReadPart::Not(Found::NotThere) if !self.may_go_on() => return Err(StampError::LeaseEnded),
                ReadPart::Not(Found::NotThere) => {
                    return Err(StoredError::Missing { what: what() }.into());
                }
                ReadPart::Not(Found::Damaged(error)) => return Err(error.into()),
                ReadPart::Not(_) => back_off.wait().await,
            }
        }
    }
}
