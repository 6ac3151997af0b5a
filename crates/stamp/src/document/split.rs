//! A range becomes two, by pointer: one transaction over three documents.
//!
//! The parent's document and own entry go; each heir gets a document that lists the parent's extents, limited
//! to its own keys. What always holds: every extent that is copied has a recorded length; the transaction
//! compares the parent's document, which is what the heirs are copied from; no extent is dropped.

use crate::document::change::{ChangeError, push_extent};
use crate::document::range_document::{ExtentEntry, KeyLimits, OwnEntry, RangeDocument, StreamEntry};
use crate::ids::{Mark, Owner, RangeId, StreamId};
use crate::metadata::held_range::{BeginError, HeldRange, compares_of_owner};
use crate::metadata::transaction::{Key, Transaction, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use stream::OwnerEpoch;

/// The epoch of a range's first owner.
pub const FIRST_EPOCH: OwnerEpoch = OwnerEpoch(1);

/// The names of one of the two ranges that a split makes, all new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeirNames {
    /// The range.
    pub range: RangeId,
    /// For each stream of the parent the stream that takes its place.
    pub streams: BTreeMap<StreamId, StreamId>,
    /// The mark of its first document.
    pub mark: Mark,
}

/// A split that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// What is sent, and sent again.
    pub transaction: Transaction,
    /// The documents that it writes, in key order.
    pub heirs: [Arc<RangeDocument>; 2],
}

/// Splits a range at `at`, the first key of the second heir. Refused while an extent has no recorded length,
/// while a change is under way, or at a key that would leave an heir without keys.
pub fn choose_split(held: &HeldRange, at: &[u8], names: [HeirNames; 2]) -> Result<Split, SplitRefused> {
    let parent = held.document();
    if held.sent().is_some() {
        return Err(BeginError::UnderWay(parent.range).into());
    }
    if let Some((_, open)) = parent.unsealed().next() {
        return Err(BeginError::Change(ChangeError::NotSealed(open.name)).into());
    }
    if at <= parent.keys.from.as_slice() || !parent.keys.contains(at) {
        return Err(SplitRefused::Key);
    }
    let [first, second] = names;
    let first_keys = KeyLimits { to: Some(at.to_vec()), ..parent.keys.clone() };
    let second_keys = KeyLimits { from: at.to_vec(), ..parent.keys.clone() };
    let heirs = [
        Arc::new(heir(parent, held.owner(), first_keys, first)),
        Arc::new(heir(parent, held.owner(), second_keys, second)),
    ];
    let mut transaction = Transaction::new(held.life().generation);
    transaction.compares = compares_of_owner(parent.range, held.owner(), held.revision());
    transaction.deletes = vec![Key::Own(parent.range), Key::Document(parent.range)];
    for heir in &heirs {
        transaction.puts.push((Key::Own(heir.range), Value::Own(heir.own)));
        transaction.puts.push((Key::Document(heir.range), Value::Document(heir.clone())));
    }
    transaction.check_bounds().map_err(BeginError::from)?;
    Ok(Split { transaction, heirs })
}

/// Why a range can't be split like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplitRefused {
    /// Not now.
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// The key is not inside the range.
    #[error("the key is not inside the range, or is its first")]
    Key,
}

fn heir(parent: &RangeDocument, owner: Owner, keys: KeyLimits, names: HeirNames) -> RangeDocument {
    let own = OwnEntry::of(Owner { epoch: FIRST_EPOCH, ..owner });
    let mut heir = RangeDocument::new(names.range, own, keys, names.mark);
    for (id, stream) in &parent.streams {
        let Some(new) = names.streams.get(id) else { continue };
        heir.streams.insert(*new, inherit(stream, &heir.keys));
    }
    heir
}

