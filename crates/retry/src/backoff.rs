//! How long to wait before a retry.
//!
//! ```text
//! x                 retries before this one: 0 for the first retry
//! rand(a, b)        a number between a and b, from the 64 bits that are handed in
//!
//! Linear            wait ± spread
//! Exponential       min(z_min + (2^x − 1) · rand((100 − p)% · z, (100 + p)% · z), z_max)
//! Doubling          min(first · 2^x, max) · rand(low%, high%), but the first at once if so chosen
//! Powers            start + base^(x + 1) seconds ± spread
//! ```
//!
//! What always holds: a wait is at most [`Backoff::wait_max`]; with the same bits a later retry waits at
//! least as long as an earlier one; nothing overflows.

use std::time::Duration;

/// A formula of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// About the same wait before each retry.
    Linear {
        /// The middle of the wait.
        wait: Duration,
        /// How far it may be from the middle, both ways.
        spread: Duration,
    },
    /// Waits that grow with powers of two from a least wait, with chance in what is added.
    Exponential {
        /// The wait before the first retry, and the least of all.
        z_min: Duration,
        /// What grows.
        z: Duration,
        /// The longest wait.
        z_max: Duration,
        /// How far what grows is from `z`, in percent; at most 100.
        spread_percent: u32,
    },
    /// Waits that double, with chance in all of them.
    Doubling {
        /// The first wait before chance.
        first: Duration,
        /// The longest wait.
        max: Duration,
        /// Least and most of the wait, in percent.
        percent: (u32, u32),
        /// The first retry follows at once, the second waits twice `first`.
        is_first_at_once: bool,
    },
    /// A start and powers of a base.
    Powers {
        /// The part that stays.
        start: Duration,
        /// The base of the power, which counts seconds.
        base_s: u32,
        /// How far the wait may be from the middle, both ways.
        spread: Duration,
        /// The longest wait.
        max: Duration,
    },
}

/// Powers of two that are still counted: 2^63 ns are 292 years.
const EXPONENT_MAX: u32 = 63;

impl Backoff {
    /// The wait before a retry that has `retries_before` before it; `draw` are random bits.
    pub fn wait(&self, retries_before: u32, draw: u64) -> Duration {
        let x = retries_before.min(EXPONENT_MAX);
        let wait_ns = match *self {
            Backoff::Linear { wait, spread } => around(nanos(wait), nanos(spread), draw),
            Backoff::Exponential { z_min, z, z_max, spread_percent } => {
                let spread = percent(nanos(z), spread_percent.min(100));
                let step = around(nanos(z), spread, draw);
                let grown = ((1u128 << x) - 1).saturating_mul(step);
                nanos(z_min).saturating_add(grown).min(nanos(z_max))
            }
            Backoff::Doubling { is_first_at_once: true, .. } if x == 0 => 0,
            Backoff::Doubling { first, max, percent: (low, high), .. } => {
                let middle = nanos(first).saturating_mul(1u128 << x).min(nanos(max));
                let low = percent(middle, low);
                between(low, percent(middle, high).max(low), draw).min(nanos(max))
            }
            Backoff::Powers { start, base_s, spread, max } => {
                let power = u128::from(base_s).saturating_pow(x + 1).saturating_mul(NANOS_PER_SECOND);
                around(nanos(start).saturating_add(power).min(nanos(max)), nanos(spread), draw)
                    .min(nanos(max))
            }
        };
        from_nanos(wait_ns)
    }

    /// The longest wait that [`Backoff::wait`] gives.
    pub fn wait_max(&self) -> Duration {
        match *self {
            Backoff::Linear { wait, spread } => {
                from_nanos(nanos(wait).saturating_add(nanos(spread).min(nanos(wait))))
            }
            Backoff::Exponential { z_max, .. } => from_nanos(nanos(z_max)),
            Backoff::Doubling { max, .. } | Backoff::Powers { max, .. } => from_nanos(nanos(max)),
        }
    }
}

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Nanoseconds, at most what 64 bits hold: 584 years.
fn nanos(span: Duration) -> u128 {
    span.as_nanos().min(u128::from(u64::MAX))
}

fn from_nanos(span_ns: u128) -> Duration {
    Duration::from_nanos(u64::try_from(span_ns).unwrap_or(u64::MAX))
}

fn percent(span_ns: u128, percent: u32) -> u128 {
    span_ns.saturating_mul(u128::from(percent)) / 100
}

/// A number from `low` to `high`, both possible; `low` is not above `high`.
fn between(low: u128, high: u128, draw: u64) -> u128 {
    // Below 2^64, so the product fits.
    let span = (high - low).min(u128::from(u64::MAX));
    low + (((span + 1) * u128::from(draw)) >> 64)
}

