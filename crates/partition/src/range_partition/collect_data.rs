//! Collecting blob data: extents that no row names leave the range's stream; those that are mostly dead have their
//! last pieces copied first.
//!
//! 1. A scan counts the bytes that rows name in each extent.
//! 2. Pieces in mostly dead extents are copied, and each row is rewritten by an operation that acts only on pieces the
//!    row still names.
//! 3. Extents that nobody has pinned are *condemned*. Who pins one from now on, or names it in a row, pardons it.
//! 4. Everything decided before that becomes durable; a second scan sees it. Extents that no row names and that are
//!    condemned still leave the list, so that nobody can pin or name them any more, and then the stream.
//!
//! What always holds: between the sentence and the end of that scan nobody began to use an extent that leaves, and
//! before it nobody did who is not durable. The last extent of the stream stays, because it takes appends. A crash at any
//! point leaves only garbage, found again later.

use super::commit;
use super::data::{RangeData, pieces_of};
use super::{RangePartition, Standing};
use crate::error::PartitionError;
use crate::key::RowKey;
use crate::operation::{
    Decision, ObjectTable, Operation, Read, RowChange, RowRef, RowVersion, Rows, Scan, Visit,
};
use crate::piece::{Piece, put_pieces, take_pieces};
use crate::range_partition::Executed;
use base::codec::Decoder;
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use stream::{ExtentId, StreamChange};

/// An extent with fewer named bytes than this share of its length, in percent, is emptied.
const MOSTLY_DEAD_PERCENT: u64 = 50;
/// Bytes that one collection copies at most.
const COPY_SIZE_BYTES_MAX: u64 = 256 << 20;
/// Rows that one pass rewrites at most.
const MOVED_ROW_COUNT_MAX: usize = 4096;

/// What a collection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Extents that left the stream.
    pub extents: u64,
    /// Their bytes.
    pub size_bytes: u64,
    /// Bytes that were copied for it.
    pub copied_bytes: u64,
}

impl RangePartition {
    /// Whether a collection may give back a fair part of what is stored.
    pub(crate) fn is_worth_collecting(&self) -> bool {
        let Some(data) = &self.data else { return false };
        if data.changes.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let Ok(stat) = self.shared.streams.stat(&data.stream) else { return false };
        let without_last = &stat.extents[..stat.extents.len().saturating_sub(1)];
        let size_bytes: u64 = without_last.iter().map(|(_, length)| length).sum();
        let named_bytes = data.named_bytes.load(Ordering::Relaxed).max(0) as u64;
        // A tenth may be headers, the open extent, and what is counted twice.
        size_bytes > 0 && named_bytes < size_bytes / 10 * 9
    }

    /// Gives back the space of blob data that no row names.
    pub(crate) async fn collect_data(
        self: &Arc<Self>,
        give_up: impl Fn() -> bool,
    ) -> Result<Collected, PartitionError> {
        let data = self.range_data()?;
        let _collecting = data.collecting.lock().await;
        data.changes.store(0, Ordering::Relaxed);
        let mut candidates: BTreeMap<ExtentId, u64> =
            self.shared.streams.stat(&data.stream)?.extents.into_iter().collect();
        // The last one takes appends; the order in the stream is that of the ids only within one range's life.
        let last = self.shared.streams.stat(&data.stream)?.extents.last().copied();
        if let Some((last, _)) = last {
            candidates.remove(&last);
        }
        let mut collected = Collected::default();
        if candidates.is_empty() {
            return Ok(collected);
        }
        let named = self.count_named().await?;
        let mut emptied = BTreeSet::new();
        let mut by_share: Vec<(u64, ExtentId, u64)> = Vec::new();
        for (extent, length) in &candidates {
            let bytes = named.get(extent).copied().unwrap_or(0);
            if bytes * 100 < length * MOSTLY_DEAD_PERCENT {
                by_share.push((bytes * 1000 / length.max(&1), *extent, bytes));
            }
        }
        by_share.sort_unstable();
        for (_, extent, bytes) in by_share {
            if bytes > 0 && collected.copied_bytes + bytes > COPY_SIZE_BYTES_MAX {
                break;
            }
            collected.copied_bytes += bytes;
            emptied.insert(extent);
        }
        if emptied.is_empty() || give_up() {
            return Ok(collected);
        }
        self.move_pieces(&emptied, &give_up).await?;
        let condemned = data.condemn(emptied.into_iter());
        for extent in self.release_condemned(data, &condemned).await? {
            collected.extents += 1;
            collected.size_bytes += candidates.get(&extent).copied().unwrap_or(0);
        }
        if collected.extents > 0 {
            tracing::debug!(range = self.id, ?collected, "blob data is collected");
        }
        Ok(collected)
    }

