//! The layer: an implementation of [`stream::StreamLayer`], each method by what has it.

use crate::error::StampError;
use crate::layer::extent_ids::ExtentIds;
use crate::layer::held::Held;
use crate::layer::replay::StampReplay;
use crate::layer::replay_progress::ReplayProgress;
use crate::migration::content::is_unfinished;
use crate::range::owned_range::OwnedRange;
use base::BoxFuture;
use bytes::Bytes;
use std::sync::Arc;
use stream::{
    ExtentId, Incarnation, Location, Owner, ReplayBlocks, StreamChange, StreamError, StreamLayer, StreamName,
    StreamStat,
};

/// The streams of a range that this process holds.
pub struct StampLayer(Arc<Held>);

impl StampLayer {
    /// The streams of a range that was taken and not read yet. Streams whose removal was cut off go on to go.
    ///
    /// # Errors
    ///
    /// If the document is not one that a process makes, or the range is not held any more.
    /// [`StampError::Setup`] if a migration into the stamp is not finished.
    pub async fn open(range: Arc<OwnedRange>) -> Result<Arc<Self>, StampError> {
        if is_unfinished(&range.document()) {
            return Err(StampError::Setup(
                "a migration into this stamp is not finished: run larimar migrate again, with --abandon to drop what \
                 it has copied"
                    .to_owned(),
            ));
        }
        let ids = ExtentIds::default();
        ids.learn(&range.document())?;
        let layer = StampLayer(Arc::new(Held::new(range, ids)));
        if let Err(error) = layer.0.remove_going().await {
            tracing::info!(%error, "streams that were removed are not emptied yet");
        }
        Ok(Arc::new(layer))
    }

    /// How far replays of its streams are.
    pub fn replay_progress(&self) -> Arc<ReplayProgress> {
        self.0.replay_progress.clone()
    }
}

impl StreamLayer for StampLayer {
    fn list(&self, prefix: &str) -> Vec<StreamName> {
        let listing = self.0.listing();
        let names = listing.streams.keys().filter(|name| name.as_str().starts_with(prefix));
        let mut names: Vec<StreamName> = names.cloned().collect();
        names.sort();
        names
    }

    fn count(&self) -> u64 {
        self.0.listing().streams.len() as u64
    }

    fn exists(&self, stream: &StreamName) -> bool {
        self.0.stream(stream).is_ok()
    }

    fn owner(&self, stream: &StreamName) -> Result<Owner, StreamError> {
        self.0.stream(stream).map(|_| self.0.range.owner())
    }

    fn stat(&self, stream: &StreamName) -> Result<StreamStat, StreamError> {
        self.0.stat(stream)
    }

    fn listed_by(&self, extent: ExtentId) -> u64 {
        let Ok(name) = self.0.ids.name(extent) else { return 0 };
        self.0.listing().extents.get(&name).map_or(0, |listed| listed.count)
    }

    fn extent_size_bytes_max(&self) -> u64 {
        self.0.range.extent_size_bytes()
    }

    fn incarnation(&self) -> Incarnation {
        self.0.range.owner().incarnation
    }

    fn has_joined(&self, incarnation: Incarnation) -> bool {
        // Whoever had the range before can do nothing any more.
        incarnation == self.0.range.owner().incarnation
    }

    fn check_writes(&self) -> Result<(), StreamError> {
        match self.0.range.stopped() {
            None => Ok(()),
            Some(stop) => Err(StreamError::WritesStopped(stop.to_string())),
        }
    }

    fn missing_list_bytes(&self) -> u64 {
        self.0.range.missing_document_bytes()
    }

    fn spawn_appending(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        self.0.range.spawn(name, task);
    }

    fn create<'a>(
        &'a self,
        streams: &'a [StreamName],
        owner: Owner,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(async move {
            let changes: Vec<_> =
                streams.iter().map(|stream| StreamChange::Create(stream.owned_by(owner))).collect();
            self.0.modify(&changes).await
        })
    }

    fn append<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
        blocks: Vec<Bytes>,
    ) -> BoxFuture<'a, Result<Vec<Location>, StreamError>> {
        Box::pin(self.0.append(stream, owner, blocks))
    }

    fn take_over<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        // The range was taken with all of its streams.
        let taken = self.0.stream(stream).and_then(|_| self.0.check_owner(stream, owner));
        Box::pin(std::future::ready(taken))
    }

    fn read<'a>(&'a self, location: Location) -> BoxFuture<'a, Result<Bytes, StreamError>> {
        Box::pin(self.0.read(location))
    }

    fn read_run<'a>(&'a self, run: &'a [Location]) -> BoxFuture<'a, Result<Vec<Bytes>, StreamError>> {
        Box::pin(self.0.read_run(run))
    }

    fn replay(
        &self,
        stream: &StreamName,
        from: Option<Location>,
    ) -> Result<Box<dyn ReplayBlocks>, StreamError> {
        Ok(Box::new(StampReplay::new(self.0.clone(), stream, from)?))
    }

    fn trim<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
        first_kept: ExtentId,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(self.0.trim(stream, owner, first_kept))
    }

    fn seal<'a>(
        &'a self,
        stream: &'a StreamName,
        owner: Owner,
        extent: ExtentId,
    ) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(self.0.seal(stream, owner, extent))
    }

    fn multi_modify<'a>(&'a self, changes: &'a [StreamChange]) -> BoxFuture<'a, Result<(), StreamError>> {
        Box::pin(self.0.modify(changes))
    }

    fn close<'a>(&'a self) -> BoxFuture<'a, ()> {
        // Whoever took the range gives it up.
        Box::pin(std::future::ready(()))
    }
}
