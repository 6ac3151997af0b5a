//! A stamp that nobody serves becomes a data folder: read at one revision, without being changed or owned.
//!
//! What always holds: the folder becomes one only after each of its bytes was read again and compared with
//! the stamp's, and the stamp was seen unchanged behind that; nothing is written to either store.

use crate::migration::content::is_unfinished;
use crate::migration::copy_extents::COPIES_AT_ONCE;
use crate::migration::error::MigrationError;
use crate::migration::into_stamp::Migrated;
use crate::migration::report::{MigrationProgress, Report};
use crate::snapshot::parts::SnapshotParts;
use crate::snapshot::snapshot_layer::SnapshotLayer;
use crate::snapshot::stamp_snapshot::{SnapshotExtent, SnapshotProcess, SnapshotRange, StampSnapshot};
use crate::surroundings::Surroundings;
use base::Environment;
use futures_util::future::{Either, select};
use futures_util::stream::{StreamExt, TryStreamExt, iter};
use stamp::{ExtentName, RangeId};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use stream::{
    ExtentId, FolderTarget, Incarnation, ManifestExtent, Owner, StreamError, StreamLayer, StreamManifest,
    StreamSettings, TargetExtent,
};

/// Copies all streams of the stamp of `surroundings` into the folder of `env`, which the caller has made and
/// locked. Whoever runs it again after it was cut off goes on. `stop`: it ends soon, and can go on.
///
/// # Errors
///
/// [`MigrationError::Refused`] if a process serves the stamp, or it changes meanwhile. After
/// [`MigrationError::Away`] and [`MigrationError::Stopped`] it goes on when it is run again.
pub async fn migrate_into_folder(
    surroundings: &Surroundings,
    env: &Environment,
    settings: StreamSettings,
    show: &MigrationProgress<'_>,
    stop: impl Future<Output = ()>,
) -> Result<Migrated, MigrationError> {
    match select(pin!(migrate(surroundings, env, settings, show)), pin!(stop)).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(_) => Err(MigrationError::Stopped),
    }
}

async fn migrate(
    surroundings: &Surroundings,
    env: &Environment,
    settings: StreamSettings,
    show: &MigrationProgress<'_>,
) -> Result<Migrated, MigrationError> {
    let (snapshot, range) = idle(surroundings).await?;
    let before = seen(&snapshot, range);
    let layer = SnapshotLayer::open(&snapshot, range).await?;
    let manifest = manifest_of(&layer)?;
    let names = layer.lengths().into_iter().map(|(name, _)| (name.short(), name)).collect();
    let target = FolderTarget::begin(env, settings, &manifest).await.map_err(MigrationError::Target)?;
    let copy = Copy { snapshot: &snapshot, target: &target, names, report: Report::new(show, &manifest) };
    copy.copy_missing(&manifest, env).await?;
    let digests = copy.compare_all(&manifest).await?;
    let migrated = Migrated {
        streams: manifest.streams.len() as u64,
        extents: manifest.extents.len() as u64,
        bytes: manifest.size_bytes(),
        copied_bytes: copy.report.copied_bytes(),
        verified_bytes: copy.report.compared_bytes(),
    };
    drop(copy);
    let (after, range) = idle(surroundings).await?;
    if seen(&after, range) != before {
        return Err(MigrationError::Refused(
            "the stamp has changed while it was copied: stop what serves it, remove the folder, and begin again"
                .to_owned(),
        ));
    }
    let own = before.0.own;
    let owner = Owner { incarnation: own.owner.unwrap_or(Incarnation::UNKNOWN), epoch: own.epoch };
    target.finish(&manifest, &digests, owner).await.map_err(MigrationError::Target)?;
    Ok(migrated)
}

/// Before anything is copied: a disk that gets full an hour later has told nobody.
fn refuse_without_space(free_bytes: u64, missing_bytes: u64) -> Result<(), MigrationError> {
    match free_bytes >= missing_bytes {
        true => Ok(()),
        false => Err(MigrationError::Refused(format!(
            "{missing_bytes} bytes are to be copied, and the folder's disk has {free_bytes} free: make room, or give \
             a folder on another disk"
        ))),
    }
}

/// The range of a snapshot, and what there is of its owner: as long as they are the same nobody has served
/// it.
fn seen(snapshot: &StampSnapshot, range: RangeId) -> (SnapshotRange, Option<SnapshotProcess>) {
    let found = snapshot.ranges()[&range].clone();
    let process = found.own.owner.and_then(|owner| snapshot.processes().get(&owner).copied());
    (found, process)
}

/// A snapshot of a stamp that nobody serves, and its range. The key of an owner may be gone while it lives:
/// one that has not given the stamp up is watched for a lease time.
async fn idle(surroundings: &Surroundings) -> Result<(StampSnapshot, RangeId), MigrationError> {
    let (snapshot, range) = unserved(surroundings).await?;
    if snapshot.ranges()[&range].own.owner.is_none() {
        return Ok((snapshot, range));
    }
    let settings = &surroundings.settings;
    surroundings.clock.sleep(settings.ttl + settings.margin).await;
    let (again, range) = unserved(surroundings).await?;
    match seen(&again, range) == seen(&snapshot, range) {
        true => Ok((again, range)),
        false => Err(MigrationError::Refused("a process serves the stamp: stop it first".to_owned())),
    }
}

