//! Walking a checkpoint's rows in key order, a row block at a time.

use super::damage::damaged;
use super::index_block::{IndexBlock, IndexEntry};
use super::merged_row::RowOverflow;
use super::open_checkpoint::{Caching, Checkpoint, parse_rows};
use super::overflow::{OverflowPlace, StoredOverflow};
use super::row_block::{RowBlock, RowIterator, RowPosition};
use crate::error::PartitionError;
use crate::operation::RowVersion;
use base::codec::DecodeError;
use bytes::Bytes;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use stream::{ExtentId, Location};

/// Bytes of row blocks that a walk past the cache reads ahead: large pieces cost the disk and the processor
/// less.
const READ_AHEAD_SIZE_BYTES: u64 = 512 << 10;
/// The least, however many checkpoints are walked side by side: smaller reads go through the page cache.
const READ_AHEAD_SIZE_BYTES_MIN: u64 = 64 << 10;
/// All that walks over several checkpoints side by side read ahead.
const READS_AHEAD_SIZE_BYTES_MAX: u64 = 8 << 20;
/// Bytes of overflows, with what their blocks have besides, that are read with their row blocks: of as many
/// as have no more together, or of one. Just as much as memory of large reads has, which is used again.
const OVERFLOWS_AHEAD_SIZE_BYTES: u64 = 448 << 10;

/// Which overflows a walk past the cache reads with their row blocks. One through the cache reads none: a
/// reader that needs one requests it.
#[derive(Clone, Debug)]
pub(crate) enum OverflowReads {
    /// Every row is seen whole.
    All,
    /// Rows are seen as their heads.
    None,
    /// All but those in these extents.
    NotIn(Arc<BTreeSet<ExtentId>>),
}

impl OverflowReads {
    fn reads(&self, place: OverflowPlace) -> bool {
        match self {
            OverflowReads::All => true,
            OverflowReads::None => false,
            OverflowReads::NotIn(extents) => !extents.contains(&place.location.extent),
        }
    }
}

/// Bytes of row blocks that a walk past the cache reads ahead of each of so many checkpoints.
pub(crate) fn choose_read_ahead(checkpoint_count: usize) -> u64 {
    let share = READS_AHEAD_SIZE_BYTES_MAX / (checkpoint_count.max(1) as u64);
    share.clamp(READ_AHEAD_SIZE_BYTES_MIN, READ_AHEAD_SIZE_BYTES)
}

/// How a cursor reads what it walks over.
#[derive(Clone, Debug)]
pub(crate) struct WalkReads {
    pub(crate) caching: Caching,
    pub(crate) overflows: OverflowReads,
    /// Bytes of row blocks that are read ahead, past the cache only.
    pub(crate) ahead_size_bytes: u64,
}

impl WalkReads {
    /// Of one checkpoint alone.
    pub(crate) fn alone(caching: Caching, overflows: OverflowReads) -> Self {
        WalkReads { caching, overflows, ahead_size_bytes: READ_AHEAD_SIZE_BYTES }
    }
}

/// Stands on a row of a checkpoint, or at its end.
pub(crate) struct CheckpointCursor {
    checkpoint: Arc<Checkpoint>,
    reads: WalkReads,
    part: usize,
    index: Option<Arc<IndexBlock>>,
    /// The next row block in the index.
    next_block: usize,
    block: Option<(Location, RowIterator)>,
    position: Option<RowPosition>,
    /// The overflow of the row it stands on, once it was read.
    overflow: Option<StoredOverflow>,
    /// Row blocks that follow, unpacked, whose overflows were read.
    unpacked: VecDeque<(Location, RowIterator)>,
    /// Overflows of the rows behind the one it stands on, in this block and those.
    overflows: VecDeque<StoredOverflow>,
    /// Row blocks behind those that follow, read ahead and as stored: unpacked they may be many times as
    /// large.
    ahead: VecDeque<Bytes>,
}

impl CheckpointCursor {
    /// Stands on the first row at or after `start`.
    pub(crate) async fn new(
        checkpoint: Arc<Checkpoint>,
        start: &[u8],
        reads: WalkReads,
    ) -> Result<Self, PartitionError> {
        let mut cursor = CheckpointCursor {
            checkpoint,
            reads,
            part: 0,
            index: None,
            next_block: 0,
            block: None,
            position: None,
            overflow: None,
            unpacked: VecDeque::new(),
            overflows: VecDeque::new(),
            ahead: VecDeque::new(),
        };
        cursor.load_block_of(start).await?;
        cursor.step_up_to(start).await?;
        Ok(cursor)
    }

