//! Which checkpoints are compacted because of their tombstones: pure choices over their counts.
//!
//! Size alone never brings a tombstone to the row that it deletes: tombstones are small and rows are not.
//! Then the space of deleted rows stays, and each scan passes over tombstones and rows alike. A tombstone can
//! be dropped once nothing older has its row, so the runs here end with the oldest checkpoint. What always
//! holds: a run is chosen only if what goes is a fair part of what is written anew for it, so each deleted
//! byte costs a bounded number of written ones.

use crate::compaction::choose_compaction::COMPACTION_COUNT_MAX;
use crate::compaction::counts::Counts;
use std::ops::Range;

/// While the disk is full, a run of less than one part in so many to be gained is left alone.
const SCARCE_GAIN_DIVISOR: u64 = 8;
/// Beside writers. What is dead is then less than a third of what is alive, and each deleted byte costs three
/// that are written anew.
const BUSY_GAIN_DIVISOR: u64 = 4;
/// When idle, which delays no other work.
const IDLE_GAIN_DIVISOR: u64 = 16;

/// A scan that passes over so many tombstones one after the other takes some milliseconds: it asks for their
/// compaction.
pub(crate) const PASSED_TOMBSTONE_COUNT_MAX: u64 = 4096;
/// For each tombstone that scans pass over, so many bytes may be written to be rid of it.
const SCANNED_TOMBSTONE_COST_BYTES: u64 = 4 << 10;

/// When a compaction for the sake of tombstones is worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// Writers and readers are at work.
    Busy,
    /// Scans have passed over many tombstones.
    SlowScans,
    /// There has been no flush for a while.
    Idle,
}

impl Occasion {
    fn is_worth(self, run: &RunToOldest) -> bool {
        let gains = |divisor: u64| run.gained_bytes() > 0 && run.gained_bytes() >= run.size_bytes / divisor;
        match self {
            Occasion::Busy => gains(BUSY_GAIN_DIVISOR),
            Occasion::Idle => gains(IDLE_GAIN_DIVISOR),
            Occasion::SlowScans => {
                let cost_bytes_max = run.deleted_count.saturating_mul(SCANNED_TOMBSTONE_COST_BYTES);
                gains(BUSY_GAIN_DIVISOR)
                    || (run.deleted_count >= PASSED_TOMBSTONE_COUNT_MAX && run.size_bytes <= cost_bytes_max)
            }
        }
    }
}

/// Checkpoints up to the oldest one.
struct RunToOldest {
    run: Range<usize>,
    size_bytes: u64,
    deleted_count: u64,
    /// Roughly: each tombstone is taken to delete one row.
    kept_bytes: u64,
}

impl RunToOldest {
    fn gained_bytes(&self) -> u64 {
        self.size_bytes.saturating_sub(self.kept_bytes)
    }
}

/// All such runs of several checkpoints with tombstones, the shortest first.
fn runs_to_oldest(newest_first: &[Counts]) -> impl Iterator<Item = RunToOldest> {
    let end = newest_first.len();
    let (mut size_bytes, mut row_count, mut alive_count, mut deleted_count) = (0u64, 0u64, 0u64, 0u64);
    let with_next = move |(start, counts): (usize, &Counts)| {
        size_bytes += counts.size_bytes;
        row_count += counts.put_count();
        deleted_count += counts.deleted_count;
        // What it deletes is older.
        alive_count = alive_count.saturating_sub(counts.deleted_count) + counts.put_count();
        let kept_bytes = u128::from(size_bytes) * u128::from(alive_count) / u128::from(row_count.max(1));
        let kept_bytes = u64::try_from(kept_bytes).unwrap_or(u64::MAX);
        RunToOldest { run: start..end, size_bytes, deleted_count, kept_bytes }
    };
    let runs = newest_first.iter().enumerate().rev().take(COMPACTION_COUNT_MAX).map(with_next);
    runs.filter(|run| run.run.len() > 1 && run.deleted_count > 0)
}

/// Chooses among checkpoints, newest first, the run that frees the most, if any is worth it on this occasion.
pub(crate) fn choose_tombstone_compaction(
    newest_first: &[Counts],
    occasion: Occasion,
) -> Option<Range<usize>> {
    let worth_it = runs_to_oldest(newest_first).filter(|run| occasion.is_worth(run));
    // Of equal ones the shortest.
    worth_it
        .reduce(|best, run| if run.gained_bytes() > best.gained_bytes() { run } else { best })
        .map(|run| run.run)
}

