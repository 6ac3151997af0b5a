//! What sketches say of the last hours, put together for operators.
//!
//! What always holds: counts are of sampled requests, each of which stands for as many as one was taken of;
//! of keys there are their starts, and of rows nothing else.

use crate::heat::ends::RangeEnd;
use crate::heat::key_map::{HeatCell, rows_of};
use crate::heat::range_heat::Noted;
use crate::heat::sketch::{BUCKET_COUNT, BUCKET_FOR, bucket_at};
use crate::heat::tally::Tally;
use crate::heat::top_partitions::{Counted, Hottest};
use crate::key::KeyStart;
use crate::key::cut::parse_cut_key;
use crate::key::describe::describe_start;
use crate::operation::ObjectTable;
use base::Ticks;
use base::clock::TICKS_PER_SECOND;
use std::cmp::Reverse;
use std::ops::Range;
use std::time::Duration;

/// The longest time that is known: what sketches keep.
pub const HEAT_WINDOW_MAX: Duration = Duration::from_secs(BUCKET_FOR.as_secs() * BUCKET_COUNT);
/// The most rows of a map of keys and time that one range gets.
const ROWS_A_RANGE_MAX: u64 = 32;

/// What operators want to know.
#[derive(Clone, Copy, Debug)]
pub struct HeatQuery {
    /// Of so much time, as far back as whole buckets go; [`HEAT_WINDOW_MAX`] at most.
    pub window: Duration,
    /// Only of this object table's ranges.
    pub table: Option<ObjectTable>,
    /// Only of ranges with this id, of which each object table has one at most.
    pub range: Option<u64>,
    /// Rows of the map of keys and time at most, those of all ranges together.
    pub rows_max: u64,
}

/// What keys were asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatReport {
    /// One request in this many was noted; 0: none was, and all is empty.
    pub sampled_one_in: u64,
    /// The columns of the map, the oldest first.
    pub columns: Vec<HeatColumn>,
    /// Those that were asked for anything, in the order of their keys.
    pub ranges: Vec<RangeHeatReport>,
    /// Bytes that the sketches of these ranges take.
    pub sketch_bytes: u64,
    /// Ranges that were asked for something and of which nothing is known.
    pub unknown_ranges: u64,
}

/// A column of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeatColumn {
    /// By the wall clock of now.
    pub begins_at: Ticks,
    /// As far as it has gone.
    pub lasts_for: Duration,
}

/// What the keys of one range were asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeHeatReport {
    /// Its object table.
    pub table: ObjectTable,
    /// Its id.
    pub id: u64,
    /// Sampled requests.
    pub sampled: Tally,
    /// In so much time.
    pub sampled_for: Duration,
    /// The hottest first: of others there were fewer requests, or [`Self::others_max`] at most.
    pub partitions: Vec<PartitionHeat>,
    /// Sampled requests of each partition that is not listed, at most.
    pub others_max: u64,
    /// Its part of the map, in the order of keys.
    pub rows: Vec<HeatRow>,
    /// To which end nearly all writes of the last minutes went.
    pub writes_go_to: Option<RangeEnd>,
}

/// What a partition was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionHeat {
    /// Account, container and partition name, as far as there are.
    pub start: KeyStart,
    /// Whether its name goes on.
    pub is_cut: bool,
    /// The start of its key, encoded.
    pub key: Box<[u8]>,
    /// The same in legible parts.
    pub text: String,
    /// Sampled requests.
    pub sampled: Tally,
    /// Sampled requests besides, at most.
    pub missed_max: u64,
}

/// Some keys of a range over the columns of the map.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatRow {
    /// The first of them, about, in legible parts.
    pub from: String,
    /// The last of them, about.
    pub to: String,
    /// One for each column.
    pub cells: Vec<HeatCell>,
}

/// A range and what its sketch holds.
pub(crate) struct NotedRange {
    pub(crate) table: ObjectTable,
    pub(crate) id: u64,
    pub(crate) noted: Noted,
}

/// The buckets of a time that ends `now`.
pub(crate) fn buckets_of(window: Duration, now: Duration) -> Range<u64> {
    let last = bucket_at(now);
    let first = bucket_at(now.saturating_sub(window.min(HEAT_WINDOW_MAX)));
    first.max((last + 1).saturating_sub(BUCKET_COUNT))..last + 1
}

/// Columns for these buckets; of the first of them none was noted before `since`.
pub(crate) fn columns_of(
    buckets: &Range<u64>,
    since: Duration,
    (now, wall): (Duration, Ticks),
) -> Vec<HeatColumn> {
    let of_bucket = |bucket: u64| {
        let begins = (BUCKET_FOR * bucket as u32).max(since).min(now);
        let ends = (BUCKET_FOR * (bucket + 1) as u32).min(now);
        HeatColumn { begins_at: before(wall, now - begins), lasts_for: ends.saturating_sub(begins) }
    };
    buckets.clone().map(of_bucket).collect()
}

