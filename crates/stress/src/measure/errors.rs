//! Errors by code, and what retries made of them.
//!
//! What always holds: there are at most [`CODES_MAX`] codes, whatever a server answers; those beyond are
//! counted together.

use retry::Reason;
use std::collections::BTreeMap;
use std::fmt;
use storage_client::{Error, ErrorKind, RepeatedAttempt};

/// Codes that are counted apart.
pub(crate) const CODES_MAX: usize = 64;
/// Characters of a code that are kept, and of a message.
const CODE_LEN_MAX: usize = 80;
const MESSAGE_LEN_MAX: usize = 300;

/// How attempts fail: the status and the code of the answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ErrorCode {
    /// None if there was no answer.
    pub status: Option<u16>,
    /// The service's code, or what went wrong with the connection.
    pub code: String,
}

/// What became of the attempts that failed with a code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorCount {
    /// Attempts that were followed by another one.
    pub repeated: u64,
    /// Operations with such attempts that were done in the end.
    pub done_after: u64,
    /// Operations that ended with it.
    pub failed: u64,
    /// Of these, those that may have been done all the same.
    pub may_be_done: u64,
    /// Why these were not tried again, with their numbers.
    pub reasons: BTreeMap<String, u64>,
    /// What the first of these said.
    pub message: String,
}

/// Whether the error shows that an earlier attempt, whose answer was lost, has done what was asked for: new
/// keys are there, which no other client has, or a message is gone that no other client holds.
pub(crate) fn was_done_before(error: &Error) -> bool {
    error.may_be_done() && matches!(error.code(), "EntityAlreadyExists" | "MessageNotFound")
}

/// No error if an earlier attempt has done it.
pub(crate) fn unless_done_before(error: Error) -> Result<(), Error> {
    if was_done_before(&error) { Ok(()) } else { Err(error) }
}

/// Errors of a run, or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorCounts {
    counts: BTreeMap<ErrorCode, ErrorCount>,
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.status, self.code.as_str()) {
            (Some(status), "") => write!(f, "{status}"),
            (Some(status), code) => write!(f, "{status} {code}"),
            (None, code) => f.write_str(code),
        }
    }
}

impl ErrorCode {
    fn of(kind: ErrorKind, status: Option<u16>, code: &str) -> Self {
        let code = match (kind, code) {
            (ErrorKind::Service, code) => code.chars().take(CODE_LEN_MAX).collect(),
            (ErrorKind::Connection, _) => "connection failed".to_owned(),
            (ErrorKind::TimedOut, _) => "no answer in time".to_owned(),
            (ErrorKind::UnreadableAnswer, _) => "unreadable answer".to_owned(),
            (ErrorKind::Invalid, _) => "not sent".to_owned(),
        };
        ErrorCode { status, code }
    }

    /// An answer that is not what was asked for.
    pub(crate) fn wrong_answer() -> Self {
        ErrorCode { status: None, code: "wrong answer".to_owned() }
    }

    fn others() -> Self {
        ErrorCode { status: None, code: "other codes".to_owned() }
    }
}

impl ErrorCounts {
    fn of(&mut self, code: ErrorCode) -> &mut ErrorCount {
        let is_new = !self.counts.contains_key(&code);
        let code = if is_new && self.counts.len() >= CODES_MAX { ErrorCode::others() } else { code };
        self.counts.entry(code).or_default()
    }

    /// An operation that ended with an error.
    pub(crate) fn failed(&mut self, error: &Error) {
        let count = self.of(ErrorCode::of(error.kind(), error.status(), error.code()));
        count.failed += 1;
        count.may_be_done += u64::from(error.may_be_done());
        if let Some(reason) = error.gave_up().filter(|reason| *reason != Reason::Final) {
            *count.reasons.entry(reason.to_string()).or_default() += 1;
        }
        if count.message.is_empty() {
            count.message = error.to_string().chars().take(MESSAGE_LEN_MAX).collect();
        }
    }

    /// An operation whose answer was wrong.
    pub(crate) fn wrong(&mut self, what: &str) {
        let count = self.of(ErrorCode::wrong_answer());
        count.failed += 1;
        if count.message.is_empty() {
            count.message = what.to_owned();
        }
    }

    /// An operation with these attempts before its last one, and whether it was done in the end.
    pub(crate) fn repeated(&mut self, attempts: &[RepeatedAttempt], is_done: bool) {
        let mut seen: Vec<ErrorCode> = Vec::new();
        for attempt in attempts {
            let code = ErrorCode::of(attempt.kind, attempt.status, &attempt.code);
            let count = self.of(code.clone());
            count.repeated += 1;
            if !seen.contains(&code) {
                count.done_after += u64::from(is_done);
                seen.push(code);
            }
        }
    }

    pub(crate) fn add(&mut self, others: &ErrorCounts) {
        for (code, other) in &others.counts {
            let count = self.of(code.clone());
            count.repeated += other.repeated;
            count.done_after += other.done_after;
            count.failed += other.failed;
            count.may_be_done += other.may_be_done;
            for (reason, number) in &other.reasons {
                *count.reasons.entry(reason.clone()).or_default() += number;
            }
            if count.message.is_empty() {
                count.message.clone_from(&other.message);
            }
        }
    }

    /// Those with most attempts first.
    pub(crate) fn sorted(&self) -> Vec<(ErrorCode, ErrorCount)> {
        let mut all: Vec<_> = self.counts.iter().map(|(code, count)| (code.clone(), count.clone())).collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(count.repeated + count.failed));
        all
    }

    /// Attempts that were answered with that status.
    pub(crate) fn with_status(&self, status: u16) -> u64 {
        let of_status = self.counts.iter().filter(|(code, _)| code.status == Some(status));
        of_status.map(|(_, count)| count.repeated + count.failed).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(status: u16, code: &str) -> RepeatedAttempt {
        RepeatedAttempt { kind: ErrorKind::Service, status: Some(status), code: code.to_owned() }
    }

    #[test]
    fn an_operation_counts_once_for_each_code_that_it_met() {
        let mut counts = ErrorCounts::default();
        let busy = attempt(503, "ServerBusy");
        let lost = RepeatedAttempt { kind: ErrorKind::Connection, status: None, code: String::new() };
        counts.repeated(&[busy.clone(), busy.clone(), lost], true);
        counts.repeated(&[busy], false);
        counts.wrong("another key");
        let found: Vec<String> = counts
            .sorted()
            .iter()
            .map(|(code, count)| format!("{code}: {} {} {}", count.repeated, count.done_after, count.failed))
            .collect();
        assert_eq!(found, ["503 ServerBusy: 3 1 0", "connection failed: 1 1 0", "wrong answer: 0 0 1"]);
        assert_eq!(counts.with_status(503), 3);
        let mut both = counts.clone();
        both.add(&counts);
        assert_eq!(both.with_status(503), 6);
    }

    #[test]
    fn a_server_that_invents_codes_takes_no_more_memory() {
        let mut counts = ErrorCounts::default();
        for number in 0..10 * CODES_MAX {
            counts.repeated(&[attempt(500, &format!("{number}{}", "x".repeat(1000)))], true);
        }
        assert_eq!(counts.counts.len(), CODES_MAX + 1);
        let others = counts.sorted().remove(0);
        assert_eq!((others.0.code.as_str(), others.1.repeated), ("other codes", 9 * CODES_MAX as u64));
        assert!(counts.counts.keys().all(|code| code.code.len() <= CODE_LEN_MAX));
    }
}
