//! Whether writes go to one end of a range: a pure function over how many went beyond the keys before them.
//!
//! Why: such a range can't be split in two that share the load, and an operator can do something about it.
//! What always holds: few writes show nothing; a single key that is written again and again is no end.

/// Sampled writes that it takes to say something.
const WRITE_COUNT_MIN: u64 = 32;
/// So many percent of them go beyond all keys before them.
const BEYOND_PERCENT_MIN: u64 = 90;
/// Bytes of a key that are compared.
pub(crate) const END_KEY_SIZE_BYTES_MAX: usize = 256;

/// An end of a range of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeEnd {
    /// Writes go before the first key.
    First,
    /// Writes go behind the last key.
    Last,
}

/// The writes of a bucket of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndCounts {
    bucket: u64,
    writes: u64,
    /// Those behind every key before them.
    behind: u64,
    /// Those before every key before them.
    before: u64,
}

/// The outermost keys that were written.
#[derive(Clone, Debug)]
struct Outermost {
    first: Box<[u8]>,
    last: Box<[u8]>,
}

/// The outermost keys that were written, and how many writes moved them of late.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    /// Until the first write they are unknown.
    keys: Option<Outermost>,
    current: EndCounts,
    former: EndCounts,
}

/// To which end nearly all writes go, if there are enough of them.
fn choose_end(counts: EndCounts) -> Option<RangeEnd> {
    let is_nearly_all = |part: u64| part * 100 >= counts.writes * BEYOND_PERCENT_MIN;
    match counts.writes >= WRITE_COUNT_MIN {
        true if is_nearly_all(counts.behind) => Some(RangeEnd::Last),
        true if is_nearly_all(counts.before) => Some(RangeEnd::First),
        _ => None,
    }
}

impl Ends {
    /// Notes a write in this bucket of time.
    pub(crate) fn note(&mut self, key: &[u8], bucket: u64) {
        let key = &key[..key.len().min(END_KEY_SIZE_BYTES_MAX)];
        self.turn_to(bucket);
        let Some(Outermost { first, last }) = &mut self.keys else {
            self.keys = Some(Outermost { first: key.into(), last: key.into() });
            return;
        };
        self.current.writes += 1;
        if key > &last[..] {
            self.current.behind += 1;
            *last = key.into();
        } else if key < &first[..] {
            self.current.before += 1;
            *first = key.into();
        }
    }

    fn turn_to(&mut self, bucket: u64) {
        if bucket > self.current.bucket {
            // An outermost key that nobody goes beyond may be a single one that is far out.
            if self.current.writes > 0 && self.current.behind + self.current.before == 0 {
                self.keys = None;
            }
            self.former = self.current;
            self.current = EndCounts { bucket, ..EndCounts::default() };
        }
    }

    /// To which end nearly all writes of this bucket and the one before it went, and the outermost key there.
    pub(crate) fn found(&self, bucket: u64) -> Option<(RangeEnd, Box<[u8]>)> {
        let mut sum = EndCounts { bucket, ..EndCounts::default() };
        for counts in [self.current, self.former] {
            if counts.bucket + 1 >= bucket {
                sum.writes += counts.writes;
                sum.behind += counts.behind;
                sum.before += counts.before;
            }
        }
        let Outermost { first, last } = self.keys.clone()?;
        choose_end(sum).map(|end| (end, if end == RangeEnd::Last { last } else { first }))
    }

    /// Bytes that it takes besides itself.
    pub(crate) fn size_bytes(&self) -> usize {
        self.keys.as_ref().map_or(0, |keys| keys.first.len() + keys.last.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::splitmix64;

    fn found(keys: impl IntoIterator<Item = u64>) -> Option<RangeEnd> {
        let mut ends = Ends::default();
        keys.into_iter().for_each(|key| ends.note(&key.to_be_bytes(), 9));
        ends.found(9).map(|(end, _)| end)
    }

    #[test]
    fn appends_are_told_from_other_writes() {
        let random = |count: u64| {
            let mut state = 3;
            (0..count).map(move |_| splitmix64(&mut state))
        };
        let middle = u64::MAX / 2;
        let mut state = 5;
        let zipf = (0..2000).map(move |_| 1_000_000 / (1 + splitmix64(&mut state) % 10_000));
        let enough = WRITE_COUNT_MIN + 1;
        for (what, end, expected) in [
            ("appends", found(0..enough), Some(RangeEnd::Last)),
            ("prepends", found((0..enough).rev()), Some(RangeEnd::First)),
            ("too few appends", found(0..enough - 1), None),
            ("nothing", found([]), None),
            ("uniform", found(random(2000)), None),
            ("few uniform", found(random(enough)), None),
            ("zipf", found(zipf), None),
            ("a hot key in the middle", found((0..2000).map(|_| middle)), None),
            ("appends in the middle", found([0, u64::MAX].into_iter().chain(middle..middle + 2000)), None),
            (
                "appends and one other in eight",
                found((0..2000).map(|n| if n % 8 == 0 { 0 } else { n })),
                None,
            ),
            (
                "appends and one other in sixteen",
                found((0..2000).map(|n| if n % 16 == 0 { 0 } else { n })),
                Some(RangeEnd::Last),
            ),
            ("each appended key is written twice", found((0..2000).map(|n| n / 2)), None),
        ] {
            assert_eq!(end, expected, "{what}");
        }
    }

    #[test]
    fn only_writes_of_late_count() {
        let mut ends = Ends::default();
        (0..100u64).for_each(|key| ends.note(&key.to_be_bytes(), 4));
        assert_eq!(ends.found(4).map(|(end, key)| (end, key[7])), Some((RangeEnd::Last, 99)));
        assert!(ends.found(5).is_some());
        assert_eq!(ends.found(6), None);
        ends.note(&[0], 5);
        assert!(ends.found(5).is_some(), "the bucket before counts as long as this one is new");
        assert_eq!(ends.found(6), None);
    }

    #[test]
    fn a_single_key_far_out_does_not_hide_appends_for_ever() {
        let mut ends = Ends::default();
        ends.note(&u64::MAX.to_be_bytes(), 1);
        for bucket in 2..=5 {
            (0..100u64).for_each(|key| ends.note(&(1000 * bucket + key).to_be_bytes(), bucket));
        }
        assert_eq!(ends.found(5).map(|(end, _)| end), Some(RangeEnd::Last));
    }

    #[test]
    fn long_keys_are_cut() {
        let mut ends = Ends::default();
        let long = |last: u8| [vec![7; 4000], vec![last]].concat();
        (0..200).for_each(|last| ends.note(&long(last), 1));
        assert_eq!(ends.size_bytes(), 2 * END_KEY_SIZE_BYTES_MAX);
        assert_eq!(ends.found(1), None, "they look alike");
    }
}
