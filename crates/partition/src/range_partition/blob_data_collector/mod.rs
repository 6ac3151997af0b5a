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

mod empty_extents;
mod named_pieces;

use self::named_pieces::{CountNamed, FindNaming, MovePieces, Named};
use crate::background::range_work::{Collected, Ends};
use crate::blob_data::choose_emptied::{
    CountedExtent, Pace, choose_emptied, is_worth_counting, left_dead_bytes, share_of,
};
use crate::blob_data::piece::Piece;
use crate::decider::{Decider, UnderWay};
use crate::error::PartitionError;
use crate::key::{RowKey, Span, partition_prefix};
use crate::map::dead_filter::{AliveRows, DeadFilter};
use crate::operation::{Operation, Read, Row, Scan};
use crate::range_partition::data::{RangeData, pieces_of};
use crate::range_partition::executed::Executed;
use crate::range_partition::range_tree::{RangeTree, Snapshot, Standing};
use crate::range_partition::reader::scan_snapshot;
use base::BoxFuture;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use stream::{Claim, ExtentId, StreamChange};

/// Names whose pieces are copied at the same time: each has a piece in memory, of 4 MiB at most.
const NAMES_MOVED_AT_ONCE: usize = 8;

/// A row whose pieces `P` keeps where they are.
pub(crate) type PinnedRow<P> = Result<Option<(Row, P)>, PartitionError>;
/// A piece that `P` keeps where it is.
pub(crate) type PinnedPiece<P> = Result<Executed<(Piece, P)>, PartitionError>;

/// The rows and pieces of a range, as far as a collection moves them.
pub(crate) trait MoveRows: Sync {
    /// Keeps pieces where they are.
    type Pin: ReadPieces;

    /// The row at `key`, its pieces pinned.
    fn get_with_data<'a>(&'a self, key: &'a RowKey) -> BoxFuture<'a, PinnedRow<Self::Pin>>;

    /// Appends a piece, also while space is scarce.
    fn append_piece(&self, bytes: Bytes) -> BoxFuture<'_, PinnedPiece<Self::Pin>>;

    /// Decides an operation.
    fn execute<'a>(
        &'a self,
        operation: &'a mut dyn Decider,
        reads: Vec<Read>,
    ) -> BoxFuture<'a, Result<Executed<(), Vec<Read>>, PartitionError>>;
}

/// Reads pieces that stay meanwhile.
pub(crate) trait ReadPieces: Send + Sync {
    /// Bytes of a piece from `at` on: some. Empty: `at` is the end.
    fn read<'a>(&'a self, piece: &'a Piece, at: u64) -> BoxFuture<'a, Result<Bytes, PartitionError>>;
}

/// Collects the blob data of a range.
pub(crate) struct BlobDataCollector {
    pub(crate) core: Arc<RangeTree>,
    pub(crate) data: Arc<RangeData>,
    /// The pace of the last collection, see `Pace::rank`.
    collected_at: AtomicU8,
    /// The extent that took appends at the last collection, and its dead bytes that the collection left.
    left_in_open: Mutex<Option<(ExtentId, u64)>>,
    /// Dead bytes in extents that the last collection left because they are unreadable.
    left_unreadable_bytes: AtomicU64,
    /// Extents of which a collection could not read something, since the range was opened. To try it again
    /// and again would copy the rest of them each time, in vain.
    unreadable: Mutex<BTreeSet<ExtentId>>,
    /// Held during a collection.
    pub(crate) collecting: tokio::sync::Mutex<()>,
}

impl BlobDataCollector {
    pub(crate) fn new(core: Arc<RangeTree>, data: Arc<RangeData>) -> Self {
        BlobDataCollector {
            core,
            data,
            collected_at: AtomicU8::new(0),
            left_in_open: Mutex::new(None),
            left_unreadable_bytes: AtomicU64::new(0),
            unreadable: Mutex::default(),
            collecting: tokio::sync::Mutex::new(()),
        }
    }

