//! Bundles of small parts: made by the owner of a log, read by whoever reads the log ahead or takes it.
//!
//! What always holds: nothing waits for a bundle, and nothing is lost with one: it is tried once, and what is
//! in none, or in one that is not as it should be, is read part by part.

use crate::error::StampError;
use crate::extents::log_handle::Log;
use crate::settings::Breach;
use crate::surroundings::Surroundings;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use stamp::{AppendWindow, BundlePath, ExtentName, bundle_folder, bundles_folder, split_bundle};

/// Bundles that are read at a time, of each extent of several.
const BUNDLES_AT_ONCE_MAX: usize = 4;

impl Log {
    /// Parts were acknowledged: if enough of them wait, they are sent as a bundle. One at a time.
    pub(crate) fn bundle_acknowledged(&self) {
        let planted = &self.range.life.surroundings.settings.planted;
        let mut state = self.core.state.lock();
        if state.is_bundling {
            return;
        }
        let end = match planted.has(Breach::BundleUnacknowledged) {
            true => state.window.as_ref().map(AppendWindow::next_offset),
            false => state.window.as_ref().map(AppendWindow::end),
        };
        let Some(end) = end else { return };
        let Some((path, content)) = state.gather.as_mut().and_then(|gather| gather.take(end)) else { return };
        state.is_bundling = true;
        drop(state);
        let log = self.clone();
        let task = async move {
            log.send_bundle(path, content).await;
            log.core.state.lock().is_bundling = false;
        };
        self.range.life.surroundings.spawner.spawn("bundle", Box::pin(task));
    }

    async fn send_bundle(&self, path: BundlePath, content: Bytes) {
        if self.range.life.holds() && self.range.is_held() {
            let surroundings = &self.range.life.surroundings;
            // Whatever comes of it.
            surroundings.put_named(&path.format(surroundings.settings.stamp), &content).await;
        }
    }
}

impl Surroundings {
    /// Keeps the parts from `from` on that are in bundles, as far as they are not kept yet.
    pub(crate) async fn keep_bundles(&self, extent: ExtentName, from: u64) {
        let listed = self.list_bundles_in(&bundle_folder(self.settings.stamp, extent)).await;
        let mut paths = listed.unwrap_or_default();
        paths.retain(|path| path.end > from && self.ahead.part(extent, path.offset, false).is_none());
        let reads = stream::iter(paths).map(|path| self.keep_bundle(path));
        reads.buffer_unordered(BUNDLES_AT_ONCE_MAX).for_each(|()| async {}).await;
    }

    async fn keep_bundle(&self, path: BundlePath) {
        if !self.ahead.is_keeping() {
            return;
        }
        let stamp = self.settings.stamp;
        let name = path.format(stamp);
        let read = self.read_piece(&name, 0, self.settings.bundles.bounds.object_size_bytes_max()).await;
        // One that is gone, or not answered, is read part by part.
        let Ok(object) = read else { return };
        match split_bundle(&object, stamp, path) {
            Ok(parts) => {
                for (header, body) in parts {
                    self.ahead.keep(&header, Some(&object.slice(body)));
                }
            }
            Err(error) => tracing::warn!(name, %error, "a bundle is not used; its parts are read one by one"),
        }
    }

    /// Lists the bundles of all extents.
    pub(crate) async fn list_bundles(&self) -> Result<Vec<BundlePath>, StampError> {
        self.list_bundles_in(&bundles_folder(self.settings.stamp)).await
    }

    async fn list_bundles_in(&self, folder: &str) -> Result<Vec<BundlePath>, StampError> {
        let names = self.list_names(folder, None).await?;
        Ok(names.iter().filter_map(|name| BundlePath::parse(name, self.settings.stamp)).collect())
    }
}
