//! Background work of all ranges of a process: one task flushes, one merges, one collects blob data.
//!
//! What always holds: work that failed is tried again after pauses that grow (`retries` says how), and holds
//! up no other range; writers that wait for a flush get its failure meanwhile, and of no other's.

use crate::background::range_work::{Collected, Flush, RangeWork};
use crate::background::retries::{RangeName, Retries};
use crate::blob_data::choose_emptied::Pace;
use crate::compaction::idle::IdleWatch;
use crate::error::PartitionError;
use crate::memory::choose_flush::{RangeMemory, choose_flush};
use base::{BoxFuture, Clock, Spawner};
use futures_util::future::{Either, select};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// A flush whose table is not durable yet looks again after this long.
const DURABILITY_POLL_AFTER: Duration = Duration::from_millis(2);
/// While space is scarce, ranges are looked at this often for what they could free.
const SCARCE_ROUND_EVERY: Duration = Duration::from_secs(2);
/// Ranges are looked at this often for what waits until it is idle.
const IDLE_LOOK_EVERY: Duration = Duration::from_secs(10);
/// Ranges are looked at this often for blob data that nobody names.
const COLLECT_EVERY: Duration = Duration::from_secs(10);
/// And again so soon after something was freed.
const COLLECT_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// While the disk is full, and while it will soon be, ranges are looked at this often for dead blob data.
const SCARCE_COLLECT_EVERY: Duration = Duration::from_millis(250);
const TIGHT_COLLECT_EVERY: Duration = Duration::from_secs(1);
/// A round for nothing is not tried again sooner than after so long, nor later than after that: what needed
/// room may have it.
const SCARCE_REST_MAX: Duration = Duration::from_secs(3);

/// After a round of collections that gave nothing back, the next one rests this many times as long as it
/// took.
const FRUITLESS_REST_FACTOR: u32 = 10;

/// How long to rest after a round of collections: as long as it took, ten seconds at most, while there is
/// something to free, since what others write must not outrun it; much longer after it was done for
/// nothing. An idle one that yielded to others while it copied was not, and needs less the next time.
fn rest_after_collection(took_for: Duration, collected: Collected, was_disturbed: bool) -> Duration {
    let made_way = was_disturbed && (collected.extents > 0 || collected.copied_bytes > 0);
    match collected.extents {
        _ if made_way => COLLECT_EVERY.max(took_for),
        0 => COLLECT_EVERY.max(took_for.saturating_mul(FRUITLESS_REST_FACTOR)),
        _ => took_for.clamp(COLLECT_AGAIN_AFTER, COLLECT_EVERY),
    }
}

/// The same where the disk is full or will soon be. What is not freed makes deletions wait.
fn rest_while_urgent(pace: Pace, took_for: Duration, collected: Collected) -> Duration {
    let every = if pace == Pace::Scarce { SCARCE_COLLECT_EVERY } else { TIGHT_COLLECT_EVERY };
    match collected.extents {
        0 => took_for.saturating_mul(FRUITLESS_REST_FACTOR).clamp(every, SCARCE_REST_MAX.max(every)),
        _ => Duration::ZERO,
    }
}

/// At which pace blob data is collected that is not due, if it is so long until it is quiet.
fn idle_pace(ranges: &[Arc<dyn RangeWork>], idle_in: Duration) -> Option<Pace> {
    let with_data = ranges.iter().filter(|range| range.data_activity().is_some());
    let range = with_data.clone().next()?;
    let is_idle = idle_in.is_zero() && !range.is_scarce();
    is_idle.then(|| Pace::IdleWatch { kept_back_bytes: range.kept_back_bytes() / with_data.count() as u64 })
}

/// Ranges whose last flush failed, and why.
type Troubles = BTreeMap<RangeName, PartitionError>;

/// What writers of `range`, who wait for a flush, must be told. Others' troubles are theirs only if they wait
/// for any range's flush, because the budget of all is full, or if it is one that no range escapes, such as a
/// full disk.
fn choose_trouble(troubles: &Troubles, range: RangeName, budget_is_full: bool) -> Option<&PartitionError> {
    let shared = || troubles.values().find(|trouble| budget_is_full || trouble.is_refusal());
    troubles.get(&range).or_else(shared)
}

/// The work to do, and who does it.
#[derive(Default)]
pub(crate) struct Maintenance {
    ranges: Mutex<Vec<Weak<dyn RangeWork>>>,
    /// Ranges that were handed over and may still have readers.
    retired: Mutex<Vec<Arc<dyn RangeWork>>>,
    flush_wake: Notify,
    compaction_wake: Notify,
    collect_wake: Notify,
    closing: AtomicBool,
    /// Whether no range takes operations any more.
    is_abandoned: AtomicBool,
    /// Why flushes fail at present, of those ranges whose do.
    troubles: Mutex<Troubles>,
    flushes: AtomicU64,
    compactions: AtomicU64,
    compacted_bytes: AtomicU64,
}

