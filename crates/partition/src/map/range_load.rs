//! What a range is asked for: how often, and a small sample of the keys, from which a split key for heat is
//! taken; the sketch of its heat for operators is a sample of its own.
//!
//! Every request costs one addition; one in some is looked at closer. What always holds: the samples are
//! bounded and hold copies, so they pin no request's buffers.

use crate::heat::range_heat::RangeHeat;
use crate::heat::tally::Access;
use base::random::{SPLITMIX64_STEP, splitmix64};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One request in this many is sampled.
const SAMPLE_ONE_IN: u64 = 16;
/// Keys that a sample holds.
const SAMPLE_COUNT_MAX: usize = 256;
/// Rates over less time than this say nothing: the round before counts on.
const ROUND_MIN: Duration = Duration::from_millis(100);

/// The load of one range.
pub(crate) struct RangeLoad {
    requests: AtomicU64,
    /// A request whose chance is below this is looked at closer.
    closer_below: u64,
    sample: Mutex<Sample>,
    /// Time in which its serial section was held, in ns.
    serial_section_ns: AtomicU64,
    /// Which keys are hot, for operators.
    pub(crate) heat: RangeHeat,
}

#[derive(Default)]
struct Sample {
    /// The latest last.
    keys: VecDeque<Bytes>,
    highest: Bytes,
    /// Sampled requests of this round, and how many of them went beyond every key before.
    taken: u64,
    beyond: u64,
    round: Option<Round>,
    trend: Trend,
    /// Of the last round that ended.
    last: LoadReport,
}

/// The start of a round.
#[derive(Clone, Copy)]
struct Round {
    started_at: Duration,
    requests_before: u64,
}

/// For how many rounds in a row a range has been hot or cold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trend {
    pub(crate) hot_rounds: u32,
    pub(crate) cold_rounds: u32,
}

/// What is hot and what is cold, in requests per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeatBounds {
    pub(crate) hot_from: u64,
    pub(crate) cold_below: u64,
}

/// A round's result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoadReport {
    pub(crate) requests_per_second: u64,
    /// Share of requests that went beyond every key before them.
    pub(crate) at_end_percent: u64,
    pub(crate) trend: Trend,
}

impl RangeLoad {
    /// That of a range which is asked for something from now on.
    pub(crate) fn new(heat: RangeHeat) -> Self {
        RangeLoad {
            requests: AtomicU64::new(0),
            closer_below: SAMPLED_BELOW.max(heat.noted_below()),
            sample: Mutex::default(),
            serial_section_ns: AtomicU64::new(0),
            heat,
        }
    }

    /// Notes a request for `key`.
    pub(crate) fn note(&self, key: &[u8], access: Access) {
        let chance = chance_of(self.requests.fetch_add(1, Ordering::Relaxed));
        if chance < self.closer_below {
            self.note_closer(chance, key, access);
        }
    }

    #[cold]
    fn note_closer(&self, chance: u64, key: &[u8], access: Access) {
        if chance < SAMPLED_BELOW {
            self.sample.lock().take(key);
        }
        if chance < self.heat.noted_below() {
            self.heat.note(key, access);
        }
    }

    /// The serial section was held for so long. Only its holder reports this.
    pub(crate) fn note_serial_section(&self, held_for: Duration) {
        self.serial_section_ns.fetch_add(held_for.as_nanos() as u64, Ordering::Relaxed);
    }

    /// How long the serial section was held so far.
    pub(crate) fn serial_section_held_for(&self) -> Duration {
        Duration::from_nanos(self.serial_section_ns.load(Ordering::Relaxed))
    }

    /// Ends a round at `now` (monotonic) and begins the next.
    pub(crate) fn end_round(&self, now: Duration, bounds: HeatBounds) -> LoadReport {
        let requests = self.requests.load(Ordering::Relaxed);
        let mut sample = self.sample.lock();
        let next = Round { started_at: now, requests_before: requests };
        let Some(round) = sample.round else {
            sample.round = Some(next);
            return LoadReport::default();
        };
        let took = now.saturating_sub(round.started_at);
        if took < ROUND_MIN {
            return LoadReport { trend: sample.trend, ..LoadReport::default() };
        }
        let rate = u128::from(requests - round.requests_before) * 1_000_000 / took.as_micros();
        let requests_per_second = u64::try_from(rate).unwrap_or(u64::MAX);
        let at_end_percent = sample.beyond * 100 / sample.taken.max(1);
        sample.trend = sample.trend.after(requests_per_second, bounds);
        (sample.round, sample.taken, sample.beyond) = (Some(next), 0, 0);
        sample.last = LoadReport { requests_per_second, at_end_percent, trend: sample.trend };
        sample.last
    }

