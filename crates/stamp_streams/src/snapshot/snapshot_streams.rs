//! What a snapshot knows of the streams of a range, and how their blocks are read.
//!
//! What always holds: lengths never change; a block is returned if its checksum, which is also over its
//! place, is right.

use crate::error::StampError;
use crate::extents::parts::ReadPart;
use crate::layer::extent_ids::ExtentIds;
use crate::layer::held::of_stamp;
use crate::layer::part_starts::PartStarts;
use crate::snapshot::part_cache::PartCache;
use crate::stores::store_error::StoreError;
use crate::surroundings::Surroundings;
use bytes::Bytes;
use stamp::{ExtentName, Found, PartKind, StoredError};
use std::collections::BTreeMap;
use std::time::Duration;
use stream::{BLOCK_HEADER_SIZE, Location, Owner, StreamError, StreamName, verify_block};

/// How often a part is tried to read.
const TRIES_MAX: usize = 8;
/// How long the list of an extent's parts is tried to read.
const READ_FOR: Duration = Duration::from_secs(60);

/// An extent: its length, and how many streams list it.
#[derive(Clone, Copy, Default)]
pub(super) struct Listed {
    pub(super) length: u64,
    pub(super) count: u64,
}

/// What the layer knows.
pub(super) struct SnapshotStreams {
    pub(super) surroundings: Surroundings,
    pub(super) owner: Owner,
    pub(super) streams: BTreeMap<StreamName, Vec<ExtentName>>,
    pub(super) listed: BTreeMap<ExtentName, Listed>,
    pub(super) ids: ExtentIds,
    pub(super) starts: PartStarts,
    pub(super) parts: PartCache,
}

impl SnapshotStreams {
    /// The extents of a stream, with their lengths.
    pub(super) fn extents(&self, stream: &StreamName) -> Result<Vec<(ExtentName, u64)>, StreamError> {
        let extents = self.streams.get(stream).ok_or_else(|| StreamError::NoStream(stream.clone()))?;
        Ok(extents.iter().map(|extent| (*extent, self.listed(*extent).length)).collect())
    }

    pub(super) fn listed(&self, extent: ExtentName) -> Listed {
        self.listed.get(&extent).copied().unwrap_or_default()
    }

    /// The parts of an extent from the one that has the byte at `from` on: where they begin and end.
    pub(super) async fn parts_from(
        &self,
        extent: ExtentName,
        from: u64,
    ) -> Result<Vec<(u64, u64)>, StreamError> {
        match self.listed(extent).length {
            0 => Ok(Vec::new()),
            length => {
                let starts = self.starts.sealed(&self.surroundings, extent, length, self.deadline()).await;
                Ok(starts.map_err(of_stamp)?.parts_from(from))
            }
        }
    }

    /// A reader that nobody waits for with a lease has an end of its patience.
    fn deadline(&self) -> impl Fn() -> bool {
        let clock = self.surroundings.clock.clone();
        let until = clock.monotonic() + READ_FOR;
        move || clock.monotonic() < until
    }

    pub(super) async fn read_block(&self, location: Location) -> Result<Bytes, StreamError> {
        let extent = self.ids.name(location.extent)?;
        let length = self.listed(extent).length;
        let starts = self.starts.sealed(&self.surroundings, extent, length, self.deadline()).await;
        let part = starts.map_err(of_stamp)?.part_at(location.offset);
        let what = || format!("extent {extent} has no part at {}", location.offset);
        let (start, end) = part.ok_or_else(|| StreamError::Corrupt(what()))?;
        let body = self.read_body(extent, start, end).await.map_err(of_stamp)?;
        let from = (location.offset - start) as usize;
        let to = from + BLOCK_HEADER_SIZE + location.len as usize;
        let block = if to <= body.len() { body.slice(from..to) } else { Bytes::new() };
        verify_block(&block, location)
    }

    /// The body of the part from `start` to `end`, which must be there.
    async fn read_body(&self, extent: ExtentName, start: u64, end: u64) -> Result<Bytes, StampError> {
        if let Some(body) = self.parts.part(extent, start) {
            return Ok(body);
        }
        let what = || format!("part at {start} of extent {extent}");
        let mut back_off = self.surroundings.back_off();
        for _ in 0..TRIES_MAX {
            match self.surroundings.read_part(extent, start).await {
                ReadPart::There(header, body) if header.kind == PartKind::Part && header.end() == end => {
                    self.parts.keep(extent, start, body.clone());
                    return Ok(body);
                }
                ReadPart::There(..) => {
                    let why = format!("it does not end at {end}");
                    return Err(StoredError::Malformed { what: what(), why }.into());
                }
                ReadPart::Not(Found::NotThere) => {
                    return Err(StoredError::Missing { what: what() }.into());
                }
                ReadPart::Not(Found::Damaged(error)) => return Err(error.into()),
                ReadPart::Not(_) => back_off.wait().await,
            }
        }
        Err(StampError::store(&what(), StoreError::Unavailable("no answer".to_owned())))
    }
}
