//! What the process that serves does beside: the documents go to the object store now and then, what no
//! document names is swept out of it, and etcd forgets what its keys held before.
//!
//! What always holds: while nothing changes, nothing is sent to the object store; a failure is logged and
//! tried again, and keeps nobody from being served.

use crate::stamp::former_revisions::FormerRevisions;
use base::Clock;
use futures_util::future::{Either, select};
use stamp::Mark;
use stamp_streams::{Life, OwnedRange, Sweeper, back_up_all, forget_former_values, prune_backups};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Between two backups, at least.
const BACK_UP_EVERY: Duration = Duration::from_secs(180);
/// The first sweep of a turn of serving: a stamp that changes hands more often is not swept.
const FIRST_SWEEP_AFTER: Duration = Duration::from_secs(120);
/// Between two sweeps, at least.
const SWEEP_EVERY: Duration = Duration::from_secs(900);
/// Between two compactions of etcd, at least.
const COMPACT_EVERY: Duration = Duration::from_secs(300);
/// Former values of etcd's keys are kept for so long, at least.
const FORMER_VALUES_FOR: Duration = Duration::from_secs(300);
/// How often it is noted how far etcd is.
const LOOK_AT_REVISIONS_EVERY: Duration = Duration::from_secs(60);
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
    sweeper.begin().await;
    let (mut last, mut left, mut rest) = (None, SWEEPS_AFTER_CHANGE, FIRST_SWEEP_AFTER);
    while range.stopped().is_none() {
        if let Either::Left(_) = select(pin!(range.until_stopped()), clock.sleep(rest)).await {
            return;
        }
        rest = SWEEP_EVERY;
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

/// Has etcd forget former values until the range is not served any more: at first at once, because a stamp
/// may change hands more often than that is done.
pub(super) async fn keep_compacting(
    life: Arc<Life>,
    range: Arc<OwnedRange>,
    clock: Arc<dyn Clock>,
    revisions: Arc<FormerRevisions>,
) {
    let generation = life.life().generation;
    let mut next_at = Duration::ZERO;
    while range.stopped().is_none() {
        let now = clock.monotonic();
        revisions.note(generation, life.known_revision());
        let old = revisions.older_than(FORMER_VALUES_FOR, generation).filter(|_| now >= next_at);
        if let Some(revision) = old {
            next_at = now + COMPACT_EVERY;
            if let Err(error) = forget_former_values(&life, revision).await {
                tracing::warn!(
                    %error,
                    "etcd can't be compacted, and takes no changes any more once its quota is full: start it with \
                     --auto-compaction-retention if this goes on; it is tried again"
                );
            }
        }
        let _ = select(pin!(range.until_stopped()), clock.sleep(LOOK_AT_REVISIONS_EVERY)).await;
    }
}
