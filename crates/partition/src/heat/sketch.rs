//! The sketch of one range: buckets of time, the last of which fills.
//!
//! A bucket that has ended keeps its counts, its hottest partitions and spans of keys. When ranges are split
//! or merged the heirs' sketches are made of the parents' buckets (`divided`, `inherit`). What always holds:
//! a sketch takes at most [`SKETCH_SIZE_BYTES_MAX`], whatever the keys are.

use crate::heat::ends::{Ends, RangeEnd};
use crate::heat::key_sample::{KeySample, KeySpan, SAMPLED_KEY_SIZE_BYTES_MAX, joined_spans};
use crate::heat::tally::{Access, Tally};
use crate::heat::top_partitions::{Counted, Hottest, KEPT_COUNT, TopPartitions};
use crate::key::{KeyRange, container_prefix, partition_prefix};
use std::collections::VecDeque;
use std::time::Duration;

/// Time that a bucket has.
pub(crate) const BUCKET_FOR: Duration = Duration::from_secs(600);
/// Buckets that are kept, the one that fills included: four hours.
pub(crate) const BUCKET_COUNT: u64 = 24;
/// Bytes that a sketch takes at most.
pub(crate) const SKETCH_SIZE_BYTES_MAX: usize = 64 << 10;

/// The bucket of a time of the monotonic clock: all ranges of a process have the same ones.
pub(crate) fn bucket_at(now: Duration) -> u64 {
    now.as_secs() / BUCKET_FOR.as_secs()
}

/// What is kept of a bucket of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) number: u64,
    pub(crate) tally: Tally,
    pub(crate) hottest: Hottest,
    pub(crate) spans: Vec<KeySpan>,
}

/// The bucket that fills.
#[derive(Clone, Debug, Default)]
struct Filling {
    number: u64,
    tally: Tally,
    top: TopPartitions,
    keys: KeySample,
}

/// What the keys of one range were read and written for.
#[derive(Debug, Default)]
pub(crate) struct HeatSketch {
    /// In the order of their numbers, each of which is there once.
    ended: VecDeque<Bucket>,
    filling: Filling,
    ends: Ends,
}

/// What the keys of one partition share; less, if a request is for the rows of several.
fn partition_of(key: &[u8]) -> &[u8] {
    partition_prefix(key).or_else(|| container_prefix(key)).unwrap_or(key)
}

impl Bucket {
    /// The part of it that has keys in `range`: each span as a whole, where its last key is.
    fn divided(mut self, range: &KeyRange) -> Bucket {
        let is_inside: Vec<bool> = self.spans.iter().map(|span| self.is_inside(&span.last, range)).collect();
        self.hottest.partitions.retain(|counted| range.contains(&counted.key));
        self.hottest.partitions.shrink_to_fit();
        let begins = self.spans.iter().rev().find(|span| span.last[..] < range.start[..]);
        let mark = begins.map(|_| KeySpan {
            last: range.start[..range.start.len().min(SAMPLED_KEY_SIZE_BYTES_MAX)].into(),
            tally: Tally::default(),
        });
        let inside = self.spans.into_iter().zip(is_inside).filter(|(_, is_inside)| *is_inside);
        self.spans = mark.into_iter().chain(inside.map(|(span, _)| span)).collect();
        self.tally = Tally::default();
        self.spans.iter().for_each(|span| self.tally.add(span.tally));
        self
    }

    /// Whether a span that ends with `last` is in `range`. Of a key that was cut so short that the range's
    /// bound begins with it the hottest partitions decide, which are cut less.
    fn is_inside(&self, last: &[u8], range: &KeyRange) -> bool {
        let is_cut_of = |bound: &[u8]| bound.len() > last.len() && bound.starts_with(last);
        let is_mostly_from = |bound: &[u8]| {
            let of_span = self.hottest.partitions.iter().filter(|counted| counted.key.starts_with(last));
            let requests = |counted: &Counted| counted.tally.total();
            let (from, below): (Vec<_>, Vec<_>) = of_span.partition(|counted| &counted.key[..] >= bound);
            from.into_iter().map(requests).sum::<u64>() > below.into_iter().map(requests).sum::<u64>()
        };
        match range.end.as_deref() {
            _ if is_cut_of(&range.start) => is_mostly_from(&range.start),
            Some(end) if is_cut_of(end) => !is_mostly_from(end),
            _ => range.contains(last),
        }
    }

    /// Adds what other keys, or the same ones, were asked for at the same time.
    fn add(&mut self, other: Bucket) {
        self.tally.add(other.tally);
        self.hottest.add(&other.hottest);
        self.hottest = std::mem::take(&mut self.hottest).cut(KEPT_COUNT);
        self.spans = joined_spans(std::mem::take(&mut self.spans), other.spans);
    }

