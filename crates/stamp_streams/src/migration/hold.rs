//! Founding the stamp if there is none, joining it, and taking its range, so that no other process does.
//!
//! What always holds: a stamp that is in use is refused before anything of it is changed, its range is not
//! taken either.

use crate::backup::found::{FirstRange, found, is_founded};
use crate::error::StampError;
use crate::membership::life::Life;
use crate::metadata::wire::KeyKind;
use crate::migration::error::MigrationError;
use crate::range::owned_range::OwnedRange;
use crate::range::range_watch::{RangeWatch, Taken};
use crate::settings::{GIVE_UP_AFTER, StampSettings};
use crate::surroundings::Surroundings;
use futures_util::future::select;
use stamp::{KeyLimits, RangeDocument, Value, WindowBounds};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Parts of one extent under way.
pub(super) const WINDOW_PARTS: usize = 1;
/// How often it looks whether the range can be taken.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// So many lease times it waits for a range whose owner says nothing: a migration that was killed, or a
/// process that stands by and can't serve what is not finished.
const WAIT_LEASES: u32 = 4;
/// How long leaving may take.
const LEAVE_FOR: Duration = Duration::from_secs(2);

/// A range in the hands of a migration.
pub(super) struct Hold {
    pub(super) life: Arc<Life>,
    pub(super) range: Arc<OwnedRange>,
}

/// What a migration sets otherwise: extents are as long as they are, whatever is usual.
pub(super) fn for_migration(surroundings: &Surroundings) -> Surroundings {
    let settings = StampSettings {
        extent_size_bytes: u64::MAX,
        give_up_after: GIVE_UP_AFTER,
        window: WindowBounds { parts_max: WINDOW_PARTS, ..WindowBounds::default() },
        ..(*surroundings.settings).clone()
    };
    Surroundings { settings: Arc::new(settings), ..surroundings.clone() }
}

impl Hold {
    /// Takes the range of the stamp, whose document must be as `check` wants it. Founds the stamp if there is
    /// none and `founds`.
    pub(super) async fn take(
        surroundings: &Surroundings,
        founds: bool,
        check: &(dyn Fn(&RangeDocument) -> Result<(), MigrationError> + Sync),
    ) -> Result<Self, MigrationError> {
        if founds && !is_founded(surroundings).await? {
            found(surroundings, &[FirstRange { keys: KeyLimits::default(), purposes: Vec::new() }]).await?;
        }
        let life = Life::join(surroundings).await?;
        match take_range(&life, check).await {
            Ok(range) => Ok(Hold { life, range }),
            Err(error) => {
                life.leave().await;
                Err(error)
            }
        }
    }

    /// Gives the range up, so that another may take it at once.
    pub(super) async fn leave(&self) {
        let clock = self.life.surroundings.clock.clone();
        let leaving = async {
            if self.range.release().await.is_err() {
                // Without an answer another waits for the lease's end.
                drop(self.range.give_up().await);
            }
            self.life.leave().await;
        };
        select(pin!(leaving), clock.sleep(LEAVE_FOR)).await;
        // It beats no more in any case: the next life would wait for this one.
        self.life.end();
    }
}

async fn take_range(
    life: &Arc<Life>,
    check: &(dyn Fn(&RangeDocument) -> Result<(), MigrationError> + Sync),
) -> Result<Arc<OwnedRange>, MigrationError> {
    let clock = &life.surroundings.clock;
    let watch = RangeWatch::new(life);
    let until = clock.monotonic() + WAIT_LEASES * life.surroundings.settings.ttl;
    loop {
        if !life.holds() {
            return Err(StampError::LeaseEnded.into());
        }
        let document = only_document(life).await?;
        check(&document)?;
        watch.look().await?;
        match watch.take(document.range).await? {
            Taken::Range(range) => {
                // It may have been changed between the look and the take.
                if let Err(error) = check(&range.document()) {
                    drop(range.give_up().await);
                    return Err(error);
                }
                return Ok(range);
            }
            Taken::Owned | Taken::Wait(_) if clock.monotonic() >= until => {
                let owner = document.own.owner.map_or_else(String::new, |owner| format!(" {owner}"));
                return Err(MigrationError::Refused(format!(
                    "process{owner} holds the stamp: stop it first (another migration, perhaps)"
                )));
            }
            Taken::Owned | Taken::Wait(_) | Taken::NotNow => clock.sleep(LOOK_EVERY).await,
        }
    }
}

/// The document of the stamp's only range.
async fn only_document(life: &Life) -> Result<Arc<RangeDocument>, MigrationError> {
    let values = life.metadata.list(&[KeyKind::Document], &[]).await?;
    let mut documents = values.values.into_values().filter_map(|(value, _)| match value {
        Value::Document(document) => Some(document),
        _ => None,
    });
    match (documents.next(), documents.next()) {
        (Some(document), None) => Ok(document),
        (None, _) => Err(MigrationError::Away("the stamp has no range yet".to_owned())),
        (Some(_), Some(_)) => {
            Err(MigrationError::Refused("the stamp has several ranges: it is in use".to_owned()))
        }
    }
}