/// Which runs a full disk is glad of, whatever their sizes, with the bytes that are kept, roughly. What frees
/// the most comes first.
pub(crate) fn runs_with_deletions(newest_first: &[Counts], gain_min_bytes: u64) -> Vec<(Range<usize>, u64)> {
    let is_worth_it =
        |run: &RunToOldest| run.gained_bytes() >= gain_min_bytes.max(run.size_bytes / SCARCE_GAIN_DIVISOR);
    let mut runs: Vec<RunToOldest> = runs_to_oldest(newest_first).filter(is_worth_it).collect();
    runs.sort_by_key(|run| std::cmp::Reverse(run.gained_bytes()));
    runs.into_iter().map(|run| (run.run, run.kept_bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use Occasion::{Busy, Idle, SlowScans};

    fn counts(size_bytes: u64, row_count: u64, deleted_count: u64) -> Counts {
        Counts { size_bytes, row_count, deleted_count }
    }

    #[test]
    fn what_is_worth_it_depends_on_the_occasion() {
        // A million rows of 1 KiB.
        let rows = counts(1 << 30, 1 << 20, 0);
        let tombstones = |count: u64| counts(count * 40, count, count);
        let chosen =
            |newest: Counts, occasion| choose_tombstone_compaction(&[newest, rows], occasion).is_some();
        for (deleted_count, busy, slow_scans, idle) in [
            (1 << 10, false, false, false),
            (1 << 17, false, false, true),
            // A part in 3.9 of them.
            (270_000, true, true, true),
            (1 << 20, true, true, true),
        ] {
            let expected = [(Busy, busy), (SlowScans, slow_scans), (Idle, idle)];
            for (occasion, is_chosen) in expected {
                assert_eq!(
                    chosen(tombstones(deleted_count), occasion),
                    is_chosen,
                    "{deleted_count}, {occasion:?}"
                );
            }
        }
        // Scans suffer from as many tombstones whatever is deleted, and a small range costs little.
        let small = counts(15 << 20, 160_000, 0);
        let choose = |occasion| choose_tombstone_compaction(&[tombstones(4096), small], occasion);
        assert_eq!((choose(Busy), choose(Idle), choose(SlowScans)), (None, None, Some(0..2)));
    }

    #[test]
    fn a_run_ends_with_the_oldest_and_frees_the_most() {
        let (full, tombstones) = (counts(1000, 10, 0), counts(20, 10, 10));
        for (checkpoints, expected) in [
            (vec![], None),
            (vec![tombstones], None),
            (vec![full, full], None),
            (vec![full, tombstones], None),
            (vec![tombstones, full], Some(0..2)),
            // The newest has none and deletes nothing.
            (vec![full, tombstones, full], Some(1..3)),
            (vec![tombstones, full, tombstones, full], Some(0..4)),
        ] {
            assert_eq!(choose_tombstone_compaction(&checkpoints, Busy), expected, "{checkpoints:?}");
        }
        let many = vec![tombstones; 3 * COMPACTION_COUNT_MAX];
        let run = choose_tombstone_compaction(&[many, vec![full]].concat(), Busy);
        assert!(run.is_some_and(|run| run.len() <= COMPACTION_COUNT_MAX));
    }

    #[test]
    fn a_full_disk_is_glad_of_what_was_deleted() {
        let (full, deletions) = (counts(1000, 10, 0), counts(20, 10, 10));
        for (checkpoints, expected) in [
            (vec![], vec![]),
            (vec![full, full], vec![]),
            (vec![deletions], vec![]),
            (vec![deletions, full], vec![(0..2, 0)]),
            (vec![full, deletions], vec![]),
            // The older half of what was deleted, and all of it.
            (vec![deletions, deletions, full, full], vec![(0..4, 0), (1..4, 1010)]),
            (vec![counts(20, 1, 1), full], vec![]),
            (vec![counts(20, 2, 2), full], vec![(0..2, 816)]),
            (vec![full, counts(20, 5, 5), full], vec![(1..3, 510), (0..3, 1515)]),
            (vec![counts(3, 1, 1), counts(50, 1, 0)], vec![]),
        ] {
            assert_eq!(runs_with_deletions(&checkpoints, 100), expected, "{checkpoints:?}");
        }
    }
}
