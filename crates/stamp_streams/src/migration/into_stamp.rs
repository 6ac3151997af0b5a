//! The steps from a folder to a stamp, and going on after a lease was lost.

use crate::migration::compare::compare_all;
use crate::migration::content::{Content, check_size, content_of, copied, last_changes, manifest_of};
use crate::migration::copy_extents::copy_all;
use crate::migration::error::MigrationError;
use crate::migration::hold::{Hold, for_migration};
use crate::migration::report::{MigrationProgress, Report};
use crate::surroundings::Surroundings;
use futures_util::future::{Either, select};
use stamp::{Change, ExtentName, RangeDocument, StreamId};
use std::collections::BTreeMap;
use std::pin::pin;
use stream::{FolderSource, StreamManifest};

/// Tries after each of which a store was away or a lease lost, without a byte more being copied or compared.
const TRIES_WITHOUT_PROGRESS_MAX: u32 = 5;
/// Extents that one change drops.
pub(super) const DROPPED_AT_ONCE_MAX: usize = 100;

/// What a migration has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Migrated {
    /// Streams of the stamp now.
    pub streams: u64,
    /// Extents of them.
    pub extents: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Bytes that this run copied; the others were there from a run that was cut off.
    pub copied_bytes: u64,
    /// Bytes that were read back and compared; 0 if all was there, the work of a run before this one.
    pub verified_bytes: u64,
}

/// Copies all streams of a folder into the stamp of `surroundings`, which is founded if there is none.
/// Whoever runs it again after it was cut off, with the same folder, goes on. `stop`: it ends soon, and can
/// go on.
///
/// # Errors
///
/// [`MigrationError::Refused`] if the stamp holds anything else. After [`MigrationError::Away`] and
/// [`MigrationError::Stopped`] it goes on when it is run again.
pub async fn migrate_into_stamp(
    surroundings: &Surroundings,
    source: &FolderSource,
    show: &MigrationProgress<'_>,
    stop: impl Future<Output = ()>,
) -> Result<Migrated, MigrationError> {
    let surroundings = for_migration(surroundings);
    let manifest = source.manifest();
    check_size(manifest, surroundings.settings.stamp).map_err(MigrationError::Refused)?;
    let report = Report::new(show, manifest);
    let mut stop = pin!(stop);
    let mut tries_left = TRIES_WITHOUT_PROGRESS_MAX;
    loop {
        let before = report.work();
        let mut hold = None;
        let outcome = match select(pin!(attempt(&surroundings, source, &report, &mut hold)), &mut stop).await
        {
            Either::Left((outcome, _)) => outcome,
            Either::Right(_) => Err(MigrationError::Stopped),
        };
        if let Some(hold) = &hold {
            hold.leave().await;
        }
        tries_left = if report.work() > before { TRIES_WITHOUT_PROGRESS_MAX } else { tries_left - 1 };
        match outcome {
            Err(MigrationError::Away(why)) if tries_left > 0 => {
                tracing::info!(why, "the migration goes on in a new life");
                // The lease may have ended, and nobody else is in a hurry.
                surroundings.back_off().wait().await;
            }
            outcome => return outcome,
        }
    }
}

/// Whether a document may take this source.
fn check(document: &RangeDocument, manifest: &StreamManifest) -> Result<(), MigrationError> {
    match content_of(document) {
        Content::Empty => Ok(()),
        Content::Unfinished(fingerprint) if fingerprint == manifest.fingerprint() => Ok(()),
        Content::Unfinished(_) => Err(MigrationError::Refused(
            "the stamp has an unfinished migration of another folder, or this folder was changed since: finish that \
             one, or drop what it copied with larimar migrate --abandon"
                .to_owned(),
        )),
        Content::Streams(_) if is_complete(document, manifest) => Ok(()),
        Content::Streams(count) => Err(MigrationError::Refused(format!(
            "the stamp has {count} streams already: migrate into one that is empty, under another name"
        ))),
    }
}

/// Whether all is there already, and nothing else.
fn is_complete(document: &RangeDocument, manifest: &StreamManifest) -> bool {
    manifest_of(document).is_some_and(|found| found.has_same_lists(manifest))
}

async fn attempt(
    surroundings: &Surroundings,
    source: &FolderSource,
    report: &Report<'_>,
    taken: &mut Option<Hold>,
) -> Result<Migrated, MigrationError> {
    let manifest = source.manifest();
    let hold = Hold::take(surroundings, true, &|document| check(document, manifest)).await?;
    let hold = &*taken.insert(hold);
    let migrated = Migrated {
        streams: manifest.streams.len() as u64,
        extents: manifest.extents.len() as u64,
        bytes: report.all(),
        ..Migrated::default()
    };
    if !is_complete(&hold.range.document(), manifest) {
        copy_missing(hold, source, report).await?;
        let copied = copied(&hold.range.document(), manifest);
        report.compare_anew();
        let entries = copied.whole.into_iter().map(|(extent, (_, entry))| (extent, entry)).collect();
        compare_all(hold, source, entries, report).await?;
        end(hold, manifest).await?;
    }
    // Until a backup has it the loss of the metadata store would undo it.
    if hold.range.document().needs_backup {
        hold.range.back_up_while_held().await?;
    }
    Ok(Migrated { copied_bytes: report.copied_bytes(), verified_bytes: report.compared_bytes(), ..migrated })
}

/// Drops what was cut off, and copies what is not there.
async fn copy_missing(hold: &Hold, source: &FolderSource, report: &Report<'_>) -> Result<(), MigrationError> {
    let manifest = source.manifest();
    let copied = copied(&hold.range.document(), manifest);
    drop_extents(hold, &copied.cut_off).await?;
    let missing: Vec<_> = manifest.extents.iter().filter(|(id, _)| !copied.whole.contains_key(id)).collect();
    let left: u64 = missing.iter().map(|(_, extent)| extent.length).sum();
    // Of extents that were cut off the bytes count again.
    report.keep((report.all() - left).saturating_sub(report.copied_bytes()));
    let missing = missing.into_iter().map(|(id, extent)| (*id, extent.length)).collect();
    copy_all(hold, source, manifest.fingerprint(), missing, report).await
}

/// Takes extents out of their lists, some at a time: a transaction drops few.
pub(super) async fn drop_extents(
    hold: &Hold,
    dropped: &[(StreamId, ExtentName)],
) -> Result<(), MigrationError> {
    let mut lists: BTreeMap<StreamId, Vec<ExtentName>> = BTreeMap::new();
    for (stream, extent) in dropped {
        lists.entry(*stream).or_default().push(*extent);
    }
    for (stream, extents) in lists {
        for some in extents.chunks(DROPPED_AT_ONCE_MAX) {
            hold.range.change(&[Change::Unlist { stream, extents: some.to_vec() }]).await?;
        }
    }
    Ok(())
}

/// The one change that makes the streams, once it has been proved that it makes those of the source.
async fn end(hold: &Hold, manifest: &StreamManifest) -> Result<(), MigrationError> {
    let differs =
        || MigrationError::Differs("the streams of the stamp would not be those of the folder".into());
    let document = hold.range.document();
    let changes =
        last_changes(&document, manifest, || StreamId(hold.life.next_name())).ok_or_else(differs)?;
    let changed = stamp::apply_changes(&document, &changes).map_err(|_| differs())?;
    if !changed.dropped.is_empty() || !is_complete(&changed.document, manifest) {
        return Err(differs());
    }
    hold.range.change(&changes).await?;
    Ok(())
}
