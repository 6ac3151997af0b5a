//! What an unfinished migration has copied is given up: the stamp is empty then.

use crate::migration::content::{Content, content_of};
use crate::migration::error::MigrationError;
use crate::migration::hold::{Hold, for_migration};
use crate::migration::into_stamp::drop_extents;
use crate::surroundings::Surroundings;
use stamp::{Change, RangeDocument};

/// Drops what an unfinished migration has copied; how many extents. Their objects go as those of other
/// dropped extents do: by the sweeps of a process that serves the stamp, after an hour.
///
/// # Errors
///
/// [`MigrationError::Refused`] if there is no unfinished migration.
pub async fn abandon_migration(surroundings: &Surroundings) -> Result<u64, MigrationError> {
    let surroundings = for_migration(surroundings);
    let hold = Hold::take(&surroundings, false, &check).await?;
    let dropped = drop_all(&hold).await;
    hold.leave().await;
    dropped
}

fn check(document: &RangeDocument) -> Result<(), MigrationError> {
    match content_of(document) {
        Content::Unfinished(_) => Ok(()),
        Content::Empty | Content::Streams(_) => {
            Err(MigrationError::Refused("the stamp has no unfinished migration".to_owned()))
        }
    }
}

async fn drop_all(hold: &Hold) -> Result<u64, MigrationError> {
    let document = hold.range.document();
    let listed = document
        .streams
        .iter()
        .flat_map(|(id, stream)| stream.extents.iter().map(move |entry| (*id, entry.name)));
    let listed: Vec<_> = listed.collect();
    drop_extents(hold, &listed).await?;
    let delete = document.streams.keys().map(|stream| Change::DeleteStream { stream: *stream });
    hold.range.change(&delete.collect::<Vec<_>>()).await?;
    Ok(listed.len() as u64)
}
