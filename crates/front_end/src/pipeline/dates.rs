//! `Date` after the clock was set back.
//!
//! The HTTP library adds the header, and keeps its text until the wall clock has gone on: after the clock was
//! set back it would be returned unchanged until that has caught up. What always holds: a date is made here
//! only for that span.

use base::Ticks;
use hyper::header::HeaderValue;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

/// The latest second that an answer was made in.
#[derive(Default)]
pub(crate) struct Dates {
    latest_second: AtomicU64,
}

impl Dates {
    /// The header's value, if the clock was further once.
    pub(super) fn date_if_set_back(&self, now: Ticks) -> Option<HeaderValue> {
        let since_epoch = now.since_unix();
        let second = since_epoch.as_secs();
        let latest = self.latest_second.load(Ordering::Relaxed);
        if second >= latest {
            // Once a second: others need not take the line of memory from each other.
            if second > latest {
                self.latest_second.fetch_max(second, Ordering::Relaxed);
            }
            return None;
        }
        HeaderValue::from_str(&httpdate::fmt_http_date(UNIX_EPOCH + since_epoch)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use service::parse_date_time;

    /// Answers kept the date of the moment in which the clock was set back.
    #[test]
    fn a_date_is_made_while_the_clock_is_behind_itself() {
        let dates = Dates::default();
        let at = |text| dates.date_if_set_back(parse_date_time(text).expect("a time"));
        assert_eq!(at("2026-11-21T09:00:00Z"), None);
        assert_eq!(at("2026-11-21T09:00:00.5Z"), None);
        assert_eq!(at("2026-11-21T08:00:00Z").expect("a date"), "Sat, 21 Nov 2026 08:00:00 GMT");
        assert_eq!(at("2026-11-21T08:59:59Z").expect("a date"), "Sat, 21 Nov 2026 08:59:59 GMT");
        assert_eq!(at("2026-11-21T09:00:00Z"), None);
        assert_eq!(at("2026-11-21T09:00:01Z"), None);
    }
}