    /// Goes on to the first row at or after `key`, which lies ahead.
    pub(crate) async fn seek(&mut self, key: &[u8]) -> Result<(), PartitionError> {
        // What a walk past the cache has read ahead, with overflows, lies in the order of rows: it passes
        // over them one by one.
        if self.reads.caching == Caching::Keep {
            if self.pass_in_block(key)? {
                self.step().await?;
            } else {
                self.load_block_of(key).await?;
            }
        }
        self.step_up_to(key).await
    }

    /// There is nothing more to be seen.
    pub(crate) fn end(&mut self) {
        self.block = None;
        self.position = None;
        self.overflow = None;
    }

    async fn step_up_to(&mut self, key: &[u8]) -> Result<(), PartitionError> {
        while self.key().is_some_and(|at| at < key) {
            self.step().await?;
        }
        Ok(())
    }

    /// Passes over most rows before `key` in the loaded block; then it stands on none until the next step.
    /// False: all of that block's are before it.
    fn pass_in_block(&mut self, key: &[u8]) -> Result<bool, PartitionError> {
        let (Some((location, rows)), Some(index)) = (&mut self.block, &self.index) else { return Ok(false) };
        let Some(loaded) = self.next_block.checked_sub(1) else { return Ok(false) };
        if index.ends_before(loaded, key) {
            return Ok(false);
        }
        rows.pass_before(key).map_err(|error| damaged(*location, &error.to_string()))?;
        Ok(true)
    }

    /// Stands on a row of the block in which the first row at or after `key` is, on it or a few before it.
    async fn load_block_of(&mut self, key: &[u8]) -> Result<(), PartitionError> {
        let ends_before = |index: &IndexBlock| match index.entries.len().checked_sub(1) {
            Some(last) => index.ends_before(last, key),
            None => true,
        };
        if self.index.as_deref().is_none_or(ends_before) {
            self.part = self.checkpoint.part_of(key);
            self.index = None;
        }
        let index = match &self.index {
            Some(index) => index.clone(),
            None if self.part < self.checkpoint.root.parts.len() => self.checkpoint.index(self.part).await?,
            None => {
                self.end();
                return Ok(());
            }
        };
        self.next_block = index.first_at_or_after(key);
        self.index = Some(index);
        if self.load_next_block(Some(key)).await? {
            return self.step().await;
        }
        self.end();
        Ok(())
    }

