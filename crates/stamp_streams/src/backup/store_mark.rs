//! The mark by which a process knows the object store of its stamp: an object for each life of the metadata
//! store.
//!
//! ```text
//! <stamp, 32 hex>/store/<generation, 32 hex>
//! ```
//!
//! Why: a process with another bucket, prefix or folder would find no part of any extent, seal all of them as
//! empty, and record that: acknowledged writes would be gone. What always holds: the mark is there before the
//! life is in force, and nobody joins who does not find it.

use crate::error::StampError;
use crate::stores::store_error::StoreError;
use crate::surroundings::Surroundings;
use bytes::Bytes;
use stamp::{Generation, PutAnswer, StampId};

/// What it has; its name is what counts.
const CONTENT: &[u8] = b"the object store of a Larimar stamp\n";
/// How often the mark is sent.
const TRIES_MAX: usize = 20;

fn mark_name(stamp: StampId, generation: Generation) -> String {
    format!("{stamp}/store/{generation}")
}

/// Marks the object store as that of a life that will be in force.
pub(crate) async fn mark_store(
    surroundings: &Surroundings,
    generation: Generation,
) -> Result<(), StampError> {
    let name = mark_name(surroundings.settings.stamp, generation);
    let mut back_off = surroundings.back_off();
    for _ in 0..TRIES_MAX {
        match surroundings.put_named(&name, &Bytes::from_static(CONTENT)).await {
            // Whoever made it, it is of this generation.
            PutAnswer::Created | PutAnswer::Refused => return Ok(()),
            PutAnswer::Failed { status } => {
                let refused = StoreError::Refused(format!("status {status}"));
                return Err(StampError::store("the mark of the object store", refused));
            }
            PutAnswer::Unknown => back_off.wait().await,
        }
    }
    Err(StampError::store("the mark of the object store", StoreError::UnknownOutcome("no answer".to_owned())))
}

/// Whether the object store is the one of the life in force.
///
/// # Errors
///
/// [`StampError::Setup`] if it is another one; others if it can't be reached.
pub(crate) async fn check_store(
    surroundings: &Surroundings,
    generation: Generation,
) -> Result<(), StampError> {
    let stamp = surroundings.settings.stamp;
    let name = mark_name(stamp, generation);
    let read = surroundings.try_object(surroundings.objects.read(&name, 0, 1)).await;
    match read.unwrap_or_else(|| Err(StoreError::Unavailable("no answer".to_owned()))) {
        Ok(_) => Ok(()),
        Err(StoreError::NotThere) => Err(StampError::Setup(format!(
            "the object store is not that of stamp {stamp}: it has no object {name}; give the bucket, prefix or \
             folder that the stamp was made with, and mount it, if it is a share"
        ))),
        Err(error) => Err(StampError::store("the mark of the object store", error)),
    }
}
