//! The streams of a range at a snapshot, to read: what is on them is that of the documents at the snapshot's
//! revision, of open extents up to where they ended when the layer was opened.
//!
//! What always holds: every change is refused; lengths never change; a block is returned if its checksum,
//! which is also over its place, is right.

use crate::error::StampError;
use crate::layer::extent_ids::ExtentIds;
use crate::layer::held::GOING;
use crate::layer::part_starts::PartStarts;
use crate::snapshot::ends::{OpenExtent, find_ends};
use crate::snapshot::part_cache::PartCache;
use crate::snapshot::snapshot_replay::SnapshotReplay;
use crate::snapshot::snapshot_streams::{Listed, SnapshotStreams};
use crate::snapshot::stamp_snapshot::StampSnapshot;
use base::BoxFuture;
use bytes::Bytes;
use stamp::{ExtentName, RangeId};
use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;
use stream::{
    ExtentId, Incarnation, Location, Owner, ReplayBlocks, StreamChange, StreamError, StreamLayer, StreamName,
    StreamStat,
};

/// The streams of a range, to read.
pub struct SnapshotLayer(Arc<SnapshotStreams>);

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
                let ahead = &snapshot.surroundings().ahead;
                let loads = extent.purposes.iter().any(|purpose| ahead.keeps_whole(purpose));
                open.push(OpenExtent { extent: extent.name, loads });
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
        let streams_of_range = SnapshotStreams {
            surroundings: snapshot.surroundings().clone(),
            owner: Owner { incarnation, epoch: own.epoch },
            streams: streams.collect(),
            listed,
            ids,
            starts: PartStarts::default(),
            parts: PartCache::default(),
        };
        Ok((Arc::new(SnapshotLayer(Arc::new(streams_of_range))), broken))
    }
}

impl SnapshotLayer {
    /// All extents that are listed, with their lengths: those of open ones as they were found.
    pub fn lengths(&self) -> Vec<(ExtentName, u64)> {
        self.0.listed.iter().map(|(extent, listed)| (*extent, listed.length)).collect()
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