/// Freezes tables, the largest first, until those that take changes are small enough together.
fn freeze_for_budget(ranges: &[Arc<dyn RangeWork>]) {
    let Some(budget) = ranges.first().map(|range| range.budget()) else { return };
    if !budget.wants_flush() && !budget.bounds_log_groups() {
        return;
    }
    // Each range is frozen once at most: a table that fills again meanwhile has its turn in the next round.
    for _ in ranges {
        let memory: Vec<RangeMemory> = ranges.iter().map(|range| range.memory()).collect();
        match choose_flush(&memory, budget.flush_from()) {
            Some(index) => ranges[index].freeze_active(),
            None => return,
        }
    }
}

fn shorter(pause: Option<Duration>, other: Duration) -> Option<Duration> {
    Some(pause.map_or(other, |pause| pause.min(other)))
}

/// Waits until there may be something to do; with a pause, not longer than that.
async fn wait(clock: &Arc<dyn Clock>, pause: Option<Duration>, wake: &Notify) {
    match pause {
        Some(pause) => {
            select(pin!(clock.sleep(pause)), pin!(wake.notified())).await;
        }
        None => wake.notified().await,
    }
}

/// Remembers a failure and logs it if it is news. Returns the pause.
fn note_failure(
    retries: &mut Retries,
    range: &dyn RangeWork,
    error: &PartitionError,
    clock: &Arc<dyn Clock>,
    what: &str,
) -> Duration {
    let (pause, is_news) = retries.failed(range.name(), error, clock.monotonic());
    let (table, id, pause_ms) = (range.name().0.name(), range.name().1, pause.as_millis() as u64);
    if is_news {
        tracing::warn!(table, id, %error, pause_ms, "{what}; it is tried again and again after growing pauses");
    } else {
        tracing::debug!(table, id, %error, pause_ms, "{what}");
    }
    pause
}

impl Maintenance {
    /// Starts the tasks, all or none.
    pub(crate) fn start(spawner: &dyn Spawner, clock: &Arc<dyn Clock>) -> Result<Arc<Self>, PartitionError> {
        let maintenance = Arc::new(Maintenance::default());
        let tasks: [(_, BoxFuture<'static, ()>); 3] = [
            ("flush", Box::pin(maintenance.clone().run_flushes(clock.clone()))),
            ("merge", Box::pin(maintenance.clone().run_compactions(clock.clone()))),
            ("collect", Box::pin(maintenance.clone().run_collections(clock.clone()))),
        ];
        for (name, task) in tasks {
            let started = spawner.spawn_background(name, task).map_err(PartitionError::no_thread(name));
            started.inspect_err(|_| maintenance.close())?;
        }
        Ok(maintenance)
    }

    /// Takes care of a range until it is dropped.
    pub(crate) fn add(&self, range: Weak<dyn RangeWork>) {
        self.ranges.lock().push(range.clone());
        if self.is_abandoned.load(Ordering::SeqCst)
            && let Some(range) = range.upgrade()
        {
            range.refuse();
        }
        self.flush_wake.notify_one();
        self.compaction_wake.notify_one();
    }

    /// Removes a range that was handed over, once its last reader is done.
    pub(crate) fn retire(&self, range: Arc<dyn RangeWork>) {
        self.ranges.lock().retain(|known| !std::ptr::addr_eq(known.as_ptr(), Arc::as_ptr(&range)));
        self.keep_retired(range);
        self.compaction_wake.notify_one();
    }

    /// A memory table is frozen.
    pub(crate) fn wake_flush(&self) {
        self.flush_wake.notify_one();
    }

    /// There may be something to merge or to remove.
    pub(crate) fn wake_compaction(&self) {
        self.compaction_wake.notify_one();
    }

    /// Somebody waits for space.
    pub(crate) fn wake_for_space(&self) {
        self.flush_wake.notify_one();
        self.compaction_wake.notify_one();
        self.collect_wake.notify_one();
    }

    /// Why a writer of `range` shall not wait for a flush, if flushes fail at present.
    pub(crate) fn trouble(&self, range: RangeName, budget_is_full: bool) -> Option<PartitionError> {
        choose_trouble(&self.troubles.lock(), range, budget_is_full).cloned()
    }

    /// How many memory tables were flushed and how many merges were done.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.flushes.load(Ordering::Relaxed), self.compactions.load(Ordering::Relaxed))
    }

