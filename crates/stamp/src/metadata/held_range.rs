//! A range's document in the hands of its owner: changed by one transaction at a time.
//!
//! The owner begins a change, sends its transaction until an answer settles it, and sees the new document
//! only then. What always holds: there is one change under way at a time; each compares the document's
//! revision and the own entry; while one is under way the document is the last one that is known to be
//! committed.

use crate::document::change::{Change, ChangeError, apply_changes};
use crate::document::group::Grouped;
use crate::document::range_document::{OwnEntry, RangeDocument};
use crate::extent::part_header::StampLife;
use crate::ids::{ExtentName, Mark, Owner, RangeId};
use crate::metadata::choose_after_transaction::{
    AfterTransaction, DocumentRead, TransactionAnswer, choose_after_transaction,
};
use crate::metadata::transaction::{Compare, Key, Revision, Transaction, TransactionTooLarge, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a change was not begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BeginError {
    /// Another is under way: wait for its outcome.
    #[error("a change of range {0} is under way")]
    UnderWay(RangeId),
    /// The change does not fit the document.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// Too many extents at a time.
    #[error(transparent)]
    TooLarge(#[from] TransactionTooLarge),
}

/// What a change does to the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// Its streams change.
    Streams,
    /// It is released: once this is sent, nothing of it is served.
    Release,
}

/// A change that was sent and not settled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SentChange {
    /// What it does.
    pub kind: ChangeKind,
    /// What is sent, and sent again.
    pub transaction: Transaction,
    /// The document that it writes.
    pub document: Arc<RangeDocument>,
}

/// A range and its owner's picture of its document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeldRange {
    life: StampLife,
    owner: Owner,
    document: Arc<RangeDocument>,
    revision: Revision,
    sent: Option<SentChange>,
}

impl HeldRange {
    /// `owner` committed `document` at `revision`, with itself as the owner in it.
    pub fn new(life: StampLife, owner: Owner, document: Arc<RangeDocument>, revision: Revision) -> Self {
        HeldRange { life, owner, document, revision, sent: None }
    }

    /// The stamp, and the life of its metadata store.
    pub fn life(&self) -> StampLife {
        self.life
    }

    /// The owner.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// The last document that is known to be committed.
    pub fn document(&self) -> &Arc<RangeDocument> {
        &self.document
    }

    /// When it was committed.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The change that is under way.
    pub fn sent(&self) -> Option<&SentChange> {
        self.sent.as_ref()
    }

    /// Begins a change of the streams, under a mark that was not used before.
    pub fn begin(&mut self, changes: &[Change], mark: Mark) -> Result<&SentChange, BeginError> {
        let changed = apply_changes(&self.document, changes)?;
        let dropped = self.document.lengths_of(&changed.dropped);
        self.begin_changed(changed.document, dropped, mark)
    }

    /// Begins the changes of a group, which were made of [`Self::document`].
    pub fn begin_grouped(&mut self, grouped: Grouped, mark: Mark) -> Result<&SentChange, BeginError> {
        self.begin_changed(grouped.document, grouped.dropped, mark)
    }

    fn begin_changed(
        &mut self,
        changed: RangeDocument,
        dropped: BTreeMap<ExtentName, u64>,
        mark: Mark,
    ) -> Result<&SentChange, BeginError> {
        let own = self.document.own;
        let document = RangeDocument { mark, own, ..changed };
        let gc =
            dropped.into_iter().map(|(extent, length)| (Key::Dropped(extent), Value::Dropped { length }));
        self.send(ChangeKind::Streams, document, own, gc.collect())
    }

    /// Begins the release: own entry and document have no owner once it is committed.
    pub fn begin_release(&mut self, mark: Mark) -> Result<&SentChange, BeginError> {
        let own = OwnEntry::released(self.owner.epoch);
        let document = RangeDocument { mark, own, ..(*self.document).clone() };
        self.send(ChangeKind::Release, document, own, Vec::new())
    }

    fn send(
        &mut self,
        kind: ChangeKind,
        document: RangeDocument,
        own: OwnEntry,
        gc: Vec<(Key, Value)>,
    ) -> Result<&SentChange, BeginError> {
        let range = document.range;
        if self.sent.is_some() {
            return Err(BeginError::UnderWay(range));
        }
        let document = Arc::new(document);
        let mut transaction = Transaction::new(self.life.generation);
        transaction.compares = compares_of_owner(range, self.owner, self.revision);
        transaction.puts.push((Key::Document(range), Value::Document(document.clone())));
        if own != self.document.own {
            transaction.puts.push((Key::Own(range), Value::Own(own)));
        }
        transaction.puts.extend(gc);
        transaction.check_bounds()?;
        Ok(self.sent.insert(SentChange { kind, transaction, document }))
    }

