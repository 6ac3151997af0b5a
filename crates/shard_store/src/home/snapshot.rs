//! The whole catalog now and then, so that a reader need not read the whole log.
//!
//! A snapshot is only ever an aid: that it could not be written is no failure of the change that it follows.
//! What always holds: a snapshot's record is put after all its parts, and removed before them.

use super::entry::{FORMAT, StoredSnapshot, read, write};
use super::home::CatalogHome;
use super::home_error::HomeError;
use super::keys::{self, PartsId};
use super::parts::{put_parts, remove_parts};
use shard_map::{Catalog, Diff};

/// Changes between two snapshots.
const EVERY: u64 = 64;
/// Snapshots that stay: a reader may be at the one before the newest.
const KEPT: usize = 2;

impl CatalogHome {
    /// Writes a snapshot behind every so many changes, and behind a jump of epochs.
    pub(super) async fn snapshot_if_due(&self, catalog: &Catalog, diff: &Diff) {
        if diff.to.0 / EVERY > diff.from.0 / EVERY {
            // The next one that is due takes its place.
            drop(self.write_snapshot(catalog).await);
        }
    }

    /// Writes a snapshot, and removes old ones.
    pub(super) async fn write_snapshot(&self, catalog: &Catalog) -> Result<(), HomeError> {
        let id = self.new_id();
        let part_count = put_parts(&*self.records, &id, &catalog.to_json()).await?;
        let record = StoredSnapshot { format: FORMAT, id: id.to_string(), part_count };
        self.records.put(&keys::snapshot(catalog.epoch()), &write(&record)).await?;
        self.remove_old_snapshots().await
    }

    async fn remove_old_snapshots(&self) -> Result<(), HomeError> {
        let mut snapshots = self.snapshots().await?;
        snapshots.truncate(snapshots.len().saturating_sub(KEPT));
        for old in snapshots {
            self.records.remove(&old.key).await?;
            let stored = read::<StoredSnapshot>(&old.value).ok();
            if let Some(id) = stored.and_then(|stored| PartsId::parse(&stored.id)) {
                remove_parts(&*self.records, &id).await?;
            }
        }
        Ok(())
    }
}