    /// Checkpoints of the range that has the most of them among those with something to merge: merges are
    /// done one after the other, so they all wait for the one under way.
    pub(crate) fn most_checkpoints_to_compact(&self) -> usize {
        let ranges = self.ranges.lock();
        ranges.iter().filter_map(Weak::upgrade).map(|range| range.checkpoints_to_compact()).max().unwrap_or(0)
    }

    /// A merge wrote rows of so many bytes, for good or until it gave up.
    pub(crate) fn note_compacted(&self, size_bytes: u64) {
        self.compacted_bytes.fetch_add(size_bytes, Ordering::Relaxed);
    }

    /// So many merges were done at somebody's request.
    pub(crate) fn note_compactions(&self, count: u64) {
        self.compactions.fetch_add(count, Ordering::Relaxed);
        self.compaction_wake.notify_one();
    }

    /// Bytes of rows that merges wrote.
    pub(crate) fn compacted_bytes(&self) -> u64 {
        self.compacted_bytes.load(Ordering::Relaxed)
    }

    /// Ends the tasks at their next step. Ranges that were handed over are let go: they hold what all ranges
    /// share, this included, and whoever opens the ranges next removes their streams.
    pub(crate) fn close(&self) {
        let retired = {
            let mut retired = self.retired.lock();
            self.closing.store(true, Ordering::Relaxed);
            std::mem::take(&mut *retired)
        };
        drop(retired);
        self.flush_wake.notify_one();
        self.compaction_wake.notify_one();
        self.collect_wake.notify_one();
    }

    /// The same, and no range takes operations any more, those that are yet to come included.
    pub(crate) fn abandon(&self) {
        self.close();
        // Before the list is read: who comes later sees it.
        self.is_abandoned.store(true, Ordering::SeqCst);
        let ranges: Vec<_> = self.ranges.lock().iter().filter_map(Weak::upgrade).collect();
        ranges.iter().for_each(|range| range.refuse());
    }

    fn closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    fn live_ranges(&self) -> Vec<Arc<dyn RangeWork>> {
        let mut ranges = self.ranges.lock();
        ranges.retain(|range| range.strong_count() > 0);
        ranges.iter().filter_map(Weak::upgrade).collect()
    }

    async fn run_flushes(self: Arc<Self>, clock: Arc<dyn Clock>) {
        let mut retries = Retries::default();
        let mut next_scarce_round = Duration::ZERO;
        while !self.closing() {
            let mut pause: Option<Duration> = None;
            let mut troubles = Troubles::new();
            let ranges = self.live_ranges();
            retries.keep(|known| ranges.iter().any(|range| range.name() == known));
            freeze_for_budget(&ranges);
            // It looks at all that is in memory, so not each time that a writer wakes this task.
            let is_scarce_round = clock.monotonic() >= next_scarce_round;
            if is_scarce_round {
                next_scarce_round = clock.monotonic() + SCARCE_ROUND_EVERY;
            }
            for range in ranges {
                if self.closing() {
                    return;
                }
                if let Some((error, wait_for)) = retries.waiting(range.name(), clock.monotonic()) {
                    troubles.insert(range.name(), error.clone());
                    pause = shorter(pause, wait_for);
                    continue;
                }
                if range.is_scarce() {
                    pause = shorter(pause, SCARCE_ROUND_EVERY);
                }
                if is_scarce_round && let Err(error) = range.free_space().await {
                    tracing::debug!(%error, id = range.name().1, "a range's log could not be given back");
                }
                match range.flush().await {
                    Ok(Flush::NotYet) => pause = shorter(pause, DURABILITY_POLL_AFTER),
                    Ok(done) => {
                        if retries.succeeded(range.name()) {
                            tracing::info!(
                                table = range.name().0.name(),
                                id = range.name().1,
                                "flushes work again"
                            );
                        }
                        if done == Flush::Done {
                            self.flushes.fetch_add(1, Ordering::Relaxed);
                            self.compaction_wake.notify_one();
                            self.flush_wake.notify_one();
                        }
                    }
                    Err(error) => {
                        let wait_for = note_failure(
                            &mut retries,
                            &*range,
                            &error,
                            &clock,
                            "a memory table can't be flushed",
                        );
                        troubles.insert(range.name(), error);
                        pause = shorter(pause, wait_for);
                    }
                }
            }
            let changed = *self.troubles.lock() != troubles;
            *self.troubles.lock() = troubles;
            if changed {
                self.live_ranges().iter().for_each(|range| range.tell_waiting_writers());
            }
            wait(&clock, pause, &self.flush_wake).await;
        }
    }

