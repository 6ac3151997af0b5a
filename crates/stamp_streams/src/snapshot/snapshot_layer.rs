//! The streams of a range at a snapshot, to read: what is on them is that of the documents at the snapshot's
//! revision, of open extents up to where they ended when the layer was opened.
//!
//! What always holds: every change is refused; lengths never change; a block is returned if its checksum,
//! which is also over its place, is right.

use crate::error::StampError;
use crate::extents::parts::ReadPart;
use crate::layer::extent_ids::ExtentIds;
use crate::layer::held::{GOING, of_stamp};
use crate::layer::part_starts::PartStarts;
use crate::snapshot::ends::find_ends;
use crate::snapshot::part_cache::PartCache;
use crate::snapshot::snapshot_replay::SnapshotReplay;
use crate::snapshot::stamp_snapshot::StampSnapshot;
use crate::stores::store_error::StoreError;
use crate::surroundings::Surroundings;
use base::BoxFuture;
use bytes::Bytes;
use stamp::{ExtentName, Found, PartKind, RangeId, StoredError};
use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;
use stream::{
    BLOCK_HEADER_SIZE, ExtentId, Incarnation, Location, Owner, ReplayBlocks, StreamChange, StreamError,
    StreamLayer, StreamName, StreamStat, verify_block,
};

/// How often a part is tried to read.
const TRIES_MAX: usize = 8;

/// An extent: its length, and how many streams list it.
#[derive(Clone, Copy, Default)]
struct Listed {
    length: u64,
    count: u64,
}

/// What the layer knows.
pub(super) struct Inner {
    pub(super) surroundings: Surroundings,
    owner: Owner,
    streams: BTreeMap<StreamName, Vec<ExtentName>>,
    listed: BTreeMap<ExtentName, Listed>,
    ids: ExtentIds,
    pub(super) starts: PartStarts,
    parts: PartCache,
}

/// The streams of a range, to read.
pub struct SnapshotLayer(Arc<Inner>);

impl SnapshotLayer {
    /// The streams of a range of the snapshot.
    ///
    /// # Errors
    ///
    /// If the snapshot has no such range, an open extent's chain of parts is broken, or the object store
    /// can't be reached.
    pub async fn open(snapshot: &StampSnapshot, range: RangeId) -> Result<Arc<Self>, StampError> {
        let (layer, broken) = Self::open_damaged(snapshot, range).await?;
        match broken.into_iter().next() {
            Some((_, error)) => Err(error),
            None => Ok(layer),
        }
    }

    /// The same, whatever is the matter with open extents: one whose chain is broken ends before the break.
    /// Those are named with what is wrong.
    ///
    /// # Errors
    ///
    /// If the snapshot has no such range, or its document can't be used.
    pub async fn open_damaged(
        snapshot: &StampSnapshot,
        range: RangeId,
    ) -> Result<(Arc<Self>, Vec<(ExtentName, StampError)>), StampError> {
        let Some(found) = snapshot.ranges().get(&range) else { return Err(StampError::NotMine(range)) };
        let ids = ExtentIds::default();
        ids.learn(&found.document)?;
        let mut listed: BTreeMap<ExtentName, Listed> = BTreeMap::new();
        let mut open = Vec::new();
        for extent in snapshot.extents(range) {
            let (length, count) = (extent.length.unwrap_or(0), extent.purposes.len() as u64);
            listed.insert(extent.name, Listed { length, count });
            if extent.length.is_none() {
                open.push(extent.name);
            }
        }
        let mut broken = Vec::new();
        for end in find_ends(snapshot.surroundings(), &open).await {
            listed.entry(end.extent).or_default().length = end.length;
            broken.extend(end.broken.map(|error| (end.extent, error)));
        }
        let streams = found.document.streams.values().filter(|entry| !entry.purpose.starts_with(GOING));
        let streams = streams.map(|entry| {
            let extents = entry.extents.iter().map(|extent| extent.name).collect();
            (StreamName::new(&entry.purpose), extents)
        });
        let own = found.own;
        let incarnation = own.owner.unwrap_or(Incarnation::UNKNOWN);
        let inner = Inner {
            surroundings: snapshot.surroundings().clone(),
            owner: Owner { incarnation, epoch: own.epoch },
            streams: streams.collect(),
            listed,
            ids,
            starts: PartStarts::default(),
            parts: PartCache::default(),
        };
        Ok((Arc::new(SnapshotLayer(Arc::new(inner))), broken))
    }
}

impl SnapshotLayer {
    /// All extents that are listed, with their lengths: those of open ones as they were found.
    pub fn lengths(&self) -> Vec<(ExtentName, u64)> {
        self.0.listed.iter().map(|(extent, listed)| (*extent, listed.length)).collect()
    }
}

