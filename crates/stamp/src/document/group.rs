//! Changes of several callers that wait become one transaction: pure.
//!
//! A store far away takes many milliseconds for a transaction, and one of a document goes after the other. So
//! what has come meanwhile goes together, as appends of a log do.
//!
//! What always holds: each caller's changes are made all or none, in the order in which they came; one that
//! is refused changes nothing and keeps no other from being made; the transaction is one that the metadata
//! store takes.

use crate::document::change::{Change, ChangeError, apply_changes};
use crate::document::codec::encode_document;
use crate::document::range_document::RangeDocument;
use crate::document::room::{DocumentFull, check_document_size};
use crate::ids::{ExtentName, StampId};
use std::collections::BTreeMap;

/// Callers whose changes go into one transaction: each costs a copy of the document.
pub const GROUPED_COUNT_MAX: usize = 64;
/// Extents that leave the document with one transaction, unless a single caller's are more: each is an
/// operation of it.
pub const GROUPED_DROPS_MAX: usize = 100;

/// What becomes of one caller's changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// They are in the group.
    Taken,
    /// They do not fit the document.
    Refused(ChangeError),
    /// The document has no room for them.
    Full(DocumentFull),
    /// They go with a later transaction, as do all behind them.
    Later,
}

/// A document after the changes of several callers, under the mark that it had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouped {
    /// The document.
    pub document: RangeDocument,
    /// Extents that it lists no more, and their lengths.
    pub dropped: BTreeMap<ExtentName, u64>,
    /// Its bytes.
    pub size: usize,
}

/// Groups the changes of callers that wait, the first one first. `size`: bytes of the document before.
pub fn group_changes<'a>(
    document: &RangeDocument,
    stamp: StampId,
    size: usize,
    waiting: impl IntoIterator<Item = &'a [Change]>,
) -> (Grouped, Vec<Grouping>) {
    let mut grouped = Grouped { document: document.clone(), dropped: BTreeMap::new(), size };
    let (mut groupings, mut count, mut is_over) = (Vec::new(), 0, false);
    for changes in waiting {
        let grouping = match is_over || count >= GROUPED_COUNT_MAX {
            true => Grouping::Later,
            false => grouped.add(changes, stamp, count == 0),
        };
        count += usize::from(grouping == Grouping::Taken);
        is_over |= grouping == Grouping::Later;
        groupings.push(grouping);
    }
    (grouped, groupings)
}