    /// Key of the row it stands on; `None` at the end.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        match (&self.block, self.position) {
            (Some((_, rows)), Some(_)) => Some(rows.key()),
            _ => None,
        }
    }

    /// Version of the row it stands on.
    pub(crate) fn version(&self) -> RowVersion {
        self.position.map_or(RowVersion(0), |position| position.version)
    }

    /// Value of the row it stands on, without an overflow that is kept apart; `None`: deleted.
    pub(crate) fn value_ref(&self) -> Option<&[u8]> {
        self.block.as_ref()?.1.value_ref(self.position?)
    }

    /// The overflow of the row it stands on that is kept apart.
    pub(crate) fn overflow(&self) -> RowOverflow<'_> {
        match (&self.overflow, self.stored_overflow()) {
            (Some(overflow), _) => RowOverflow::Read(overflow),
            (None, Some(place)) => RowOverflow::Stored(place),
            (None, None) => RowOverflow::InValue,
        }
    }

    fn stored_overflow(&self) -> Option<OverflowPlace> {
        self.position?.overflow
    }

    /// The overflow of the row it stands on, if it is kept apart.
    pub(crate) async fn unpacked_overflow(&self) -> Result<Option<Bytes>, PartitionError> {
        let Some(place) = self.stored_overflow() else { return Ok(None) };
        match &self.overflow {
            Some(overflow) => {
                overflow.unpacked().map(Some).map_err(|error| damaged(place.location, &error.to_string()))
            }
            None => self.checkpoint.overflow(place, Caching::Bypass).await.map(Some),
        }
    }

    /// Steps within the loaded block. False: the block is used up, call [`Self::step`].
    pub(crate) fn step_in_block(&mut self) -> Result<bool, PartitionError> {
        let Some((location, rows)) = &mut self.block else { return Ok(false) };
        let next = rows.step().map_err(|error| damaged(*location, &error.to_string()))?;
        let Some(position) = next else { return Ok(false) };
        self.position = next;
        let read = position.overflow.filter(|place| self.reads.overflows.reads(*place));
        self.overflow = read.and_then(|_| self.overflows.pop_front());
        // Rows and their overflows are read apart: an overflow that is another row's would be a wrong answer.
        let is_another = |(overflow, place): (&StoredOverflow, OverflowPlace)| {
            overflow.read.is_none_or(|read| read.location != place.location)
        };
        if self.overflow.as_ref().zip(read).is_some_and(is_another) {
            return Err(damaged(*location, "its overflows are others"));
        }
        Ok(true)
    }

    /// Steps to the next row, reading the next block if needed.
    pub(crate) async fn step(&mut self) -> Result<(), PartitionError> {
        while !self.step_in_block()? {
            if !self.load_next_block(None).await? {
                self.end();
                return Ok(());
            }
        }
        Ok(())
    }

    /// With a start, most of the rows before it are left out.
    async fn load_next_block(&mut self, start: Option<&[u8]>) -> Result<bool, PartitionError> {
        loop {
            if self.part >= self.checkpoint.root.parts.len() {
                return Ok(false);
            }
            let index = match &self.index {
                Some(index) => index.clone(),
                None => self.checkpoint.index(self.part).await?,
            };
            if let Some(entry) = index.entries.get(self.next_block) {
                let block = match self.reads.caching {
                    Caching::Keep => {
                        let rows = self.checkpoint.rows(entry.location, None).await?;
                        (entry.location, rows_from(&rows, start, entry.location)?)
                    }
                    Caching::Bypass => {
                        if self.unpacked.is_empty() {
                            self.unpack(&index.entries[self.next_block..], start).await?;
                        }
                        let missing = || damaged(entry.location, "nothing was read");
                        self.unpacked.pop_front().ok_or_else(missing)?
                    }
                };
                self.next_block += 1;
                self.block = Some(block);
                self.index = Some(index);
                return Ok(true);
            }
            self.part += 1;
            self.next_block = 0;
            self.index = None;
        }
    }

    /// Unpacks the first of these row blocks, and more with overflows as long as rows and overflows are few
    /// enough to be read at once; reads the overflows. With a start, most of the rows before it are left out.
    async fn unpack(&mut self, entries: &[IndexEntry], start: Option<&[u8]>) -> Result<(), PartitionError> {
        let mut places = Vec::new();
        let (mut rows_size_bytes, mut overflow_size_bytes) = (0, 0);
        for (index, entry) in entries.iter().enumerate() {
            overflow_size_bytes += entry.overflow_size_bytes;
            let is_enough = entry.overflow_size_bytes == 0
                || overflow_size_bytes > OVERFLOWS_AHEAD_SIZE_BYTES
                || rows_size_bytes > self.reads.ahead_size_bytes;
            if index > 0 && is_enough {
                break;
            }
            if self.ahead.is_empty() {
                self.ahead = self
                    .checkpoint
                    .read_run(&run_from(&entries[index..], self.reads.ahead_size_bytes))
                    .await?
                    .into();
            }
            let stored = self.ahead.pop_front();
            let stored = stored.ok_or_else(|| damaged(entry.location, "nothing was read"))?;
            let rows = parse_rows(stored, entry.location)?;
            rows_size_bytes += rows.size_bytes() as u64;
            let start = start.filter(|_| index == 0);
            let rows = rows_from(&rows, start, entry.location)?;
            let rows = match start {
                Some(start) => {
                    behind(rows, start).map_err(|error| damaged(entry.location, &error.to_string()))?
                }
                None => rows,
            };
            if entry.overflow_size_bytes > 0 {
                let found = overflows_of(rows.clone(), &self.reads.overflows);
                places.extend(found.map_err(|error| damaged(entry.location, &error.to_string()))?);
            }
            self.unpacked.push_back((entry.location, rows));
        }
        self.overflows = self.checkpoint.read_overflows(&places).await?.into();
        Ok(())
    }
}