    /// Takes those condemned extents that no row names off the stream, and says which.
    async fn release_condemned(
        &self,
        data: &RangeData,
        condemned: &[ExtentId],
    ) -> Result<Vec<ExtentId>, PartitionError> {
        if condemned.is_empty() {
            return Ok(Vec::new());
        }
        // Whatever was decided before the sentence must be seen by the scan.
        let decided = {
            let mut serial = self.serial.lock();
            if serial.standing != Standing::Open {
                // Nobody may be there any more to tell the outcome; whoever serves these rows next collects.
                return Ok(Vec::new());
            }
            serial.pending.wait()
        };
        self.commit_wake.notify_one();
        commit::outcome(decided).await?;
        let named = self.count_named().await?;
        let free: Vec<ExtentId> =
            condemned.iter().filter(|extent| !named.contains_key(extent)).copied().collect();
        let leaving = data.remove_condemned(&free);
        if !leaving.is_empty() {
            let unlist = StreamChange::Unlist { stream: data.stream.clone(), extents: leaving.clone() };
            let outcome = self.shared.streams.multi_modify(&[unlist]).await;
            // It may have failed only after the extents had left: the stream says.
            let have_left = outcome.is_ok()
                || self
                    .shared
                    .streams
                    .stat(&data.stream)
                    .is_ok_and(|stat| !stat.extents.iter().any(|(extent, _)| leaving.contains(extent)));
            data.have_left(have_left);
            outcome?;
        }
        Ok(leaving)
    }

    /// Bytes that rows name, by extent.
    async fn count_named(&self) -> Result<BTreeMap<ExtentId, u64>, PartitionError> {
        let mut count = CountNamed::default();
        self.scan(&self.range.clone(), &mut count).await?;
        if let Some(error) = count.damage {
            return Err(error);
        }
        let total: u64 = count.named.values().sum();
        if let Some(data) = &self.data {
            data.named_bytes.store(total as i64, Ordering::Relaxed);
        }
        Ok(count.named)
    }

    /// Copies all pieces in `extents` that rows name, and makes the rows name the copies.
    async fn move_pieces(
        self: &Arc<Self>,
        extents: &BTreeSet<ExtentId>,
        give_up: &impl Fn() -> bool,
    ) -> Result<(), PartitionError> {
        let mut find = FindNaming { extents: extents.clone(), keys: Vec::new(), damage: None };
        self.scan(&self.range.clone(), &mut find).await?;
        if let Some(error) = find.damage {
            return Err(error);
        }
        let mut copies: BTreeMap<Piece, Piece> = BTreeMap::new();
        let mut pins = Vec::new();
        for key in find.keys {
            if give_up() {
                return Ok(());
            }
            let Some((row, pin)) = self.get_with_data(&key).await? else { continue };
            let pieces = pieces_of(&row.value)?;
            for piece in pieces.iter().copied() {
                if !extents.contains(&piece.extent) || copies.contains_key(&piece) {
                    continue;
                }
                let mut bytes = BytesMut::with_capacity(piece.size_bytes() as usize);
                while (bytes.len() as u64) < piece.size_bytes() {
                    bytes.extend_from_slice(&pin.read(&piece, bytes.len() as u64).await?);
                }
                let (copy, copy_pin) = self.append_data(bytes.freeze()).await?;
                copies.insert(piece, copy);
                pins.push(copy_pin);
            }
            drop(pin);
            let copy = |piece: &Piece| Some((*piece, *copies.get(piece)?));
            let own = pieces.iter().filter_map(copy).collect();
            let operation = MovePieces { table: self.table, key, copies: own };
            match self.execute(&operation, &operation.reads()).await? {
                Executed::Done(()) => {}
                // Those who take over will choose for themselves.
                Executed::Moved => return Ok(()),
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct CountNamed {
    named: BTreeMap<ExtentId, u64>,
    damage: Option<PartitionError>,
}

impl Scan for CountNamed {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        match pieces_of(row.value) {
            Ok(pieces) => {
                for piece in pieces {
                    *self.named.entry(piece.extent).or_default() += piece.size_bytes();
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

/// Rows that name some of these extents.
struct FindNaming {
    extents: BTreeSet<ExtentId>,
    keys: Vec<RowKey>,
    damage: Option<PartitionError>,
}

impl Scan for FindNaming {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        if self.keys.len() == MOVED_ROW_COUNT_MAX {
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
struct MovePieces {
    table: ObjectTable,
    key: RowKey,
    copies: BTreeMap<Piece, Piece>,
}

impl Operation for MovePieces {
    type Reply = ();

    fn object_table(&self) -> ObjectTable {
        self.table
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<()> {
        let Some(row) = rows.point(0) else { return Decision::unchanged(()) };
        let mut decoder = Decoder::new(&row.value);
        let Ok(mut pieces) = take_pieces(&mut decoder) else { return Decision::unchanged(()) };
        let mut moved = false;
        for piece in &mut pieces {
            if let Some(copy) = self.copies.get(piece) {
                *piece = *copy;
                moved = true;
            }
        }
        if !moved {
            return Decision::unchanged(());
        }
        let mut value = Vec::with_capacity(row.value.len() + 8);
        put_pieces(&mut value, &pieces);
        value.extend_from_slice(decoder.rest());
        Decision { changes: vec![RowChange::Put { key: self.key.clone(), value: value.into() }], reply: () }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
