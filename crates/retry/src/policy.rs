//! The decision after a failed attempt: again, where and after what wait, or not, and why not.
//!
//! A request alternates between its locations if it has a secondary: a location that was not tried yet is
//! tried at once, one that was is tried after the policy's wait. A wait that an answer names concerns the
//! location that answered. A 404 of the secondary sends the request to the primary for good.
//!
//! What always holds: see the crate's header.

use crate::backoff::Backoff;
use crate::classify::{Class, Location, Outcome};
use std::fmt;
use std::time::Duration;

/// How a client retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The waits.
    pub backoff: Backoff,
    /// Attempts after the first one, at most.
    pub retries_max: u32,
    /// Statuses that are retried.
    pub statuses: &'static [u16],
    /// The time from the start of the first attempt in which the last one must begin; none is no limit.
    pub budget: Option<Duration>,
    /// Requests that are not idempotent are sent again though they may have been done.
    pub retries_not_idempotent: bool,
    /// The longest wait that an answer may ask for. Beyond it the answer is the result.
    pub retry_after_max: Duration,
}

/// What [`Policy::retry_after_max`] is unless it is set.
pub const RETRY_AFTER_FOR_MAX: Duration = Duration::from_secs(300);

/// What a retry has to know of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Doing it twice has no other effect than doing it once.
    pub is_idempotent: bool,
    /// It is a read of an account that has a secondary endpoint which may be read.
    pub has_secondary: bool,
}

/// Whether an attempt may go to the secondary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secondary {
    /// There is none, or this request must not go there, or it did not have what was asked for.
    No,
    /// It was not tried yet.
    Untried,
    /// It was tried.
    Tried,
}

/// One attempt of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// 1 for the first.
    pub number: u32,
    /// Where it is sent.
    pub location: Location,
    /// Where the next one may be sent.
    pub secondary: Secondary,
    /// See [`Request::is_idempotent`].
    pub is_idempotent: bool,
}

impl Attempt {
    /// The first attempt of a request: at the primary.
    pub fn first(request: Request) -> Self {
        Attempt {
            number: 1,
            location: Location::Primary,
            secondary: if request.has_secondary { Secondary::Untried } else { Secondary::No },
            is_idempotent: request.is_idempotent,
        }
    }

    /// The attempt after this one, and whether its location was tried before.
    fn next(&self, class: Class) -> (Attempt, bool) {
        let number = self.number.saturating_add(1);
        let mut next = Attempt { number, ..*self };
        match (self.location, self.secondary) {
            (Location::Secondary, secondary) => {
                next.location = Location::Primary;
                next.secondary = if class == Class::NotReplicated { Secondary::No } else { secondary };
                (next, true)
            }
            (Location::Primary, Secondary::No) => (next, true),
            (Location::Primary, secondary) => {
                next.location = Location::Secondary;
                next.secondary = Secondary::Tried;
                (next, secondary == Secondary::Tried)
            }
        }
    }
}

/// What follows a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Wait, then make this attempt.
    Retry {
        /// How long to wait.
        after: Duration,
        /// The attempt to make.
        next: Attempt,
    },
    /// The outcome is the result.
    GiveUp(Reason),
}

/// Why there is no further attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Another attempt would end the same way.
    Final,
    /// The request may have been done, and doing it twice would differ.
    NotIdempotent,
    /// All attempts were made.
    RetriesExhausted,
    /// The next attempt would begin after the end of the budget.
    BudgetExhausted,
    /// The service asked for a longer wait than the policy allows.
    RetryAfterTooLong,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Final => "it would fail again",
            Reason::NotIdempotent => "it may have been done, and is not repeatable",
            Reason::RetriesExhausted => "all retries were made",
            Reason::BudgetExhausted => "the time for retries is over",
            Reason::RetryAfterTooLong => "the service asks for a longer wait than the policy allows",
        })
    }
}

impl Policy {
    /// No retries at all.
    pub fn none() -> Self {
        Policy::linear(Duration::ZERO, 0)
    }

    /// Up to `retries_max` retries, each after `wait`.
    pub fn linear(wait: Duration, retries_max: u32) -> Self {
        Policy::of(Backoff::Linear { wait, spread: Duration::ZERO }, retries_max)
    }

    /// Up to `retries_max` retries after waits of
    /// `min(z_min + (2^x − 1) · rand(0.8 · z, 1.2 · z), z_max)`, x from 0.
    pub fn exponential(z_min: Duration, z: Duration, z_max: Duration, retries_max: u32) -> Self {
        Policy::of(Backoff::Exponential { z_min, z, z_max, spread_percent: 20 }, retries_max)
    }

    /// With the usual statuses, without a budget, for idempotent requests only.
    pub const fn of(backoff: Backoff, retries_max: u32) -> Self {
        Policy {
            backoff,
            retries_max,
            statuses: crate::RETRIED_STATUSES,
            budget: None,
            retries_not_idempotent: false,
            retry_after_max: RETRY_AFTER_FOR_MAX,
        }
    }

    /// The same policy with a total budget of time.
    pub const fn within(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }

    /// The same policy for requests that are not idempotent, too.
    pub const fn retrying_all(mut self) -> Self {
        self.retries_not_idempotent = true;
        self
    }

    /// What follows `attempt`, which ended with `outcome` when `elapsed` had passed since the first attempt
    /// began. `draw` are 64 random bits.
    pub fn decide(&self, attempt: &Attempt, outcome: &Outcome, elapsed: Duration, draw: u64) -> Decision {
        let class = outcome.classify(attempt.location, self.statuses);
        match class {
            Class::Final => return Decision::GiveUp(Reason::Final),
            Class::Transient { may_be_done: true }
                if !attempt.is_idempotent && !self.retries_not_idempotent =>
            {
                return Decision::GiveUp(Reason::NotIdempotent);
            }
            Class::Transient { .. } | Class::NotReplicated => {}
        }
        let retries_before = attempt.number.saturating_sub(1);
        if retries_before >= self.retries_max {
            return Decision::GiveUp(Reason::RetriesExhausted);
        }
        let (next, was_tried) = attempt.next(class);
        let mut after = if was_tried { self.backoff.wait(retries_before, draw) } else { Duration::ZERO };
        if let Some(named) = outcome.retry_after().filter(|_| next.location == attempt.location) {
            if named > self.retry_after_max {
                return Decision::GiveUp(Reason::RetryAfterTooLong);
            }
            after = after.max(named);
        }
        if self.budget.is_some_and(|budget| elapsed.saturating_add(after) >= budget) {
            return Decision::GiveUp(Reason::BudgetExhausted);
        }
        Decision::Retry { after, next }
    }
}

#[cfg(test)]
mod tests;
