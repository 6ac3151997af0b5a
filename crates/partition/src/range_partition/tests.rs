//! Each part of a range without a range: over a `RangeTree` that was loaded from streams of its own.

use super::blob_data_collector::{BlobDataCollector, MoveRows, ReadPieces};
use super::commit_pipeline::{CommitPipeline, commit};
use super::compactor::Compactor;
use super::data::RangeData;
use super::executed::Executed;
use super::flusher::Flusher;
use super::load::{self, RangeOwners, RangeStreams};
use super::range_tree::RangeTree;
use super::reader::Reader;
use super::shared::Shared;
use crate::background::range_work::{Collected, Flush};
use crate::blob_data::choose_emptied::Pace;
use crate::blob_data::piece::{Piece, put_pieces};
use crate::decider::{Decider, UnderWay};
use crate::error::PartitionError;
use crate::heat::range_heat::RangeHeat;
use crate::key::{KeyRange, RowKey};
use crate::lease::{EndlessLease, Lease};
use crate::map::choose_owner::choose_owner;
use crate::map::range_load::RangeLoad;
use crate::operation::{Decision, ObjectTable, Operation, Read, Row, RowChange, RowPart, RowVersion, Rows};
use base::{BoxFuture, Environment};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use stream::{StreamSettings, Streams};

/// A tree of an empty range, and its blob data.
async fn tree(env: &Environment, table: ObjectTable) -> (Arc<RangeTree>, Option<Arc<RangeData>>) {
    tree_while(env, table, Arc::new(EndlessLease)).await
}

/// The same while a lease holds.
async fn tree_while(
    env: &Environment,
    table: ObjectTable,
    lease: Arc<dyn Lease>,
) -> (Arc<RangeTree>, Option<Arc<RangeData>>) {
    let streams = Streams::open(env, StreamSettings::tiny()).await.unwrap();
    let mut shared: Shared = crate::check::shared(env, streams).unwrap();
    shared.life.lease = lease;
    let (names, range) = (RangeStreams::new(table, 1), KeyRange::all());
    load::create(&shared, &names, range.clone()).await.unwrap();
    let read = load::read(&shared, names, &range).await.unwrap();
    let owners = RangeOwners { owner: Some(read.newest_owner(&shared.streams).unwrap()), named: None };
    let mut loaded = read.take_over(&shared, owners).await.unwrap();
    let data = loaded.data.take().map(Arc::new);
    (Arc::new(RangeTree::new(shared, table, 1, loaded)), data)
}

fn key(row: u64) -> RowKey {
    RowKey::new("acct", 1, "p", &format!("r{row:03}"))
}

/// Puts a row.
struct Put {
    table: ObjectTable,
    key: RowKey,
    value: Bytes,
}

impl Operation for Put {
    type Reply = RowVersion;

