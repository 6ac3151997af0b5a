//! Named policies: what well-known clients of Azure Storage do when nothing is set.
//!
//! | name | waits before the retries, 3 each | retried statuses |
//! |---|---|---|
//! | `none` | – | – |
//! | `storage-1` | 3 s + (2^x − 1) · 30 s ± 20 %, at most 90 s | no 4xx |
//! | `storage-11` | 3 s + (2^x − 1) · 4 s ± 20 %, at most 120 s | 408, 5xx |
//! | `python-storage` | 15 s + 3^(x+1) s ± 3 s | 408, 5xx |
//! | `python-tables` | none, then 0.8 s · 2^x, at most 120 s | usual |
//! | `javascript-storage` | (2^x − 1) · 4 s, at most 120 s | 500, 503 |
//! | `javascript-tables` | 1 s · 2^x · 50 to 100 %, at most 64 s | usual |
//! | `dotnet` | 0.8 s · 2^x · 80 to 120 %, at most 60 s | usual |
//!
//! Sources, as of 2026-11-27:
//!
//! * `storage-1`: .NET `Microsoft.WindowsAzure.StorageClient` 1.x, `RetryPolicies`: `DefaultMinBackoff`,
//!   `DefaultClientBackoff`, `DefaultMaxBackoff`, `DefaultClientRetryCount`.
//! * `storage-11`: .NET `Microsoft.Azure.Storage` 11, `ExponentialRetry.cs`. Its `maxAttempts` of 3 counts
//!   retries: a count of 0 "signifies the first error".
//! * `python-storage`: azure-storage-blob 12.31.1, `_shared/policies.py`, `ExponentialRetry`. Its counter is
//!   raised before the wait, so the first wait is about 18 s, not the 15 s of its text.
//! * `python-tables`: azure-core 1.41.0, `_retry.py`: `get_backoff_time`, and `retry_status` of 3.
//! * `javascript-storage`: @azure/storage-common 12.5.0, `StorageRetryPolicyV2.js`, `maxTries` of 4.
//! * `javascript-tables`: @typespec/ts-http-runtime 0.3.6, which @azure/data-tables 13.1.2 uses:
//!   `exponentialRetryStrategy.js`, `delay.js`, `constants.js`.
//! * `dotnet`: Azure.Core, `RetryOptions.cs` and its exponential `DelayStrategy`.
//!
//! x counts from 0. "Usual" is [`RETRIED_STATUSES`]. The clients retry requests that are not idempotent, too,
//! so these profiles do; `Policy::retries_not_idempotent` can be cleared. What is not imitated: waits of the
//! JavaScript storage client after an answer of the secondary (up to 1 s by chance), and the time that the
//! other location took, which storage 11 takes off a wait.

use crate::backoff::Backoff;
use crate::classify::RETRIED_STATUSES;
use crate::policy::Policy;
use std::time::Duration;

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

const fn profile(backoff: Backoff, statuses: &'static [u16]) -> Policy {
    let mut policy = Policy::of(backoff, 3).retrying_all();
    policy.statuses = statuses;
    policy
}

const SERVER_ERRORS: &[u16] = &[500, 502, 503, 504];
const TIMEOUT_AND_SERVER_ERRORS: &[u16] = &[408, 500, 502, 503, 504];

