//! What was acknowledged, and what may be read of it: decided here, without any I/O.
//!
//! A row has one writer, and each of its values is a number that rises. The writer names the ETag that it
//! knows with each change, so that of two changes on top of the same value only one can ever land, whenever
//! it arrives.
//!
//! What always holds: a value is explained if it is the last that was acknowledged, or one whose outcome is
//! unknown and that no later change has superseded. Everything else is a problem of a kind.

use std::collections::VecDeque;
use std::sync::Mutex;

/// Superseded values that are remembered for a row, to tell what came back.
const SUPERSEDED_KEPT_MAX: usize = 16;
/// Problems of each kind that are kept in words.
const PROBLEMS_SHOWN_MAX: u64 = 4;

/// What is wrong with a value or an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// An acknowledged write is not there.
    Lost,
    /// A read answered something older than what was acknowledged before it began.
    Stale,
    /// A write landed after another one had made that impossible, as one of a former owner would.
    Former,
    /// An answer that no state explains.
    Wrong,
}

/// Counts of problems, and some in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) lost: u64,
    pub(super) stale: u64,
    pub(super) former: u64,
    pub(super) wrong: u64,
    pub(super) shown: Vec<String>,
}

impl Counts {
    pub(super) fn all(&self) -> u64 {
        self.lost + self.stale + self.former + self.wrong
    }
}

/// What all threads of a load find.
#[derive(Default)]
pub(super) struct Findings {
    counts: Mutex<Counts>,
}

impl Findings {
    pub(super) fn add(&self, problem: Problem, text: impl FnOnce() -> String) {
        let mut counts = self.counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let count = match problem {
            Problem::Lost => &mut counts.lost,
            Problem::Stale => &mut counts.stale,
            Problem::Former => &mut counts.former,
            Problem::Wrong => &mut counts.wrong,
        };
        *count += 1;
        if *count <= PROBLEMS_SHOWN_MAX {
            counts.shown.push(format!("{problem:?}: {}", text()));
        }
    }

    /// What was found since the last call.
    pub(super) fn take(&self) -> Counts {
        std::mem::take(&mut *self.counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

/// A row as its writer knows it. Value 0: it is not there.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    acknowledged: u32,
    /// Of the acknowledged value, if it is known.
    etag: Option<Box<str>>,
    /// Sent, outcome unknown, on top of the acknowledged value.
    pending: Vec<u32>,
    /// Can't land any more.
    superseded: VecDeque<u32>,
    /// The writer has to read before it goes on.
    must_read: bool,
}

/// What a writer does next with a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Read,
    Insert,
    /// With this ETag.
    Update(Box<str>),
}

impl Entry {
    pub(super) fn next(&self) -> Next {
        match (&self.etag, self.acknowledged) {
            _ if self.must_read => Next::Read,
            (_, 0) => Next::Insert,
            (Some(etag), _) => Next::Update(etag.clone()),
            (None, _) => Next::Read,
        }
    }

    /// Before a change is sent.
    pub(super) fn send(&mut self, value: u32) {
        self.pending.push(value);
    }

    /// The change was answered: done.
    pub(super) fn acknowledge(&mut self, value: u32, etag: Option<&str>) {
        self.settle(value, etag);
    }

    /// The change was not done, and never will be.
    pub(super) fn refuse(&mut self, value: u32) {
        self.pending.retain(|pending| *pending != value);
    }

    /// The change was answered by a condition that does not hold: it is not done, and another may be.
    pub(super) fn conflict(&mut self, value: u32) {
        self.refuse(value);
        self.must_read = true;
    }

    /// Nobody knows what became of the change.
    pub(super) fn forget_outcome(&mut self) {
        self.must_read = true;
    }

    /// What a value that was read, and its ETag, say; `None`: it is explained.
    pub(super) fn judge(&self, found: u32, etag: Option<&str>) -> Option<Problem> {
        if found == self.acknowledged {
            let differs = matches!((self.etag.as_deref(), etag), (Some(known), Some(now)) if known != now);
            return differs.then_some(Problem::Former);
        }
        if self.pending.contains(&found) {
            return None;
        }
        match self.superseded.contains(&found) || found > self.acknowledged {
            true => Some(Problem::Former),
            false => Some(Problem::Lost),
        }
    }

    /// The writer goes on from what it read, whatever it is worth.
    pub(super) fn adopt(&mut self, found: u32, etag: Option<&str>) -> Option<Problem> {
        let problem = self.judge(found, etag);
        if found == self.acknowledged && problem.is_none() {
            // What is pending may land yet.
            self.etag = etag.map(Into::into);
            self.must_read = false;
        } else {
            self.settle(found, etag);
        }
        problem
    }

    fn settle(&mut self, value: u32, etag: Option<&str>) {
        let superseded = self.pending.drain(..).filter(|pending| *pending != value);
        self.superseded.extend(superseded);
        while self.superseded.len() > SUPERSEDED_KEPT_MAX {
            self.superseded.pop_front();
        }
        self.acknowledged = value;
        self.etag = etag.map(Into::into);
        self.must_read = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry_at_three() -> Entry {
        let mut entry = Entry::default();
        entry.send(3);
        entry.acknowledge(3, Some("e3"));
        entry
    }

    #[test]
    fn only_the_last_and_the_unknown_are_explained() {
        let mut entry = entry_at_three();
        entry.send(4);
        entry.forget_outcome();
        assert_eq!(entry.next(), Next::Read);
        // Value, ETag, verdict.
        let cases = [
            (3, Some("e3"), None),
            (4, Some("e4"), None),
            (3, Some("other"), Some(Problem::Former)),
            (2, Some("e2"), Some(Problem::Lost)),
            (0, None, Some(Problem::Lost)),
            (9, Some("e9"), Some(Problem::Former)),
        ];
        for (found, etag, verdict) in cases {
            assert_eq!(entry.judge(found, etag), verdict, "{found} {etag:?}");
        }
    }

    #[test]
    fn a_superseded_write_that_lands_is_a_former_owners() {
        let mut entry = entry_at_three();
        entry.send(4);
        entry.forget_outcome();
        assert_eq!(entry.adopt(3, Some("e3")), None);
        assert_eq!(entry.next(), Next::Update("e3".into()));
        assert_eq!(entry.judge(4, Some("e4")), None, "it may land as long as nothing else has");
        entry.send(5);
        entry.acknowledge(5, Some("e5"));
        assert_eq!(entry.judge(4, Some("e4")), Some(Problem::Former));
        assert_eq!(entry.judge(3, Some("e3")), Some(Problem::Lost));
        assert_eq!(entry.judge(5, Some("e5")), None);
    }

    #[test]
    fn an_unknown_write_that_is_read_counts_from_then_on() {
        let mut entry = entry_at_three();
        entry.send(4);
        entry.forget_outcome();
        assert_eq!(entry.adopt(4, Some("e4")), None);
        assert_eq!(entry.judge(3, Some("e3")), Some(Problem::Lost));
    }

    #[test]
    fn a_refused_write_must_not_appear() {
        let mut entry = entry_at_three();
        entry.send(4);
        entry.refuse(4);
        assert_eq!(entry.next(), Next::Update("e3".into()));
        assert_eq!(entry.judge(4, Some("e4")), Some(Problem::Former));
        entry.send(5);
        entry.conflict(5);
        assert_eq!(entry.next(), Next::Read);
        assert_eq!(Entry::default().next(), Next::Insert);
    }
}