    /// Whether a collection may free a fair part of what is stored.
    pub(crate) fn is_worth_collecting(&self, pace: Pace) -> bool {
        let data = &*self.data;
        // Less may be dead than the last collection left, if that was at a gentler pace.
        let is_as_left = data.changes.load(Ordering::Relaxed) == 0;
        if is_as_left && pace.rank() <= self.collected_at.load(Ordering::Relaxed) {
            return false;
        }
        let Ok(stat) = self.core.shared.streams.stat(&data.stream) else { return false };
        let share = |(extent, length): &(ExtentId, u64)| {
            share_of(*length, self.core.shared.streams.listed_by(*extent))
        };
        let stored_bytes: u64 = stat.extents.iter().map(share).sum();
        let open = stat.extents.last().map(|(extent, _)| *extent);
        let left = self.left_in_open.lock().filter(|(extent, _)| Some(*extent) == open);
        let left_bytes =
            left.map_or(0, |(_, dead_bytes)| dead_bytes) + self.left_unreadable_bytes.load(Ordering::Relaxed);
        is_worth_counting(stored_bytes, left_bytes, data.named_bytes(), pace)
    }

    /// Frees the space of blob data that no row names. It copies nothing more once it is closing, and no
    /// further blob once it is disturbed. What it did is added to `collected`, whether or not it fails in the
    /// end.
    pub(crate) async fn collect_data(
        &self,
        rows: &impl MoveRows,
        pace: Pace,
        closing: Ends<'_>,
        is_disturbed: Ends<'_>,
        collected: &mut Collected,
    ) -> Result<(), PartitionError> {
        let data = &*self.data;
        let _collecting = self.collecting.lock().await;
        if self.core.serial.lock().standing != Standing::Open {
            // Nobody could make rows name the copies.
            return Ok(());
        }
        data.changes.store(0, Ordering::Relaxed);
        self.collected_at.store(pace.rank(), Ordering::Relaxed);
        let outcome = self.collect_unnamed(rows, data, pace, closing, is_disturbed, collected).await;
        if outcome.is_err() {
            // What failed may work once there is space again.
            data.changes.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }

    async fn collect_unnamed(
        &self,
        rows: &impl MoveRows,
        data: &RangeData,
        pace: Pace,
        closing: Ends<'_>,
        is_disturbed: Ends<'_>,
        collected: &mut Collected,
    ) -> Result<(), PartitionError> {
        let extents = self.core.shared.streams.stat(&data.stream)?.extents;
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
                ..CountedExtent::new(extent, length, self.core.shared.streams.listed_by(extent))
            }
        });
        let mut counted: Vec<CountedExtent> = counted.collect();
        let extent_size_bytes_max = self.core.shared.streams.extent_size_bytes_max();
        // What is being uploaded there looks dead now and is named in a moment.
        let settled = counted.last().filter(|open| !data.is_pinned(open.extent));
        *self.left_in_open.lock() =
            settled.map(|open| (open.extent, left_dead_bytes(open, extent_size_bytes_max)));
        {
            let unreadable = self.unreadable.lock();
            let is_left = |one: &mut CountedExtent| one.named_bytes > 0 && unreadable.contains(&one.extent);
            let left = counted.extract_if(.., is_left).filter(|one| !one.is_open);
            let left_bytes: u64 = left.map(|one| one.dead_bytes()).sum();
            self.left_unreadable_bytes.store(left_bytes, Ordering::Relaxed);
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
                self.core.shared.streams.seal(&data.stream, self.core.owner, one.extent).await?;
            }
            self.move_pieces(rows, &emptied, closing, is_disturbed, &mut collected.copied_bytes).await
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
            tracing::debug!(range = self.core.id, extents = released.len(), "blob data is collected");
        }
        Ok(())
    }

    /// Those of the wanted extents whose copies have room. Where space is what matters, they have it for
    /// themselves.
    async fn with_room(&self, wanted: Vec<CountedExtent>, pace: Pace) -> (Vec<CountedExtent>, Option<Claim>) {
        let streams = &self.core.shared.streams;
        let mut claim = None;
        let mut room_bytes = u64::MAX;
        if pace.is_urgent() {
            // One extent at least, as many as have room at most: what they free makes room for the next
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
    pub(crate) async fn release_condemned(
        &self,
        data: &RangeData,
        condemned: &[ExtentId],
    ) -> Result<Vec<ExtentId>, PartitionError> {
        if condemned.is_empty() {
            return Ok(Vec::new());
        }
        // Whatever was decided before the sentence must be seen by the scan.
        let decided = {
            let mut serial = self.core.serial.lock();
            if serial.standing != Standing::Open {
                // Nobody may be there any more to tell the outcome; whoever serves these rows next collects.
                return Ok(Vec::new());
            }
            serial.pending.wait()
        };
        self.core.log.wake.notify_one();
        decided.await?;
        let named = self.count_named().await?;
        let free: Vec<ExtentId> =
            condemned.iter().filter(|extent| !named.contains_key(extent)).copied().collect();
        let leaving = data.remove_condemned(&free);
        if !leaving.is_empty() {
            let unlist = StreamChange::Unlist {
                stream: data.stream.owned_by(self.core.owner),
                extents: leaving.clone(),
            };
            let outcome = self.core.shared.streams.multi_modify(&[unlist]).await;
            // It may have failed only after the extents had left: the stream says.
            let have_left = outcome.is_ok()
                || self
                    .core
                    .shared
                    .streams
                    .stat(&data.stream)
                    .is_ok_and(|stat| !stat.extents.iter().any(|(extent, _)| leaving.contains(extent)));
            data.have_left(have_left);
            outcome?;
        }
        Ok(leaving)
    }

    /// Shows a scan all rows but those of deleted containers.
    async fn scan_alive<S: Scan>(
        &self,
        dead: DeadFilter,
        snapshot: &Snapshot,
        scan: S,
    ) -> Result<S, PartitionError> {
        let keys = &self.core.range;
        let mut alive = AliveRows::new(dead, keys.clone(), scan);
        while let Some(part) = alive.next_part().await? {
            scan_snapshot(keys, (&snapshot.0, snapshot.1), &[Span::Range(part)], &mut alive).await?;
        }
        Ok(alive.into_scan())
    }

    /// What rows name, by extent. Those of deleted containers don't count: nobody reads them any more.
    async fn count_named(&self) -> Result<BTreeMap<ExtentId, Named>, PartitionError> {
        let data = &*self.data;
        let (begun, dead, snapshot) =
            data.begin_count(|| self.core.shared.dead.filter(self.core.table), || self.core.snapshot());
        let mut count = self.scan_alive(dead, &snapshot, CountNamed::default()).await?;
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
    pub(crate) async fn move_pieces(
        &self,
        rows: &impl MoveRows,
        extents: &BTreeSet<ExtentId>,
        closing: Ends<'_>,
        is_disturbed: Ends<'_>,
        copied_bytes: &mut u64,
    ) -> Result<(), PartitionError> {
        let dead = self.core.shared.dead.filter(self.core.table);
        let find = FindNaming { extents: extents.clone(), keys: Vec::new(), damage: None };
        let find = self.scan_alive(dead, &self.core.snapshot(), find).await?;
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
                let goes_on = self.move_name(rows, keys, extents, closing, copied).await;
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
        &self,
        rows: &impl MoveRows,
        keys: Vec<RowKey>,
        extents: &BTreeSet<ExtentId>,
        closing: Ends<'_>,
        copied_bytes: &AtomicU64,
    ) -> Result<bool, PartitionError> {
        let mut copies: BTreeMap<Piece, Piece> = BTreeMap::new();
        let mut pins = Vec::new();
        for key in keys {
            if closing() {
                return Ok(false);
            }
            let Some((row, pin)) = rows.get_with_data(&key).await? else { continue };
            let pieces = pieces_of(&row.value)?;
            for piece in pieces.iter().copied() {
                if !extents.contains(&piece.extent) || copies.contains_key(&piece) {
                    continue;
                }
                let mut bytes = BytesMut::with_capacity(piece.size_bytes() as usize);
                while (bytes.len() as u64) < piece.size_bytes() {
                    let read = pin.read(&piece, bytes.len() as u64).await;
                    if matches!(read, Err(PartitionError::Storage(_))) {
                        self.unreadable.lock().insert(piece.extent);
                    }
                    bytes.extend_from_slice(&read?);
                }
                let Executed::Done((copy, copy_pin)) = rows.append_piece(bytes.freeze()).await? else {
                    return Ok(false);
                };
                copied_bytes.fetch_add(copy.size_bytes(), Ordering::Relaxed);
                copies.insert(piece, copy);
                pins.push(copy_pin);
            }
            drop(pin);
            let copy = |piece: &Piece| Some((*piece, *copies.get(piece)?));
            let own = pieces.iter().filter_map(copy).collect();
            let operation = MovePieces { table: self.core.table, key, copies: own };
            let reads = operation.reads();
            match rows.execute(&mut UnderWay::new(operation), reads).await? {
                Executed::Done(()) => {}
                Executed::Moved(_) => return Ok(false),
            }
        }
        Ok(true)
    }
}