async fn unserved(surroundings: &Surroundings) -> Result<(StampSnapshot, RangeId), MigrationError> {
    let refused = |why: String| Err(MigrationError::Refused(why));
    let Some(snapshot) = StampSnapshot::read(surroundings).await? else {
        return refused(format!("the metadata store has no stamp {}", surroundings.settings.stamp));
    };
    let mut ranges = snapshot.ranges().iter();
    let (Some((range, found)), None) = (ranges.next(), ranges.next()) else {
        return refused(format!("the stamp has {} ranges, and a folder has one", snapshot.ranges().len()));
    };
    if is_unfinished(&found.document) {
        return refused("a migration into this stamp is not finished".to_owned());
    }
    if found.document.streams.is_empty() {
        return refused("nothing was ever stored in this stamp".to_owned());
    }
    if snapshot.is_served() {
        let owner = found.own.owner.map_or_else(String::new, |owner| format!(" {owner}"));
        return refused(format!("process{owner} serves the stamp: stop all of its processes first"));
    }
    let range = *range;
    Ok((snapshot, range))
}

fn manifest_of(layer: &Arc<SnapshotLayer>) -> Result<StreamManifest, MigrationError> {
    let mut manifest = StreamManifest::default();
    for stream in layer.list("") {
        manifest.streams.entry(stream.clone()).or_default();
        let stat = layer.stat(&stream).map_err(MigrationError::Target)?;
        for (extent, length) in stat.extents {
            manifest.list(&stream, extent, ManifestExtent { length, digest: None });
        }
    }
    Ok(manifest)
}

/// What the copy of each extent needs.
struct Copy<'a> {
    snapshot: &'a StampSnapshot,
    target: &'a FolderTarget,
    names: BTreeMap<ExtentId, ExtentName>,
    report: Report<'a>,
}

impl Copy<'_> {
    fn parts(&self, extent: ExtentId, length: u64) -> Result<SnapshotParts, MigrationError> {
        let name = self.names.get(&extent).copied();
        let name = name.ok_or(MigrationError::Target(StreamError::NoExtent(extent)))?;
        let whole = SnapshotExtent { name, length: Some(length), purposes: Vec::new() };
        Ok(self.snapshot.read_parts(&whole))
    }

    /// Copies what a run before this one has not.
    async fn copy_missing(&self, manifest: &StreamManifest, env: &Environment) -> Result<(), MigrationError> {
        let mut missing = Vec::new();
        let mut kept = 0;
        for (id, extent) in &manifest.extents {
            match self.target.has(*id, extent.length).await.map_err(MigrationError::Target)? {
                true => kept += extent.length,
                false => missing.push(self.copy(*id, extent.length)),
            }
        }
        // If it is not known, the copy finds out.
        let free_bytes = env.disk.free_bytes().await.unwrap_or(u64::MAX);
        refuse_without_space(free_bytes, manifest.size_bytes() - kept)?;
        self.report.keep(kept);
        iter(missing).buffer_unordered(COPIES_AT_ONCE).try_collect().await
    }

    async fn copy(&self, extent: ExtentId, length: u64) -> Result<(), MigrationError> {
        let mut parts = self.parts(extent, length)?;
        let mut file = self.target.write(extent).await.map_err(MigrationError::Target)?;
        while let Some(part) = parts.next().await? {
            let size = part.header.body_length;
            file.append(part.body).await.map_err(MigrationError::Target)?;
            self.report.copied(size);
        }
        file.end().await.map(drop).map_err(MigrationError::Target)
    }

    /// Compares all files with the stamp; their digests.
    async fn compare_all(
        &self,
        manifest: &StreamManifest,
    ) -> Result<BTreeMap<ExtentId, u64>, MigrationError> {
        let compares: Vec<_> =
            manifest.extents.iter().map(|(id, extent)| self.compare_or_copy(*id, extent.length)).collect();
        iter(compares).buffer_unordered(COPIES_AT_ONCE).try_collect().await
    }

    /// A file of a run that ended with its machine may have its size and not its bytes: it is copied again.
    async fn compare_or_copy(
        &self,
        extent: ExtentId,
        length: u64,
    ) -> Result<(ExtentId, u64), MigrationError> {
        if let Some(digest) = self.compare(extent, length).await? {
            return Ok((extent, digest));
        }
        self.copy(extent, length).await?;
        let digest = self.compare(extent, length).await?;
        digest
            .map(|digest| (extent, digest))
            .ok_or_else(|| MigrationError::Differs(format!("extent {extent}")))
    }

    /// The digest of the file, if it has the bytes of the stamp and no others.
    async fn compare(&self, extent: ExtentId, length: u64) -> Result<Option<u64>, MigrationError> {
        let mut parts = self.parts(extent, length)?;
        let mut file: TargetExtent = self.target.compare(extent).await.map_err(MigrationError::Target)?;
        while let Some(part) = parts.next().await? {
            if !file.has_next(&part.body).await.map_err(MigrationError::Target)? {
                return Ok(None);
            }
            self.report.compared(part.header.body_length);
        }
        file.end().await.map_err(MigrationError::Target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_with_too_little_space_is_refused_before_anything_is_copied() {
        assert!(refuse_without_space(100, 100).is_ok() && refuse_without_space(u64::MAX, 0).is_ok());
        let refused = refuse_without_space(99, 100).expect_err("refused").to_string();
        assert!(refused.contains("100 bytes are to be copied") && refused.contains("99 free"), "{refused}");
    }
}