    fn size_bytes(&self) -> usize {
        let partitions: usize = self.hottest.partitions.iter().map(Counted::size_bytes).sum();
        partitions + self.spans.iter().map(KeySpan::size_bytes).sum::<usize>()
    }
}

impl Filling {
    fn bucket(&self) -> Option<Bucket> {
        let Filling { number, tally, top, keys } = self;
        let (hottest, spans) = (top.hottest(), keys.spans(*tally));
        (tally.total() > 0).then_some(Bucket { number: *number, tally: *tally, hottest, spans })
    }
}

impl HeatSketch {
    /// Notes a request for `key`.
    pub(crate) fn note(&mut self, key: &[u8], access: Access, now: Duration) {
        let number = bucket_at(now);
        if number > self.filling.number {
            debug_assert!(self.size_bytes() <= SKETCH_SIZE_BYTES_MAX, "a sketch is bounded");
            let full = std::mem::take(&mut self.filling);
            self.inherit(full.bucket());
            self.filling.number = number;
            self.ended.retain(|bucket| bucket.number + BUCKET_COUNT > number);
        }
        self.filling.tally.note(access);
        self.filling.top.note(partition_of(key), access);
        self.filling.keys.note(key, access);
        if access == Access::Write {
            self.ends.note(key, number);
        }
    }

    /// All buckets from this number on, in their order.
    pub(crate) fn buckets(&self, from: u64) -> Vec<Bucket> {
        let mut buckets: Vec<Bucket> =
            self.ended.iter().filter(|bucket| bucket.number >= from).cloned().collect();
        let filling = self.filling.bucket().filter(|bucket| bucket.number >= from);
        match (buckets.last_mut(), filling) {
            (Some(last), Some(filling)) if last.number == filling.number => last.add(filling),
            (_, filling) => buckets.extend(filling),
        }
        buckets
    }

    /// The part of the buckets that has keys in `range`.
    pub(crate) fn divided(&self, range: &KeyRange) -> Vec<Bucket> {
        let divided = self.buckets(0).into_iter().map(|bucket| bucket.divided(range));
        divided.filter(|bucket| bucket.tally.total() > 0).collect()
    }

    /// Takes over what was noted elsewhere. To which end writes go it finds out anew.
    pub(crate) fn inherit(&mut self, buckets: impl IntoIterator<Item = Bucket>) {
        for bucket in buckets {
            let place = self.ended.partition_point(|ended| ended.number < bucket.number);
            match self.ended.get_mut(place) {
                Some(same) if same.number == bucket.number => same.add(bucket),
                _ => self.ended.insert(place, bucket),
            }
        }
        while self.ended.len() as u64 >= BUCKET_COUNT {
            self.ended.pop_front();
        }
    }

    /// To which end nearly all writes of late went, if any, and the outermost key there.
    pub(crate) fn end_at(&self, now: Duration) -> Option<(RangeEnd, Box<[u8]>)> {
        self.ends.found(bucket_at(now))
    }

    /// Bytes that it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        let ended: usize = self.ended.iter().map(Bucket::size_bytes).sum();
        let own = size_of::<Self>() + self.ended.capacity() * size_of::<Bucket>();
        own + ended + self.filling.top.size_bytes() + self.filling.keys.size_bytes() + self.ends.size_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::RowKey;
    use base::random::splitmix64;

    fn key(partition: &str, row: &str) -> RowKey {
        RowKey::new("acct", 7, partition, row)
    }

    fn note(sketch: &mut HeatSketch, partition: &str, count: u64, bucket: u64) {
        for row in 0..count {
            let access = if row % 2 == 0 { Access::Write } else { Access::Read };
            sketch.note(key(partition, &format!("{row:05}")).as_bytes(), access, BUCKET_FOR * bucket as u32);
        }
    }

    fn totals(buckets: &[Bucket]) -> Vec<(u64, u64)> {
        buckets.iter().map(|bucket| (bucket.number, bucket.tally.total())).collect()
    }

    fn names(bucket: &Bucket) -> Vec<String> {
        let name = |counted: &Counted| {
            let key = [&counted.key[..], &[0, 1]].concat();
            crate::key::parse_row_key(&key).map_or_else(String::new, |parts| parts.partition_name)
        };
        bucket.hottest.partitions.iter().map(name).collect()
    }

