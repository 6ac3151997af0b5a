//! Collecting blob data: extents that no row names leave the range's stream; those that are mostly dead have
//! their last pieces copied first.
//!
//! 1. A scan counts the bytes that rows name in each extent; `choose_emptied` says which ones are emptied.
//!    The one that takes appends is sealed if it is among them.
//! 2. Their pieces are copied, and each row is rewritten by an operation that acts only on pieces the
//!    row still names.
//! 3. Extents that nobody has pinned are *condemned*. Who pins one from now on, or names it in a row, pardons
//!    it.
//! 4. Everything decided before that becomes durable; a second scan sees it. Extents that no row names and
//!    that are condemned still leave the list, so that nobody can pin or name them any more, and then the
//!    stream.
//!
//! What always holds: between the sentence and the end of that scan nobody began to use an extent that
//! leaves, and before it nobody did who is not durable. Only sealed extents leave. Rows of deleted containers
//! keep nothing: nobody reads them. A crash at any point leaves only garbage, found again later.

use super::data::{RangeData, pieces_of, size_of_distinct};
use super::{RangePartition, Standing};
use crate::blob_data::choose_emptied::{
    CountedExtent, MOVED_ROW_COUNT_MAX, Pace, choose_emptied, is_worth_counting, left_dead_bytes, share_of,
};
use crate::blob_data::piece::{Piece, RowStart};
use crate::decider::UnderWay;
use crate::error::PartitionError;
use crate::key::{RowKey, Span, partition_prefix};
use crate::map::dead_containers::DeadFilter;
use crate::operation::{
    Decision, ObjectTable, Operation, Read, RowChange, RowRef, RowVersion, Rows, Scan, Visit,
};
use crate::range_partition::Executed;
use base::codec::Decoder;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use stream::{Claim, ExtentId, StreamChange};

