//! Whether the cached map serves, and when a read of the home may begin: pure.

use super::settings::MapSettings;
use std::time::Duration;

/// What to do with a request for a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadChoice {
    /// The cached map serves.
    Use,
    /// It serves, and a newer one is read beside.
    UseAndRead,
    /// A read is waited for.
    Read,
}

/// Chooses by the cached map's age, if there is one. `age_max` is what this request bears.
pub(crate) fn choose_read(age: Option<Duration>, age_max: Duration, settings: &MapSettings) -> ReadChoice {
    // A request that bears little has the next map read before this one is too old for it.
    let refresh_after = settings.refresh_after.min(age_max / 2);
    match age {
        Some(age) if age < refresh_after => ReadChoice::Use,
        Some(age) if age < age_max => ReadChoice::UseAndRead,
        _ => ReadChoice::Read,
    }
}

/// How long a read waits before it begins, so that reads keep their distance.
pub(crate) fn wait_before_read(
    last_began: Option<Duration>,
    now: Duration,
    interval_min: Duration,
) -> Duration {
    last_began.map_or(Duration::ZERO, |began| (began + interval_min).saturating_sub(now))
}

/// Whether a failure is still passed on without a read.
pub(crate) fn is_failure_fresh(failed_at: Option<Duration>, now: Duration, negative_for: Duration) -> bool {
    failed_at.is_some_and(|failed_at| now < failed_at + negative_for)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_old_map_serves_while_it_is_read_again_and_a_too_old_one_does_not() {
        let settings = MapSettings { refresh_after: s(30), ..MapSettings::default() };
        for (age, age_max, expected) in [
            (None, s(1000), ReadChoice::Read),
            (Some(s(0)), s(1000), ReadChoice::Use),
            (Some(s(29)), s(1000), ReadChoice::Use),
            (Some(s(30)), s(1000), ReadChoice::UseAndRead),
            (Some(s(999)), s(1000), ReadChoice::UseAndRead),
            (Some(s(1000)), s(1000), ReadChoice::Read),
            // What bears 10 s has a newer map read from 5 s on.
            (Some(s(4)), s(10), ReadChoice::Use),
            (Some(s(5)), s(10), ReadChoice::UseAndRead),
            (Some(s(10)), s(10), ReadChoice::Read),
            (Some(s(0)), s(0), ReadChoice::Read),
        ] {
            assert_eq!(choose_read(age, age_max, &settings), expected, "{age:?} {age_max:?}");
        }
    }

    #[test]
    fn reads_keep_their_distance_and_failures_are_passed_on_for_a_while() {
        assert_eq!(wait_before_read(None, s(5), s(2)), s(0));
        assert_eq!(wait_before_read(Some(s(4)), s(5), s(2)), s(1));
        assert_eq!(wait_before_read(Some(s(4)), s(7), s(2)), s(0));
        assert!(!is_failure_fresh(None, s(5), s(2)));
        assert!(is_failure_fresh(Some(s(4)), s(5), s(2)));
        assert!(!is_failure_fresh(Some(s(4)), s(6), s(2)));
    }
}