    fn object_table(&self) -> ObjectTable {
        self.table
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn decide(&self, _rows: &Rows, version: RowVersion) -> Decision<RowVersion> {
        let changes = vec![RowChange::Put { key: self.key.clone(), value: self.value.clone() }];
        Decision { changes, reply: version }
    }
}

/// A pipeline whose group commit runs.
fn started(env: &Environment, core: &Arc<RangeTree>, data: Option<Arc<RangeData>>) -> Arc<CommitPipeline> {
    let heat = RangeHeat::new(core.shared.clock.clone(), 0, Arc::default());
    let load = Arc::new(RangeLoad::new(heat));
    let pipeline = Arc::new(CommitPipeline::new(core.clone(), data, load));
    env.spawner.spawn("group-commit", Box::pin(commit::run(pipeline.clone())));
    pipeline
}

async fn put(pipeline: &CommitPipeline, row: u64, value: &'static [u8]) {
    let put = Put { table: pipeline.core.table, key: key(row), value: Bytes::from_static(value) };
    let reads = put.reads();
    let done = pipeline.execute(&mut UnderWay::new(put), reads).await.unwrap();
    assert!(matches!(done, Executed::Done(())));
}

/// What the rows behind this tree are, whatever wrote them.
async fn value(reader: &Reader, row: u64) -> Option<Bytes> {
    reader.get(&key(row), RowPart::Whole).await.unwrap().map(|row| row.value)
}

#[test]
fn a_pipeline_makes_operations_durable_and_refuses_them_once_it_is_closed() {
    let run = sim::World::new(1).run(|env, _| async move {
        let (core, _) = tree(&env, ObjectTable::Entity).await;
        let pipeline = started(&env, &core, None);
        put(&pipeline, 1, b"one").await;
        assert_eq!(core.visible(), core.last_version());
        let log = core.shared.streams.stat(core.names.log()).unwrap();
        assert!(log.extents.iter().any(|(_, length)| *length > 0), "it is in the log");
        pipeline.close().await;
        let late = Put { table: ObjectTable::Entity, key: key(2), value: Bytes::new() };
        let reads = late.reads();
        assert!(matches!(
            pipeline.execute(&mut UnderWay::new(late), reads).await,
            Err(PartitionError::Unavailable(_))
        ));
    });
    run.unwrap();
}

#[test]
fn a_reader_sees_what_is_visible_in_memory_and_no_more() {
    let run = sim::World::new(1).run(|env, _| async move {
        let (core, _) = tree(&env, ObjectTable::Entity).await;
        let reader = Reader::new(core.clone(), Arc::default());
        let seen = RowVersion(core.visible().0 + 1);
        core.tree().active.insert(key(1).as_bytes(), seen, Some(Bytes::from_static(b"one")));
        assert_eq!(value(&reader, 1).await, None, "it is not durable yet");
        core.log.visible.store(seen.0, std::sync::atomic::Ordering::Release);
        assert_eq!(value(&reader, 1).await, Some(Bytes::from_static(b"one")));
    });
    run.unwrap();
}

#[test]
fn a_flusher_makes_checkpoints_and_a_compactor_makes_one_of_several() {
    let run = sim::World::new(1).run(|env, _| async move {
        let (core, _) = tree(&env, ObjectTable::Entity).await;
        let (flusher, reader) = (Flusher { core: core.clone() }, Reader::new(core.clone(), Arc::default()));
        let compactor = Compactor::new(core.clone(), Arc::default());
        let pipeline = started(&env, &core, None);
        assert_eq!(flusher.flush().await, Ok(Flush::Nothing));
        for round in 0..core.shared.settings.compaction_count_min as u64 {
            put(&pipeline, round, b"new").await;
            put(&pipeline, 500, b"again").await;
            flusher.flush_all().await.unwrap();
            assert_eq!(core.checkpoint_count() as u64, round + 1);
        }
        assert!(compactor.checkpoints_to_compact() > 0);
        assert_eq!(compactor.compact(&|| false).await, Ok(1));
        assert_eq!((core.checkpoint_count(), compactor.checkpoints_to_compact()), (1, 0));
        assert_eq!(value(&reader, 500).await, Some(Bytes::from_static(b"again")));
        assert_eq!(value(&reader, 0).await, Some(Bytes::from_static(b"new")));
        assert_eq!(core.shared.streams.list(core.names.row_data()).len(), 1, "the others are removed");
    });
    run.unwrap();
}

/// Rows and pieces of a range that is none.
struct Pieces {
    pipeline: Arc<CommitPipeline>,
    reader: Reader,
}

/// Nothing leaves while a test holds it.
struct Kept(Arc<RangeTree>);

impl ReadPieces for Kept {
    fn read<'a>(&'a self, piece: &'a Piece, at: u64) -> BoxFuture<'a, Result<Bytes, PartitionError>> {
        Box::pin(async move {
            let Some((location, from)) = piece.block_of(at) else { return Ok(Bytes::new()) };
            Ok(self.0.shared.streams.read(location).await?.slice(from..))
        })
    }
}

impl MoveRows for Pieces {
    type Pin = Kept;