/// The rows of a block. With a start, without most of those before it.
fn rows_from(
    rows: &RowBlock,
    start: Option<&[u8]>,
    location: Location,
) -> Result<RowIterator, PartitionError> {
    match start {
        Some(start) => rows.rows_near(start).map_err(|error| damaged(location, &error.to_string())),
        None => Ok(rows.rows()),
    }
}

/// The rows from `start` on. None before it may be among those whose overflows are read: what a reclaim has
/// moved elsewhere may have gone with its extents.
fn behind(mut rows: RowIterator, start: &[u8]) -> Result<RowIterator, DecodeError> {
    loop {
        let mut next = rows.clone();
        if next.step()?.is_none() || next.key() >= start {
            return Ok(rows);
        }
        rows = next;
    }
}

/// Where those overflows of all these rows are that are read.
fn overflows_of(
    mut rows: RowIterator,
    overflow_reads: &OverflowReads,
) -> Result<Vec<OverflowPlace>, DecodeError> {
    let mut places = Vec::new();
    while let Some(position) = rows.step()? {
        places.extend(position.overflow.filter(|place| overflow_reads.reads(*place)));
    }
    Ok(places)
}

/// The places of the first row blocks that follow one another in an extent, as many as `size_bytes_max` has.
fn run_from(entries: &[IndexEntry], size_bytes_max: u64) -> Vec<Location> {
    let mut run: Vec<Location> = Vec::new();
    for IndexEntry { location, .. } in entries {
        if let Some((first, last)) = run.first().zip(run.last()) {
            let follows = location.extent == last.extent && location.offset == last.end();
            if !follows || location.end() - first.offset > size_bytes_max {
                break;
            }
        }
        run.push(*location);
    }
    run
}

#[cfg(test)]
mod tests {
    use super::super::CheckpointWriter;
    use super::*;
    use crate::blob_data::piece::RowStart;
    use crate::checkpoint::MergedRow;
    use crate::key::KeyRange;
    use crate::tree::block_cache::BlockCache;
    use stream::{ExtentId, Incarnation, Owner, StreamChange, StreamName, StreamSettings, Streams};

    const ROW_COUNT: usize = 120;

    fn key(at: usize) -> Vec<u8> {
        // The first one's makes the others begin alike, further than the row directory distinguishes keys.
        if at == 0 { b"a".to_vec() } else { format!("begin-alike-{at:04}").into_bytes() }
    }

    /// Writes a checkpoint of rows with overflows, and gives its stream and where its root is.
    async fn written(
        env: &base::Environment,
        streams: &Arc<Streams>,
        owner: Owner,
    ) -> Result<(StreamName, Location), PartitionError> {
        let stream = StreamName::new("checkpoint");
        streams.create(std::slice::from_ref(&stream), owner).await?;
        let left = Arc::new(BTreeSet::new());
        let mut writer = CheckpointWriter::new(streams.clone(), stream.clone(), owner, left, true, None);
        let mut value = Vec::new();
        RowStart { pieces: Vec::new(), overflow_size_bytes: 3000 }.put(&mut value);
        for at in 0..ROW_COUNT {
            let content: Vec<u8> = (0..3000 / 8).flat_map(|_| env.random.next_u64().to_le_bytes()).collect();
            let overflow = Bytes::from(content);
            let overflow = RowOverflow::InMemory(&overflow);
            let (key, value) = (&key(at)[..], Some(&value[..]));
            writer.add(MergedRow { key, version: RowVersion(1), value, overflow }).await?;
        }
        Ok((stream, writer.finish().await?.expect("rows").root))
    }

