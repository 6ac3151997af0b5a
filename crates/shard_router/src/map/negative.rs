//! Keys that have no mapping, remembered for a while, so that a client that asks for one again and again does
//! not read the home each time.
//!
//! What always holds: never more entries than the bound; an entry is of one epoch of the catalog and of no
//! other, so a map that was read anew for another reason is looked into at once.

use shard_map::Epoch;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What was looked up: the map's name, and the key's bytes; none for a map that is not there.
pub(crate) type NegativeKey = (String, Vec<u8>);

/// Keys without a mapping.
#[derive(Debug, Default)]
pub(crate) struct Negative {
    epoch: Epoch,
    until: BTreeMap<NegativeKey, Duration>,
    /// In the order of their ends, since all last as long. No longer than `until`.
    order: VecDeque<NegativeKey>,
}

impl Negative {
    /// Whether the key had no mapping a short while ago, at the same epoch.
    pub(crate) fn holds(&self, epoch: Epoch, key: &NegativeKey, now: Duration) -> bool {
        self.epoch == epoch && self.until.get(key).is_some_and(|until| now < *until)
    }

    /// Remembers a key until then.
    pub(crate) fn put(&mut self, epoch: Epoch, key: NegativeKey, until: Duration, count_max: usize) {
        if self.epoch != epoch {
            *self = Negative { epoch, ..Negative::default() };
        }
        if count_max == 0 {
            return;
        }
        if self.until.insert(key.clone(), until).is_some() {
            self.order.retain(|there| *there != key);
        }
        self.order.push_back(key);
        while self.order.len() > count_max {
            if let Some(oldest) = self.order.pop_front() {
                self.until.remove(&oldest);
            }
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        assert_eq!(self.until.len(), self.order.len());
        self.until.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_remembered_for_a_while_at_its_epoch_and_the_oldest_is_evicted() {
        let key = |number: u8| ("map".to_owned(), vec![number]);
        let s = Duration::from_secs;
        let mut negative = Negative::default();
        negative.put(Epoch(1), key(1), s(10), 2);
        negative.put(Epoch(1), key(2), s(11), 2);
        assert!(negative.holds(Epoch(1), &key(1), s(9)) && !negative.holds(Epoch(1), &key(1), s(10)));
        assert!(!negative.holds(Epoch(2), &key(1), s(9)));
        // Put again, it is the youngest; the bound evicts the other.
        negative.put(Epoch(1), key(1), s(12), 2);
        negative.put(Epoch(1), key(3), s(13), 2);
        assert_eq!(negative.len(), 2);
        assert!(negative.holds(Epoch(1), &key(1), s(11)) && !negative.holds(Epoch(1), &key(2), s(9)));
        negative.put(Epoch(2), key(4), s(14), 2);
        assert_eq!(negative.len(), 1);
        negative.put(Epoch(3), key(4), s(14), 0);
        assert_eq!(negative.len(), 0);
    }
}
