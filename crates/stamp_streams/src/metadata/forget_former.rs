//! The metadata store forgets what its keys held before. etcd keeps every former value until it is compacted,
//! and takes no change any more once they fill its quota: with a document that each flush and roll-over
//! writes anew, that would be a matter of hours.

use crate::error::StampError;
use crate::membership::life::Life;
use crate::stores::store_error::StoreError;
use stamp::Revision;

/// Has the metadata store forget what keys held before `revision`, which is some minutes old: reads of
/// several pages are of one revision, and watches go on from one.
///
/// # Errors
///
/// If the store can't be reached, or refuses: whoever runs it has to see to it then.
pub async fn forget_former_values(life: &Life, revision: Revision) -> Result<(), StampError> {
    let compacted = life.surroundings.try_key(life.surroundings.keys.compact(revision)).await;
    let compacted = compacted.unwrap_or_else(|| Err(StoreError::Unavailable("no answer".to_owned())));
    compacted.map_err(|error| StampError::store("a compaction of the metadata store", error))
}
