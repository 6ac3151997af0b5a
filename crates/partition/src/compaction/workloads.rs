//! What the choices of compactions come to over a long time: seven workloads, a flush at a time, over
//! checkpoints that are plain maps. Prints write, read and space amplification;
//! `docs/internals/compaction.md` has them.

use super::choose_compaction::{RowsMostly, choose_compaction, idle_count_min, rows_of_compaction};
use super::choose_tombstone_compaction::{Occasion, choose_tombstone_compaction};
use super::counts::Counts;
use std::collections::{BTreeMap, BTreeSet};

const COUNT_MIN: usize = 10;
const ROW_SIZE_BYTES: u64 = 1000;
const TOMBSTONE_SIZE_BYTES: u64 = 40;
/// Changes of one flush.
const FLUSH_COUNT: u64 = 500;
/// Of what is nearly nothing anything is a multiple.
const LITTLE_BYTES: u64 = 10 * FLUSH_COUNT * ROW_SIZE_BYTES;
/// At a flush every two seconds, half an hour.
const FLUSHES: u64 = 800;

/// Rows by key; false: a tombstone.
type Rows = BTreeMap<u64, bool>;

fn counts(rows: &Rows) -> Counts {
    let deleted_count = rows.values().filter(|is_there| !**is_there).count() as u64;
    let row_count = rows.len() as u64;
    let size_bytes = (row_count - deleted_count) * ROW_SIZE_BYTES + deleted_count * TOMBSTONE_SIZE_BYTES;
    Counts { size_bytes, row_count, deleted_count }
}

/// A range, and what was done to it.
struct Range {
    newest_first: Vec<(Rows, Counts)>,
    live: BTreeSet<u64>,
    replaces: RowsMostly,
    flushed_bytes: u64,
    compacted_bytes: u64,
    checkpoint_count_max: usize,
    space_max: f64,
    passed_max: usize,
}

impl Range {
    fn new() -> Self {
        Range {
            newest_first: Vec::new(),
            live: BTreeSet::new(),
            replaces: RowsMostly::Replaced,
            flushed_bytes: 0,
            compacted_bytes: 0,
            checkpoint_count_max: 0,
            space_max: 0.0,
            passed_max: 0,
        }
    }

    fn counts(&self) -> Vec<Counts> {
        self.newest_first.iter().map(|(_, counts)| *counts).collect()
    }

    fn stored_bytes(&self) -> u64 {
        self.newest_first.iter().map(|(_, counts)| counts.size_bytes).sum()
    }

    fn live_bytes(&self) -> u64 {
        self.live.len() as u64 * ROW_SIZE_BYTES
    }

    /// Rows and tombstones before the first row that is there, which a look for the first row passes over.
    fn passed(&self) -> usize {
        let first = self.live.first().copied().unwrap_or(u64::MAX);
        self.newest_first.iter().map(|(rows, _)| rows.range(..first).count()).sum()
    }

    fn flush(&mut self, mut changes: Rows) {
        for (key, is_there) in &changes {
            if *is_there {
                self.live.insert(*key)
            } else {
                self.live.remove(key)
            };
        }
        changes.retain(|key, is_there| {
            *is_there || self.newest_first.iter().any(|(rows, _)| rows.contains_key(key))
        });
        if !changes.is_empty() {
            let counts = counts(&changes);
            self.flushed_bytes += counts.size_bytes;
            self.newest_first.insert(0, (changes, counts));
        }
        while let Some(run) = choose_compaction(&self.counts(), self.replaces, COUNT_MIN)
            .or_else(|| choose_tombstone_compaction(&self.counts(), Occasion::Busy))
        {
            self.compact(run);
        }
        self.note();
    }

    fn idle(&mut self) {
        while let Some(run) = choose_tombstone_compaction(&self.counts(), Occasion::Idle)
            .or_else(|| choose_compaction(&self.counts(), self.replaces, idle_count_min(COUNT_MIN)))
        {
            self.compact(run);
        }
    }

    fn compact(&mut self, run: std::ops::Range<usize>) {
        let older = self.newest_first.split_off(run.end);
        let mut merged = Rows::new();
        let mut read_count = 0;
        for (rows, _) in self.newest_first.drain(run.start..).rev() {
            read_count += rows.len() as u64;
            merged.extend(rows);
        }
        merged.retain(|key, is_there| *is_there || older.iter().any(|(rows, _)| rows.contains_key(key)));
        self.replaces = rows_of_compaction(read_count, merged.len() as u64);
        if !merged.is_empty() {
            let counts = counts(&merged);
            self.compacted_bytes += counts.size_bytes;
            self.newest_first.push((merged, counts));
        }
        self.newest_first.extend(older);
    }

