//! The course of an operation over its attempts: whether it is sent again, after what wait, and what it has
//! come to.
//!
//! Both transports use it, so that their retries are the same. What always holds: an operation ends, because
//! `retry` bounds its attempts; the observer is called once, when it has ended, if there was a retry.

use crate::error::{Error, ErrorKind, Failure};
use crate::retry_observer::RepeatedAttempt;
use crate::settings::{ANSWER_SIZE_BYTES_MAX, Settings};
use http_client::NoAnswer;
use http_client::Surroundings;
use hyper::StatusCode;
use retry::{Attempt, Decision, Location, Outcome};
use std::time::Duration;

/// What an operation changes, and thus where and how often it may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing: it may go to the secondary, and there is no doubt whether it was done.
    None,
    /// Doing it twice changes nothing more than doing it once.
    Repeatable,
    /// Doing it twice has another effect than doing it once.
    Unrepeatable,
}

/// An attempt that failed.
pub(crate) struct FailedAttempt {
    pub(crate) outcome: Outcome,
    pub(crate) failure: Failure,
    /// Another attempt would end the same way.
    pub(crate) is_final: bool,
}

impl FailedAttempt {
    /// It brought no answer.
    pub(crate) fn without_answer(error: NoAnswer, title: &str) -> Self {
        let kind =
            if error.outcome == Outcome::TimedOut { ErrorKind::TimedOut } else { ErrorKind::Connection };
        let failure = Failure { message: error.what, ..Failure::of(kind, title) };
        FailedAttempt { outcome: error.outcome, failure, is_final: error.is_final }
    }

    /// Its answer is longer than what is read whole.
    pub(crate) fn too_long(status: StatusCode, title: &str) -> Self {
        let message = format!("the answer is longer than {ANSWER_SIZE_BYTES_MAX} bytes");
        let failure = Failure::of(ErrorKind::UnreadableAnswer, title);
        let failure = Failure { message, status: Some(status), ..failure };
        FailedAttempt { outcome: Outcome::Broken, failure, is_final: true }
    }
}

/// An operation under way.
pub(crate) struct Course<'a> {
    surroundings: &'a Surroundings,
    settings: &'a Settings,
    operation: &'static str,
    effect: Effect,
    attempt: Attempt,
    started: Duration,
    /// An earlier attempt may have been done.
    may_be_done: bool,
    repeated: Vec<RepeatedAttempt>,
}

impl<'a> Course<'a> {
    pub(crate) fn new(
        surroundings: &'a Surroundings,
        settings: &'a Settings,
        operation: &'static str,
        effect: Effect,
        has_secondary: bool,
    ) -> Self {
        let is_idempotent = effect != Effect::Unrepeatable;
        let attempt = Attempt::first(retry::Request { is_idempotent, has_secondary });
        let started = surroundings.clock.monotonic();
        let (may_be_done, repeated) = (false, Vec::new());
        Course { surroundings, settings, operation, effect, attempt, started, may_be_done, repeated }
    }

    /// Where the attempt at hand goes.
    pub(crate) fn location(&self) -> Location {
        self.attempt.location
    }

    /// The attempt at hand succeeded: how many there were, and whether an earlier one may have been done.
    pub(crate) fn done(self) -> (u32, bool) {
        self.settings.observe(self.operation, &self.repeated, Ok(()));
        (self.attempt.number, self.may_be_done)
    }

    /// The attempt at hand failed: returns when the next one is to begin, or says why there is none.
    pub(crate) async fn wait_after(
        &mut self,
        failed: FailedAttempt,
        client_request_id: &str,
    ) -> Result<(), Error> {
        let after = self.failed(failed, client_request_id)?;
        if !after.is_zero() {
            self.surroundings.clock.sleep(after).await;
        }
        Ok(())
    }

    fn failed(&mut self, failed: FailedAttempt, client_request_id: &str) -> Result<Duration, Error> {
        let Course { surroundings, settings, .. } = *self;
        self.may_be_done |= self.effect != Effect::None && is_doubtful(&failed.outcome);
        let elapsed = surroundings.clock.monotonic().saturating_sub(self.started);
        let draw = surroundings.random.next_u64();
        let decision = if failed.is_final {
            Decision::GiveUp(retry::Reason::Final)
        } else {
            settings.retry.decide(&self.attempt, &failed.outcome, elapsed, draw)
        };
        match decision {
            Decision::Retry { after, next } => {
                if settings.observer.is_some() {
                    self.repeated.push(RepeatedAttempt::of(failed.failure));
                }
                self.attempt = next;
                Ok(after)
            }
            Decision::GiveUp(reason) => {
                let error = Error::new(Failure {
                    attempts: self.attempt.number,
                    client_request_id: client_request_id.to_owned(),
                    may_be_done: self.may_be_done,
                    gave_up: Some(reason),
                    ..failed.failure
                });
                self.settings.observe(self.operation, &self.repeated, Err(&error));
                Err(error)
            }
        }
    }
}

/// Whether an attempt that ended so may have been done.
fn is_doubtful(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Unsent => false,
        Outcome::Broken | Outcome::TimedOut => true,
        Outcome::Status { status, is_refusal, .. } => !is_refusal && (*status >= 500 || *status == 408),
    }
}
