//! The restore of a lost metadata store, into an empty one: carries out `stamp::choose_restore`.
//!
//! What always holds: nothing is written before no process of the lost store can acknowledge any more; the
//! restored documents are under a new generation, and come into force by its life, which is written last.
//! Only then is there a backup of them, so that one that never came into force is never chosen.
//!
//! Extents that are younger than the backup are found by listing: with a store whose listings lag, a restore
//! waits for that long besides, before it begins.

use crate::backup::back_up::{BACKUP_SIZE_BYTES_MAX, back_up_generation};
use crate::backup::found::{put_collection, put_life, put_range};
use crate::backup::store_mark::mark_store;
use crate::error::StampError;
use crate::extents::seal::{SealFor, seal};
use crate::metadata::metadata_store::{Metadata, read_life};
use crate::metadata::wire::LifeEntry;
use crate::settings::Breach;
use crate::stores::store_error::StoreError;
use crate::surroundings::Surroundings;
use base::BoxFuture;
use stamp::{
    BackedUp, Backup, BackupName, Change, ExtentPlace, Found, Generation, Incarnation, Owner, OwnerEpoch,
    PartHeader, RangeDocument, RangeId, RestoreStart, Revision, SealWalk, StampLife, WalkStep, apply_changes,
    choose_backup, choose_restore, choose_restore_start,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often the header of an object is read.
const TRIES_MAX: usize = 20;

/// What a restore has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    /// The new life.
    pub life: StampLife,
    /// How many restores there were, this one included.
    pub restores: u64,
    /// The revision of the newest complete backup, by the lost metadata store.
    pub backup: Revision,
    /// The ranges, with the epochs after which their next owners count.
    pub epochs: BTreeMap<RangeId, OwnerEpoch>,
    /// How many extents the documents list.
    pub extents: usize,
    /// How many of them are younger than the backup, and were found.
    pub younger_extents: usize,
}

/// How far a restore is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreStep {
    /// It waits for so long, until no process of the lost store can write any more.
    Waits(Duration),
    /// It has read the newest complete backup, of this revision, and the changes after it.
    HasBackup(Revision),
    /// It has read the first objects of so many extents.
    HasExtents(usize),
    /// It has sealed and recorded so many of so many ranges.
    HasRanges(usize, usize),
}

/// Restores the documents of a lost metadata store into the empty one of `surroundings`. `all_stopped`: the
/// operator says that no process of the stamp runs; else it waits until the lost store has been silent for a
/// lease time and its margin, of which `silent_for` has gone by.
///
/// # Errors
///
/// If there is a stamp, or no complete backup, or anything that is needed is damaged: nothing is in force
/// then, and the restore can be tried again.
pub async fn restore(
    surroundings: &Surroundings,
    all_stopped: bool,
    silent_for: Duration,
) -> Result<RestoreReport, StampError> {
    restore_in_steps(surroundings, all_stopped, silent_for, &|_| ()).await
}

/// The same; `note` gets how far it is.
///
/// # Errors
///
/// As of [`restore`].
pub fn restore_in_steps<'a>(
    surroundings: &'a Surroundings,
    all_stopped: bool,
    silent_for: Duration,
    note: &'a (dyn Fn(RestoreStep) + Sync),
) -> BoxFuture<'a, Result<RestoreReport, StampError>> {
    Box::pin(async move {
        let settings = &surroundings.settings;
        refuse_if_there(surroundings).await?;
        if let RestoreStart::Wait(wait) =
            choose_restore_start(all_stopped, silent_for, settings.ttl, settings.margin)
        {
            note(RestoreStep::Waits(wait));
            surroundings.clock.sleep(wait).await;
            refuse_if_there(surroundings).await?;
        }
        let (backup, revision) = read_backups(surroundings).await?;
        note(RestoreStep::HasBackup(revision));
        let mut first_objects = first_objects(surroundings).await?;
        note(RestoreStep::HasExtents(first_objects.len()));
        if settings.planted.has(Breach::NoRollForward) {
            first_objects.clear();
        }
        let keeps_generation = settings.planted.has(Breach::RestoreSameGeneration);
        let drawn = Generation(surroundings.draw_wide());
        let generation = if keeps_generation { backup.life.generation } else { drawn };
        let restorer = surroundings.draw_incarnation();
        let restored = choose_restore(&backup, &first_objects, generation, restorer)?;
        let metadata = Metadata::new(surroundings.clone(), restored.life);
        put_collection(surroundings, &metadata, generation, None, false).await?;
        let (ranges, mut extents, mut epochs) = (restored.documents.len(), 0, BTreeMap::new());
        for document in restored.documents {
            extents += document.extents().len();
            let mut sealed = seal_document(surroundings, restored.life, &document, restorer).await?;
            // Only what is in force is backed up: its owner's first part waits for that.
            sealed.needs_backup = true;
            if keeps_generation && let Some(kept) = backup.documents.get(&sealed.range) {
                sealed.own = kept.own;
            }
            epochs.insert(sealed.range, sealed.own.epoch);
            put_range(surroundings, &metadata, generation, sealed).await?;
            note(RestoreStep::HasRanges(epochs.len(), ranges));
        }
        let backed_up: usize = backup.documents.values().map(|document| document.extents().len()).sum();
        let younger_extents = extents.saturating_sub(backed_up);
        put_collection(surroundings, &metadata, generation, Some(false), true).await?;
        mark_store(surroundings, generation).await?;
        put_life(surroundings, LifeEntry { generation, restores: restored.restores }).await?;
        // Without it the process that serves makes one, before it relies on it and before anything is
        // deleted.
        if let Err(error) =
            back_up_generation(surroundings, &metadata, restored.life, restored.restores).await
        {
            tracing::warn!(%error, "the restored documents are in force, and not backed up yet");
        }
        let (life, restores) = (restored.life, restored.restores);
        Ok(RestoreReport { life, restores, backup: revision, epochs, extents, younger_extents })
    })
}