impl Inner {
    /// The extents of a stream, with their lengths.
    pub(super) fn extents(&self, stream: &StreamName) -> Result<Vec<(ExtentName, u64)>, StreamError> {
        let extents = self.streams.get(stream).ok_or_else(|| StreamError::NoStream(stream.clone()))?;
        Ok(extents.iter().map(|extent| (*extent, self.listed(*extent).length)).collect())
    }

    fn listed(&self, extent: ExtentName) -> Listed {
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
                let starts = self.starts.sealed(&self.surroundings, extent, length, || true).await;
                Ok(starts.map_err(of_stamp)?.parts_from(from))
            }
        }
    }

    async fn read_block(&self, location: Location) -> Result<Bytes, StreamError> {
        let extent = self.ids.name(location.extent)?;
        let length = self.listed(extent).length;
        let starts = self.starts.sealed(&self.surroundings, extent, length, || true).await;
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

fn read_only() -> StreamError {
    StreamError::Unavailable("these streams are a snapshot of a stamp: they are read only".to_owned())
}

fn refused<'a>() -> BoxFuture<'a, Result<(), StreamError>> {
    Box::pin(ready(Err(read_only())))
}

impl StreamLayer for SnapshotLayer {
    fn list(&self, prefix: &str) -> Vec<StreamName> {
        self.0.streams.keys().filter(|name| name.as_str().starts_with(prefix)).cloned().collect()
    }

    fn count(&self) -> u64 {
        self.0.streams.len() as u64
    }

    fn exists(&self, stream: &StreamName) -> bool {
        self.0.streams.contains_key(stream)
    }

    fn owner(&self, stream: &StreamName) -> Result<Owner, StreamError> {
        self.0.extents(stream).map(|_| self.0.owner)
    }

    fn stat(&self, stream: &StreamName) -> Result<StreamStat, StreamError> {
        let extents = self.0.extents(stream)?.into_iter();
        Ok(StreamStat { extents: extents.map(|(extent, length)| (extent.short(), length)).collect() })
    }

    fn listed_by(&self, extent: ExtentId) -> u64 {
        self.0.ids.name(extent).map_or(0, |name| self.0.listed(name).count)
    }

    fn extent_size_bytes_max(&self) -> u64 {
        self.0.surroundings.settings.extent_size_bytes
    }

    fn incarnation(&self) -> Incarnation {
        self.0.owner.incarnation
    }

    fn has_joined(&self, incarnation: Incarnation) -> bool {
        incarnation == self.0.owner.incarnation
    }

    fn check_writes(&self) -> Result<(), StreamError> {
        Err(read_only())
    }

    fn spawn_appending(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        self.0.surroundings.spawner.spawn(name, task);
    }

    fn create<'a>(&'a self, _: &'a [StreamName], _: Owner) -> BoxFuture<'a, Result<(), StreamError>> {
        refused()
    }

    fn append<'a>(
        &'a self,
        _: &'a StreamName,
        _: Owner,
        _: Vec<Bytes>,
    ) -> BoxFuture<'a, Result<Vec<Location>, StreamError>> {
        Box::pin(ready(Err(read_only())))
    }

    fn take_over<'a>(&'a self, _: &'a StreamName, _: Owner) -> BoxFuture<'a, Result<(), StreamError>> {
        refused()
    }

    fn read<'a>(&'a self, location: Location) -> BoxFuture<'a, Result<Bytes, StreamError>> {
        Box::pin(self.0.read_block(location))
    }

    fn read_run<'a>(&'a self, run: &'a [Location]) -> BoxFuture<'a, Result<Vec<Bytes>, StreamError>> {
        Box::pin(async move {
            let mut payloads = Vec::with_capacity(run.len());
            for location in run {
                payloads.push(self.0.read_block(*location).await?);
            }
            Ok(payloads)
        })
    }

    fn replay(
        &self,
        stream: &StreamName,
        from: Option<Location>,
    ) -> Result<Box<dyn ReplayBlocks>, StreamError> {
        Ok(Box::new(SnapshotReplay::new(self.0.clone(), stream, from)?))
    }

    fn trim<'a>(
        &'a self,
        _: &'a StreamName,
        _: Owner,
        _: ExtentId,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        refused()
    }

    fn seal<'a>(
        &'a self,
        _: &'a StreamName,
        _: Owner,
        _: ExtentId,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        refused()
    }

    fn multi_modify<'a>(&'a self, _: &'a [StreamChange]) -> BoxFuture<'a, Result<(), StreamError>> {
        refused()
    }

    fn close<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }
}
