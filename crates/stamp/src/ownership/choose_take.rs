//! Whether a range may be taken, and the transaction that takes it: a pure choice over what was observed.
//!
//! A range may be taken if it was released, if it is the taker's own (its log was sealed by another), or if
//! its owner is gone: the owner's key is not there, **and** no beat of it was committed for a whole lease
//! time by the taker's own clock. The key alone is not trusted, because a metadata store may end a lease that
//! is kept alive elsewhere. What always holds: the transaction compares everything that the choice relied on,
//! so what was observed may be old; the epoch rises by one.

use crate::document::range_document::{OwnEntry, RangeDocument};
use crate::extent::part_header::StampLife;
use crate::ids::{Incarnation, Mark, Owner, next_epoch};
use crate::metadata::transaction::{Compare, Key, Revision, Transaction, Value};
use std::sync::Arc;
use std::time::Duration;

/// What is known of a range's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedOwner {
    /// Whether its key is there.
    pub has_key: bool,
    /// When its newest beat was committed; 0 if there is none.
    pub beat: Revision,
    /// For how long that has been its newest beat, by the taker's clock since the taker first saw it.
    pub beat_unchanged_for: Duration,
}

/// What is known of a range, all as of one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The own entry.
    pub own: OwnEntry,
    /// The document.
    pub document: Arc<RangeDocument>,
    /// When the document was changed last.
    pub revision: Revision,
    /// The owner, if the own entry names one.
    pub owner: Option<ObservedOwner>,
}

/// What a process does about a range that it might take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakeChoice {
    /// Send this transaction; once it is committed, seal, record and load.
    Take(Box<Take>),
    /// The owner lives.
    Owned,
    /// The owner's key is gone, and its last beat is not old enough: observe again after this time.
    Wait(Duration),
}

/// A take that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Take {
    /// The owner to be.
    pub owner: Owner,
    /// What is sent, and sent again.
    pub transaction: Transaction,
    /// The document that it writes.
    pub document: Arc<RangeDocument>,
    /// The revision of the document that it compares.
    pub compared: Revision,
}

/// Chooses for the process `taker`, under a mark that it did not use before.
pub fn choose_take(
    life: StampLife,
    taker: Incarnation,
    observed: &Observed,
    ttl: Duration,
    mark: Mark,
) -> TakeChoice {
    let range = observed.document.range;
    let mut compares = vec![
        Compare::Is(Key::Own(range), Value::Own(observed.own)),
        Compare::ChangedAt(Key::Document(range), observed.revision),
    ];
    if let Some(other) = observed.own.owner.filter(|owner| *owner != taker) {
        // An owner of which nothing is known is one that lives.
        let Some(known) = observed.owner.filter(|known| !known.has_key) else { return TakeChoice::Owned };
        if known.beat_unchanged_for < ttl {
            return TakeChoice::Wait(ttl - known.beat_unchanged_for);
        }
        compares.push(Compare::ChangedAt(Key::Process(other), Revision(0)));
        compares.push(Compare::ChangedAt(Key::Beat(other), known.beat));
    }
    let owner = Owner { incarnation: taker, epoch: next_epoch(observed.own.epoch) };
    let own = OwnEntry::of(owner);
    let document = Arc::new(RangeDocument { own, mark, ..(*observed.document).clone() });
    let mut transaction = Transaction::new(life.generation);
    transaction.compares = compares;
    transaction.puts =
        vec![(Key::Own(range), Value::Own(own)), (Key::Document(range), Value::Document(document.clone()))];
    TakeChoice::Take(Box::new(Take { owner, transaction, document, compared: observed.revision }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::range_document::KeyLimits;
    use crate::ids::{Generation, RangeId, StampId};
    use stream::OwnerEpoch;

    const W: Incarnation = Incarnation(1);
    const N: Incarnation = Incarnation(2);
    const TTL: Duration = Duration::from_secs(10);

    fn observed(own: OwnEntry, owner: Option<ObservedOwner>) -> Observed {
        let document = RangeDocument::new(RangeId::new(W, 0), own, KeyLimits::default(), Mark::new(W, 7));
        Observed { own, document: Arc::new(document), revision: Revision(30), owner }
    }

    fn owner(has_key: bool, seconds: u64) -> Option<ObservedOwner> {
        let beat_unchanged_for = Duration::from_secs(seconds);
        Some(ObservedOwner { has_key, beat: Revision(20), beat_unchanged_for })
    }

    fn choose(observed: &Observed) -> TakeChoice {
        let life = StampLife { stamp: StampId(1), generation: Generation(2) };
        choose_take(life, N, observed, TTL, Mark::new(N, 1))
    }

    #[test]
    fn a_range_is_taken_only_from_one_that_is_gone_for_certain() {
        let of = |owner: Incarnation| OwnEntry { owner: Some(owner), epoch: OwnerEpoch(4) };
        let released = OwnEntry::released(OwnerEpoch(4));
        let taken = None;
        for (own, owner, expected) in [
            (of(W), owner(true, 100), Some(TakeChoice::Owned)),
            (of(W), None, Some(TakeChoice::Owned)),
            (of(W), owner(false, 3), Some(TakeChoice::Wait(Duration::from_secs(7)))),
            (of(W), owner(false, 10), taken.clone()),
            (released, None, taken.clone()),
            (of(N), owner(true, 0), taken),
        ] {
            let choice = choose(&observed(own, owner));
            match expected {
                Some(expected) => assert_eq!(choice, expected, "{own:?}, {owner:?}"),
                None => assert!(matches!(choice, TakeChoice::Take(_)), "{own:?}, {owner:?}"),
            }
        }
    }

    #[test]
    fn the_transaction_compares_all_that_was_relied_on() {
        let own = OwnEntry { owner: Some(W), epoch: OwnerEpoch(4) };
        let TakeChoice::Take(take) = choose(&observed(own, owner(false, 10))) else { panic!("not taken") };
        let range = take.document.range;
        let expected = [
            Compare::Is(Key::Own(range), Value::Own(own)),
            Compare::ChangedAt(Key::Document(range), Revision(30)),
            Compare::ChangedAt(Key::Process(W), Revision(0)),
            Compare::ChangedAt(Key::Beat(W), Revision(20)),
        ];
        assert_eq!(take.transaction.compares, expected);
        assert_eq!(take.owner, Owner { incarnation: N, epoch: OwnerEpoch(5) });
        assert_eq!(take.document.own, OwnEntry::of(take.owner));
        assert_eq!(take.transaction.puts[0], (Key::Own(range), Value::Own(take.document.own)));
        let released = observed(OwnEntry::released(OwnerEpoch(4)), None);
        let TakeChoice::Take(take) = choose(&released) else { panic!("not taken") };
        assert_eq!(take.transaction.compares.len(), 2);
    }
}
