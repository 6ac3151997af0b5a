//! Which keys are read and written.
//!
//! | distribution | loaded rows | reads | new rows |
//! |---|---|---|---|
//! | uniform | spread over the partitions in turn | any loaded row, evenly | behind any loaded row |
//! | zipf | the same | popular rows, which lie scattered | behind popular rows |
//! | append | in order, a partition after the other | one of the last loaded rows | behind all others |
//! | prepend | the same | one of the first loaded rows | before all others |
//!
//! Under the last two, with several partitions, new rows begin a new one whenever one is as full as the
//! loaded ones.
//!
//! What always holds: no two new rows have the same key, whichever client inserts them; the rows of a group
//! lie in one partition.

use super::chance::Chance;
use super::keys::{FIRST_PARTITION, FIRST_ROW, Key};
use super::zipf::Zipf;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// How keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Each key as often as any other.
    Uniform,
    /// By Zipf's law with that exponent.
    Zipf(f64),
    /// New keys are behind all others.
    Append,
    /// New keys are before all others.
    Prepend,
}

/// The usual exponent of [`Distribution::Zipf`].
pub const ZIPF_EXPONENT: f64 = 0.99;

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => f.write_str("uniform"),
            Distribution::Zipf(exponent) => write!(f, "zipf:{exponent}"),
            Distribution::Append => f.write_str("append"),
            Distribution::Prepend => f.write_str("prepend"),
        }
    }
}

/// What is loaded, and how keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyPlan {
    /// How keys are chosen.
    pub distribution: Distribution,
    /// Rows, messages or blobs that are there before the load begins; at least 1.
    pub loaded: u64,
    /// Partitions that they are in; at least 1.
    pub partitions: u64,
}

/// Loaded rows that reads of [`Distribution::Append`] and [`Distribution::Prepend`] are about.
pub(crate) const RECENT_ROWS: u64 = 1000;

/// Rows that may be loaded: [`Distribution::Zipf`] takes 8 bytes for each.
pub const LOADED_MAX: u64 = 1_000_000;

/// Spreads ranks over rows. It is a prime beyond [`LOADED_MAX`], so each row has one rank.
const SCATTER: u64 = 2_654_435_761;
const _: () = assert!(SCATTER > LOADED_MAX);

/// Some loaded rows of one partition: `count` numbers from `first` on, each `step` behind the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoadGroup {
    first: u64,
    step: u64,
    count: u64,
}

impl LoadGroup {
    pub(crate) fn numbers(self) -> impl Iterator<Item = u64> {
        (0..self.count).map(move |at| self.first + at * self.step)
    }
}

/// The keys of a run, shared by all clients.
#[derive(Debug)]
pub(crate) struct KeySpace {
    plan: KeyPlan,
    zipf: Option<Zipf>,
    /// How many keys of new rows were given out.
    new_count: AtomicU64,
}

impl KeySpace {
    pub(crate) fn new(plan: KeyPlan) -> Self {
        let zipf = match plan.distribution {
            Distribution::Zipf(exponent) => Some(Zipf::new(plan.loaded as usize, exponent)),
            _ => None,
        };
        KeySpace { plan, zipf, new_count: AtomicU64::new(0) }
    }

    pub(crate) fn plan(&self) -> &KeyPlan {
        &self.plan
    }

    fn is_ordered(&self) -> bool {
        matches!(self.plan.distribution, Distribution::Append | Distribution::Prepend)
    }

    /// The rows of a partition that is full, if a new one begins then.
    fn partition_rows(&self) -> u64 {
        if self.plan.partitions == 1 { u64::MAX } else { (self.plan.loaded / self.plan.partitions).max(1) }
    }

    /// The key of the loaded row of that number, from 0.
    pub(crate) fn loaded(&self, number: u64) -> Key {
        if self.is_ordered() {
            return self.ordered(FIRST_ROW + number);
        }
        let partitions = self.plan.partitions;
        let partition = FIRST_PARTITION + number % partitions;
        Key { partition, row: FIRST_ROW + number / partitions, suffix: None }
    }

