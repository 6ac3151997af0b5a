//! What is held of places: a place is what a published target speaks of, a partition of a table, a queue or a
//! blob. Its bucket of requests, its bucket of bytes and its load are here.
//!
//! What always holds: no more than [`PLACES_HELD_MAX`] are held. A place that equals a new one is forgotten
//! before any other, which changes nothing; one that finds no room counts as new with each request, so that
//! the error is on the side of admission.

use super::balancing::{BalancingSettings, PlaceLoad};
use super::token_bucket::TokenBucket;
use std::collections::BTreeMap;
use std::time::Duration;

/// Places held at most. A bucket is full after a second without requests, and an account of the large profile
/// has 40,000 requests in a second.
pub(crate) const PLACES_HELD_MAX: usize = 65_536;

/// How often places are looked through for those that equal new ones.
const FORGET_EVERY: Duration = Duration::from_millis(250);

/// One place. A new one has full buckets and no load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Place {
    pub(crate) requests: TokenBucket,
    pub(crate) bytes: TokenBucket,
    pub(crate) load: PlaceLoad,
    /// How often it was moved, and how many requests found it away: what chance is drawn for.
    pub(crate) move_count: u64,
    pub(crate) away_count: u64,
}

impl Place {
    fn is_as_new(&self, now: Duration, balancing: Option<&BalancingSettings>) -> bool {
        let is_idle = balancing.is_none_or(|balancing| self.load.is_none(now, balancing));
        self.requests.is_full(now) && self.bytes.is_full(now) && is_idle
    }
}

/// The places that are held, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Places {
    held: BTreeMap<u64, Place>,
    forgets_again_at: Duration,
}

impl Places {
    /// The place, a new one if it is not held.
    pub(crate) fn find(&self, id: u64) -> Place {
        self.held.get(&id).copied().unwrap_or_default()
    }

    /// Holds the place as it is now, if there is room.
    pub(crate) fn keep(
        &mut self,
        id: u64,
        place: Place,
        now: Duration,
        balancing: Option<&BalancingSettings>,
    ) {
        if let Some(held) = self.held.get_mut(&id) {
            *held = place;
            return;
        }
        if self.held.len() >= PLACES_HELD_MAX && self.forgets_again_at <= now {
            self.forgets_again_at = now + FORGET_EVERY;
            self.held.retain(|_, place| !place.is_as_new(now, balancing));
        }
        if self.held.len() < PLACES_HELD_MAX {
            self.held.insert(id, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU64;

    fn used(now: Duration) -> Place {
        let mut place = Place::default();
        place.requests.take(now, 1, NonZeroU64::MIN);
        place
    }

    #[test]
    fn only_places_that_equal_new_ones_are_forgotten() {
        let mut places = Places::default();
        let start = Duration::from_secs(5);
        let balancing = BalancingSettings::default();
        for id in 0..PLACES_HELD_MAX as u64 {
            places.keep(id, used(start), start, None);
        }
        // None has refilled: the next one finds no room, and is as new.
        places.keep(u64::MAX, used(start), start, None);
        assert_eq!((places.held.len(), places.find(u64::MAX)), (PLACES_HELD_MAX, Place::default()));
        let later = start + Duration::from_secs(1);
        let mut busy = used(later);
        busy.load.note(later, Duration::from_secs(1), &balancing, 0.0);
        places.keep(7, busy, later, Some(&balancing));
        places.keep(u64::MAX, used(later), later, Some(&balancing));
        assert_eq!(places.held.len(), 2, "the refilled ones were forgotten");
        assert_eq!((places.find(u64::MAX), places.find(7)), (used(later), busy));
    }
}