fn inherit(parent: &StreamEntry, keys: &KeyLimits) -> StreamEntry {
    let mut stream = StreamEntry { purpose: parent.purpose.clone(), ..StreamEntry::default() };
    // Ordinals go on as the parent's, so that its trim point keeps its meaning.
    for ExtentEntry { name, ordinal, length, limits } in &parent.extents {
        stream.next_ordinal = *ordinal;
        let limits = limits.as_ref().map_or_else(|| keys.clone(), |limits| limits.intersection(keys));
        push_extent(&mut stream, *name, *length, Some(limits));
    }
    stream.next_ordinal = parent.next_ordinal;
    stream.trim = parent.trim;
    stream
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::change::{Change, apply_changes};
    use crate::extent::part_header::StampLife;
    use crate::ids::{ExtentName, Generation, Incarnation, StampId};
    use crate::metadata::transaction::{Compare, Revision};

    const BY: Incarnation = Incarnation(1);

    fn stream(counter: u64) -> StreamId {
        StreamId::new(BY, counter)
    }

    fn extent(counter: u64) -> ExtentName {
        ExtentName::new(BY, counter)
    }

    fn held(last_length: Option<u64>) -> HeldRange {
        let owner = Owner { incarnation: BY, epoch: OwnerEpoch(3) };
        let keys = KeyLimits { from: b"b".to_vec(), to: Some(b"y".to_vec()) };
        let empty = RangeDocument::new(RangeId::new(BY, 0), OwnEntry::of(owner), keys, Mark::new(BY, 1));
        let record =
            |counter, length| Change::RecordLength { stream: stream(1), extent: extent(counter), length };
        let mut changes = vec![
            Change::CreateStream { stream: stream(1), purpose: "log".to_owned() },
            Change::AddExtent { stream: stream(1), extent: extent(10) },
            record(10, 7),
            Change::AddExtent { stream: stream(1), extent: extent(11) },
        ];
        changes.extend(last_length.map(|length| record(11, length)));
        let document = apply_changes(&empty, &changes).unwrap().document;
        let life = StampLife { stamp: StampId(1), generation: Generation(2) };
        HeldRange::new(life, owner, Arc::new(document), Revision(10))
    }

    fn names(counter: u64) -> HeirNames {
        let range = RangeId::new(BY, counter);
        let streams = BTreeMap::from([(stream(1), stream(counter + 1))]);
        HeirNames { range, streams, mark: Mark::new(BY, counter + 2) }
    }

    #[test]
    fn heirs_list_the_parents_extents_within_their_keys() {
        let split = choose_split(&held(Some(0)), b"m", [names(20), names(30)]).unwrap();
        for (heir, from, to, id) in [(&split.heirs[0], b"b", b"m", 21), (&split.heirs[1], b"m", b"y", 31)] {
            assert_eq!((heir.keys.from.as_slice(), heir.keys.to.as_deref()), (&from[..], Some(&to[..])));
            assert_eq!(heir.own, OwnEntry { owner: Some(BY), epoch: FIRST_EPOCH });
            let stream = &heir.streams[&stream(id)];
            assert_eq!(stream.next_ordinal, 2);
            let listed: Vec<_> = stream.extents.iter().map(|entry| (entry.name, entry.length)).collect();
            assert_eq!(listed, [(extent(10), Some(7)), (extent(11), Some(0))]);
            assert!(stream.extents.iter().all(|entry| entry.limits.as_ref() == Some(&heir.keys)));
        }
        let parent = held(Some(0)).document().range;
        let compare = Compare::ChangedAt(Key::Document(parent), Revision(10));
        assert!(split.transaction.compares.contains(&compare), "what is copied is compared");
        assert_eq!(split.transaction.deletes, [Key::Own(parent), Key::Document(parent)]);
        assert_eq!(split.transaction.puts.len(), 4);
    }

    #[test]
    fn an_open_extent_a_change_under_way_and_a_bad_key_refuse_a_split() {
        let names = || [names(20), names(30)];
        let open = choose_split(&held(None), b"m", names()).unwrap_err();
        assert_eq!(open, BeginError::Change(ChangeError::NotSealed(extent(11))).into());
        let mut busy = held(Some(0));
        busy.begin(&[], Mark::new(BY, 50)).unwrap();
        assert!(matches!(
            choose_split(&busy, b"m", names()),
            Err(SplitRefused::Begin(BeginError::UnderWay(_)))
        ));
        for key in [&b"a"[..], b"b", b"y", b"z"] {
            assert_eq!(choose_split(&held(Some(0)), key, names()), Err(SplitRefused::Key), "{key:?}");
        }
    }
}