/// A number from `middle - spread` to `middle + spread`, never below zero: a spread beyond the middle counts
/// as the middle.
fn around(middle: u128, spread: u128, draw: u64) -> u128 {
    let spread = spread.min(middle);
    between(middle - spread, middle + spread, draw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LOWEST: u64 = 0;
    const HIGHEST: u64 = u64::MAX;

    fn seconds(of: &Backoff, draw: u64) -> Vec<f64> {
        (0..5).map(|x| (of.wait(x, draw).as_secs_f64() * 1000.0).round() / 1000.0).collect()
    }

    /// The formula of the issue, with both ends of its chance.
    #[test]
    fn exponential_waits_are_those_of_the_formula() {
        let storage_1 = Backoff::Exponential {
            z_min: Duration::from_secs(3),
            z: Duration::from_secs(30),
            z_max: Duration::from_secs(90),
            spread_percent: 20,
        };
        assert_eq!(seconds(&storage_1, LOWEST), [3.0, 27.0, 75.0, 90.0, 90.0]);
        assert_eq!(seconds(&storage_1, HIGHEST), [3.0, 39.0, 90.0, 90.0, 90.0]);
        let storage_11 = Backoff::Exponential {
            z_min: Duration::from_secs(3),
            z: Duration::from_secs(4),
            z_max: Duration::from_secs(120),
            spread_percent: 20,
        };
        assert_eq!(seconds(&storage_11, LOWEST), [3.0, 6.2, 12.6, 25.4, 51.0]);
        assert_eq!(seconds(&storage_11, HIGHEST), [3.0, 7.8, 17.4, 36.6, 75.0]);
    }

    #[test]
    fn other_formulas_are_those_of_the_header() {
        let linear = Backoff::Linear { wait: Duration::from_secs(15), spread: Duration::from_secs(3) };
        assert_eq!(seconds(&linear, LOWEST), [12.0; 5]);
        assert_eq!(seconds(&linear, HIGHEST), [18.0; 5]);
        let wide = Backoff::Linear { wait: Duration::from_secs(2), spread: Duration::from_secs(3) };
        assert_eq!((seconds(&wide, LOWEST)[0], seconds(&wide, HIGHEST)[0]), (0.0, 4.0));
        let doubling = Backoff::Doubling {
            first: Duration::from_millis(800),
            max: Duration::from_secs(6),
            percent: (50, 100),
            is_first_at_once: false,
        };
        assert_eq!(seconds(&doubling, LOWEST), [0.4, 0.8, 1.6, 3.0, 3.0]);
        assert_eq!(seconds(&doubling, HIGHEST), [0.8, 1.6, 3.2, 6.0, 6.0]);
        let powers = Backoff::Powers {
            start: Duration::from_secs(15),
            base_s: 3,
            spread: Duration::from_secs(3),
            max: Duration::from_secs(100),
        };
        assert_eq!(seconds(&powers, LOWEST), [15.0, 21.0, 39.0, 93.0, 97.0]);
        assert_eq!(seconds(&powers, HIGHEST), [21.0, 27.0, 45.0, 99.0, 100.0]);
    }

    fn spans() -> impl Strategy<Value = Duration> {
        prop_oneof![
            (0..200_000u64).prop_map(Duration::from_millis),
            any::<u64>().prop_map(Duration::from_nanos),
            Just(Duration::MAX),
        ]
    }

    fn backoffs() -> impl Strategy<Value = Backoff> {
        prop_oneof![
            (spans(), spans()).prop_map(|(wait, spread)| Backoff::Linear { wait, spread }),
            (spans(), spans(), spans(), any::<u32>()).prop_map(|(z_min, z, z_max, spread_percent)| {
                Backoff::Exponential { z_min, z, z_max, spread_percent }
            }),
            (spans(), spans(), any::<(u32, u32)>(), any::<bool>()).prop_map(
                |(first, max, percent, is_first_at_once)| Backoff::Doubling {
                    first,
                    max,
                    percent,
                    is_first_at_once
                }
            ),
            (spans(), any::<u32>(), spans(), spans())
                .prop_map(|(start, base_s, spread, max)| Backoff::Powers { start, base_s, spread, max }),
        ]
    }

    proptest! {
        /// Bounds and the monotone cap, whatever the settings.
        #[test]
        fn no_wait_is_beyond_the_cap_and_later_ones_are_not_shorter(
            backoff in backoffs(), x in any::<u32>(), more in any::<u32>(), draw: u64,
        ) {
            let wait = backoff.wait(x, draw);
            prop_assert!(wait <= backoff.wait_max());
            // Bases 0 does not grow.
            if !matches!(backoff, Backoff::Powers { base_s: 0, .. }) {
                prop_assert!(backoff.wait(x.saturating_add(more), draw) >= wait);
            }
        }

        /// The formula's bounds, in floating point as it is written.
        #[test]
        fn an_exponential_wait_is_within_the_formula(
            z_min in 0..10_000u64, z in 0..60_000u64, z_max in 0..200_000u64, x in 0..12u32, draw: u64,
        ) {
            let ms = Duration::from_millis;
            let backoff =
                Backoff::Exponential { z_min: ms(z_min), z: ms(z), z_max: ms(z_max), spread_percent: 20 };
            let bound = |share: f64| {
                (z_min as f64 + (f64::from(x).exp2() - 1.0) * z as f64 * share).min(z_max as f64)
            };
            let wait = backoff.wait(x, draw).as_secs_f64() * 1000.0;
            prop_assert!(bound(0.8) - 0.01 <= wait && wait <= bound(1.2) + 0.01, "{wait}");
        }

        /// The spread: quarters of the random bits give the quarters of the range.
        #[test]
        fn waits_are_spread_evenly(z in 1..100_000u64, draw: u64) {
            let backoff = Backoff::Exponential {
                z_min: Duration::ZERO, z: Duration::from_millis(z), z_max: Duration::MAX, spread_percent: 20,
            };
            let wait = backoff.wait(1, draw).as_secs_f64() * 1000.0;
            let expected = z as f64 * (0.8 + 0.4 * (draw as f64 / u64::MAX as f64));
            prop_assert!((wait - expected).abs() < 0.001 * z as f64 + 0.001, "{wait} {expected}");
        }
    }
}
