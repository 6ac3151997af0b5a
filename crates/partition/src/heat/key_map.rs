//! A map of keys and time: how often keys between two others were asked for, bucket by bucket. Pure.
//!
//! Rows are spans of keys that were asked for about equally often in all of the time; columns are buckets.
//! What a bucket has between two of its keys is spread over the rows between them as the requests of all
//! buckets are. What always holds: a column has its bucket's requests, all of them.

use crate::heat::sketch::Bucket;
use std::ops::Range;

/// Requests in a row and a column, estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HeatCell {
    /// Gets and spans of scans that were sampled.
    pub reads: f64,
    /// Operations, and appends of blob data, that were sampled.
    pub writes: f64,
}

/// A row: the keys behind `from`, up to `to`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MapRow {
    pub(crate) from: Box<[u8]>,
    pub(crate) to: Box<[u8]>,
    /// One for each column.
    pub(crate) cells: Vec<HeatCell>,
}

/// Keys in order, each with the requests up to it.
struct Measure<'a>(Vec<(&'a [u8], u64)>);

impl<'a> Measure<'a> {
    fn of(buckets: &'a [Bucket]) -> Self {
        let spans = buckets.iter().flat_map(|bucket| &bucket.spans);
        let mut points: Vec<(&[u8], u64)> = spans.map(|span| (&span.last[..], span.tally.total())).collect();
        points.sort();
        let mut up_to = 0;
        for (_, count) in &mut points {
            up_to += *count;
            *count = up_to;
        }
        Measure(points)
    }

    fn up_to(&self, key: &[u8]) -> u64 {
        let count = self.0.partition_point(|(point, _)| *point <= key);
        count.checked_sub(1).map_or(0, |last| self.0[last].1)
    }

    fn total(&self) -> u64 {
        self.0.last().map_or(0, |(_, up_to)| *up_to)
    }

    /// The last keys of at most `count` rows with about as many requests each.
    fn row_ends(&self, count: u64) -> Vec<&'a [u8]> {
        let total = self.total();
        let mut ends: Vec<&[u8]> = Vec::new();
        let mut before = 0;
        for (key, up_to) in &self.0 {
            let row = |up_to: u64| u128::from(up_to) * u128::from(count) / u128::from(total.max(1));
            if row(*up_to) > row(before) && ends.last() != Some(key) {
                ends.push(key);
            }
            before = *up_to;
        }
        ends
    }
}

/// The map of these buckets, with at most `count` rows; nothing was asked for: none.
pub(crate) fn rows_of(buckets: &[Bucket], columns: Range<u64>, count: u64) -> Vec<MapRow> {
    let measure = Measure::of(buckets);
    let ends = measure.row_ends(count);
    let first = measure.0.first().map_or(&[][..], |(key, _)| key);
    let column_count = columns.clone().count();
    let mut rows: Vec<MapRow> = Vec::with_capacity(ends.len());
    for end in &ends {
        let from = rows.last().map_or_else(|| first.into(), |row: &MapRow| row.to.clone());
        rows.push(MapRow { from, to: (*end).into(), cells: vec![HeatCell::default(); column_count] });
    }
    for bucket in buckets.iter().filter(|bucket| columns.contains(&bucket.number)) {
        let column = (bucket.number - columns.start) as usize;
        let mut before: Option<&[u8]> = None;
        for span in &bucket.spans {
            for (row, share) in shares(&measure, &ends, before, &span.last) {
                let cell = &mut rows[row].cells[column];
                cell.reads += span.tally.reads as f64 * share;
                cell.writes += span.tally.writes as f64 * share;
            }
            before = Some(&span.last);
        }
    }
    rows
}

/// The rows that the keys behind `before`, up to `last`, are in, and each one's share of their requests.
fn shares(measure: &Measure<'_>, ends: &[&[u8]], before: Option<&[u8]>, last: &[u8]) -> Vec<(usize, f64)> {
    let row_of = |key: &[u8]| ends.partition_point(|end| *end < key).min(ends.len().saturating_sub(1));
    let below = |key: Option<&[u8]>| key.map_or(0, |key| measure.up_to(key));
    let (from, to) = (below(before), measure.up_to(last));
    let row = row_of(last);
    if ends.is_empty() || to <= from {
        return if ends.is_empty() { Vec::new() } else { vec![(row, 1.0)] };
    }
    let mut shares = Vec::new();
    let mut at = from;
    for (index, end) in ends.iter().enumerate().skip(before.map_or(0, row_of)).take_while(|(r, _)| *r <= row)
    {
        let up_to = if index == row { to } else { measure.up_to(end).clamp(at, to) };
        if up_to > at {
            shares.push((index, (up_to - at) as f64 / (to - from) as f64));
            at = up_to;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heat::sketch::{BUCKET_FOR, HeatSketch};
    use crate::heat::tally::Access;

    fn map_of(requests: impl IntoIterator<Item = (u64, u64)>, count: u64) -> Vec<MapRow> {
        let mut sketch = HeatSketch::default();
        for (bucket, key) in requests {
            let access = if key % 2 == 0 { Access::Write } else { Access::Read };
            sketch.note(&key.to_be_bytes(), access, BUCKET_FOR * bucket as u32);
        }
        rows_of(&sketch.buckets(0), 0..4, count)
    }

    fn total(cell: &HeatCell) -> f64 {
        cell.reads + cell.writes
    }

    fn columns(rows: &[MapRow]) -> Vec<u64> {
        let sum = |column| rows.iter().map(|row| total(&row.cells[column])).sum::<f64>().round() as u64;
        (0..4).map(sum).collect()
    }

    #[test]
    fn a_uniform_load_is_about_the_same_everywhere() {
        let random = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let rows = map_of((0..40_000).map(|number| (number / 10_000, random(number))), 8);
        assert_eq!((rows.len(), columns(&rows)), (8, vec![10_000; 4]));
        for cell in rows.iter().flat_map(|row| &row.cells) {
            assert!((600.0..2400.0).contains(&total(cell)), "{rows:?}");
        }
        assert!(rows.is_sorted_by(|a, b| a.to == b.from && a.to < b.to));
    }

    #[test]
    fn appends_are_a_diagonal() {
        let rows = map_of((0..40_000).map(|number| (number / 10_000, number)), 4);
        assert_eq!(columns(&rows), [10_000; 4]);
        for (index, row) in rows.iter().enumerate() {
            let own = total(&row.cells[index]);
            assert!(own > 8500.0, "{index}: {rows:?}");
        }
    }

    #[test]
    fn one_hot_key_is_one_row_and_nothing_is_none() {
        let rows = map_of((0..100).map(|_| (1, 7)), 8);
        assert_eq!((rows.len(), columns(&rows)), (1, vec![0, 100, 0, 0]));
        assert_eq!(map_of([], 8), []);
        assert_eq!(columns(&map_of((0..90).map(|number| (2, number)), 1)), [0, 0, 90, 0]);
    }
}