    /// The change that is under way was answered, and the document was read since then, if it was. None if no
    /// change is under way.
    pub fn answered(
        &mut self,
        answer: TransactionAnswer,
        read: Option<DocumentRead>,
    ) -> Option<AfterTransaction> {
        let sent = self.sent.as_ref()?;
        let choice = choose_after_transaction(answer, read, sent.document.mark, self.revision);
        if let AfterTransaction::Committed(revision) = choice {
            self.document = sent.document.clone();
            self.revision = revision;
            self.sent = None;
        }
        Some(choice)
    }
}

/// What every change by an owner compares: its own entry, and the revision of the document that it knows.
pub(crate) fn compares_of_owner(range: RangeId, owner: Owner, revision: Revision) -> Vec<Compare> {
    vec![
        Compare::Is(Key::Own(range), Value::Own(OwnEntry::of(owner))),
        Compare::ChangedAt(Key::Document(range), revision),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::range_document::{KeyLimits, TrimPoint};
    use crate::ids::{Generation, Incarnation, StampId, StreamId};
    use stream::OwnerEpoch;

    const BY: Incarnation = Incarnation(1);

    fn mark(counter: u64) -> Mark {
        Mark::new(BY, counter)
    }

    fn held() -> HeldRange {
        let owner = Owner { incarnation: BY, epoch: OwnerEpoch(2) };
        let life = StampLife { stamp: StampId(1), generation: Generation(2) };
        let range = RangeId::new(BY, 0);
        let document = RangeDocument::new(range, OwnEntry::of(owner), KeyLimits::default(), mark(1));
        HeldRange::new(life, owner, Arc::new(document), Revision(10))
    }

    fn stream() -> StreamId {
        StreamId::new(BY, 1)
    }

    fn extent() -> ExtentName {
        ExtentName::new(BY, 5)
    }

    fn log_with_a_sealed_extent() -> Vec<Change> {
        vec![
            Change::CreateStream { stream: stream(), purpose: "log".to_owned() },
            Change::AddExtent { stream: stream(), extent: extent() },
            Change::RecordLength { stream: stream(), extent: extent(), length: 40 },
        ]
    }

    #[test]
    fn every_change_compares_revision_and_own_entry() {
        let range = held().document().range;
        let expected = vec![
            Compare::Is(Key::Own(range), Value::Own(OwnEntry { owner: Some(BY), epoch: OwnerEpoch(2) })),
            Compare::ChangedAt(Key::Document(range), Revision(10)),
        ];
        let mut changing = held();
        let sent = changing.begin(&log_with_a_sealed_extent(), mark(2)).unwrap();
        assert_eq!(sent.transaction.compares, expected);
        assert_eq!(sent.transaction.puts.len(), 1, "the own entry stays");
        let mut releasing = held();
        let sent = releasing.begin_release(mark(2)).unwrap();
        assert_eq!(sent.transaction.compares, expected);
        let released = Value::Own(OwnEntry::released(OwnerEpoch(2)));
        assert_eq!(sent.transaction.puts[1], (Key::Own(range), released));
        assert_eq!(sent.document.own, OwnEntry::released(OwnerEpoch(2)));
    }

    #[test]
    fn a_change_shows_when_it_is_committed_and_one_is_under_way_at_a_time() {
        let mut held = held();
        let before = held.document().clone();
        held.begin(&log_with_a_sealed_extent(), mark(2)).unwrap();
        let other = held.begin(&[], mark(3)).unwrap_err();
        assert_eq!(other, BeginError::UnderWay(before.range));
        assert_eq!(held.answered(TransactionAnswer::Unknown, None), Some(AfterTransaction::SendAgain));
        assert_eq!(held.document(), &before);
        held.answered(TransactionAnswer::Committed(Revision(12)), None);
        assert!(held.document().names(extent()));
        assert_eq!((held.revision(), held.document().mark, held.sent()), (Revision(12), mark(2), None));
        assert_eq!(held.answered(TransactionAnswer::Unknown, None), None);
    }

    #[test]
    fn a_drop_writes_what_the_sweep_needs() {
        let mut held = held();
        held.begin(&log_with_a_sealed_extent(), mark(2)).unwrap();
        held.answered(TransactionAnswer::Committed(Revision(12)), None);
        let trim = Change::Trim { stream: stream(), to: TrimPoint { ordinal: 1, offset: 0 } };
        let sent = held.begin(&[trim], mark(3)).unwrap();
        assert_eq!(sent.transaction.puts[1], (Key::Dropped(extent()), Value::Dropped { length: 40 }));
    }

    #[test]
    fn a_refused_change_leaves_nothing_under_way() {
        let mut held = held();
        let missing = Change::DeleteStream { stream: stream() };
        assert!(matches!(held.begin(&[missing], mark(2)), Err(BeginError::Change(_))));
        assert_eq!(held.sent(), None);
    }
}