    async fn run_compactions(self: Arc<Self>, clock: Arc<dyn Clock>) {
        let mut retries = Retries::default();
        let mut removals = Retries::default();
        let mut idle = IdleWatch::new(clock.monotonic());
        while !self.closing() {
            let mut pause: Option<Duration> = None;
            let ranges = self.live_ranges();
            retries.keep(|known| ranges.iter().any(|range| range.name() == known));
            for range in ranges {
                if self.closing() {
                    return;
                }
                if let Some((_, wait_for)) = retries.waiting(range.name(), clock.monotonic()) {
                    pause = shorter(pause, wait_for);
                    continue;
                }
                if range.is_scarce() {
                    pause = shorter(pause, SCARCE_ROUND_EVERY);
                }
                match range.compact(&|| self.closing()).await {
                    Ok(merged) => {
                        // Newer checkpoints may have been merged past some that do not read.
                        if !range.has_failed_compaction() && retries.succeeded(range.name()) {
                            tracing::info!(
                                table = range.name().0.name(),
                                id = range.name().1,
                                "compactions work again"
                            );
                        }
                        if merged > 0 {
                            self.compactions.fetch_add(merged, Ordering::Relaxed);
                            self.compaction_wake.notify_one();
                        }
                    }
                    Err(_) if self.closing() => return,
                    Err(error) => {
                        let wait_for = note_failure(
                            &mut retries,
                            &*range,
                            &error,
                            &clock,
                            "checkpoints can't be merged",
                        );
                        pause = shorter(pause, wait_for);
                    }
                }
            }
            if let Some(wait_for) = self.compact_when_idle(&mut idle, &clock).await {
                pause = shorter(pause, wait_for);
            }
            if let Some(wait_for) = self.remove_retired(&mut removals, &clock).await {
                pause = shorter(pause, wait_for);
            }
            wait(&clock, pause, &self.compaction_wake).await;
        }
    }

    /// Merges in one of the ranges that wait for quiet, if it is quiet. Returns when to look again.
    async fn compact_when_idle(&self, idle: &mut IdleWatch, clock: &Arc<dyn Clock>) -> Option<Duration> {
        let comes_in = idle.comes_in(self.flushes.load(Ordering::Relaxed), clock.monotonic());
        let mut waiting = self.live_ranges();
        waiting.retain(|range| range.waits_until_idle());
        if waiting.is_empty() {
            // Tombstones may gather in memory, and nobody wakes this task for each of them.
            return Some(IDLE_LOOK_EVERY);
        }
        if !comes_in.is_zero() {
            return Some(comes_in);
        }
        for range in waiting {
            if range.compact_when_idle(&|| self.closing()).await {
                self.compactions.fetch_add(1, Ordering::Relaxed);
                // By now something else may be more urgent.
                self.compaction_wake.notify_one();
                return None;
            }
        }
        Some(IDLE_LOOK_EVERY)
    }

    async fn run_collections(self: Arc<Self>, clock: Arc<dyn Clock>) {
        let mut rest_for = COLLECT_EVERY;
        let mut idle = IdleWatch::new(clock.monotonic());
        while !self.closing() {
            let ranges = self.live_ranges();
            let pause = pin!(clock.sleep(rest_for));
            let woken = pin!(self.collect_wake.notified());
            match ranges.into_iter().next() {
                None => {
                    select(pause, woken).await;
                }
                Some(range) => {
                    let scarce = range.became_scarce();
                    drop(range);
                    if let Either::Right((Either::Right(_), _)) = select(pause, select(woken, scarce)).await {
                        self.flush_wake.notify_one();
                        self.compaction_wake.notify_one();
                    }
                }
            }
            let began_at = clock.monotonic();
            let mut collected = Collected::default();
            let ranges = self.live_ranges();
            let due_pace = match ranges.first() {
                Some(range) if range.is_scarce() => Pace::Scarce,
                Some(range) if range.is_tight().await => Pace::Tight,
                _ => Pace::Busy,
            };
            let activity = self.data_activity(&ranges);
            let idle_pace = idle_pace(&ranges, idle.comes_in(activity, began_at));
            let is_disturbed = || self.data_activity(&self.live_ranges()) != activity;
            let mut was_disturbed = false;
            for range in ranges {
                if self.closing() {
                    return;
                }
                // What is due is due, whoever writes meanwhile.
                let outcome = if range.is_worth_collecting(due_pace) {
                    range.clone().collect_data(due_pace, &|| self.closing(), &|| false, &mut collected).await
                } else if let Some(pace) = idle_pace.filter(|pace| range.is_worth_collecting(*pace)) {
                    let outcome = match is_disturbed() {
                        true => Ok(()),
                        false => {
                            range
                                .clone()
                                .collect_data(pace, &|| self.closing(), &is_disturbed, &mut collected)
                                .await
                        }
                    };
                    was_disturbed = was_disturbed || is_disturbed();
                    outcome
                } else {
                    continue;
                };
                if let Err(error) = outcome {
                    tracing::warn!(%error, id = range.name().1, "blob data could not be collected");
                }
            }
            let took_for = clock.monotonic().saturating_sub(began_at);
            rest_for = match due_pace.is_urgent() {
                true => rest_while_urgent(due_pace, took_for, collected),
                false => rest_after_collection(took_for, collected, was_disturbed),
            };
        }
    }

