//! What rows name: how many bytes of each extent, and which rows name given extents; and the operation that
//! makes a row name copies.

use crate::blob_data::choose_emptied::MOVED_ROW_COUNT_MAX;
use crate::blob_data::piece::{Piece, RowStart};
use crate::error::PartitionError;
use crate::key::{RowKey, partition_prefix};
use crate::operation::{
    Decision, ObjectTable, Operation, Read, RowChange, RowRef, RowVersion, Rows, Scan, Visit,
};
use crate::range_partition::data::{pieces_of, size_of_distinct};
use base::codec::Decoder;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use stream::ExtentId;

/// What rows name in an extent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) bytes: u64,
    pub(super) rows: usize,
}

/// Counts each piece once, however many rows of a partition name share it; those of different names share
/// none.
#[derive(Default)]
pub(super) struct CountNamed {
    pub(super) named: BTreeMap<ExtentId, Named>,
    /// Pieces of the partition name that the walk is in.
    of_name: Vec<Piece>,
    /// Start of the keys of that name.
    name: Vec<u8>,
    pub(super) damage: Option<PartitionError>,
}

impl CountNamed {
    fn take(&mut self, row: RowRef<'_>) -> Result<(), PartitionError> {
        let pieces = pieces_of(row.value)?;
        if pieces.is_empty() {
            return Ok(());
        }
        if self.name.is_empty() || !row.key.starts_with(&self.name) {
            self.end_name();
            let name = partition_prefix(row.key);
            self.name.extend_from_slice(name.ok_or(PartitionError::Operation("not a row key"))?);
        }
        for (index, piece) in pieces.iter().enumerate() {
            // Pieces of an extent mostly follow each other.
            let is_first = index == 0 || pieces[index - 1].extent != piece.extent;
            self.named.entry(piece.extent).or_default().rows += usize::from(is_first);
        }
        self.of_name.extend(pieces);
        if self.of_name.len() >= PIECES_OF_NAME_MAX {
            self.settle(PIECES_OF_NAME_MAX / 2);
        }
        Ok(())
    }

    /// Makes room for more pieces of the same name: pieces count once, or twice if there are too many to
    /// remember, which makes an extent look fuller than it is and nothing worse.
    fn settle(&mut self, remembered_max: usize) {
        size_of_distinct(&mut self.of_name);
        if self.of_name.len() > remembered_max {
            self.settle_all();
        }
    }

    fn settle_all(&mut self) {
        for piece in self.of_name.drain(..) {
            self.named.entry(piece.extent).or_default().bytes += piece.stored_bytes();
        }
    }

    pub(super) fn end_name(&mut self) {
        self.name.clear();
        size_of_distinct(&mut self.of_name);
        self.settle_all();
    }
}

impl Scan for CountNamed {
    fn needs_overflow(&self) -> bool {
        false
    }

    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        match self.take(row) {
            Ok(()) => Visit::Continue,
            Err(error) => {
                self.damage = Some(error);
                Visit::StopBefore
            }
        }
    }
}

/// Pieces of one name that a count remembers at most, so as to count each once.
const PIECES_OF_NAME_MAX: usize = 2 << 20;

/// Rows that name some of these extents.
pub(super) struct FindNaming {
    pub(super) extents: BTreeSet<ExtentId>,
    pub(super) keys: Vec<RowKey>,
    pub(super) damage: Option<PartitionError>,
}

impl FindNaming {
    /// If there are more rows of the last name, at `next` or behind it, the next collection moves all of
    /// them: it would copy what they share once more for the rest. Unless there is no other name.
    fn forget_last_name(&mut self, next: &[u8]) {
        let Some(name) = partition_prefix(next) else { return };
        let others = self.keys.partition_point(|key| !key.as_bytes().starts_with(name));
        if others > 0 {
            self.keys.truncate(others);
        }
    }
}

impl Scan for FindNaming {
    fn needs_overflow(&self) -> bool {
        false
    }

    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        if self.keys.len() == MOVED_ROW_COUNT_MAX {
            self.forget_last_name(row.key);
            return Visit::StopBefore;
        }
        match pieces_of(row.value) {
            Ok(pieces) => {
                if pieces.iter().any(|piece| self.extents.contains(&piece.extent)) {
                    self.keys.push(RowKey::from_bytes(Bytes::copy_from_slice(row.key)));
                }
                Visit::Continue
            }
            Err(error) => {
                self.damage = Some(error);
                Visit::StopBefore
            }
        }
    }
}

