//! Which outcomes of an attempt are worth another one.
//!
//! | outcome | retried | may have been done |
//! |---|---|---|
//! | no connection, nothing sent | yes | no |
//! | connection broken, or no answer in time | yes | yes |
//! | refused before any work (throttling: 429) | as its status | no |
//! | 408, 429, 500, 502, 503, 504 | yes, if the policy has the status | yes |
//! | 404 of the secondary | yes, at the primary: it may not be replicated yet | no |
//! | 501, 505, other statuses | no | – |
//!
//! What always holds: no status outside of the policy's own list is retried, but the secondary's 404.

use std::time::Duration;

/// Where a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// The account's own endpoint.
    Primary,
    /// Its read-only copy elsewhere.
    Secondary,
}

/// How an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No connection could be made, so nothing was sent.
    Unsent,
    /// The connection broke after something was sent and before the whole answer was there.
    Broken,
    /// No answer came in the time of an attempt.
    TimedOut,
    /// An answer came.
    Status {
        /// Its HTTP status.
        status: u16,
        /// The wait that it names; see [`crate::retry_after`].
        retry_after: Option<Duration>,
        /// The service refused the request before it did anything of it, as 429 says; 503 `ServerBusy` does
        /// not, on each service.
        is_refusal: bool,
    },
}

/// Statuses that are retried by default.
pub const RETRIED_STATUSES: &[u16] = &[408, 429, 500, 502, 503, 504];

const NOT_FOUND: u16 = 404;

/// What the outcome allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Another attempt would end the same way.
    Final,
    /// Another attempt may help; `may_be_done` says whether this one may have had its effect.
    Transient { may_be_done: bool },
    /// The secondary does not have it, so only the primary can say.
    NotReplicated,
}

impl Outcome {
    /// An answer with that status and without more.
    pub fn status(status: u16) -> Self {
        Outcome::Status { status, retry_after: None, is_refusal: false }
    }

    pub(crate) fn classify(&self, location: Location, retried_statuses: &[u16]) -> Class {
        match *self {
            Outcome::Unsent => Class::Transient { may_be_done: false },
            Outcome::Broken | Outcome::TimedOut => Class::Transient { may_be_done: true },
            Outcome::Status { status: NOT_FOUND, .. } if location == Location::Secondary => {
                Class::NotReplicated
            }
            Outcome::Status { status, is_refusal, .. } if retried_statuses.contains(&status) => {
                Class::Transient { may_be_done: !is_refusal }
            }
            Outcome::Status { .. } => Class::Final,
        }
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Outcome::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_classified() {
        let class = |status| Outcome::status(status).classify(Location::Primary, RETRIED_STATUSES);
        for status in [408, 429, 500, 502, 503, 504] {
            assert_eq!(class(status), Class::Transient { may_be_done: true }, "{status}");
        }
        for status in 100..=599 {
            if !RETRIED_STATUSES.contains(&status) {
                assert_eq!(class(status), Class::Final, "{status}");
            }
        }
    }

    #[test]
    fn outcomes_without_an_answer_and_refusals_are_classified() {
        let class = |outcome: Outcome, location| outcome.classify(location, RETRIED_STATUSES);
        let refusal = |status| Outcome::Status { status, retry_after: None, is_refusal: true };
        let done = Class::Transient { may_be_done: true };
        let not_done = Class::Transient { may_be_done: false };
        for (outcome, location, expected) in [
            (Outcome::Unsent, Location::Primary, not_done),
            (Outcome::Broken, Location::Primary, done),
            (Outcome::TimedOut, Location::Secondary, done),
            (refusal(503), Location::Primary, not_done),
            (refusal(429), Location::Secondary, not_done),
            (refusal(409), Location::Primary, Class::Final),
            (Outcome::status(404), Location::Primary, Class::Final),
            (Outcome::status(404), Location::Secondary, Class::NotReplicated),
            (Outcome::status(412), Location::Secondary, Class::Final),
            (Outcome::status(304), Location::Secondary, Class::Final),
        ] {
            assert_eq!(class(outcome, location), expected, "{outcome:?} {location:?}");
        }
    }
}
