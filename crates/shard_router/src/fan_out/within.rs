//! The bound of time of one shard's answer.

use super::error::ShardFailure;
use super::settings::FanOutSettings;
use base::{BoxFuture, Clock};

/// An answer, if it comes in time.
pub(super) async fn within<T, E>(
    settings: &FanOutSettings,
    clock: &dyn Clock,
    asked: BoxFuture<'_, Result<T, ShardFailure<E>>>,
) -> Result<T, ShardFailure<E>> {
    tokio::select! {
        biased;
        answer = asked => answer,
        () = clock.sleep(settings.shard_for_max) => Err(ShardFailure::TimedOut(settings.shard_for_max)),
    }
}
