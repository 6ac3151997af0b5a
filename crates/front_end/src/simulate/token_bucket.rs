//! A token bucket that holds the tokens of one second and is refilled continuously, as one instant: when it
//! will be full again.
//!
//! ```text
//! full_at <= now                full
//! full_at == now + BURST_FOR    empty
//! full_at >  now + BURST_FOR    in debt: something was taken whose cost was known only afterwards
//! ```
//!
//! What always holds: what is admitted in any span of time costs at most the span's tokens and those of
//! [`BURST_FOR`]; a refusal takes nothing; a bucket that was left alone for long enough equals a new one.

use std::num::NonZeroU64;
use std::time::Duration;

/// How much time's tokens a bucket holds.
pub(crate) const BURST_FOR: Duration = Duration::from_secs(1);

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// A bucket; a new one is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenBucket {
    /// When it is full again, in monotonic time.
    full_at: Duration,
}

/// The time in which a bucket gets `cost` tokens, rounded down, so that a second's tokens never take longer.
pub(crate) fn refill_for(cost: u64, rate_per_second: NonZeroU64) -> Duration {
    let nanos = u128::from(cost) * NANOS_PER_SECOND / u128::from(rate_per_second.get());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

impl TokenBucket {
    /// Whether it has `cost` tokens. What costs more than a full bucket holds is admitted by a full one.
    pub(crate) fn admits(self, now: Duration, cost: u64, rate_per_second: NonZeroU64) -> bool {
        self.missing(now) + refill_for(cost, rate_per_second).min(BURST_FOR) <= BURST_FOR
    }

    /// Whether it has any token: enough for what costs as much as will be known only afterwards.
    pub(crate) fn has_any(self, now: Duration) -> bool {
        self.missing(now) < BURST_FOR
    }

    /// Takes `cost` tokens, whether it has them or not.
    pub(crate) fn take(&mut self, now: Duration, cost: u64, rate_per_second: NonZeroU64) {
        self.take_for(now, refill_for(cost, rate_per_second));
    }

    /// Takes the tokens of so much time, whether it has them or not.
    pub(crate) fn take_for(&mut self, now: Duration, refill_for: Duration) {
        self.full_at = self.full_at.max(now).saturating_add(refill_for);
    }

    /// Whether it equals a new one.
    pub(crate) fn is_full(self, now: Duration) -> bool {
        self.full_at <= now
    }

    fn missing(self, now: Duration) -> Duration {
        self.full_at.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(rate_per_second: u64) -> NonZeroU64 {
        NonZeroU64::new(rate_per_second).expect("a rate")
    }

    #[test]
    fn what_is_admitted_when() {
        // Rate, then requests: instant in milliseconds, cost, whether it is admitted.
        type Requests = &'static [(u64, u64, bool)];
        let table: [(u64, Requests); 6] = [
            (10, &[(0, 10, true), (0, 1, false), (99, 1, false), (100, 1, true), (100, 1, false)]),
            // A refusal takes nothing.
            (10, &[(0, 8, true), (0, 3, false), (0, 2, true), (0, 1, false)]),
            // A batch takes as many as it has entities.
            (2000, &[(0, 1900, true), (0, 100, true), (49, 100, false), (50, 100, true)]),
            // No more is kept than a second's tokens.
            (10, &[(0, 10, true), (60_000, 10, true), (60_000, 1, false)]),
            // More than a bucket holds: admitted when full, and paid for afterwards.
            (10, &[(0, 25, true), (1500, 1, false), (1600, 1, true), (1600, 25, false), (2600, 25, true)]),
            (1, &[(0, 1, true), (999, 1, false), (1000, 1, true)]),
        ];
        for (index, (per_second, requests)) in table.into_iter().enumerate() {
            let mut bucket = TokenBucket::default();
            for &(at_ms, cost, expected) in requests {
                let now = Duration::from_millis(at_ms);
                let admitted = bucket.admits(now, cost, rate(per_second));
                assert_eq!(admitted, expected, "table row {index}, {cost} at {at_ms} ms");
                if admitted {
                    bucket.take(now, cost, rate(per_second));
                }
            }
        }
    }

    #[test]
    fn a_second_has_all_of_its_tokens_where_they_take_no_whole_nanoseconds() {
        for per_second in [3, 7, 12, 3000, 60 << 20] {
            let mut bucket = TokenBucket::default();
            let now = Duration::from_secs(1);
            let mut admitted = 0;
            while admitted < per_second.min(5000) && bucket.admits(now, 1, rate(per_second)) {
                bucket.take(now, 1, rate(per_second));
                admitted += 1;
            }
            assert_eq!(admitted, per_second.min(5000));
        }
    }

    #[test]
    fn debts_are_paid_before_anything_is_admitted() {
        let mut bucket = TokenBucket::default();
        assert!(bucket.has_any(Duration::ZERO));
        bucket.take(Duration::ZERO, 1000, rate(100));
        assert!(!bucket.has_any(Duration::from_secs(9)));
        assert!(bucket.has_any(Duration::from_millis(9_001)));
        assert!(!bucket.is_full(Duration::from_millis(9_999)) && bucket.is_full(Duration::from_secs(10)));
        bucket.take(Duration::ZERO, u64::MAX, rate(1));
        assert!(!bucket.has_any(Duration::from_secs(u64::from(u32::MAX))), "no overflow");
    }

    proptest! {
        /// However requests come, what is admitted stays below the rate, and a client that always requests
        /// gets it.
        #[test]
        fn no_span_admits_more_than_its_tokens(
            per_second in 1u64..5000,
            requests in prop::collection::vec((0u64..400_000, 1u64..200), 1..300),
        ) {
            let rate = rate(per_second);
            let mut bucket = TokenBucket::default();
            let mut now = Duration::ZERO;
            let mut admitted: Vec<(Duration, u64)> = Vec::new();
            for (after_micros, cost) in requests {
                now += Duration::from_micros(after_micros);
                if cost <= per_second && bucket.admits(now, cost, rate) {
                    bucket.take(now, cost, rate);
                    admitted.push((now, cost));
                }
            }
            for (first, &(from, _)) in admitted.iter().enumerate() {
                let mut cost = 0;
                for &(until, more) in &admitted[first..] {
                    cost += more;
                    let tokens = ((until - from) + BURST_FOR).as_secs_f64() * per_second as f64;
                    prop_assert!(cost as f64 <= tokens + 1e-2, "{cost} of {tokens} from {from:?} to {until:?}");
                }
            }
        }

        #[test]
        fn steady_demand_gets_the_rate(per_second in 1u64..3000, cost in 1u64..20) {
            prop_assume!(cost <= per_second);
            let rate = rate(per_second);
            let mut bucket = TokenBucket::default();
            let mut admitted = 0;
            let step = refill_for(1, rate);
            let mut now = Duration::ZERO;
            while now < Duration::from_secs(10) {
                while bucket.admits(now, cost, rate) {
                    bucket.take(now, cost, rate);
                    admitted += cost;
                }
                now += step;
            }
            let expected = 11 * per_second;
            prop_assert!(admitted <= expected + cost && admitted + 2 * cost + 11 >= expected, "{admitted} of {expected}");
        }
    }
}