/// Makes a row name the copies of its pieces, as far as it still names these pieces.
pub(super) struct MovePieces {
    pub(super) table: ObjectTable,
    pub(super) key: RowKey,
    pub(super) copies: BTreeMap<Piece, Piece>,
}

impl Operation for MovePieces {
    type Reply = ();

    fn object_table(&self) -> ObjectTable {
        self.table
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn gives_back(&self) -> bool {
        // Once nobody names it any more, the extent it was copied from goes.
        true
    }

    fn is_collection(&self) -> bool {
        true
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<()> {
        let Some(row) = rows.point(0) else { return Decision::unchanged(()) };
        let mut decoder = Decoder::new(&row.value);
        let Ok(mut start) = RowStart::take(&mut decoder) else { return Decision::unchanged(()) };
        let mut moved = false;
        for piece in &mut start.pieces {
            if let Some(copy) = self.copies.get(piece) {
                *piece = *copy;
                moved = true;
            }
        }
        if !moved {
            return Decision::unchanged(());
        }
        let mut value = Vec::with_capacity(row.value.len() + 8);
        start.put(&mut value);
        value.extend_from_slice(decoder.rest());
        Decision { changes: vec![RowChange::Put { key: self.key.clone(), value: value.into() }], reply: () }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob_data::piece::put_pieces;
    use crate::operation::Row;

    fn row(pieces: &[Piece]) -> Row {
        let mut value = Vec::new();
        put_pieces(&mut value, pieces);
        value.extend_from_slice(b"rest");
        Row { key: RowKey::new("a", 1, "b", "c"), version: RowVersion(1), value: value.into() }
    }

    #[test]
    fn only_pieces_that_the_row_still_names_are_replaced() {
        let piece = |offset| Piece::for_tests(1, offset, 10);
        let operation = MovePieces {
            table: ObjectTable::Blob,
            key: RowKey::new("a", 1, "b", "c"),
            copies: [(piece(1), piece(100))].into(),
        };
        let decide = |found: Vec<Row>| operation.decide(&Rows::new(vec![found]), RowVersion(9)).changes;
        let moved = decide(vec![row(&[piece(2), piece(1)])]);
        let expected = row(&[piece(2), piece(100)]);
        assert_eq!(moved, [RowChange::Put { key: expected.key, value: expected.value }]);
        assert_eq!(decide(vec![row(&[piece(2)])]), [], "the row was overwritten meanwhile");
        assert_eq!(decide(vec![]), [], "the row was deleted meanwhile");
    }

    /// Where a collection had as many rows as it moves at once, in the middle of a name, what that name's
    /// rows share was copied twice.
    #[test]
    fn a_name_is_moved_whole_unless_it_is_too_large() {
        let key = |(name, row): &(&str, &str)| RowKey::new("a", 1, name, row);
        let found = [("b", "1"), ("b", "2"), ("c", "1"), ("c", "2")];
        for (found, next, kept) in [
            (&found[..], ("c", "3"), 2),
            (&found[..], ("d", "1"), 4),
            (&found[..2], ("b", "3"), 2),
            (&found[..1], ("bb", "1"), 1),
            (&[], ("b", "1"), 0),
        ] {
            let keys = found.iter().map(key).collect();
            let mut find = FindNaming { extents: BTreeSet::new(), keys, damage: None };
            find.forget_last_name(key(&next).as_bytes());
            assert_eq!(find.keys.len(), kept, "{found:?} before {next:?}");
        }
        let others = (2..MOVED_ROW_COUNT_MAX).map(|row| key(&("b", &row.to_string())));
        let keys = others.chain(found[2..].iter().map(key)).collect();
        let mut find = FindNaming { extents: BTreeSet::new(), keys, damage: None };
        let next = key(&("c", "3"));
        let visited = find.visit(RowRef { key: next.as_bytes(), version: RowVersion(1), value: &[] });
        assert_eq!((visited, find.keys.len()), (Visit::StopBefore, MOVED_ROW_COUNT_MAX - 2));
    }
}