    fn get_with_data<'a>(
        &'a self,
        key: &'a RowKey,
    ) -> BoxFuture<'a, Result<Option<(Row, Kept)>, PartitionError>> {
        Box::pin(async move {
            let row = self.reader.get(key, RowPart::Whole).await?;
            Ok(row.map(|row| (row, Kept(self.pipeline.core.clone()))))
        })
    }

    fn append_piece(&self, bytes: Bytes) -> BoxFuture<'_, Result<Executed<(Piece, Kept)>, PartitionError>> {
        Box::pin(async move {
            let core = &self.pipeline.core;
            let stream = core.names.data().unwrap();
            let places = core.shared.streams.append(stream, core.owner, vec![bytes]).await?;
            let piece = Piece::of_blocks(&places).unwrap();
            assert!(self.pipeline.data.as_ref().unwrap().list_for_tests(piece.extent));
            Ok(Executed::Done((piece, Kept(core.clone()))))
        })
    }

    fn execute<'a>(
        &'a self,
        operation: &'a mut dyn Decider,
        reads: Vec<Read>,
    ) -> BoxFuture<'a, Result<Executed<(), Vec<Read>>, PartitionError>> {
        Box::pin(self.pipeline.execute(operation, reads))
    }
}

#[test]
fn a_collector_moves_what_is_named_and_frees_the_rest() {
    let run = sim::World::new(1).run(|env, _| async move {
        let (core, data) = tree(&env, ObjectTable::Blob).await;
        let pipeline = started(&env, &core, data.clone());
        let rows = Pieces { pipeline: pipeline.clone(), reader: Reader::new(core.clone(), Arc::default()) };
        let collector = BlobDataCollector::new(core.clone(), data.unwrap());
        let content = |tag: u8| Bytes::from(vec![tag; 500]);
        let mut named = None;
        for tag in 0..200 {
            let Ok(Executed::Done((piece, _))) = rows.append_piece(content(tag)).await else { panic!() };
            // The others are named by nothing.
            if tag == 3 {
                let mut value = Vec::new();
                put_pieces(&mut value, &[piece]);
                let put = Put { table: ObjectTable::Blob, key: key(1), value: value.into() };
                let reads = put.reads();
                pipeline.execute(&mut UnderWay::new(put), reads).await.unwrap();
                named = Some(piece);
            }
        }
        let stored = || -> u64 {
            let stat = core.shared.streams.stat(core.names.data().unwrap()).unwrap();
            stat.extents.iter().map(|(_, length)| *length).sum()
        };
        let before = stored();
        let mut collected = Collected::default();
        collector.collect_data(&rows, Pace::Scarce, &|| false, &|| false, &mut collected).await.unwrap();
        assert!(collected.extents > 0 && stored() < before / 2, "{collected:?}: {before} to {}", stored());
        let row = rows.reader.get(&key(1), RowPart::Whole).await.unwrap().unwrap();
        let piece = super::data::pieces_of(&row.value).unwrap()[0];
        assert_ne!(Some(piece), named, "the row names the copy");
        assert_eq!(Kept(core.clone()).read(&piece, 0).await, Ok(content(3)));
    });
    run.unwrap();
}

/// A lease that holds for so many more questions.
struct Holds(AtomicU64);

impl Lease for Holds {
    fn holds(&self) -> bool {
        let left = |left: u64| left.checked_sub(1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok()
    }
}

async fn outcome_of_a_read(core: &Arc<RangeTree>) -> &'static str {
    match Reader::new(core.clone(), Arc::default()).get(&key(1), RowPart::Whole).await {
        Ok(_) => "done",
        Err(PartitionError::NotMine) => "not mine",
        Err(_) => "unknown",
    }
}

