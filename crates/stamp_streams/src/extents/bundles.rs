//! Bundles of small parts: made by the owner of a log, read by whoever reads the log ahead or takes it.
//!
//! What always holds: nothing waits for a bundle, and nothing is lost with one: it is tried once, and what is
//! in none, or in one that is not as it should be, is read part by part; no more of a process are read and
//! sent at a time than have turns.

use crate::error::StampError;
use crate::extents::bundle_turns::BundleTurns;
use crate::extents::log_handle::Log;
use crate::extents::part_gather::Gathered;
use crate::settings::Breach;
use crate::surroundings::Surroundings;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use stamp::{
    AppendWindow, BundlePath, ExtentName, Found, PartHeader, PutAnswer, bundle_folder, bundles_folder,
    split_bundle,
};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bundles that are read at a time, of each extent of several.
const BUNDLES_AT_ONCE_MAX: usize = 4;
/// Parts to read that are worth a listing of bundles.
pub(crate) const PARTS_WORTH_BUNDLES: usize = 8;

impl Log {
    /// Parts were acknowledged: if enough of them wait, they are sent as a bundle.
    pub(crate) fn bundle_acknowledged(&self) {
        let life = &self.range.life;
        let planted = &life.surroundings.settings.planted;
        let mut state = self.core.state.lock();
        let end = match planted.has(Breach::BundleUnacknowledged) {
            true => state.window.as_ref().map(AppendWindow::next_offset),
            false => state.window.as_ref().map(AppendWindow::end),
        };
        let (Some(end), Some(gather)) = (end, state.gather.as_mut()) else { return };
        if !gather.has_bundle(end) {
            return;
        }
        let Some(turn) = BundleTurns::begin(&life.parts.bundles, life.surroundings.clock.monotonic()) else {
            return;
        };
        let Some(gathered) = gather.take(end) else { return };
        drop(state);
        let log = self.clone();
        let task = async move {
            let is_there = log.send_bundle(&gathered).await;
            turn.end(log.range.life.surroundings.clock.monotonic(), is_there);
            // More may wait by now.
            log.bundle_acknowledged();
        };
        life.surroundings.spawner.spawn("bundle", Box::pin(task));
    }

    /// Whether the store has it now.
    async fn send_bundle(&self, gathered: &Gathered) -> bool {
        if !self.range.life.holds() || !self.range.is_held() {
            return false;
        }
        let surroundings = &self.range.life.surroundings;
        let name = gathered.path().format(surroundings.settings.stamp);
        let answer = surroundings.put_named(&name, &gathered.content()).await;
        matches!(answer, PutAnswer::Created | PutAnswer::Refused)
    }
}

impl Surroundings {
    /// Keeps the parts from `from` on that are in bundles, as far as they are not kept yet.
    pub(crate) async fn keep_bundles(&self, extent: ExtentName, from: u64) {
        let mut paths = self.list_bundles_of(extent).await;
        paths.retain(|path| path.end > from && !self.keeps(*path));
        // The others would not be answered either.
        let is_away = AtomicBool::new(false);
        let reads = stream::iter(paths).map(|path| self.keep_bundle(path, &is_away));
        reads.buffer_unordered(BUNDLES_AT_ONCE_MAX).for_each(|()| async {}).await;
    }

    /// Whether all parts of a bundle are kept.
    fn keeps(&self, path: BundlePath) -> bool {
        let mut offset = path.offset;
        while offset < path.end {
            let Some((header, _)) = self.ahead.part(path.extent, offset, false) else { return false };
            offset = header.end();
        }
        true
    }

    async fn keep_bundle(&self, path: BundlePath, is_away: &AtomicBool) {
        if !self.ahead.is_keeping() || is_away.load(Ordering::Relaxed) {
            return;
        }
        match self.read_bundle(path).await {
            Ok(parts) => parts.iter().for_each(|(header, body)| self.ahead.keep(header, Some(body))),
            Err(Found::Unknown) => is_away.store(true, Ordering::Relaxed),
            Err(_) => {}
        }
    }

    /// The parts of a bundle: one try.
    pub(crate) async fn read_bundle(&self, path: BundlePath) -> Result<Vec<(PartHeader, Bytes)>, Found> {
        let Ok(_turn) = self.ahead.bundle_reads.turns.acquire().await else { return Err(Found::Unknown) };
        let stamp = self.settings.stamp;
        let name = path.format(stamp);
        let object = self.read_piece(&name, 0, self.settings.bundles.bounds.object_size_bytes_max()).await?;
        match split_bundle(&object, stamp, path) {
            Ok(parts) => Ok(parts.into_iter().map(|(header, body)| (header, object.slice(body))).collect()),
            Err(error) => {
                tracing::warn!(name, %error, "a bundle is not used; its parts are read one by one");
                Err(Found::Damaged(error))
            }
        }
    }

    /// The bundles of an extent in their order, as far as one page of one listing has them: a hint.
    pub(crate) async fn list_bundles_of(&self, extent: ExtentName) -> Vec<BundlePath> {
        let folder = bundle_folder(self.settings.stamp, extent);
        match self.try_object(self.objects.list(&folder, None)).await {
            Some(Ok(page)) => {
                page.names.iter().filter_map(|name| BundlePath::parse(name, self.settings.stamp)).collect()
            }
            Some(Err(_)) | None => Vec::new(),
        }
    }

    /// Lists the bundles of all extents.
    pub(crate) async fn list_bundles(&self) -> Result<Vec<BundlePath>, StampError> {
        let names = self.list_names(&bundles_folder(self.settings.stamp), None).await?;
        Ok(names.iter().filter_map(|name| BundlePath::parse(name, self.settings.stamp)).collect())
    }
}
