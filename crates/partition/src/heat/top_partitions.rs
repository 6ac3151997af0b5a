//! The partitions that are asked for most, counted in bounded memory: space-saving.
//!
//! A partition that has no counter takes the one with the least count over, and with it that count, as
//! `missed`: so much of it may have gone uncounted. Source: Metwally, Agrawal, El Abbadi, "Efficient
//! computation of frequent and top-k elements in data streams", ICDT 2005. What always holds: a partition's
//! requests are between its tally and its tally and `missed`; `missed` is at most the counted requests over
//! [`COUNTER_COUNT`]; a partition with more requests than that has a counter.

use crate::heat::tally::{Access, Tally};
use std::cmp::Reverse;

/// Counters of the bucket of time that fills.
pub(crate) const COUNTER_COUNT: usize = 64;
/// Counters that are kept of a bucket once it has ended.
pub(crate) const KEPT_COUNT: usize = 6;
/// Bytes of a partition's key that are kept: two partitions that differ behind them are counted apart, but
/// look alike.
pub(crate) const PARTITION_KEY_SIZE_BYTES_MAX: usize = 96;

/// What is known of one partition in some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Of its whole key.
    pub(crate) hash: u64,
    /// The start of its key.
    pub(crate) key: Box<[u8]>,
    /// Requests that were counted.
    pub(crate) tally: Tally,
    /// Requests that may have come besides, at most.
    pub(crate) missed: u64,
}

/// Counters of the partitions of one bucket of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct TopPartitions {
    counted: Vec<Counted>,
}

/// What is left of such counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hottest {
    /// The hottest first.
    pub(crate) partitions: Vec<Counted>,
    /// Requests of each other partition at most.
    pub(crate) others_max: u64,
}

impl Counted {
    /// What may have been at most.
    fn most(&self) -> u64 {
        self.tally.total() + self.missed
    }

    /// Bytes that it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of::<Counted>() + self.key.len()
    }
}

impl TopPartitions {
    /// Counts a request to a partition.
    pub(crate) fn note(&mut self, partition: &[u8], access: Access) {
        let hash = xxhash_rust::xxh3::xxh3_64(partition);
        if let Some(counted) = self.counted.iter_mut().find(|counted| counted.hash == hash) {
            counted.tally.note(access);
            return;
        }
        let mut missed = 0;
        if self.counted.len() == COUNTER_COUNT
            && let Some(least) = (0..COUNTER_COUNT).min_by_key(|index| self.counted[*index].most())
        {
            missed = self.counted.swap_remove(least).most();
        }
        let key = partition[..partition.len().min(PARTITION_KEY_SIZE_BYTES_MAX)].into();
        let mut tally = Tally::default();
        tally.note(access);
        if self.counted.capacity() == 0 {
            self.counted.reserve_exact(COUNTER_COUNT);
        }
        self.counted.push(Counted { hash, key, tally, missed });
    }

    /// The hottest of them.
    pub(crate) fn hottest(&self) -> Hottest {
        // While a counter is free every partition has one.
        let full = self.counted.len() == COUNTER_COUNT;
        let least = self.counted.iter().map(Counted::most).min().filter(|_| full);
        let all = Hottest { partitions: self.counted.clone(), others_max: least.unwrap_or(0) };
        all.cut(KEPT_COUNT)
    }

    /// Bytes that they take.
    pub(crate) fn size_bytes(&self) -> usize {
        let unused = self.counted.capacity() - self.counted.len();
        self.counted.iter().map(Counted::size_bytes).sum::<usize>() + unused * size_of::<Counted>()
    }
}

impl Hottest {
    /// The first `count` of these partitions.
    pub(crate) fn cut(mut self, count: usize) -> Hottest {
        self.partitions.sort_by(|a, b| (b.tally.total(), &a.key).cmp(&(a.tally.total(), &b.key)));
        let dropped = self.partitions.get(count..).unwrap_or_default().iter().map(Counted::most);
        let others_max = dropped.max().unwrap_or(0).max(self.others_max);
        self.partitions.truncate(count);
        self.partitions.shrink_to_fit();
        Hottest { partitions: self.partitions, others_max }
    }

