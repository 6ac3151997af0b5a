//! The first start of a stamp.
//!
//! What always holds: a stamp that is there is not founded again; its life is written last, so that nobody
//! joins a stamp that is founded in part.

use crate::backup::probe::probe;
use crate::backup::store_mark::mark_store;
use crate::error::StampError;
use crate::metadata::metadata_store::{Metadata, read_life};
use crate::metadata::wire::{LifeEntry, encode_life, life_key};
use crate::stores::key_values::{KeyAnswer, KeyCompare, KeyTransaction};
use crate::stores::store_error::StoreError;
use crate::surroundings::Surroundings;
use stamp::{
    Change, Compare, Generation, Key, KeyLimits, Mark, OwnEntry, OwnerEpoch, RangeDocument, RangeId,
    Revision, StampLife, StreamId, Transaction, TransactionAnswer, UniqueName, Value, apply_changes,
    extents_folder,
};
use std::sync::Arc;

/// How often a change of the first start is sent.
const TRIES_MAX: usize = 20;

/// A range of a new stamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstRange {
    /// Its keys.
    pub keys: KeyLimits,
    /// What its streams are for.
    pub purposes: Vec<String>,
}

/// Whether the metadata store has the stamp.
///
/// # Errors
///
/// If it can't be reached. [`StampError::Setup`] if it has none and the object store does: then etcd was
/// lost, or is another one, and a new stamp would not see what is there.
pub async fn is_founded(surroundings: &Surroundings) -> Result<bool, StampError> {
    if read_life(surroundings).await?.is_some() {
        return Ok(true);
    }
    let stamp = surroundings.settings.stamp;
    let listed = surroundings.try_object(surroundings.objects.list(&extents_folder(stamp), None)).await;
    let listed = listed.unwrap_or_else(|| Err(StoreError::Unavailable("no answer".to_owned())));
    let listed = listed.map_err(|error| StampError::store("the objects of the stamp", error))?;
    if listed.names.is_empty() {
        return Ok(false);
    }
    // Another process may have founded it meanwhile, and write already.
    match read_life(surroundings).await? {
        Some(_) => Ok(true),
        None => Err(StampError::Setup(format!(
            "the object store has a stamp of this name ({stamp}), and the metadata store has not: it was lost, \
             or it is another one"
        ))),
    }
}

/// Founds a stamp with these ranges, which nobody has yet.
///
/// # Errors
///
/// If there is a stamp, or the object store can't carry one, or a store can't be reached.
pub async fn found(surroundings: &Surroundings, ranges: &[FirstRange]) -> Result<(), StampError> {
    if read_life(surroundings).await?.is_some() {
        return Err(StampError::Raced("the metadata store has this stamp already".to_owned()));
    }
    probe(surroundings).await?;
    let generation = Generation(surroundings.draw_wide());
    let life = StampLife { stamp: surroundings.settings.stamp, generation };
    let metadata = Metadata::new(surroundings.clone(), life);
    let founder = surroundings.draw_incarnation();
    let mut counter = 0;
    let mut next = || {
        counter += 1;
        UniqueName { incarnation: founder, counter }
    };
    for range in ranges {
        let own = OwnEntry::released(OwnerEpoch(0));
        let empty = RangeDocument::new(RangeId(next()), own, range.keys.clone(), Mark(next()));
        let create =
            |purpose: &String| Change::CreateStream { stream: StreamId(next()), purpose: purpose.clone() };
        let changes: Vec<Change> = range.purposes.iter().map(create).collect();
        let changed = apply_changes(&empty, &changes).map_err(stamp::BeginError::from)?;
        put_range(surroundings, &metadata, generation, changed.document).await?;
    }
    put_collection(surroundings, &metadata, generation, None, true).await?;
    mark_store(surroundings, generation).await?;
    put_life(surroundings, LifeEntry { generation, restores: 0 }).await
}

/// Writes a range that is not there.
pub(crate) async fn put_range(
    surroundings: &Surroundings,
    metadata: &Metadata,
    generation: Generation,
    document: RangeDocument,
) -> Result<(), StampError> {
    let mut transaction = Transaction::new(generation);
    let (range, own) = (document.range, document.own);
    transaction.compares.push(Compare::ChangedAt(Key::Document(range), Revision(0)));
    transaction.puts.push((Key::Own(range), Value::Own(own)));
    transaction.puts.push((Key::Document(range), Value::Document(Arc::new(document))));
    put_once(surroundings, metadata, transaction).await
}

/// Turns collection on or off; it was as `before`, or is not known yet.
pub(crate) async fn put_collection(
    surroundings: &Surroundings,
    metadata: &Metadata,
    generation: Generation,
    before: Option<bool>,
    is_on: bool,
) -> Result<(), StampError> {
    let mut transaction = Transaction::new(generation);
    transaction.compares.push(match before {
        Some(is_on) => Compare::Is(Key::Collection, Value::Collection { is_on }),
        None => Compare::ChangedAt(Key::Collection, Revision(0)),
    });
    transaction.puts.push((Key::Collection, Value::Collection { is_on }));
    put_once(surroundings, metadata, transaction).await
}

/// Sends what nobody else writes before a life is in force, under the condition that none is: a try that
/// arrives late, when a range may have been split and its keys are gone, must not bring it back.
async fn put_once(
    surroundings: &Surroundings,
    metadata: &Metadata,
    transaction: Transaction,
) -> Result<(), StampError> {
    let mut back_off = surroundings.back_off();
    let mut may_be_done = false;
    for _ in 0..TRIES_MAX {
        match metadata.commit_before_life(&transaction).await {
            TransactionAnswer::Committed(_) => return Ok(()),
            TransactionAnswer::CompareFailed if may_be_done => return Ok(()),
            TransactionAnswer::CompareFailed => {
                return Err(StampError::Raced("another process writes to this stamp".to_owned()));
            }
            TransactionAnswer::Unknown => may_be_done = true,
        }
        back_off.wait().await;
    }
    Err(StampError::store("metadata", StoreError::UnknownOutcome("no answer".to_owned())))
}

/// Writes which life is in force, if none is.
pub(crate) async fn put_life(surroundings: &Surroundings, entry: LifeEntry) -> Result<(), StampError> {
    let stamp = surroundings.settings.stamp;
    let transaction = KeyTransaction {
        compares: vec![KeyCompare::ChangedAt(life_key(stamp), Revision(0))],
        puts: vec![(life_key(stamp), encode_life(entry, stamp), None)],
        deletes: Vec::new(),
    };
    let mut back_off = surroundings.back_off();
    for _ in 0..TRIES_MAX {
        match surroundings.try_key(surroundings.keys.commit(&transaction)).await {
            Some(KeyAnswer::Committed(_)) => return Ok(()),
            Some(KeyAnswer::CompareFailed(_)) => match read_life(surroundings).await {
                Ok(Some(found)) if found == entry => return Ok(()),
                Ok(Some(_)) => {
                    let other = "another process has founded or restored the stamp meanwhile";
                    return Err(StampError::Raced(other.to_owned()));
                }
                _ => back_off.wait().await,
            },
            Some(KeyAnswer::Unknown) | None => back_off.wait().await,
        }
    }
    Err(StampError::store("life", StoreError::UnknownOutcome("no answer".to_owned())))
}