    /// How often there was something that an idle collection yields to: blob data of any of these
    /// ranges was changed, by others than collections, or so many rows that a memory table was flushed. Those
    /// that a collection rewrites may be what fills it: then it goes on in a later round, with less to do.
    fn data_activity(&self, ranges: &[Arc<dyn RangeWork>]) -> u64 {
        let changes: u64 = ranges.iter().filter_map(|range| range.data_activity()).sum();
        changes + self.flushes.load(Ordering::Relaxed)
    }

    fn keep_retired(&self, range: Arc<dyn RangeWork>) {
        let mut retired = self.retired.lock();
        if !self.closing() {
            retired.push(range);
        }
    }

    /// Removes the streams of ranges that were handed over and have no readers. The others are looked at
    /// again when there is something to merge, and in the partition manager's next round. Returns how long
    /// those wait whose removal failed.
    async fn remove_retired(&self, removals: &mut Retries, clock: &Arc<dyn Clock>) -> Option<Duration> {
        let mut pause: Option<Duration> = None;
        let free: Vec<_> =
            self.retired.lock().extract_if(.., |range| Arc::strong_count(range) == 1).collect();
        for range in free {
            if let Some((_, wait_for)) = removals.waiting(range.name(), clock.monotonic()) {
                pause = shorter(pause, wait_for);
                self.keep_retired(range);
                continue;
            }
            match range.delete_streams().await {
                Ok(()) => {
                    removals.succeeded(range.name());
                }
                // If they have gone nevertheless, there is nothing to do the next time.
                Err(error) => {
                    let what = "streams of a range that was handed over can't be removed";
                    pause = shorter(pause, note_failure(removals, &*range, &error, clock, what));
                    self.keep_retired(range);
                }
            }
        }
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::ObjectTable;

    #[test]
    fn a_round_that_made_way_is_not_one_that_was_for_nothing() {
        let seconds = Duration::from_secs;
        for (took_for, extents, copied_bytes, was_disturbed, rest_for) in [
            (3, 1, 0, false, 3),
            (0, 1, 9, false, 1),
            (30, 0, 0, false, 300),
            (30, 0, 9, false, 300),
            (0, 0, 0, false, 10),
            (80, 1, 9, false, 10),
            (3, 0, 9, true, 10),
            (3, 1, 9, true, 10),
            // Most of it was the count.
            (30, 0, 9, true, 30),
            // It has only counted: again and again, if somebody comes every half minute.
            (30, 0, 0, true, 300),
        ] {
            let collected = Collected { extents, copied_bytes, ..Collected::default() };
            let rest = rest_after_collection(seconds(took_for), collected, was_disturbed);
            assert_eq!(rest, seconds(rest_for), "{took_for} s, {collected:?}, {was_disturbed}");
        }
    }

    /// Writers of every range that waited for a flush were refused for the damage of one.
    #[test]
    fn a_writer_is_told_of_its_own_ranges_trouble_and_of_what_all_share() {
        let (mine, other) = ((ObjectTable::Entity, 1), (ObjectTable::Entity, 2));
        let damage = || PartitionError::Storage("damaged".to_owned());
        let cases = [
            (vec![], false, None),
            (vec![], true, None),
            (vec![(mine, damage())], false, Some(damage())),
            (vec![(other, damage())], false, None),
            (vec![(other, damage())], true, Some(damage())),
            (vec![(other, PartitionError::DiskFull)], false, Some(PartitionError::DiskFull)),
            (vec![(mine, damage()), (other, PartitionError::DiskFull)], false, Some(damage())),
        ];
        for (troubles, budget_is_full, expected) in cases {
            let troubles: Troubles = troubles.into_iter().collect();
            let told = choose_trouble(&troubles, mine, budget_is_full);
            assert_eq!(told, expected.as_ref(), "{troubles:?}, {budget_is_full}");
        }
    }
}