    /// These and those of another time, or of other keys in the same time.
    pub(crate) fn add(&mut self, other: &Hottest) {
        let (own_max, other_max) = (self.others_max, other.others_max);
        self.partitions.sort_by_key(|counted| counted.hash);
        let mut theirs: Vec<&Counted> = other.partitions.iter().collect();
        theirs.sort_by_key(|counted| Reverse(counted.hash));
        let mut joined = Vec::with_capacity(self.partitions.len() + theirs.len());
        for mut own in self.partitions.drain(..) {
            while let Some(before) = theirs.pop_if(|theirs| theirs.hash < own.hash) {
                joined.push(Counted { missed: before.missed + own_max, ..before.clone() });
            }
            match theirs.pop_if(|theirs| theirs.hash == own.hash) {
                Some(same) => {
                    own.tally.add(same.tally);
                    own.missed += same.missed;
                }
                None => own.missed += other_max,
            }
            joined.push(own);
        }
        let rest = theirs.into_iter().rev();
        joined.extend(rest.map(|counted| Counted { missed: counted.missed + own_max, ..counted.clone() }));
        *self = Hottest { partitions: joined, others_max: own_max + other_max };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// What was counted of a zipf load of `count` requests over `names` partitions, and what is so.
    fn zipf(count: u64, names: u64) -> (TopPartitions, BTreeMap<Vec<u8>, u64>) {
        let weights: Vec<f64> = (1..=names).map(|rank| 1.0 / rank as f64).collect();
        let all: f64 = weights.iter().sum();
        let mut state = 7;
        let (mut top, mut exact) = (TopPartitions::default(), BTreeMap::new());
        for _ in 0..count {
            let mut at = base::random::splitmix64(&mut state) as f64 / u64::MAX as f64 * all;
            let rank = weights.iter().position(|weight| {
                at -= weight;
                at < 0.0
            });
            let name = format!("p{}", rank.unwrap_or(0)).into_bytes();
            top.note(&name, Access::Write);
            *exact.entry(name).or_insert(0) += 1;
        }
        (top, exact)
    }

    #[test]
    fn the_hottest_of_a_zipf_load_are_found_within_the_bound() {
        const COUNT: u64 = 100_000;
        let (top, exact) = zipf(COUNT, 10_000);
        for counted in &top.counted {
            let is = exact[&counted.key[..]];
            assert!(counted.tally.total() <= is && is <= counted.most(), "{counted:?}: {is}");
            assert!(counted.missed <= COUNT / COUNTER_COUNT as u64, "{counted:?}");
        }
        let hottest = top.hottest();
        let names: Vec<&[u8]> = hottest.partitions.iter().map(|counted| &counted.key[..]).collect();
        assert_eq!(names[..4], [&b"p0"[..], b"p1", b"p2", b"p3"]);
        for (name, is) in &exact {
            assert!(names.contains(&&name[..]) || *is <= hottest.others_max, "{name:?}: {is}");
        }
    }

    #[test]
    fn few_partitions_are_counted_exactly() {
        let mut top = TopPartitions::default();
        (0..30).for_each(|number: u8| top.note(&[number % 3], Access::Read));
        top.note(&[7], Access::Write);
        let hottest = top.hottest();
        assert_eq!(hottest.partitions.len(), 4);
        assert_eq!(hottest.partitions[3].tally, Tally { reads: 0, writes: 1 });
        assert!(hottest.partitions.iter().all(|counted| counted.missed == 0) && hottest.others_max == 0);
    }

    #[test]
    fn times_are_added_and_what_one_did_not_count_may_be_missed() {
        let counted = |hash: u64, writes: u64| Counted {
            hash,
            key: Box::new([hash as u8]),
            tally: Tally { reads: 0, writes },
            missed: 0,
        };
        let mut sum = Hottest { partitions: vec![counted(2, 50), counted(1, 5)], others_max: 3 };
        sum.add(&Hottest { partitions: vec![counted(3, 40), counted(2, 7)], others_max: 4 });
        let found: Vec<_> =
            sum.clone().cut(2).partitions.iter().map(|c| (c.hash, c.most(), c.missed)).collect();
        assert_eq!(found, [(2, 57, 0), (3, 43, 3)]);
        assert_eq!(sum.others_max, 7);
        assert_eq!(sum.cut(2).others_max, 9, "of the one that is left out there may have been 5 and 4");
    }
}
