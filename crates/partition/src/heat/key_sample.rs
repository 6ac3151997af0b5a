//! Where in the key order the requests of a bucket of time lie: a sample of their keys, and what is kept of
//! it.
//!
//! The sample is a reservoir: each request is in it with the same chance. Of a bucket that has ended spans of
//! about as many requests each are kept (an equi-depth histogram). What always holds: the spans' counts
//! together are the bucket's.

use crate::heat::tally::{Access, Tally};
use base::random::splitmix64;

/// Keys of the bucket that fills.
pub(crate) const SAMPLE_COUNT_MAX: usize = 96;
/// Spans that are kept of a bucket, the mark in front of them included.
pub(crate) const SPAN_COUNT_MAX: usize = 12;
/// Bytes of a key that are kept: keys that differ behind them lie at the same place.
pub(crate) const SAMPLED_KEY_SIZE_BYTES_MAX: usize = 56;

/// Requests to the keys behind the last key of the span before it, up to this one's last key. The first span
/// of a bucket is a mark without requests: where its keys begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeySpan {
    pub(crate) last: Box<[u8]>,
    pub(crate) tally: Tally,
}

impl KeySpan {
    /// Bytes that it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of::<KeySpan>() + self.last.len()
    }
}

/// A sample of the keys of one bucket.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeySample {
    keys: Vec<(Box<[u8]>, Access)>,
    seen: u64,
    /// Of the generator that chooses.
    state: u64,
}

impl KeySample {
    /// Notes a request.
    pub(crate) fn note(&mut self, key: &[u8], access: Access) {
        self.seen += 1;
        let key = || key[..key.len().min(SAMPLED_KEY_SIZE_BYTES_MAX)].into();
        if self.keys.len() < SAMPLE_COUNT_MAX {
            if self.keys.capacity() == 0 {
                self.keys.reserve_exact(SAMPLE_COUNT_MAX);
            }
            self.keys.push((key(), access));
            return;
        }
        let place = splitmix64(&mut self.state) % self.seen;
        if let Some(kept) = self.keys.get_mut(usize::try_from(place).unwrap_or(usize::MAX)) {
            *kept = (key(), access);
        }
    }

    /// Spans of about as many requests each, which are `all` together.
    pub(crate) fn spans(&self, all: Tally) -> Vec<KeySpan> {
        let mut keys: Vec<&(Box<[u8]>, Access)> = self.keys.iter().collect();
        keys.sort_by(|a, b| a.0.cmp(&b.0));
        let Some((first, _)) = keys.first() else { return Vec::new() };
        let mut sampled = Tally::default();
        keys.iter().for_each(|(_, access)| sampled.note(*access));
        // Of a kind that is not in the sample nobody knows where it went: as the other one did.
        let is_known = Tally { reads: sampled.reads.min(1), writes: sampled.writes.min(1) };
        let seen_as = |tally: Tally| Tally {
            reads: if is_known.reads > 0 { tally.reads } else { tally.writes },
            writes: if is_known.writes > 0 { tally.writes } else { tally.reads },
        };
        let count = SPAN_COUNT_MAX - 1;
        let mut spans = Vec::with_capacity(SPAN_COUNT_MAX.min(keys.len() + 1));
        spans.push(KeySpan { last: first.clone(), tally: Tally::default() });
        let (mut up_to, mut before) = (Tally::default(), Tally::default());
        for (index, (key, access)) in keys.iter().enumerate() {
            up_to.note(*access);
            let ends = (index + 1) * count / keys.len() > index * count / keys.len();
            if ends {
                let here = all.part(seen_as(up_to), seen_as(sampled));
                let tally = Tally { reads: here.reads - before.reads, writes: here.writes - before.writes };
                spans.push(KeySpan { last: key.clone(), tally });
                before = here;
            }
        }
        spans
    }

    /// Bytes that it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        let keys: usize = self.keys.iter().map(|(key, _)| key.len()).sum();
        keys + self.keys.capacity() * size_of::<(Box<[u8]>, Access)>()
    }
}

/// The spans of two buckets of the same time as those of one.
pub(crate) fn joined_spans(mut spans: Vec<KeySpan>, others: Vec<KeySpan>) -> Vec<KeySpan> {
    spans.extend(others);
    spans.sort_by(|a, b| a.last.cmp(&b.last));
    while spans.len() > SPAN_COUNT_MAX {
        // The mark in front stays.
        let weight = |index: usize| spans[index].tally.total() + spans[index + 1].tally.total();
        let Some(least) = (1..spans.len() - 1).min_by_key(|index| weight(*index)) else { break };
        let first = spans.remove(least);
        spans[least].tally.add(first.tally);
    }
    spans.shrink_to_fit();
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(spans: &[KeySpan]) -> Tally {
        let mut sum = Tally::default();
        spans.iter().for_each(|span| sum.add(span.tally));
        sum
    }

    #[test]
    fn spans_have_all_requests_and_about_as_many_each() {
        let mut sample = KeySample::default();
        let mut all = Tally::default();
        for number in 0..10_000u32 {
            let access = if number % 4 == 0 { Access::Write } else { Access::Read };
            sample.note(&(number.wrapping_mul(0x9E37_79B9)).to_be_bytes(), access);
            all.note(access);
        }
        let spans = sample.spans(all);
        assert_eq!((spans.len(), sum(&spans)), (SPAN_COUNT_MAX, all));
        assert!(spans.is_sorted_by(|a, b| a.last <= b.last));
        for span in &spans[1..] {
            assert!((500..1500).contains(&span.tally.total()), "{spans:?}");
        }
        assert_eq!(spans[0].tally.total(), 0, "a mark");
    }

    /// A rare write that the reservoir has lost was in no span.
    #[test]
    fn requests_of_a_kind_that_was_not_sampled_are_counted_all_the_same() {
        let mut sample = KeySample::default();
        (0..10u8).for_each(|number| sample.note(&[number], Access::Read));
        let all = Tally { reads: 20, writes: 3 };
        assert_eq!(sum(&sample.spans(all)), all);
        assert_eq!(KeySample::default().spans(all), []);
    }

    #[test]
    fn joined_spans_are_bounded_and_lose_nothing() {
        let spans = |from: u8| -> Vec<KeySpan> {
            let span = |at: u8| KeySpan {
                last: Box::new([from + at]),
                tally: Tally { reads: u64::from(at), writes: 1 },
            };
            (0..SPAN_COUNT_MAX as u8).map(span).collect()
        };
        let joined = joined_spans(spans(100), spans(5));
        assert_eq!(joined.len(), SPAN_COUNT_MAX);
        assert_eq!(joined.first().map(|span| span.last[0]), Some(5));
        assert_eq!(joined.last().map(|span| span.last[0]), Some(111));
        let both = sum(&[spans(100), spans(5)].concat());
        assert_eq!(sum(&joined), both);
    }
}