async fn refuse_if_there(surroundings: &Surroundings) -> Result<(), StampError> {
    match read_life(surroundings).await? {
        Some(_) => Err(StampError::Raced("the metadata store has this stamp already".to_owned())),
        None => Ok(()),
    }
}

/// What the backups have, and the revision of the complete one that it is of. Of those that are there only
/// the newest complete one of each life is read, and the changes after it: others may be many and large, and
/// are not needed.
async fn read_backups(surroundings: &Surroundings) -> Result<(BackedUp, Revision), StampError> {
    let stamp = surroundings.settings.stamp;
    let names = surroundings.list_names(&format!("{stamp}/meta/"), None).await?;
    let names = names.into_iter().filter_map(|name| Some((BackupName::parse(&name, stamp)?, name)));
    let mut names: Vec<(BackupName, String)> = names.collect();
    names.sort();
    let read = async |name: &String| -> Result<Backup, StampError> {
        let content = surroundings.read_object(name, BACKUP_SIZE_BYTES_MAX).await?;
        Ok(Backup::decode(&content, stamp, name)?)
    };
    // Generations are random: which one is newest, their backups say. Of each the last one counts.
    let complete = names.iter().filter(|(name, _)| name.is_complete);
    let newest: BTreeMap<Generation, &String> =
        complete.map(|(name, text)| (name.generation, text)).collect();
    let mut chosen: Option<Backup> = None;
    for name in newest.into_values() {
        let backup = read(name).await?;
        let age = |backup: &Backup| (backup.restores, backup.revision);
        if chosen.as_ref().is_none_or(|chosen| age(chosen) <= age(&backup)) {
            chosen = Some(backup);
        }
    }
    let none = || StampError::Setup(format!("there is no complete backup of stamp {stamp}"));
    let chosen = chosen.ok_or_else(none)?;
    let (generation, revision) = (chosen.life.generation, chosen.revision);
    let mut backups = vec![chosen];
    for (name, text) in &names {
        if name.generation == generation && name.revision > revision && !name.is_complete {
            backups.push(read(text).await?);
        }
    }
    Ok((choose_backup(&backups).ok_or_else(none)?, revision))
}

/// The headers of all first objects of extents.
async fn first_objects(surroundings: &Surroundings) -> Result<Vec<PartHeader>, StampError> {
    let mut headers = Vec::new();
    for path in surroundings.list_parts().await?.into_iter().filter(|path| path.offset == 0) {
        let mut back_off = surroundings.back_off();
        let mut tries = 0;
        loop {
            tries += 1;
            match surroundings.read_header(path.extent, path.offset).await {
                Found::Header(header) => headers.push(header),
                Found::Damaged(error) => return Err(error.into()),
                // Listed, and deleted since then.
                Found::NotThere => {}
                Found::Unknown if tries == TRIES_MAX => {
                    let error = StoreError::Unavailable("no answer".to_owned());
                    return Err(StampError::store(&format!("extent {}", path.extent), error));
                }
                Found::Unknown => {
                    back_off.wait().await;
                    continue;
                }
            }
            break;
        }
    }
    Ok(headers)
}

/// Seals every extent of a document that has no length, and records the lengths.
async fn seal_document(
    surroundings: &Surroundings,
    life: StampLife,
    document: &RangeDocument,
    restorer: Incarnation,
) -> Result<RangeDocument, StampError> {
    let sealer = Owner { incarnation: restorer, epoch: OwnerEpoch(document.own.epoch.0) };
    let mut changes = Vec::new();
    for (stream, entry) in document.unsealed() {
        let (extent, ordinal) = (entry.name, entry.ordinal);
        let place = ExtentPlace { extent, range: document.range, stream, ordinal };
        let walk = SealWalk::new(life, place, sealer);
        match seal(surroundings, walk, SealFor::Other, || true).await.step() {
            WalkStep::Sealed { length } => changes.push(Change::RecordLength { stream, extent, length }),
            step => return Err(StampError::Setup(format!("extent {extent} can't be sealed: {step:?}"))),
        }
    }
    Ok(apply_changes(document, &changes).map_err(stamp::BeginError::from)?.document)
}
