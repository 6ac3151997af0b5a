//! Where new keys fall among those that are there: at the end, at the start, or anywhere.
//!
//! A store keeps keys in order and divides them into ranges; keys that only rise (or only fall) all meet the
//! last (or the first) range, which can't be divided so that the load is.
//!
//! What always holds: one key of each end is kept, so the cost does not grow.

/// Inserts below which nothing is concluded.
const INSERTS_MIN: u64 = 100;
/// The share of inserts at one end, of 100, from which on it is a pattern. With keys in any order it is near
/// 0: the n-th key is beyond all others with a chance of 1 / n.
const PERCENT_MIN: u64 = 90;

/// The pattern of new keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPattern {
    /// Behind all keys that are there.
    AppendOnly,
    /// Before all keys that are there.
    PrependOnly,
}

/// What was seen of the keys that one worker inserted, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyWatch {
    inserts: u64,
    at_end: u64,
    at_start: u64,
    /// Partition and row.
    last: Option<(String, String)>,
    first: Option<(String, String)>,
}

impl KeyWatch {
    /// The keys of a group of inserts; all that matters of it is the first one.
    pub(crate) fn inserted(&mut self, partition: &str, row: &str, count: u64) {
        self.inserts += count;
        let key = (partition, row);
        let is_beyond = |end: &Option<(String, String)>, is_it: fn((&str, &str), (&str, &str)) -> bool| {
            end.as_ref().is_none_or(|(partition, row)| is_it(key, (partition, row)))
        };
        if is_beyond(&self.last, |key, last| key > last) {
            self.at_end += count;
            replace(&mut self.last, key);
        }
        if is_beyond(&self.first, |key, first| key < first) {
            self.at_start += count;
            replace(&mut self.first, key);
        }
    }

    /// Counts what is here among `others`, and begins to count anew. The ends are kept: keys of different
    /// workers are not compared with each other.
    pub(crate) fn move_to(&mut self, others: &mut KeyWatch) {
        others.inserts += std::mem::take(&mut self.inserts);
        others.at_end += std::mem::take(&mut self.at_end);
        others.at_start += std::mem::take(&mut self.at_start);
    }

    /// The pattern, if there is one.
    pub(crate) fn pattern(&self) -> Option<KeyPattern> {
        let is_most = |count: u64| count * 100 >= self.inserts * PERCENT_MIN;
        if self.inserts < INSERTS_MIN {
            None
        } else if is_most(self.at_end) {
            Some(KeyPattern::AppendOnly)
        } else if is_most(self.at_start) {
            Some(KeyPattern::PrependOnly)
        } else {
            None
        }
    }
}

/// In the memory that is there.
fn replace(end: &mut Option<(String, String)>, (partition, row): (&str, &str)) {
    let (its_partition, its_row) = end.get_or_insert_default();
    its_partition.clear();
    its_partition.push_str(partition);
    its_row.clear();
    its_row.push_str(row);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::chance::Chance;

    fn pattern(rows: impl Iterator<Item = u64>) -> Option<KeyPattern> {
        let mut watch = KeyWatch::default();
        rows.for_each(|row| watch.inserted("p", &format!("{row:020}"), 1));
        watch.pattern()
    }

    #[test]
    fn keys_that_only_rise_or_only_fall_are_named() {
        assert_eq!(pattern(0..1000), Some(KeyPattern::AppendOnly));
        assert_eq!(pattern((0..1000).rev()), Some(KeyPattern::PrependOnly));
        let mut chance = Chance::of(9, 0);
        assert_eq!(pattern((0..1000).map(|_| chance.next_u64())), None);
        assert_eq!(pattern(0..50), None, "too few");
        // Some keys out of order do not hide it, half of them do.
        assert_eq!(
            pattern((0..1000).map(|row| if row % 20 == 0 { row / 2 } else { row })),
            Some(KeyPattern::AppendOnly)
        );
        assert_eq!(pattern((0..1000).map(|row| if row % 2 == 0 { 0 } else { row })), None);
    }

    #[test]
    fn a_new_partition_behind_all_others_is_the_same_pattern() {
        let mut watch = KeyWatch::default();
        (0..200).for_each(|number| watch.inserted(&format!("p{number:05}"), "x", 1));
        assert_eq!(watch.pattern(), Some(KeyPattern::AppendOnly));
        // Counts of several windows, and keys below those of the former one.
        let mut all = KeyWatch::default();
        watch.move_to(&mut all);
        (0..200).for_each(|number| watch.inserted(&format!("p{number:05}"), "y", 1));
        assert_eq!((watch.pattern(), watch.inserts), (None, 200));
        watch.move_to(&mut all);
        assert_eq!((all.inserts, all.at_end, all.pattern()), (400, 201, None));
    }
}