    /// A scan backward asked a checkpoint whose rows had all moved for its last block, and failed: the index
    /// that tells it had gone with them.
    #[test]
    fn nothing_is_read_of_a_checkpoint_whose_rows_are_all_before_a_range() {
        let ask = |env: base::Environment, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await?;
            let owner = Owner::first(Incarnation(1));
            let (stream, root) = written(&env, &streams, owner).await?;
            let cache = Arc::new(BlockCache::new(1 << 20));
            let checkpoint = Checkpoint::open(streams.clone(), cache, root).await?;
            let range = |start: usize, end: Option<usize>| KeyRange {
                start: key(start).into(),
                end: end.map(|end| key(end).into()),
            };
            streams.delete(&stream, owner).await?;
            assert!(
                checkpoint.start_of_last_block(&range(ROW_COUNT - 1, None)).await.is_err(),
                "it has gone"
            );
            for end in [None, Some(ROW_COUNT + 1)] {
                assert_eq!(checkpoint.start_of_last_block(&range(ROW_COUNT, end)).await?, None);
            }
            Ok::<(), PartitionError>(())
        };
        assert_eq!(sim::World::new(1).run(ask), Some(Ok(())));
    }

    /// A walk from a key on read the overflows of the few rows before it that its row block's restart point
    /// leads to. Where a reclaim had moved these, and their extents had gone, compactions of the checkpoint
    /// failed for ever.
    #[test]
    fn a_walk_needs_no_extent_that_only_rows_before_its_start_lie_in() {
        let walk = |env: base::Environment, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await?;
            let owner = Owner::first(Incarnation(1));
            let (stream, root) = written(&env, &streams, owner).await?;
            for start in 1..ROW_COUNT {
                let cache = Arc::new(BlockCache::new(1 << 20));
                let checkpoint = Arc::new(Checkpoint::open(streams.clone(), cache, root).await?);
                let needed = checkpoint.extents_from(&key(start), true).await?;
                let listed = streams.stat(&stream)?.extents.into_iter().map(|(extent, _)| extent);
                let extents: Vec<_> =
                    listed.filter(|one| *one != root.extent && !needed.contains(one)).collect();
                if !extents.is_empty() {
                    let stream = stream.owned_by(owner);
                    streams.multi_modify(&[StreamChange::Unlist { stream, extents }]).await?;
                }
                let reads = WalkReads::alone(Caching::Bypass, OverflowReads::All);
                let mut rows = CheckpointCursor::new(checkpoint, &key(start), reads).await?;
                for at in start..ROW_COUNT {
                    assert_eq!(rows.key(), Some(&key(at)[..]));
                    assert!(matches!(rows.overflow(), RowOverflow::Read(_)), "row {at} from {start} on");
                    rows.step().await?;
                }
                assert_eq!(rows.key(), None);
            }
            let left_count = streams.stat(&stream)?.extents.len();
            assert!(left_count < 6, "{left_count} extents are left");
            Ok::<(), PartitionError>(())
        };
        assert_eq!(sim::World::new(1).run(walk), Some(Ok(())));
    }

    #[test]
    fn many_checkpoints_read_no_more_ahead_than_a_few() {
        for (checkpoint_count, expected_kib) in
            [(0, 512), (1, 512), (16, 512), (17, 481), (32, 256), (200, 64)]
        {
            let ahead = choose_read_ahead(checkpoint_count);
            assert_eq!(ahead >> 10, expected_kib, "{checkpoint_count} checkpoints");
            let is_least = ahead == READ_AHEAD_SIZE_BYTES_MIN;
            assert!(is_least || ahead * checkpoint_count as u64 <= READS_AHEAD_SIZE_BYTES_MAX);
        }
    }

    #[test]
    fn a_run_ends_at_a_gap_another_extent_or_its_bound() {
        let at = |extent, offset, len| {
            let location = Location { extent: ExtentId(extent), offset, len };
            IndexEntry { last_key: Bytes::new(), location, overflow_size_bytes: 0 }
        };
        let end = |entry: &IndexEntry| entry.location.end();
        let run = |entries: &[IndexEntry]| run_from(entries, READ_AHEAD_SIZE_BYTES);
        assert_eq!(run(&[]), []);
        let first = at(1, 40, 100);
        let second = at(1, end(&first), 100);
        let behind_a_gap = at(1, end(&second) + 1, 100);
        let elsewhere = at(2, end(&second), 100);
        let both = [first.location, second.location];
        assert_eq!(run(&[first.clone(), second.clone(), behind_a_gap]), both);
        assert_eq!(run(&[first.clone(), second.clone(), elsewhere]), both);
        let large = at(1, end(&first), READ_AHEAD_SIZE_BYTES as u32);
        assert_eq!(run(&[first.clone(), large.clone()]), [first.location]);
        assert_eq!(run(std::slice::from_ref(&large)), [large.location], "one at least");
    }
}
