//! What the process that serves does beside: the documents go to the object store now and then, what no
//! document names is swept out of it, and etcd forgets what its keys held before.
//!
//! What always holds: while nothing changes, nothing is sent to the object store; a failure is logged and
//! tried again, and keeps nobody from being served.

use base::Clock;
use futures_util::future::{Either, select};
use stamp::Mark;
use stamp_streams::{Life, OwnedRange, Sweeper, back_up_all, forget_former_values, prune_backups};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Between two backups, at least.
const BACK_UP_EVERY: Duration = Duration::from_secs(180);
/// Between two sweeps, at least.
const SWEEP_EVERY: Duration = Duration::from_secs(900);
/// Former values of etcd's keys are kept for so long, at least.
const COMPACT_EVERY: Duration = Duration::from_secs(300);
/// Backups of all documents that are kept.
const KEPT_BACKUPS: usize = 8;
/// Sweeps after the last change, so that what it dropped goes once it is old enough.
const SWEEPS_AFTER_CHANGE: u32 = 8;

/// Backs up until the range is not served any more.
pub(super) async fn keep_backing_up(life: Arc<Life>, range: Arc<OwnedRange>, clock: Arc<dyn Clock>) {
    let mut last: Option<Mark> = None;
    while range.stopped().is_none() {
        let mark = range.document().mark;
        if last != Some(mark) {
            match back_up_all(&life).await {
                Ok(revision) => {
                    tracing::debug!(revision = revision.0, "the documents are backed up");
                    last = Some(mark);
                }
                Err(error) => tracing::warn!(%error, "the documents can't be backed up; it is tried again"),
            }
        }
        let _ = select(pin!(range.until_stopped()), clock.sleep(BACK_UP_EVERY)).await;
    }
}

/// Sweeps until the range is not served any more.
pub(super) async fn keep_sweeping(life: Arc<Life>, range: Arc<OwnedRange>, clock: Arc<dyn Clock>) {
    let sweeper = Sweeper::new(&life);
    let (mut last, mut left) = (None, SWEEPS_AFTER_CHANGE);
    while range.stopped().is_none() {
        if let Either::Left(_) = select(pin!(range.until_stopped()), clock.sleep(SWEEP_EVERY)).await {
            return;
        }
        let mark = range.document().mark;
        if last != Some(mark) {
            left = SWEEPS_AFTER_CHANGE;
        }
        if left == 0 {
            continue;
        }
        match prune_backups(&life, KEPT_BACKUPS).await {
            Ok(pruned) => tracing::debug!(pruned, "old backups are deleted"),
            Err(error) => tracing::warn!(%error, "old backups can't be deleted; it is tried again"),
        }
        match sweeper.sweep().await {
            Ok(swept) => {
                tracing::debug!(?swept, "the object store is swept");
                (last, left) = (Some(mark), left - 1);
            }
            Err(error) => tracing::warn!(%error, "the object store can't be swept; it is tried again"),
        }
    }
}

/// Has etcd forget former values until the range is not served any more.
pub(super) async fn keep_compacting(life: Arc<Life>, range: Arc<OwnedRange>, clock: Arc<dyn Clock>) {
    let mut before = forget_former_values(&life, None).await.ok();
    loop {
        if let Either::Left(_) = select(pin!(range.until_stopped()), clock.sleep(COMPACT_EVERY)).await {
            return;
        }
        match forget_former_values(&life, before).await {
            Ok(revision) => before = Some(revision),
            Err(error) => tracing::warn!(
                %error,
                "etcd can't be compacted, and takes no changes any more once its quota is full: start it with \
                 --auto-compaction-retention if this goes on; it is tried again"
            ),
        }
    }
}
