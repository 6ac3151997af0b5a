//! Giving a range up on purpose, so that another takes it without waiting for a lease: a pure machine.
//!
//! ```text
//! Serving -> Draining -> Quiet -> Sent -> Released
//!    ^          |                  |
//!    +-aborted--+                  +-- superseded: another has it
//! ```
//!
//! Writes are admitted while serving only; reads go on while the group in flight is drained, and stop
//! **before** the release is sent: once it is committed another may have taken the range and written. After
//! an unknown outcome nothing is served until the outcome is known; a read that shows the range as still
//! owned proves nothing. What always holds: a release is not taken back once it was sent.

use crate::metadata::choose_after_transaction::AfterTransaction;

/// How far a release is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Release {
    /// None is under way.
    #[default]
    Serving,
    /// No writes are admitted; those that were are being made durable.
    Draining,
    /// Nothing is under way and nothing is served: the release may be sent.
    Quiet,
    /// The release was sent, and is not settled.
    Sent,
    /// The range is not held any more.
    Released,
}

impl Release {
    /// Whether a write may be admitted.
    pub fn admits_writes(self) -> bool {
        self == Release::Serving
    }

    /// Whether a read may be admitted, and its answer leave.
    pub fn admits_reads(self) -> bool {
        matches!(self, Release::Serving | Release::Draining)
    }

    /// The release begins.
    pub fn begin(self) -> Self {
        if self == Release::Serving { Release::Draining } else { self }
    }

    /// All writes have their outcome: reads stop. Nothing changes while some have none.
    pub fn drained(self, is_drained: bool) -> Self {
        if self == Release::Draining && is_drained { Release::Quiet } else { self }
    }

    /// The release was sent.
    pub fn sent(self) -> Self {
        if self == Release::Quiet { Release::Sent } else { self }
    }

    /// The range is kept after all. Only before the release was sent.
    pub fn abort(self) -> Self {
        match self {
            Release::Draining | Release::Quiet => Release::Serving,
            other => other,
        }
    }

    /// What an answer to the release means.
    pub fn settled(self, after: &AfterTransaction) -> Self {
        match (self, after) {
            (Release::Sent, AfterTransaction::Committed(_) | AfterTransaction::Superseded) => {
                Release::Released
            }
            (other, _) => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::transaction::Revision;

    #[test]
    fn reads_stop_before_the_release_is_sent() {
        let mut release = Release::default();
        assert!(release.admits_writes() && release.admits_reads());
        release = release.begin();
        assert!(!release.admits_writes() && release.admits_reads());
        assert_eq!(release.drained(false), release);
        assert_eq!(release.sent(), release, "what is admitted is not drained");
        release = release.drained(true);
        assert!(!release.admits_reads(), "nothing is served when the release may be sent");
        release = release.sent();
        assert_eq!(release, Release::Sent);
    }

    #[test]
    fn a_release_that_was_sent_is_not_taken_back() {
        for (from, to) in [
            (Release::Serving, Release::Serving),
            (Release::Draining, Release::Serving),
            (Release::Quiet, Release::Serving),
            (Release::Sent, Release::Sent),
            (Release::Released, Release::Released),
        ] {
            assert_eq!(from.abort(), to);
        }
    }

    #[test]
    fn only_a_known_outcome_ends_it() {
        let sent = Release::Sent;
        for (after, expected) in [
            (AfterTransaction::SendAgain, Release::Sent),
            (AfterTransaction::Read, Release::Sent),
            (AfterTransaction::Committed(Revision(1)), Release::Released),
            (AfterTransaction::Superseded, Release::Released),
        ] {
            assert_eq!(sent.settled(&after), expected, "{after:?}");
        }
        assert_eq!(Release::Quiet.settled(&AfterTransaction::Superseded), Release::Quiet);
    }
}