    /// Sampled keys are cut shorter than the names that tell these partitions apart.
    #[test]
    fn heirs_of_partitions_with_long_names_have_each_their_own() {
        let name = |number: u64| format!("{}{number:04}", "tenant-".repeat(7));
        let mut sketch = HeatSketch::default();
        note(&mut sketch, &name(2), 30, 1);
        note(&mut sketch, &name(7), 50, 1);
        let at = bytes::Bytes::copy_from_slice(key(&name(5), "").as_bytes());
        let all = KeyRange::all();
        let below = KeyRange { start: all.start.clone(), end: Some(at.clone()) };
        let above = KeyRange { start: at, end: all.end };
        let heirs = [below, above].map(|range| totals(&sketch.divided(&range)));
        let sum: u64 = heirs.iter().flatten().map(|(_, total)| total).sum();
        assert_eq!(sum, 80, "{heirs:?}");
        // The span is as a whole where most of it is.
        assert_eq!(heirs[1], [(1, 80)], "{heirs:?}");
    }

    /// Every bound at once: distinct partitions with long keys, in more buckets than are kept.
    #[test]
    fn a_million_distinct_long_keys_stay_within_the_bound() {
        let mut sketch = HeatSketch::default();
        let (mut state, mut most) = (1, 0);
        for number in 0..1_000_000u64 {
            let partition = format!("{:016x}{:0>100}", splitmix64(&mut state), "");
            let access = if number % 3 == 0 { Access::Write } else { Access::Read };
            let now = BUCKET_FOR * (number / 20_000) as u32;
            sketch.note(key(&partition, &format!("{:0>300}", "")).as_bytes(), access, now);
            if number % 1000 == 0 {
                most = most.max(sketch.size_bytes());
            }
        }
        assert!(most <= SKETCH_SIZE_BYTES_MAX, "{most}");
        assert!(most > SKETCH_SIZE_BYTES_MAX / 2, "the bound says something: {most}");
        let buckets = sketch.buckets(0);
        assert_eq!(buckets.len() as u64, BUCKET_COUNT);
        assert!(buckets.iter().all(|bucket| bucket.tally.total() == 20_000));
    }

    #[test]
    fn buckets_age_out() {
        let mut sketch = HeatSketch::default();
        note(&mut sketch, "old", 10, 3);
        note(&mut sketch, "new", 5, 3 + BUCKET_COUNT - 1);
        assert_eq!(totals(&sketch.buckets(0)), [(3, 10), (3 + BUCKET_COUNT - 1, 5)]);
        assert_eq!(totals(&sketch.buckets(4)), [(3 + BUCKET_COUNT - 1, 5)]);
        note(&mut sketch, "new", 7, 3 + BUCKET_COUNT);
        assert_eq!(totals(&sketch.buckets(0)), [(3 + BUCKET_COUNT - 1, 5), (3 + BUCKET_COUNT, 7)]);
    }

    #[test]
    fn a_split_divides_by_key_and_a_merge_adds() {
        let mut parent = HeatSketch::default();
        for (partition, count) in [("a", 40), ("b", 20), ("c", 60)] {
            note(&mut parent, partition, count, 1);
        }
        note(&mut parent, "c", 30, 2);
        let at = KeyRange::partition("acct", 7, "c").start;
        let left = parent.divided(&KeyRange { start: Default::default(), end: Some(at.clone()) });
        let right = parent.divided(&KeyRange { start: at, end: None });
        assert_eq!((names(&left[0]), names(&right[0])), (vec!["a".into(), "b".into()], vec!["c".into()]));
        assert_eq!(right.len(), 2);
        assert_eq!(left.len(), 1, "nothing of the second bucket: {left:?}");
        // Spans are where their last keys are, so a span over the split counts behind it.
        let (of_left, of_right) = (left[0].tally.total(), right[0].tally.total());
        assert_eq!(of_left + of_right, 120);
        assert!((45..=60).contains(&of_left), "{of_left}");
        let mut heir = HeatSketch::default();
        heir.inherit(right);
        heir.inherit(left);
        assert_eq!(totals(&heir.buckets(0)), [(1, 120), (2, 30)]);
        note(&mut heir, "c", 10, 2);
        assert_eq!(totals(&heir.buckets(0)), [(1, 120), (2, 40)]);
        assert_eq!(heir.buckets(2)[0].hottest.partitions[0].tally.total(), 40);
        note(&mut heir, "d", 1, 3);
        assert_eq!(totals(&heir.buckets(0)), [(1, 120), (2, 40), (3, 1)]);
    }

    /// Whole tables that are scanned, and bounds that are no keys.
    #[test]
    fn what_is_no_row_key_is_counted_by_what_there_is_of_one() {
        let mut sketch = HeatSketch::default();
        let container = KeyRange::container("acct", 7).start;
        for key in [&container[..], &container[..], b"", b"acct"] {
            sketch.note(key, Access::Read, Duration::ZERO);
        }
        let bucket = sketch.buckets(0).remove(0);
        assert_eq!(bucket.tally.reads, 4);
        assert_eq!(bucket.hottest.partitions[0].key[..], container[..]);
    }
}
