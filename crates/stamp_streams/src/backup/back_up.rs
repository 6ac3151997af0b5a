//! Backups: all documents at one revision, or those of one change, as one object that is created once.
//!
//! What always holds: a backup that is reported is in the store, whole.

use crate::error::StampError;
use crate::membership::life::Life;
use crate::metadata::metadata_store::Metadata;
use crate::metadata::wire::KeyKind;
use crate::stores::store_error::StoreError;
use crate::surroundings::Surroundings;
use bytes::Bytes;
use stamp::{
    Backup, BackupName, BackupScope, PutAnswer, Revision, StampLife, StoredError, Value, backups_folder,
};

/// How often a backup object is sent.
const TRIES_MAX: usize = 20;
/// Bytes that a backup object may have: some thousand documents.
pub(crate) const BACKUP_SIZE_BYTES_MAX: u64 = 1 << 30;

/// Makes a complete backup. The revision that it has.
///
/// # Errors
///
/// If a store can't be reached, a document is damaged, or there is none: then there is no backup.
pub async fn back_up_all(life: &Life) -> Result<Revision, StampError> {
    back_up_generation(&life.surroundings, &life.metadata, life.life(), life.restores()).await
}

pub(crate) async fn back_up_generation(
    surroundings: &Surroundings,
    metadata: &Metadata,
    life: StampLife,
    restores: u64,
) -> Result<Revision, StampError> {
    let values = metadata.list(&[KeyKind::Document], &[]).await?;
    let documents = values.values.into_values().filter_map(|(value, _)| match value {
        Value::Document(document) => Some(document),
        _ => None,
    });
    let documents: Vec<_> = documents.collect();
    if documents.is_empty() {
        // A stamp has a range at least: this is not its metadata store any more, whatever it says. A restore
        // would take the newest backup, and find nothing to restore.
        return Err(StampError::Setup("the metadata store has no range to back up".to_owned()));
    }
    let (revision, scope) = (values.revision, BackupScope::Complete);
    store_backup(surroundings, &Backup { life, restores, revision, scope, documents }).await?;
    Ok(revision)
}

/// Creates a backup object, unless the same is there.
pub(crate) async fn store_backup(surroundings: &Surroundings, backup: &Backup) -> Result<(), StampError> {
    let (name, content) = (backup.path(), Bytes::from(backup.encode()));
    let mut back_off = surroundings.back_off();
    for _ in 0..TRIES_MAX {
        match surroundings.put_named(&name, &content).await {
            PutAnswer::Created => return Ok(()),
            // By this process before, or by another that read the same documents.
            PutAnswer::Refused => {
                let there = surroundings.read_object(&name, BACKUP_SIZE_BYTES_MAX).await?;
                let is_same = Backup::decode(&there, backup.life.stamp, &name)? == *backup;
                let (what, why) = (format!("backup {name}"), "it has other documents".to_owned());
                let other = StoredError::Malformed { what, why };
                return if is_same { Ok(()) } else { Err(other.into()) };
            }
            PutAnswer::Unknown => back_off.wait().await,
            PutAnswer::Failed { status } => {
                let error = StoreError::Refused(format!("status {status}"));
                return Err(StampError::store(&name, error));
            }
        }
    }
    Err(StampError::store(&name, StoreError::UnknownOutcome("no answer".to_owned())))
}

/// The revision of the newest complete backup of this life of the metadata store.
pub(crate) async fn newest_backup(
    surroundings: &Surroundings,
    life: StampLife,
) -> Result<Option<Revision>, StampError> {
    let names = complete_backups(surroundings, life).await?;
    let Some((_, name)) = names.last() else { return Ok(None) };
    let content = surroundings.read_object(name, BACKUP_SIZE_BYTES_MAX).await?;
    Ok(Some(Backup::decode(&content, life.stamp, name)?.revision))
}

/// The complete backups of this life of the metadata store, oldest first, with their names.
pub(crate) async fn complete_backups(
    surroundings: &Surroundings,
    life: StampLife,
) -> Result<Vec<(BackupName, String)>, StampError> {
    let names = surroundings.list_names(&backups_folder(life), None).await?;
    let parsed = names.into_iter().filter_map(|name| Some((BackupName::parse(&name, life.stamp)?, name)));
    let mut complete: Vec<_> = parsed.filter(|(parsed, _)| parsed.is_complete).collect();
    complete.sort();
    Ok(complete)
}

/// Deletes complete backups of this life of the metadata store but the newest `keep_count`: a restore uses
/// the newest one alone. How many went.
///
/// # Errors
///
/// If the object store can't be reached; what was deleted was not needed.
pub async fn prune_backups(life: &Life, keep_count: usize) -> Result<usize, StampError> {
    let surroundings = &life.surroundings;
    let mut names = complete_backups(surroundings, life.life()).await?;
    names.truncate(names.len().saturating_sub(keep_count.max(1)));
    let mut count = 0;
    for (_, name) in names {
        if !life.holds() {
            return Err(StampError::LeaseEnded);
        }
        match surroundings.try_object(surroundings.objects.delete(&name)).await {
            Some(Ok(()) | Err(StoreError::NotThere)) => count += 1,
            // The next one tries again.
            Some(Err(error)) => return Err(StampError::store(&name, error)),
            None => return Err(StampError::store(&name, StoreError::UnknownOutcome("no answer".to_owned()))),
        }
    }
    Ok(count)
}