async fn outcome_of_a_write(pipeline: &CommitPipeline) -> &'static str {
    let put = Put { table: ObjectTable::Entity, key: key(1), value: Bytes::from_static(b"two") };
    let reads = put.reads();
    match pipeline.execute(&mut UnderWay::new(put), reads).await {
        Ok(_) => "done",
        Err(PartitionError::NotMine) => "not mine",
        Err(_) => "unknown",
    }
}

/// A read asks twice, a write three times: before it is decided, before its group is shown, before it is
/// acknowledged. By how many of these questions the lease survives.
#[test]
fn an_answer_leaves_only_while_the_lease_holds() {
    for (questions, read, write) in
        [(0, "not mine", "not mine"), (1, "not mine", "unknown"), (2, "done", "unknown"), (3, "done", "done")]
    {
        let run = sim::World::new(1).run(|env, _| async move {
            let lease = Arc::new(Holds(AtomicU64::new(u64::MAX)));
            let (core, _) = tree_while(&env, ObjectTable::Entity, lease.clone()).await;
            let pipeline = started(&env, &core, None);
            put(&pipeline, 1, b"one").await;
            lease.0.store(questions, Ordering::Relaxed);
            assert_eq!(outcome_of_a_read(&core).await, read, "{questions} questions");
            // A range that was dropped stays so.
            let is_dropped = questions < 2;
            lease.0.store(1000, Ordering::Relaxed);
            let expected = if is_dropped { "not mine" } else { "done" };
            assert_eq!(outcome_of_a_write(&pipeline).await, expected, "{questions} questions");
        });
        run.unwrap();
        let run = sim::World::new(1).run(|env, _| async move {
            let lease = Arc::new(Holds(AtomicU64::new(u64::MAX)));
            let (core, _) = tree_while(&env, ObjectTable::Entity, lease.clone()).await;
            let pipeline = started(&env, &core, None);
            put(&pipeline, 1, b"one").await;
            let before = core.visible();
            lease.0.store(questions, Ordering::Relaxed);
            assert_eq!(outcome_of_a_write(&pipeline).await, write, "{questions} questions");
            assert_eq!(core.visible() > before, questions > 1, "shown, {questions} questions");
        });
        run.unwrap();
    }
}

/// Whenever another process takes the range's streams over while this one loads it: this one fails, or goes
/// on under the owner that it was given, which is refused from then on. It once took the other's for its own.
#[test]
fn a_load_never_goes_on_under_the_owner_of_another_process() {
    const TABLE: ObjectTable = ObjectTable::Entity;
    let mut loaded_count = 0;
    for step in 0..40 {
        let run = sim::World::new(step).run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
            let shared = crate::check::shared(&env, streams.clone()).unwrap();
            let (names, range) = (RangeStreams::new(TABLE, 1), KeyRange::all());
            load::create(&shared, &names, range.clone()).await.unwrap();
            // A former process had it.
            let former = streams.join(&*env.random);
            for stream in [&names.metadata, &names.log] {
                let owner = choose_owner(streams.owner(stream).unwrap(), former);
                streams.take_over(stream, owner).await.unwrap();
            }
            let read = load::read(&shared, RangeStreams::new(TABLE, 1), &range).await.unwrap();
            let given = choose_owner(read.newest_owner(&streams).unwrap(), shared.life.incarnation);
            let load = read.take_over(&shared, RangeOwners { owner: Some(given), named: None });
            let other = streams.join(&*env.random);
            let take = async {
                for _ in 0..step {
                    tokio::task::yield_now().await;
                }
                // One that is behind looks again.
                for stream in [&names.metadata, &names.log] {
                    let next = || choose_owner(streams.owner(stream).unwrap(), other);
                    while streams.take_over(stream, next()).await.is_err() {}
                }
            };
            let (loaded, ()) = futures_util::future::join(load, take).await;
            let Ok(loaded) = loaded else { return 0 };
            assert_eq!(loaded.owner, given, "step {step}");
            1
        });
        loaded_count += run.unwrap();
    }
    assert!((1..40).contains(&loaded_count), "{loaded_count} of 40 have loaded");
}