impl Grouped {
    fn add(&mut self, changes: &[Change], stamp: StampId, is_first: bool) -> Grouping {
        let changed = match apply_changes(&self.document, changes) {
            Ok(changed) => changed,
            Err(error) => return Grouping::Refused(error),
        };
        if !is_first && self.dropped.len() + changed.dropped.len() > GROUPED_DROPS_MAX {
            return Grouping::Later;
        }
        let size = encode_document(&changed.document, stamp).len();
        if let Err(full) = check_document_size(changes, self.size, size) {
            return Grouping::Full(full);
        }
        let lengths = self.document.lengths_of(&changed.dropped);
        self.dropped.extend(lengths);
        self.document = changed.document;
        self.size = size;
        Grouping::Taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::change::push_extent;
    use crate::document::codec::DOCUMENT_SIZE_BYTES_MAX;
    use crate::document::range_document::{KeyLimits, OwnEntry, TrimPoint};
    use crate::ids::{Incarnation, Mark, RangeId, StreamId};
    use stream::OwnerEpoch;

    const BY: Incarnation = Incarnation(1);
    const STAMP: StampId = StampId(3);

    fn stream() -> StreamId {
        StreamId::new(BY, 1)
    }

    fn extent(counter: u64) -> ExtentName {
        ExtentName::new(BY, counter)
    }

    fn add(counter: u64) -> Change {
        Change::AddExtent { stream: stream(), extent: extent(counter) }
    }

    fn record(counter: u64) -> Change {
        Change::RecordLength { stream: stream(), extent: extent(counter), length: counter * 10 }
    }

    fn trim(ordinal: u64) -> Change {
        Change::Trim { stream: stream(), to: TrimPoint { ordinal, offset: 0 } }
    }

    /// A log of so many sealed extents.
    fn document(count: u64) -> RangeDocument {
        let own = OwnEntry { owner: Some(BY), epoch: OwnerEpoch(1) };
        let empty = RangeDocument::new(RangeId::new(BY, 0), own, KeyLimits::default(), Mark::new(BY, 0));
        let mut changes = vec![Change::CreateStream { stream: stream(), purpose: "log".to_owned() }];
        changes.extend((0..count).flat_map(|counter| [add(counter), record(counter)]));
        apply_changes(&empty, &changes).unwrap().document
    }

    fn group(document: &RangeDocument, waiting: &[Vec<Change>]) -> (Grouped, Vec<Grouping>) {
        let size = encode_document(document, STAMP).len();
        group_changes(document, STAMP, size, waiting.iter().map(Vec::as_slice))
    }

    #[test]
    fn a_group_is_what_one_after_the_other_would_be() {
        let before = document(3);
        let waiting = vec![vec![add(10)], vec![record(10), add(11)], vec![trim(1)], vec![trim(4)]];
        let (grouped, groupings) = group(&before, &waiting);
        assert_eq!(groupings, vec![Grouping::Taken; 4]);
        let mut expected = before;
        for changes in &waiting {
            expected = apply_changes(&expected, changes).unwrap().document;
        }
        assert_eq!(grouped.document, expected);
        assert_eq!(grouped.size, encode_document(&expected, STAMP).len());
        // One of them came with the group, and goes with it.
        let dropped: Vec<_> =
            grouped.dropped.iter().map(|(name, length)| (name.0.counter, *length)).collect();
        assert_eq!(dropped, [(0, 0), (1, 10), (2, 20), (10, 100)]);
    }

    #[test]
    fn what_is_refused_changes_nothing_and_stops_no_other() {
        let before = document(2);
        let half = vec![add(10), add(1)];
        let (grouped, groupings) = group(&before, &[half, vec![add(11)], vec![trim(9)], vec![trim(1)]]);
        let refused = Grouping::Refused(ChangeError::ExtentExists(extent(1)));
        let behind = Grouping::Refused(ChangeError::TrimPoint(stream()));
        assert_eq!(groupings, [refused, Grouping::Taken, behind, Grouping::Taken]);
        let listed: Vec<_> = grouped.document.extents().iter().map(|name| name.0.counter).collect();
        assert_eq!(listed, [1, 11]);
    }

    #[test]
    fn a_full_document_takes_what_makes_it_smaller_and_then_what_fits() {
        let mut before = document(0);
        let mut counter = 0;
        while encode_document(&before, STAMP).len() <= DOCUMENT_SIZE_BYTES_MAX {
            let entry = before.streams.get_mut(&stream()).unwrap();
            (0..20).for_each(|more| push_extent(entry, extent(counter + more), Some(1), None));
            counter += 20;
        }
        let new = 1_000_000;
        let (grouped, groupings) = group(&before, &[vec![add(new)], vec![trim(50)], vec![add(new)]]);
        assert_eq!(groupings[1..], vec![Grouping::Taken; 2]);
        assert!(matches!(groupings[0], Grouping::Full(_)), "{:?}", groupings[0]);
        assert!(grouped.size < DOCUMENT_SIZE_BYTES_MAX);
    }

    #[test]
    fn a_group_has_its_bounds() {
        let many = GROUPED_COUNT_MAX as u64 + 3;
        let adds: Vec<_> = (0..many).map(|counter| vec![add(1000 + counter)]).collect();
        let (grouped, groupings) = group(&document(0), &adds);
        let taken = groupings.iter().filter(|grouping| **grouping == Grouping::Taken).count();
        assert_eq!((taken, groupings.len()), (GROUPED_COUNT_MAX, many as usize));
        assert_eq!(groupings[GROUPED_COUNT_MAX..], vec![Grouping::Later; 3]);
        assert_eq!(grouped.document.extents().len(), GROUPED_COUNT_MAX);
        // The second one would make a transaction too large: it and all behind it wait.
        let drops = GROUPED_DROPS_MAX as u64;
        let (grouped, groupings) =
            group(&document(drops + 1), &[vec![trim(drops)], vec![trim(drops + 1)], vec![add(9999)]]);
        assert_eq!(groupings, [Grouping::Taken, Grouping::Later, Grouping::Later]);
        assert_eq!(grouped.dropped.len(), GROUPED_DROPS_MAX);
    }
}