    fn note(&mut self) {
        self.checkpoint_count_max = self.checkpoint_count_max.max(self.newest_first.len());
        let live_bytes = self.live_bytes().max(LITTLE_BYTES);
        self.space_max = self.space_max.max(self.stored_bytes() as f64 / live_bytes as f64);
        self.passed_max = self.passed_max.max(self.passed());
    }
}

/// What may be.
struct Bounds {
    write: f64,
    space: f64,
    passed: usize,
}

fn check(name: &str, mut range: Range, bounds: &Bounds) {
    let write = range.compacted_bytes as f64 / range.flushed_bytes as f64;
    let (most, space, passed) = (range.checkpoint_count_max, range.space_max, range.passed_max);
    range.idle();
    let idle_space = range.stored_bytes() as f64 / range.live_bytes().max(LITTLE_BYTES) as f64;
    println!(
        "{name:10} write {write:5.2}, checkpoints at most {most:3}, space at most {space:4.2}, idle {idle_space:4.2}, \
         passed at most {passed:6}, idle {:6}",
        range.passed()
    );
    assert!(write <= bounds.write, "{name}: each byte is written anew {write} times");
    assert!(space <= bounds.space, "{name}: {space} times what is live");
    assert!(passed <= bounds.passed, "{name}: {passed} rows are passed over");
    assert!(most <= 3 * COUNT_MIN, "{name}: {most} checkpoints");
    assert!(idle_space <= 1.25, "{name}: {idle_space} times what is live when idle");
}

/// A fixed sequence of numbers that look drawn.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[test]
fn no_workload_grows_without_bound() {
    let mut draws = Draws(40);

    let mut append = Range::new();
    for flush in 0..FLUSHES {
        append.flush((0..FLUSH_COUNT).map(|row| (flush * FLUSH_COUNT + row, true)).collect());
    }
    check("append", append, &Bounds { write: 4.0, space: 1.05, passed: 0 });

    let mut uniform = Range::new();
    for _ in 0..FLUSHES {
        uniform.flush((0..FLUSH_COUNT).map(|_| (draws.below(100_000), true)).collect());
    }
    check("uniform", uniform, &Bounds { write: 8.0, space: 6.0, passed: 0 });

    let mut zipf = Range::new();
    for _ in 0..FLUSHES {
        let skewed = |draws: &mut Draws| 100_000 / (1 + draws.below(100_000));
        zipf.flush((0..FLUSH_COUNT).map(|_| (skewed(&mut draws), true)).collect());
    }
    check("zipf", zipf, &Bounds { write: 8.0, space: 6.0, passed: 0 });

    // Rows in at the end and out at the start, behind a backlog of twenty flushes.
    let mut queue = Range::new();
    for flush in 0..FLUSHES {
        let put = (0..FLUSH_COUNT).map(|row| ((flush + 20) * FLUSH_COUNT + row, true));
        let deleted = (0..FLUSH_COUNT).map(|row| (flush * FLUSH_COUNT + row, false));
        queue.flush(put.chain(deleted).collect());
    }
    check("queue", queue, &Bounds { write: 8.0, space: 2.0, passed: 20 * FLUSH_COUNT as usize });

    let mut delete_all = Range::new();
    for is_there in [true, false] {
        for flush in 0..FLUSHES / 5 {
            delete_all.flush((0..FLUSH_COUNT).map(|row| (flush * FLUSH_COUNT + row, is_there)).collect());
        }
    }
    check("delete all", delete_all, &Bounds { write: 8.0, space: 3.0, passed: 200_000 });

    let mut overwrite = Range::new();
    for flush in 0..FLUSHES {
        overwrite.flush((0..FLUSH_COUNT).map(|row| ((flush * FLUSH_COUNT + row) % 100_000, true)).collect());
    }
    check("overwrite", overwrite, &Bounds { write: 8.0, space: 6.0, passed: 0 });

    // Half of the rows, here and there, with no end.
    let mut half = Range::new();
    for _ in 0..FLUSHES {
        half.flush((0..FLUSH_COUNT).map(|_| (draws.below(100_000), draws.below(2) == 0)).collect());
    }
    check("half", half, &Bounds { write: 8.0, space: 3.0, passed: FLUSH_COUNT as usize });
}
