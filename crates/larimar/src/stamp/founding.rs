//! The first start of a stamp: what is asked of its object store, and its one range.

use crate::stamp::stores::Stores;
use stamp::KeyLimits;
use stamp_streams::{FirstRange, StampError, found};

/// Why a stamp was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FoundError {
    /// A store, or another process that was first.
    #[error(transparent)]
    Stamp(#[from] StampError),
    /// The object store can't carry one.
    #[error("{0}")]
    FirstStart(String),
}

/// Makes the stamp, which is not there.
pub(crate) async fn found_stamp(stores: &Stores) -> Result<(), FoundError> {
    let warnings = stores.objects.check_first_start().await;
    for warning in warnings.map_err(|error| FoundError::FirstStart(error.to_string()))? {
        tracing::warn!("{warning}");
    }
    let all = FirstRange { keys: KeyLimits::default(), purposes: Vec::new() };
    found(&stores.surroundings, &[all]).await?;
    tracing::info!(stamp = %stores.surroundings.settings.stamp, "the stamp is made");
    Ok(())
}
