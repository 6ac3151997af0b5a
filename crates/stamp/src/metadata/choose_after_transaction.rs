//! What the owner of a change does after an answer of the metadata store: a pure choice.
//!
//! | answer | document that is there | choice |
//! |---|---|---|
//! | committed | | committed |
//! | unknown | | the same transaction again |
//! | compare failed | not read yet, or not readable | read it |
//! | compare failed | with the change's mark | committed, by an earlier try |
//! | compare failed | changed since the revision that was compared, with another mark | superseded |
//! | compare failed | unchanged since then | the same again: the read proves nothing |
//! | compare failed | gone | superseded |
//!
//! After an unknown outcome the transaction may commit at any later time. Only a later committed change of
//! the same document excludes that, because then its compare can hold no more. What always holds: "committed"
//! is said only of what is committed, "superseded" only of what can't commit any more or was overwritten.

use crate::ids::Mark;
use crate::metadata::transaction::Revision;

/// The answer to a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransactionAnswer {
    /// It happened, at this revision.
    Committed(Revision),
    /// A compare did not hold; this try changed nothing.
    CompareFailed,
    /// No answer, or one that says nothing: it may have happened, and may still.
    Unknown,
}

/// What a linearizable read of the document found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentRead {
    /// A document.
    There {
        /// Its last change.
        mark: Mark,
        /// When that was.
        revision: Revision,
    },
    /// No document.
    Gone,
    /// No answer.
    Unknown,
}

/// What the owner does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterTransaction {
    /// The change is committed, at this revision.
    Committed(Revision),
    /// Send the same transaction again, after a wait.
    SendAgain,
    /// Read the document.
    Read,
    /// Another change came first, or has overwritten this one: the range is not held any more.
    Superseded,
}

/// Chooses by the answer to the change of this mark, which compared the document's revision with `compared`,
/// and by what a read that began after the answer has found, if there was one.
pub fn choose_after_transaction(
    answer: TransactionAnswer,
    read: Option<DocumentRead>,
    mark: Mark,
    compared: Revision,
) -> AfterTransaction {
    match (answer, read) {
        (TransactionAnswer::Committed(revision), _) => AfterTransaction::Committed(revision),
        (TransactionAnswer::Unknown, _) => AfterTransaction::SendAgain,
        (TransactionAnswer::CompareFailed, None | Some(DocumentRead::Unknown)) => AfterTransaction::Read,
        (TransactionAnswer::CompareFailed, Some(DocumentRead::Gone)) => AfterTransaction::Superseded,
        (TransactionAnswer::CompareFailed, Some(DocumentRead::There { mark: found, revision })) => {
            if found == mark {
                AfterTransaction::Committed(revision)
            } else if revision > compared {
                AfterTransaction::Superseded
            } else {
                AfterTransaction::SendAgain
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Incarnation;

    #[test]
    fn every_answer_and_read() {
        use AfterTransaction::{Committed, Read, SendAgain, Superseded};
        use TransactionAnswer::{CompareFailed, Unknown};
        let (ours, other) = (Mark::new(Incarnation(1), 5), Mark::new(Incarnation(1), 4));
        let compared = Revision(10);
        let there = |mark, revision| Some(DocumentRead::There { mark, revision: Revision(revision) });
        for (answer, read, expected) in [
            (TransactionAnswer::Committed(Revision(11)), None, Committed(Revision(11))),
            (Unknown, None, SendAgain),
            (Unknown, there(other, 10), SendAgain),
            (CompareFailed, None, Read),
            (CompareFailed, Some(DocumentRead::Unknown), Read),
            (CompareFailed, there(ours, 12), Committed(Revision(12))),
            (CompareFailed, there(other, 11), Superseded),
            (CompareFailed, there(other, 10), SendAgain),
            (CompareFailed, Some(DocumentRead::Gone), Superseded),
        ] {
            assert_eq!(
                choose_after_transaction(answer, read, ours, compared),
                expected,
                "{answer:?}, {read:?}"
            );
        }
    }
}