/// Names whose pieces are copied at the same time: each has a piece in memory, of 4 MiB at most.
const NAMES_MOVED_AT_ONCE: usize = 8;

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
    pub(crate) fn is_worth_collecting(&self, pace: Pace) -> bool {
        let Some(data) = &self.data else { return false };
        // Less may be dead than the last collection left, if that was at a gentler pace.
        let is_as_left = data.changes.load(Ordering::Relaxed) == 0;
        if is_as_left && pace.rank() <= data.collected_at.load(Ordering::Relaxed) {
            return false;
        }
        let Ok(stat) = self.shared.streams.stat(&data.stream) else { return false };
        let share =
            |(extent, length): &(ExtentId, u64)| share_of(*length, self.shared.streams.listed_by(*extent));
        let stored_bytes: u64 = stat.extents.iter().map(share).sum();
        let open = stat.extents.last().map(|(extent, _)| *extent);
        let left = data.left_in_open.lock().filter(|(extent, _)| Some(*extent) == open);
        let left_bytes =
            left.map_or(0, |(_, dead_bytes)| dead_bytes) + data.left_unreadable_bytes.load(Ordering::Relaxed);
        is_worth_counting(stored_bytes, left_bytes, data.named_bytes(), pace)
    }

    /// What the server keeps back of the disk.
    pub(crate) fn kept_back_bytes(&self) -> u64 {
        self.shared.streams.kept_back_bytes()
    }

    /// Tells rows of deleted containers.
    pub(crate) fn dead_filter(&self) -> DeadFilter {
        self.shared.dead.filter(self.table)
    }

    /// A container of this range was deleted: how much its rows name is to be counted anew.
    pub(crate) fn forget_data_count(&self) {
        if let Some(data) = &self.data {
            data.forget_count();
        }
    }

    /// Gives back the space of blob data that no row names. It copies nothing more once it is closing, and no
    /// further blob once it is disturbed. What it did is added to `collected`, whether or not it fails in the
    /// end.
    pub(crate) async fn collect_data(
        self: &Arc<Self>,
        pace: Pace,
        closing: impl Fn() -> bool,
        is_disturbed: impl Fn() -> bool,
        collected: &mut Collected,
    ) -> Result<(), PartitionError> {
        let data = self.range_data()?;
        let _collecting = data.collecting.lock().await;
        if self.serial.lock().standing != Standing::Open {
            // Nobody could make rows name the copies.
            return Ok(());
        }
        data.changes.store(0, Ordering::Relaxed);
        data.collected_at.store(pace.rank(), Ordering::Relaxed);
        let outcome = self.collect_unnamed(data, pace, closing, is_disturbed, collected).await;
        if outcome.is_err() {
            // What failed may work once there is space again.
            data.changes.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }

    async fn collect_unnamed(
        self: &Arc<Self>,
        data: &RangeData,
        pace: Pace,
        closing: impl Fn() -> bool,
        is_disturbed: impl Fn() -> bool,
        collected: &mut Collected,
    ) -> Result<(), PartitionError> {
        let extents = self.shared.streams.stat(&data.stream)?.extents;
        if extents.is_empty() {
            return Ok(());
        }
        let named = self.count_named().await?;
        // Which one takes appends may have changed meanwhile; none of these has begun to.
        let open = extents.last().map(|(extent, _)| *extent);
        let lengths: BTreeMap<ExtentId, u64> = extents.iter().copied().collect();
        let counted = extents.into_iter().map(|(extent, length)| {
            let Named { bytes, rows } = named.get(&extent).copied().unwrap_or_default();
            CountedExtent {
                named_bytes: bytes,
                named_rows: rows,
                is_open: Some(extent) == open,
                ..CountedExtent::new(extent, length, self.shared.streams.listed_by(extent))
            }
        });
        let mut counted: Vec<CountedExtent> = counted.collect();
        let extent_size_bytes_max = self.shared.streams.extent_size_bytes_max();
        // What is being uploaded there looks dead now and is named in a moment.
        let settled = counted.last().filter(|open| !data.is_pinned(open.extent));
        *data.left_in_open.lock() =
            settled.map(|open| (open.extent, left_dead_bytes(open, extent_size_bytes_max)));
        {
            let unreadable = data.unreadable.lock();
            let is_left = |one: &mut CountedExtent| one.named_bytes > 0 && unreadable.contains(&one.extent);
            let left = counted.extract_if(.., is_left).filter(|one| !one.is_open);
            let left_bytes: u64 = left.map(|one| one.dead_bytes()).sum();
            data.left_unreadable_bytes.store(left_bytes, Ordering::Relaxed);
        }
        let wanted = choose_emptied(&counted, extent_size_bytes_max, pace);
        let wanted_count = wanted.len();
        let (mut chosen, _claim) = self.with_room(wanted, pace).await;
        if chosen.len() < wanted_count {
            // There may be room after others have left.
            data.changes.fetch_add(1, Ordering::Relaxed);
        }
        if closing() || is_disturbed() {
            // What needs no copy goes.
            data.changes.fetch_add(1, Ordering::Relaxed);
            chosen.retain(|one| one.named_bytes == 0);
        }
        if chosen.is_empty() || closing() {
            return Ok(());
        }
        let emptied: BTreeSet<ExtentId> = chosen.iter().map(|one| one.extent).collect();
        let moved = async {
            for one in chosen.iter().filter(|one| one.is_open) {
                self.shared.streams.seal(&data.stream, one.extent).await?;
            }
            self.move_pieces(&emptied, &closing, &is_disturbed, &mut collected.copied_bytes).await
        };
        let moved = moved.await;
        // A copy that failed, for want of space perhaps, must not keep those extents that need none. What is
        // named stays: that is looked at again. One that may still be open stays, too.
        let leaving = chosen.iter().filter(|one| moved.is_ok() || !one.is_open).map(|one| one.extent);
        let condemned = data.condemn(leaving);
        let released = self.release_condemned(data, &condemned).await?;
        collected.extents += released.len() as u64;
        collected.size_bytes +=
            released.iter().map(|extent| lengths.get(extent).copied().unwrap_or(0)).sum::<u64>();
        moved?;
        if released.len() < emptied.len() {
            // Somebody still reads them, or names them again: the next collection looks at them even if
            // nothing changes.
            data.changes.fetch_add(1, Ordering::Relaxed);
        }
        if !released.is_empty() {
            tracing::debug!(range = self.id, extents = released.len(), "blob data is collected");
        }
        Ok(())
    }

    /// Those of the wanted extents whose copies have room. Where space is what matters, they have it for
    /// themselves.
    async fn with_room(&self, wanted: Vec<CountedExtent>, pace: Pace) -> (Vec<CountedExtent>, Option<Claim>) {
        let streams = &self.shared.streams;
        let mut claim = None;
        let mut room_bytes = u64::MAX;
        if pace.is_urgent() {
            // One extent at least, as many as have room at most: what they give back makes room for the next
            // ones.
            let least = wanted.iter().map(|one| one.named_bytes).find(|bytes| *bytes > 0).unwrap_or(0);
            let all = wanted.iter().map(|one| one.named_bytes).sum();
            claim = streams.claim(all, least).await;
            room_bytes = claim.as_ref().map_or(0, Claim::size_bytes);
        }
        let mut copied_bytes = 0;
        let mut chosen = Vec::new();
        for one in wanted {
            // What needs no copy always has room.
            let bytes = copied_bytes + one.named_bytes;
            if one.named_bytes == 0
                || bytes <= room_bytes && (pace.is_urgent() || streams.has_room_for(bytes).await)
            {
                copied_bytes += one.named_bytes;
                chosen.push(one);
            }
        }
        (chosen, claim)
    }

    /// Takes those condemned extents that no row names off the stream, and says which.
    pub(super) async fn release_condemned(
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
        decided.await?;
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

    /// What rows name, by extent. Those of deleted containers don't count: nobody reads them any more.
    async fn count_named(&self) -> Result<BTreeMap<ExtentId, Named>, PartitionError> {
        let data = self.range_data()?;
        let (begun, dead, snapshot) =
            data.begin_count(|| self.shared.dead.filter(self.table), || self.snapshot());
        let mut count = CountNamed::new(dead);
        self.scan_snapshot(snapshot, &[Span::Range(self.range.clone())], &mut count).await?;
        if let Some(error) = count.damage {
            return Err(error);
        }
        count.end_name();
        let total: u64 = count.named.values().map(|named| named.bytes).sum();
        // A container that was deleted during the scan may be in the total: then it is forgotten.
        data.end_count(begun, total);
        Ok(count.named)
    }

    /// Copies pieces in `extents` that rows name, and makes the rows name the copies. How many bytes were
    /// copied is added to `copied_bytes`. If it is disturbed, it ends between two names: rows of one share
    /// pieces, which would be copied for each of them.
    pub(super) async fn move_pieces(
        self: &Arc<Self>,
        extents: &BTreeSet<ExtentId>,
        closing: &impl Fn() -> bool,
        is_disturbed: &impl Fn() -> bool,
        copied_bytes: &mut u64,
    ) -> Result<(), PartitionError> {
        let dead = self.shared.dead.filter(self.table);
        let mut find = FindNaming { extents: extents.clone(), dead, keys: Vec::new(), damage: None };
        self.scan(&[Span::Range(self.range.clone())], &mut find).await?;
        if let Some(error) = find.damage {
            return Err(error);
        }
        let mut names: Vec<Vec<RowKey>> = Vec::new();
        let name_of = |key: &RowKey| partition_prefix(key.as_bytes()).unwrap_or_default().to_vec();
        for key in find.keys {
            match names.last_mut() {
                Some(last) if name_of(&last[0]) == name_of(&key) => last.push(key),
                _ => names.push(vec![key]),
            }
        }
        // Several at once: each waits for syncs, which they can share.
        let copied = AtomicU64::new(0);
        let ended = AtomicBool::new(false);
        let moves = futures_util::stream::iter(names.into_iter().map(|keys| {
            let (copied, ended) = (&copied, &ended);
            async move {
                if ended.load(Ordering::Relaxed) || closing() || is_disturbed() {
                    return Ok(());
                }
                let goes_on = self.move_name(keys, extents, closing, copied).await;
                if !matches!(goes_on, Ok(true)) {
                    ended.store(true, Ordering::Relaxed);
                }
                goes_on.map(|_| ())
            }
        }));
        let outcomes: Vec<Result<(), PartitionError>> =
            moves.buffer_unordered(NAMES_MOVED_AT_ONCE).collect().await;
        *copied_bytes += copied.into_inner();
        outcomes.into_iter().collect()
    }

    /// The same for the rows of one name: others share none of its pieces. False: those who take over will
    /// choose for themselves, or it is closing.
    async fn move_name(
        self: &Arc<Self>,
        keys: Vec<RowKey>,
        extents: &BTreeSet<ExtentId>,
        closing: &impl Fn() -> bool,
        copied_bytes: &AtomicU64,
    ) -> Result<bool, PartitionError> {
        let mut copies: BTreeMap<Piece, Piece> = BTreeMap::new();
        let mut pins = Vec::new();
        for key in keys {
            if closing() {
                return Ok(false);
            }
            let Some((row, pin)) = self.get_with_data(&key).await? else { continue };
            let pieces = pieces_of(&row.value)?;
            for piece in pieces.iter().copied() {
                if !extents.contains(&piece.extent) || copies.contains_key(&piece) {
                    continue;
                }
                let mut bytes = BytesMut::with_capacity(piece.size_bytes() as usize);
                while (bytes.len() as u64) < piece.size_bytes() {
                    let read = pin.read(&piece, bytes.len() as u64).await;
                    if matches!(read, Err(PartitionError::Storage(_))) {
                        self.range_data()?.unreadable.lock().insert(piece.extent);
                    }
                    bytes.extend_from_slice(&read?);
                }
                let Executed::Done((copy, copy_pin)) = self.append_piece(bytes.freeze()).await? else {
                    return Ok(false);
                };
                copied_bytes.fetch_add(copy.size_bytes(), Ordering::Relaxed);
                copies.insert(piece, copy);
                pins.push(copy_pin);
            }
            drop(pin);
            let copy = |piece: &Piece| Some((*piece, *copies.get(piece)?));
            let own = pieces.iter().filter_map(copy).collect();
            let operation = MovePieces { table: self.table, key, copies: own };
            let reads = operation.reads();
            match self.execute(&mut UnderWay::new(operation), reads).await? {
                Executed::Done(()) => {}
                Executed::Moved(_) => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// What rows name in an extent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Named {
    bytes: u64,
    rows: usize,
}

/// Counts each piece once, however many rows of a partition name share it; those of different names share
/// none.
struct CountNamed {
    named: BTreeMap<ExtentId, Named>,
    /// Pieces of the partition name that the walk is in.
    of_name: Vec<Piece>,
    /// Start of the keys of that name.
    name: Vec<u8>,
    dead: DeadFilter,
    damage: Option<PartitionError>,
}

impl CountNamed {
    fn new(dead: DeadFilter) -> Self {
        CountNamed { named: BTreeMap::new(), of_name: Vec::new(), name: Vec::new(), dead, damage: None }
    }

    fn take(&mut self, row: RowRef<'_>) -> Result<(), PartitionError> {
        if self.dead.drops(row.key) {
            return Ok(());
        }
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

    fn end_name(&mut self) {
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
struct FindNaming {
    extents: BTreeSet<ExtentId>,
    dead: DeadFilter,
    keys: Vec<RowKey>,
    damage: Option<PartitionError>,
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
        if self.dead.drops(row.key) {
            return Visit::Continue;
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
            let dead = crate::map::dead_containers::DeadContainers::default().filter(ObjectTable::Blob);
            let mut find = FindNaming { extents: BTreeSet::new(), dead, keys, damage: None };
            find.forget_last_name(key(&next).as_bytes());
            assert_eq!(find.keys.len(), kept, "{found:?} before {next:?}");
        }
        let others = (2..MOVED_ROW_COUNT_MAX).map(|row| key(&("b", &row.to_string())));
        let keys = others.chain(found[2..].iter().map(key)).collect();
        let dead = crate::map::dead_containers::DeadContainers::default().filter(ObjectTable::Blob);
        let mut find = FindNaming { extents: BTreeSet::new(), dead, keys, damage: None };
        let next = key(&("c", "3"));
        let visited = find.visit(RowRef { key: next.as_bytes(), version: RowVersion(1), value: &[] });
        assert_eq!((visited, find.keys.len()), (Visit::StopBefore, MOVED_ROW_COUNT_MAX - 2));
    }
}
