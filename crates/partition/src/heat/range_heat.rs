//! The sketch of a range that is served: which requests are noted in it, and how many ranges have one.
//!
//! What always holds: a request that is not sampled costs nothing here. Of the ranges of a process so many
//! have a sketch at a time, those first that were asked for first; of the others nothing is known.

use crate::heat::ends::RangeEnd;
use crate::heat::sketch::{Bucket, HeatSketch};
use crate::heat::tally::Access;
use crate::key::KeyRange;
use base::Clock;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Ranges of a process that have a sketch at a time: 16 MiB of sketches.
pub(crate) const SKETCH_COUNT_MAX: usize = 256;

/// Sketches that ranges of a process have.
#[derive(Debug, Default)]
pub(crate) struct SketchPlaces {
    taken: AtomicUsize,
}

/// What is known of a range.
pub(crate) struct Noted {
    /// Since when, on the monotonic clock.
    pub(crate) since: Duration,
    pub(crate) buckets: Vec<Bucket>,
    /// Bytes of the sketch.
    pub(crate) size_bytes: u64,
    /// To which end nearly all writes of late went, and the outermost key there.
    pub(crate) end: Option<(RangeEnd, Box<[u8]>)>,
}

/// The heat of one range.
pub(crate) struct RangeHeat {
    clock: Arc<dyn Clock>,
    /// One request in this many is noted; 0: none is.
    one_in: u64,
    places: Arc<SketchPlaces>,
    /// None before the first request, and where there was no place.
    sketch: Mutex<Option<Box<HeatSketch>>>,
    /// There was no place for one.
    refused: AtomicBool,
    /// On the monotonic clock, in milliseconds.
    since_ms: AtomicU64,
}

impl SketchPlaces {
    fn take(&self) -> bool {
        let next = |taken: usize| (taken < SKETCH_COUNT_MAX).then_some(taken + 1);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

impl RangeHeat {
    /// That of a range of which nothing is known yet. One request in `one_in` is noted; 0: none is.
    pub(crate) fn new(clock: Arc<dyn Clock>, one_in: u64, places: Arc<SketchPlaces>) -> Self {
        let since_ms = AtomicU64::new(clock.monotonic().as_millis() as u64);
        RangeHeat {
            clock,
            one_in,
            places,
            sketch: Mutex::default(),
            refused: AtomicBool::new(false),
            since_ms,
        }
    }

    /// A request with a number below this, of all 64-bit numbers, is to be noted.
    pub(crate) fn noted_below(&self) -> u64 {
        u64::MAX.checked_div(self.one_in).unwrap_or(0)
    }

    /// Notes a request.
    pub(crate) fn note(&self, key: &[u8], access: Access) {
        let now = self.clock.monotonic();
        let mut sketch = self.sketch.lock();
        if let Some(sketch) = self.sketch_in(&mut sketch) {
            sketch.note(key, access, now);
        }
    }

    fn sketch_in<'a>(&self, place: &'a mut Option<Box<HeatSketch>>) -> Option<&'a mut HeatSketch> {
        if place.is_none() && self.places.take() {
            *place = Some(Box::default());
            if self.refused.load(Ordering::Relaxed) {
                // Of the time before nothing is known.
                self.since_ms.store(self.clock.monotonic().as_millis() as u64, Ordering::Relaxed);
            }
        }
        self.refused.store(place.is_none(), Ordering::Relaxed);
        place.as_deref_mut()
    }

    /// Whether nothing is known because other ranges have all the places.
    pub(crate) fn has_no_place(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Takes over what ranges have noted of the keys in `range`, which is this one's.
    pub(crate) fn inherit<'a>(&self, parents: impl IntoIterator<Item = &'a RangeHeat>, range: &KeyRange) {
        for parent in parents {
            let divided = parent.sketch.lock().as_ref().map(|sketch| sketch.divided(range));
            let Some(buckets) = divided.filter(|buckets| !buckets.is_empty()) else { continue };
            self.since_ms.fetch_min(parent.since_ms.load(Ordering::Relaxed), Ordering::Relaxed);
            let mut sketch = self.sketch.lock();
            if let Some(sketch) = self.sketch_in(&mut sketch) {
                sketch.inherit(buckets);
            }
        }
    }

    /// What is known from this bucket on; `None`: nothing.
    pub(crate) fn noted(&self, from: u64) -> Option<Noted> {
        let now = self.clock.monotonic();
        let place = self.sketch.lock();
        let sketch = place.as_ref()?;
        let (buckets, end) = (sketch.buckets(from), sketch.end_at(now));
        let size_bytes = sketch.size_bytes() as u64;
        drop(place);
        let since = Duration::from_millis(self.since_ms.load(Ordering::Relaxed));
        Some(Noted { since, buckets, size_bytes, end })
    }
}

/// The place is free for another range.
impl Drop for RangeHeat {
    fn drop(&mut self) {
        if self.sketch.get_mut().is_some() {
            self.places.taken.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::system::SystemClock;

    fn heats(count: usize, places: &Arc<SketchPlaces>) -> Vec<RangeHeat> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        (0..count).map(|_| RangeHeat::new(clock.clone(), 1, places.clone())).collect()
    }

    #[test]
    fn so_many_ranges_have_a_sketch_and_its_place_comes_free() {
        let places = Arc::default();
        let mut all = heats(SKETCH_COUNT_MAX + 1, &places);
        all.iter().for_each(|heat| heat.note(b"k", Access::Read));
        let known = |all: &[RangeHeat]| all.iter().filter(|heat| heat.noted(0).is_some()).count();
        assert_eq!(known(&all), SKETCH_COUNT_MAX);
        assert_eq!(all.iter().filter(|heat| heat.has_no_place()).count(), 1);
        all.remove(0);
        all.iter().for_each(|heat| heat.note(b"k", Access::Read));
        assert_eq!(known(&all), SKETCH_COUNT_MAX);
        drop(all);
        assert_eq!(places.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_range_that_is_asked_for_nothing_has_no_sketch() {
        let places = Arc::default();
        let [parent, heir] = heats(2, &places).try_into().unwrap_or_else(|_| panic!("two"));
        heir.inherit([&parent], &KeyRange::all());
        assert!(heir.noted(0).is_none() && places.taken.load(Ordering::Relaxed) == 0);
        parent.note(b"k", Access::Write);
        heir.inherit([&parent], &KeyRange::all());
        assert_eq!(heir.noted(0).map(|noted| noted.buckets.len()), Some(1));
    }
}