    fn ordered(&self, row: u64) -> Key {
        let rows = self.partition_rows();
        let partition = if row >= FIRST_ROW {
            FIRST_PARTITION + (row - FIRST_ROW) / rows
        } else {
            // The row before the first one is in the partition before it, unless there is only one.
            let before = (FIRST_ROW - row).div_ceil(rows);
            FIRST_PARTITION - if rows == u64::MAX { 0 } else { before }
        };
        Key { partition, row, suffix: None }
    }

    /// The loaded rows in groups of at most `size`, each of one partition.
    pub(crate) fn load_groups(&self, size: u64) -> Vec<LoadGroup> {
        let (loaded, size) = (self.plan.loaded, size.max(1));
        let mut groups = Vec::new();
        let mut add = |first: u64, step: u64, rows: u64| {
            groups.extend((0..rows).step_by(size as usize).map(|at| LoadGroup {
                first: first + at * step,
                step,
                count: size.min(rows - at),
            }));
        };
        if self.is_ordered() {
            let rows = self.partition_rows().min(loaded).max(1);
            (0..loaded).step_by(rows as usize).for_each(|first| add(first, 1, rows.min(loaded - first)));
        } else {
            let partitions = self.plan.partitions;
            (0..partitions.min(loaded))
                .for_each(|first| add(first, partitions, (loaded - first).div_ceil(partitions)));
        }
        groups
    }

    /// The number of a loaded row that is read or replaced next.
    pub(crate) fn draw(&self, chance: &mut Chance) -> u64 {
        let loaded = self.plan.loaded;
        match (self.plan.distribution, &self.zipf) {
            (Distribution::Zipf(_), Some(zipf)) => {
                let rank = zipf.draw(chance) as u64;
                (u128::from(rank) * u128::from(SCATTER) % u128::from(loaded)) as u64
            }
            (Distribution::Append, _) => loaded - 1 - chance.below(loaded.min(RECENT_ROWS)),
            (Distribution::Prepend, _) => chance.below(loaded.min(RECENT_ROWS)),
            _ => chance.below(loaded),
        }
    }

    /// Keys of `count` new rows of one partition, in the order of their insertion.
    pub(crate) fn new_rows(&self, count: u64, chance: &mut Chance) -> impl Iterator<Item = Key> + use<> {
        let first = self.new_count.fetch_add(count, Ordering::Relaxed);
        let distribution = self.plan.distribution;
        let beside = match distribution {
            Distribution::Append => self.ordered(FIRST_ROW + self.plan.loaded + first),
            Distribution::Prepend => self.ordered(FIRST_ROW - 1 - first),
            _ => self.loaded(self.draw(chance)),
        };
        (0..count).map(move |at| match distribution {
            Distribution::Append => Key { row: beside.row + at, ..beside },
            Distribution::Prepend => Key { row: beside.row - at, ..beside },
            _ => Key { suffix: Some(first + at), ..beside },
        })
    }

