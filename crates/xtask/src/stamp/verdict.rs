//! What a round showed, as a line of a table, and whether it passed: a pure decision.

use super::fault_kind::Fault;
use super::ledger::Counts;
use super::timeline::Outage;
use std::time::Duration;

/// A round with its fault.
pub(super) struct Round {
    pub(super) number: usize,
    pub(super) fault: Fault,
    /// Writes of rows that were acknowledged, and reads that were checked.
    pub(super) writes: u64,
    pub(super) unknown: u64,
    pub(super) reads: u64,
    /// Uploads that were acknowledged.
    pub(super) uploads: u64,
    /// Messages that were taken, and their deletion acknowledged.
    pub(super) messages: u64,
    pub(super) counts: Counts,
    pub(super) outage: Outage,
    /// The longest that it may take until the stamp serves again.
    pub(super) allowed: Duration,
}

/// The names of the columns.
pub(super) const HEAD: &str = concat!(
    "round fault          writes unknown    reads uploads messages  lost stale former wrong",
    "  served again  allowed gaps verdict"
);

impl Round {
    /// Nothing lost, stale, of a former owner or unexplained, served again in time, and each client did
    /// something.
    pub(super) fn has_passed(&self) -> bool {
        self.is_only_late() && !self.outage.is_late
    }

    /// Nothing is wrong but when it served again.
    pub(super) fn is_only_late(&self) -> bool {
        self.counts.all() == 0 && self.idle().is_empty()
    }

    /// What no client has done, though each round must have it.
    pub(super) fn idle(&self) -> Vec<&'static str> {
        let done = [
            (self.writes, "acknowledged write"),
            (self.reads, "checked read"),
            (self.uploads, "acknowledged upload"),
            (self.messages, "consumed message"),
        ];
        done.iter().filter(|(count, _)| *count == 0).map(|(_, name)| *name).collect()
    }

    /// A line of the table.
    pub(super) fn line(&self) -> String {
        let Counts { lost, stale, former, wrong, .. } = self.counts;
        let seconds = self.outage.served_again_after.as_secs_f64();
        // What was not seen to end is no time of service.
        let served_again = format!("{}{seconds:.1}", if self.outage.lasts { "> " } else { "" });
        format!(
            "{:>5} {:<12} {:>8} {:>7} {:>8} {:>7} {:>8} {lost:>5} {stale:>5} {former:>6} {wrong:>5} \
             {served_again:>11} s {:>6.1} s {:>4} {}",
            self.number,
            format!("{:?}", self.fault),
            self.writes,
            self.unknown,
            self.reads,
            self.uploads,
            self.messages,
            self.allowed.as_secs_f64(),
            self.outage.other_gaps,
            if self.has_passed() { "passed" } else { "FAILED" },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round() -> Round {
        let served_again_after = Duration::from_secs(12);
        let outage = Outage { served_again_after, lasts: false, is_late: false, other_gaps: 0 };
        let allowed = Duration::from_secs(13);
        let counts = Counts::default();
        Round {
            number: 1,
            fault: Fault::Kill,
            writes: 1,
            unknown: 0,
            reads: 1,
            uploads: 1,
            messages: 1,
            counts,
            outage,
            allowed,
        }
    }

    #[test]
    fn each_problem_alone_fails_a_round() {
        assert!(round().has_passed());
        let spoilers: [fn(&mut Round); 9] = [
            |round| round.counts.lost = 1,
            |round| round.counts.stale = 1,
            |round| round.counts.former = 1,
            |round| round.counts.wrong = 1,
            |round| round.outage.is_late = true,
            |round| round.writes = 0,
            |round| round.reads = 0,
            |round| round.uploads = 0,
            |round| round.messages = 0,
        ];
        for (index, spoil) in spoilers.into_iter().enumerate() {
            let mut spoilt = round();
            spoil(&mut spoilt);
            assert!(!spoilt.has_passed(), "spoiler {index}");
            assert!(spoilt.line().contains("FAILED"));
        }
    }

    #[test]
    fn a_line_stands_below_its_head() {
        assert_eq!(round().line().find("passed"), HEAD.find("verdict"));
        assert!(round().line().contains(" 12.0 s"));
        let mut unseen = round();
        unseen.outage.lasts = true;
        assert!(unseen.line().contains(" > 12.0 s"), "its end was not seen");
        assert_eq!(unseen.line().find("passed"), HEAD.find("verdict"));
    }
}