/// To the second.
fn before(at: Ticks, by: Duration) -> Ticks {
    let ticks = at.0.saturating_sub(Ticks(0).plus(by).0);
    Ticks(ticks - ticks % TICKS_PER_SECOND)
}

/// How many rows of the map each range gets: the hottest ones one at least, and of the rest its share.
fn choose_row_counts(requests: &[u64], rows_max: u64) -> Vec<u64> {
    let mut order: Vec<usize> = (0..requests.len()).filter(|index| requests[*index] > 0).collect();
    order.sort_by_key(|index| (Reverse(requests[*index]), *index));
    order.truncate(usize::try_from(rows_max).unwrap_or(usize::MAX));
    let rest = rows_max - order.len() as u64;
    let total: u128 = order.iter().map(|index| u128::from(requests[*index])).sum();
    let mut counts = vec![0; requests.len()];
    for index in order {
        let share = u128::from(requests[index]) * u128::from(rest) / total.max(1);
        counts[index] = (1 + u64::try_from(share).unwrap_or(u64::MAX)).min(ROWS_A_RANGE_MAX);
    }
    counts
}

/// Reports of ranges, without the ends that writes go to.
pub(crate) fn reports_of(
    ranges: &[NotedRange],
    buckets: &Range<u64>,
    rows_max: u64,
    now: Duration,
) -> Vec<RangeHeatReport> {
    let total = |noted: &Noted| {
        let mut total = Tally::default();
        noted.buckets.iter().for_each(|bucket| total.add(bucket.tally));
        total
    };
    let totals: Vec<Tally> = ranges.iter().map(|range| total(&range.noted)).collect();
    let requests: Vec<u64> = totals.iter().map(|total| total.total()).collect();
    let counts = choose_row_counts(&requests, rows_max);
    let of_range = |((range, sampled), count): ((&NotedRange, Tally), u64)| {
        let NotedRange { table, id, noted } = range;
        let mut hottest = Hottest::default();
        noted.buckets.iter().for_each(|bucket| hottest.add(&bucket.hottest));
        let Hottest { partitions, others_max } = hottest.cut(usize::MAX);
        let rows = if count > 0 { rows_of(&noted.buckets, buckets.clone(), count) } else { Vec::new() };
        let begins = (BUCKET_FOR * buckets.start as u32).max(noted.since);
        RangeHeatReport {
            table: *table,
            id: *id,
            sampled,
            sampled_for: now.saturating_sub(begins),
            partitions: partitions.iter().map(partition_heat).collect(),
            others_max,
            rows: rows
                .into_iter()
                .map(|row| HeatRow {
                    from: describe_start(&row.from),
                    to: describe_start(&row.to),
                    cells: row.cells,
                })
                .collect(),
            writes_go_to: None,
        }
    };
    ranges.iter().zip(totals).zip(counts).map(of_range).collect()
}

fn partition_heat(counted: &Counted) -> PartitionHeat {
    let (start, is_cut) = parse_cut_key(&counted.key);
    PartitionHeat {
        start,
        is_cut,
        key: counted.key.clone(),
        text: describe_start(&counted.key),
        sampled: counted.tally,
        missed_max: counted.missed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_to_the_hottest_ranges_by_their_share() {
        for (requests, rows_max, expected) in [
            (&[][..], 8, &[][..]),
            (&[0, 5], 8, &[0, 8]),
            (&[10, 10], 8, &[4, 4]),
            (&[100, 1, 0, 1], 13, &[10, 1, 0, 1]),
            (&[1, 7, 5], 2, &[0, 1, 1]),
            (&[9], 1000, &[ROWS_A_RANGE_MAX]),
        ] {
            assert_eq!(choose_row_counts(requests, rows_max), expected, "{requests:?}");
        }
    }

    #[test]
    fn a_window_has_whole_buckets_and_the_one_that_fills() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        for (window, now, expected) in [
            (minutes(60), minutes(0), 0..1),
            (minutes(60), minutes(25), 0..3),
            (minutes(60), minutes(125), 6..13),
            (minutes(10), minutes(125), 11..13),
            (HEAT_WINDOW_MAX, minutes(6000), 577..601),
            (minutes(6000), minutes(6009), 577..601),
        ] {
            assert_eq!(buckets_of(window, now), expected, "{window:?} before {now:?}");
        }
        let wall = Ticks(0).plus(minutes(10_000));
        let columns = columns_of(&(6..9), minutes(65), (minutes(85), wall));
        let shown: Vec<_> = columns.iter().map(|c| (wall.0 - c.begins_at.0, c.lasts_for)).collect();
        let ago = |ago: u64| Ticks(0).plus(minutes(ago)).0;
        assert_eq!(shown, [(ago(20), minutes(5)), (ago(15), minutes(10)), (ago(5), minutes(5))]);
    }
}