/// All profiles by name.
pub const PROFILES: [(&str, Policy); 8] = [
    ("none", Policy::of(Backoff::Linear { wait: Duration::ZERO, spread: Duration::ZERO }, 0)),
    (
        "storage-1",
        profile(
            Backoff::Exponential {
                z_min: seconds(3),
                z: seconds(30),
                z_max: seconds(90),
                spread_percent: 20,
            },
            SERVER_ERRORS,
        ),
    ),
    (
        "storage-11",
        profile(
            Backoff::Exponential {
                z_min: seconds(3),
                z: seconds(4),
                z_max: seconds(120),
                spread_percent: 20,
            },
            TIMEOUT_AND_SERVER_ERRORS,
        ),
    ),
    (
        "python-storage",
        profile(
            Backoff::Powers { start: seconds(15), base_s: 3, spread: seconds(3), max: seconds(3600) },
            TIMEOUT_AND_SERVER_ERRORS,
        ),
    ),
    (
        "python-tables",
        profile(
            Backoff::Doubling {
                first: Duration::from_millis(800),
                max: seconds(120),
                percent: (100, 100),
                is_first_at_once: true,
            },
            RETRIED_STATUSES,
        ),
    ),
    (
        "javascript-storage",
        profile(
            Backoff::Exponential {
                z_min: Duration::ZERO,
                z: seconds(4),
                z_max: seconds(120),
                spread_percent: 0,
            },
            &[500, 503],
        ),
    ),
    (
        "javascript-tables",
        profile(
            Backoff::Doubling {
                first: seconds(1),
                max: seconds(64),
                percent: (50, 100),
                is_first_at_once: false,
            },
            RETRIED_STATUSES,
        ),
    ),
    (
        "dotnet",
        profile(
            Backoff::Doubling {
                first: Duration::from_millis(800),
                max: seconds(60),
                percent: (80, 120),
                is_first_at_once: false,
            },
            RETRIED_STATUSES,
        ),
    ),
];

impl Policy {
    /// The profile of that name; [`PROFILES`] has all of them.
    pub fn named(name: &str) -> Option<Policy> {
        PROFILES.iter().find(|(one, _)| *one == name).map(|(_, policy)| *policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attempt, Decision, Outcome, Request};

    /// Waits of a profile in milliseconds, with the least and the greatest chance.
    fn waits(name: &str) -> (Vec<u128>, Vec<u128>) {
        let policy = Policy::named(name).expect("a profile");
        let of = |draw| {
            let mut attempt = Attempt::first(Request { is_idempotent: false, has_secondary: false });
            let mut waits = Vec::new();
            while let Decision::Retry { after, next } =
                policy.decide(&attempt, &Outcome::status(503), Duration::ZERO, draw)
            {
                waits.push(after.as_millis());
                attempt = next;
            }
            waits
        };
        (of(0), of(u64::MAX))
    }

    #[test]
    fn profiles_wait_as_their_clients_do() {
        let case = |name, low: &[u128], high: &[u128]| {
            assert_eq!(waits(name), (low.to_vec(), high.to_vec()), "{name}");
        };
        case("none", &[], &[]);
        case("storage-1", &[3_000, 27_000, 75_000], &[3_000, 39_000, 90_000]);
        case("storage-11", &[3_000, 6_200, 12_600], &[3_000, 7_800, 17_400]);
        case("python-storage", &[15_000, 21_000, 39_000], &[21_000, 27_000, 45_000]);
        case("python-tables", &[0, 1_600, 3_200], &[0, 1_600, 3_200]);
        case("javascript-storage", &[0, 4_000, 12_000], &[0, 4_000, 12_000]);
        case("javascript-tables", &[500, 1_000, 2_000], &[1_000, 2_000, 4_000]);
        case("dotnet", &[640, 1_280, 2_560], &[960, 1_920, 3_840]);
        assert_eq!(Policy::named("storage"), None);
    }

    #[test]
    fn profiles_retry_the_statuses_of_their_clients() {
        let retried = |name: &str| {
            let policy = Policy::named(name).expect("a profile");
            let attempt = Attempt::first(Request { is_idempotent: true, has_secondary: false });
            let is_retried = |status: &u16| {
                let decision = policy.decide(&attempt, &Outcome::status(*status), Duration::ZERO, 0);
                matches!(decision, Decision::Retry { .. })
            };
            [400, 404, 408, 409, 412, 429, 500, 501, 502, 503, 504, 505]
                .into_iter()
                .filter(is_retried)
                .collect::<Vec<u16>>()
        };
        assert_eq!(retried("storage-1"), [500, 502, 503, 504]);
        assert_eq!(retried("storage-11"), [408, 500, 502, 503, 504]);
        assert_eq!(retried("python-storage"), [408, 500, 502, 503, 504]);
        assert_eq!(retried("javascript-storage"), [500, 503]);
        for usual in ["python-tables", "javascript-tables", "dotnet"] {
            assert_eq!(retried(usual), RETRIED_STATUSES, "{usual}");
        }
    }
}