    /// Of a loaded row or of a new one: its place among those that load is counted by, if the partition is
    /// one of the loaded ones.
    pub(crate) fn heat_index(&self, key: &Key) -> Option<usize> {
        let index = key.partition.checked_sub(FIRST_PARTITION)?;
        (index < self.plan.partitions).then_some(index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn space(distribution: Distribution, loaded: u64, partitions: u64) -> KeySpace {
        KeySpace::new(KeyPlan { distribution, loaded, partitions })
    }

    fn chance() -> Chance {
        Chance::of(1, 1)
    }

    #[test]
    fn uniform_rows_are_spread_over_partitions_and_all_are_drawn() {
        let space = space(Distribution::Uniform, 10, 3);
        let keys: BTreeSet<Key> = (0..10).map(|number| space.loaded(number)).collect();
        assert_eq!(keys.len(), 10);
        let counts = (0..3)
            .map(|partition| keys.iter().filter(|key| key.partition == FIRST_PARTITION + partition).count());
        assert_eq!(counts.collect::<Vec<_>>(), [4, 3, 3]);
        let mut chance = chance();
        let drawn: BTreeSet<u64> = (0..1000).map(|_| space.draw(&mut chance)).collect();
        assert_eq!(drawn, (0..10).collect());
    }

    #[test]
    fn new_rows_are_new_and_those_of_a_group_share_a_partition() {
        for distribution in [
            Distribution::Uniform,
            Distribution::Zipf(ZIPF_EXPONENT),
            Distribution::Append,
            Distribution::Prepend,
        ] {
            let space = space(distribution, 100, 4);
            let mut chance = chance();
            let mut seen: BTreeSet<Key> = (0..100).map(|number| space.loaded(number)).collect();
            for _ in 0..50 {
                let group: Vec<Key> = space.new_rows(7, &mut chance).collect();
                assert!(group.iter().all(|key| key.partition == group[0].partition), "{distribution}");
                for key in group {
                    assert!(seen.insert(key), "{distribution}: {key:?} is there twice");
                }
            }
        }
    }

    #[test]
    fn appended_rows_rise_and_prepended_ones_fall_through_new_partitions() {
        let mut chance = chance();
        let mut keys = |space: &KeySpace| -> Vec<Key> {
            (0..60).flat_map(|_| space.new_rows(1, &mut chance).collect::<Vec<_>>()).collect()
        };
        let append = space(Distribution::Append, 100, 4);
        let appended = keys(&append);
        assert!(append.loaded(99) < appended[0] && appended.is_sorted());
        assert_eq!(
            (appended[0].partition, appended[59].partition),
            (FIRST_PARTITION + 4, FIRST_PARTITION + 6)
        );
        let prepend = space(Distribution::Prepend, 100, 4);
        let prepended = keys(&prepend);
        assert!(prepend.loaded(0) > prepended[0] && prepended.iter().rev().is_sorted());
        assert_eq!(
            (prepended[0].partition, prepended[59].partition),
            (FIRST_PARTITION - 1, FIRST_PARTITION - 3)
        );
        // With one partition all stay in it.
        for distribution in [Distribution::Append, Distribution::Prepend] {
            let one = space(distribution, 100, 1);
            assert!(keys(&one).iter().all(|key| key.partition == FIRST_PARTITION), "{distribution}");
        }
    }

    #[test]
    fn popular_keys_are_drawn_most_and_lie_apart() {
        let space = space(Distribution::Zipf(1.2), 1000, 1);
        let mut chance = chance();
        let mut counts = vec![0u32; 1000];
        for _ in 0..100_000 {
            counts[space.draw(&mut chance) as usize] += 1;
        }
        let mut order: Vec<usize> = (0..1000).collect();
        order.sort_by_key(|number| std::cmp::Reverse(counts[*number]));
        assert!(counts[order[0]] > 15_000, "{}", counts[order[0]]);
        assert!(order[0].abs_diff(order[1]) > 1, "{order:?}");
    }

    #[test]
    fn reads_of_a_growing_end_are_of_the_rows_there() {
        let mut chance = chance();
        let append = space(Distribution::Append, 5000, 1);
        assert!((0..1000).all(|_| append.draw(&mut chance) >= 4000));
        let prepend = space(Distribution::Prepend, 5000, 1);
        assert!((0..1000).all(|_| prepend.draw(&mut chance) < 1000));
    }

    #[test]
    fn all_rows_are_loaded_once_in_groups_of_one_partition() {
        for distribution in [Distribution::Uniform, Distribution::Append] {
            for (loaded, partitions) in [(10, 3), (100, 4), (1, 1), (2, 5), (1001, 7), (95, 1)] {
                let space = space(distribution, loaded, partitions);
                let mut numbers = Vec::new();
                for group in space.load_groups(10) {
                    let keys: Vec<Key> = group.numbers().map(|number| space.loaded(number)).collect();
                    assert!((1..=10).contains(&keys.len()));
                    assert!(keys.iter().all(|key| key.partition == keys[0].partition), "{distribution}");
                    numbers.extend(group.numbers());
                }
                numbers.sort_unstable();
                assert!(numbers.iter().copied().eq(0..loaded), "{distribution} {loaded} {partitions}");
            }
        }
    }

    #[test]
    fn load_is_counted_by_loaded_partitions() {
        let space = space(Distribution::Append, 100, 4);
        assert_eq!(space.heat_index(&space.loaded(0)), Some(0));
        assert_eq!(space.heat_index(&space.loaded(99)), Some(3));
        assert_eq!(space.heat_index(&space.ordered(FIRST_ROW + 100)), None);
        assert_eq!(space.heat_index(&space.ordered(FIRST_ROW - 1)), None);
    }
}
