//! An operator takes out a process that is gone: what is left of it in the metadata store is removed.
//!
//! What always holds: nothing of a process whose key is there is touched, because only the process itself
//! knows that it has dropped everything; the beat of an owner stays, because its age proves to whoever takes
//! the range that the owner is silent.

use crate::error::StampError;
use crate::metadata::metadata_store::{Metadata, Values, read_life};
use crate::metadata::wire::KeyKind;
use crate::stores::store_error::StoreError;
use crate::surroundings::Surroundings;
use stamp::{
    Compare, Generation, Incarnation, Key, RangeId, Revision, StampLife, Transaction, TransactionAnswer,
    Value,
};

/// How often what is left of a process is looked at and removed.
const TRIES_MAX: usize = 5;

/// What has become of a process that was to be taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// Nothing is left of it.
    Done,
    /// Nothing of it was there.
    Unknown,
    /// Its lease lives: it is not touched.
    Lives,
    /// It is still named as the owner of this range, until another process takes that: it is not touched.
    Owns(RangeId),
}

/// Removes what is left of a process that is gone.
///
/// # Errors
///
/// If there is no stamp, the metadata store can't be reached, or what it has is damaged.
pub async fn forget_process(
    surroundings: &Surroundings,
    process: Incarnation,
) -> Result<Forgotten, StampError> {
    let stamp = surroundings.settings.stamp;
    let Some(entry) = read_life(surroundings).await? else {
        return Err(StampError::Setup(format!("the metadata store has no stamp {stamp}")));
    };
    let life = StampLife { stamp, generation: entry.generation };
    let metadata = Metadata::new(surroundings.clone(), life);
    let mut back_off = surroundings.back_off();
    let mut was_sent = false;
    for _ in 0..TRIES_MAX {
        let values = metadata.list(&[KeyKind::Own, KeyKind::Beat, KeyKind::Process], &[]).await?;
        let beat = match look(&values, process) {
            Ok(beat) => beat,
            // By this transaction, whose answer did not come.
            Err(Forgotten::Unknown) if was_sent => return Ok(Forgotten::Done),
            Err(kept) => return Ok(kept),
        };
        match metadata.commit(&forget_beat(life.generation, process, beat)).await {
            TransactionAnswer::Committed(_) => return Ok(Forgotten::Done),
            TransactionAnswer::CompareFailed => {}
            TransactionAnswer::Unknown => was_sent = true,
        }
        back_off.wait().await;
    }
    Err(StampError::store("metadata", StoreError::UnknownOutcome("no answer".to_owned())))
}

/// The beat that may be removed, or why none may.
fn look(values: &Values, process: Incarnation) -> Result<Revision, Forgotten> {
    if values.get(Key::Process(process)).is_some() {
        return Err(Forgotten::Lives);
    }
    let owns = values.values.iter().find_map(|(key, (value, _))| match (key, value) {
        (Key::Own(range), Value::Own(own)) if own.owner == Some(process) => Some(*range),
        _ => None,
    });
    if let Some(range) = owns {
        return Err(Forgotten::Owns(range));
    }
    let beat = Some(values.changed_at(Key::Beat(process))).filter(|beat| beat.0 > 0);
    beat.ok_or(Forgotten::Unknown)
}

/// Removes the beat of a process whose key is gone.
pub(crate) fn forget_beat(generation: Generation, process: Incarnation, beat: Revision) -> Transaction {
    let mut transaction = Transaction::new(generation);
    transaction.compares.push(Compare::ChangedAt(Key::Process(process), Revision(0)));
    transaction.compares.push(Compare::ChangedAt(Key::Beat(process), beat));
    transaction.deletes.push(Key::Beat(process));
    transaction
}