    /// The result of the last round, and all requests since the range was opened. Ends no round.
    pub(crate) fn last_round(&self) -> (LoadReport, u64) {
        (self.sample.lock().last, self.requests.load(Ordering::Relaxed))
    }

    /// The sampled keys, each as one request.
    pub(crate) fn sampled_keys(&self) -> Vec<(Bytes, u64)> {
        self.sample.lock().keys.iter().map(|key| (key.clone(), 1)).collect()
    }
}

/// Below which chance a request is sampled.
const SAMPLED_BELOW: u64 = u64::MAX / SAMPLE_ONE_IN;

/// A number for the request with this number, any 64 bits with the same chance. Not every sixteenth request
/// is sampled: those that go round and round over some partition names would show one of them only.
fn chance_of(number: u64) -> u64 {
    splitmix64(&mut number.wrapping_mul(SPLITMIX64_STEP))
}

impl Sample {
    fn take(&mut self, key: &[u8]) {
        let key = Bytes::copy_from_slice(key);
        self.taken += 1;
        if key > self.highest {
            self.beyond += 1;
            self.highest = key.clone();
        }
        if self.keys.len() == SAMPLE_COUNT_MAX {
            self.keys.pop_front();
        }
        self.keys.push_back(key);
    }
}

impl Trend {
    /// The trend after a round with this rate.
    fn after(self, requests_per_second: u64, bounds: HeatBounds) -> Trend {
        let next = |rounds: u32, goes_on: bool| if goes_on { rounds.saturating_add(1) } else { 0 };
        Trend {
            hot_rounds: next(self.hot_rounds, requests_per_second >= bounds.hot_from),
            cold_rounds: next(self.cold_rounds, requests_per_second < bounds.cold_below),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const BOUNDS: HeatBounds = HeatBounds { hot_from: 100, cold_below: 10 };

    fn load() -> RangeLoad {
        RangeLoad::new(RangeHeat::new(Arc::new(base::system::SystemClock::new()), 4, Arc::default()))
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn rates_and_trends_follow_the_rounds() {
        let load = load();
        assert_eq!(load.end_round(seconds(0), BOUNDS), LoadReport::default(), "the first round has no start");
        (0..400).for_each(|_| load.note(b"k", Access::Read));
        let hot = load.end_round(seconds(2), BOUNDS);
        assert_eq!((hot.requests_per_second, hot.trend), (200, Trend { hot_rounds: 1, cold_rounds: 0 }));
        load.note(b"k", Access::Read);
        assert_eq!(load.last_round(), (hot, 401), "looking ends no round");
        let cold = load.end_round(seconds(3), BOUNDS);
        assert_eq!((cold.requests_per_second, cold.trend), (1, Trend { hot_rounds: 0, cold_rounds: 1 }));
        assert_eq!(load.end_round(seconds(3), BOUNDS).trend, cold.trend, "too short a round changes nothing");
    }

    /// Of requests that went round over eight partition names, only the first one's were sampled: no key
    /// parted them.
    #[test]
    fn a_sample_of_requests_that_go_round_shows_all_of_them() {
        for names in 1..=64u64 {
            let mut seen = vec![0u64; names as usize];
            let count = 64 * SAMPLE_ONE_IN * names;
            (0..count)
                .filter(|number| chance_of(*number) < SAMPLED_BELOW)
                .for_each(|number| seen[(number % names) as usize] += 1);
            assert!(seen.iter().all(|seen| (16..=256).contains(seen)), "{names} names: {seen:?}");
        }
    }

    #[test]
    fn one_request_in_so_many_is_noted_for_operators_whatever_else_is_sampled() {
        let load = load();
        (0..40_000u32).for_each(|_| load.note(b"k", Access::Write));
        let noted = load.heat.noted(0).map_or(0, |noted| noted.buckets[0].tally.writes);
        assert!((9_500..10_500).contains(&noted), "{noted}");
    }

    #[test]
    fn the_sample_is_bounded_and_tells_appends_from_updates() {
        let load = load();
        load.end_round(seconds(0), BOUNDS);
        for number in 0..100_000u32 {
            load.note(&number.to_be_bytes(), Access::Write);
        }
        assert_eq!(load.sampled_keys().len(), SAMPLE_COUNT_MAX);
        assert!(load.end_round(seconds(1), BOUNDS).at_end_percent > 95);
        for number in 0..1000u32 {
            load.note(&(number % 100).to_be_bytes(), Access::Write);
        }
        assert_eq!(load.end_round(seconds(2), BOUNDS).at_end_percent, 0);
    }
}
