//! The restore of a lost metadata store, into an empty one: carries out `stamp::choose_restore`.
//!
//! What always holds: nothing is written before no process of the lost store can acknowledge any more; the
//! restored documents are under a new generation, and its life is written last.
//!
//! Extents that are younger than the backup are found by listing: with a store whose listings lag, a restore
//! waits for that long besides, before it begins.

use crate::backup::back_up::{BACKUP_SIZE_BYTES_MAX, back_up_generation};
use crate::backup::found::{put_collection, put_life, put_range};
use crate::error::StampError;
use crate::extents::seal::{SealFor, seal};
use crate::metadata::metadata_store::{Metadata, read_life};
use crate::metadata::wire::LifeEntry;
use crate::settings::Breach;
use crate::stores::store_error::StoreError;
use crate::surroundings::Surroundings;
use stamp::{
    BackedUp, Backup, Change, ExtentPlace, Found, Generation, Incarnation, Owner, OwnerEpoch, PartHeader,
    RangeDocument, RestoreStart, SealWalk, StampLife, WalkStep, apply_changes, choose_backup, choose_restore,
    choose_restore_start,
};
use std::time::Duration;

/// How often the header of an object is read.
const TRIES_MAX: usize = 20;

/// What a restore has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    /// The new life.
    pub life: StampLife,
    /// How many ranges it has.
    pub ranges: usize,
    /// How many extents are younger than the backup, and were found.
    pub younger_extents: usize,
}

/// Restores the documents of a lost metadata store into the empty one of `surroundings`.
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
    let settings = &surroundings.settings;
    if let RestoreStart::Wait(wait) =
        choose_restore_start(all_stopped, silent_for, settings.ttl, settings.margin)
    {
        surroundings.clock.sleep(wait).await;
    }
    if read_life(surroundings).await?.is_some() {
        return Err(StampError::Raced("the metadata store has this stamp already".to_owned()));
    }
    let backup = read_backups(surroundings).await?;
    let mut first_objects = first_objects(surroundings).await?;
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
    let (ranges, mut younger_extents) = (restored.documents.len(), 0);
    for document in restored.documents {
        younger_extents += document.extents().len();
        let mut sealed = seal_document(surroundings, restored.life, &document, restorer).await?;
        sealed.needs_backup = false;
        if keeps_generation && let Some(kept) = backup.documents.get(&sealed.range) {
            sealed.own = kept.own;
        }
        put_range(surroundings, &metadata, generation, sealed).await?;
    }
    let backed_up: usize = backup.documents.values().map(|document| document.extents().len()).sum();
    younger_extents = younger_extents.saturating_sub(backed_up);
    back_up_generation(surroundings, &metadata, restored.life, restored.restores).await?;
    put_collection(surroundings, &metadata, generation, Some(false), true).await?;
    put_life(surroundings, LifeEntry { generation, restores: restored.restores }).await?;
    Ok(RestoreReport { life: restored.life, ranges, younger_extents })
}

async fn read_backups(surroundings: &Surroundings) -> Result<BackedUp, StampError> {
    let stamp = surroundings.settings.stamp;
    let mut backups = Vec::new();
    for name in surroundings.list_names(&format!("{stamp}/meta/")).await? {
        let content = surroundings.read_object(&name, BACKUP_SIZE_BYTES_MAX).await?;
        backups.push(Backup::decode(&content, stamp, &name)?);
    }
    choose_backup(&backups)
        .ok_or_else(|| StampError::Setup(format!("there is no complete backup of stamp {stamp}")))
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
