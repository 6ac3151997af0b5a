//! What rows in memory hold: scans, counts, changes behind fence and claims, and failures on purpose.

use super::*;
use crate::value::value::Value;
use shard_map::{
    Catalog, Change, KeyKind, KeyType, KeyValue, MapBuilder, MapChange, Placement, Selection, Shard,
    ShardMap, State as MapState,
};
use shard_store::{LocalCopy, LocalStore};
use std::sync::atomic::{AtomicU64, Ordering};

/// A chance that counts: of `one_in` operations every one that it is 0 for fails.
#[derive(Default)]
struct Counter(AtomicU64);

impl Random for Counter {
    fn next_u64(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

/// Keys below 10 and from 10 on are on `here`, but for 3 and 5, which are pinned.
fn catalog() -> Catalog {
    let mut map = MapBuilder::new(name("m"), KeyType::new([KeyKind::Int32]).expect("a type"));
    let here = || Placement::on(name("here"));
    map.range(&[], Some(&[10.into()]), here()).expect("a range");
    map.range(&[10.into()], None, here()).expect("a range");
    map.pin(&[3.into()], here()).expect("a pin").pin(&[5.into()], here()).expect("a pin");
    let changes =
        [Change::AddShard(Shard::new(name("here"), "at here")), Change::AddMap(map.build().expect("a map"))];
    Catalog::new(name("app"), [7; 16]).apply(&changes).expect("changes").catalog
}

fn map_of(catalog: &Catalog) -> Arc<ShardMap> {
    catalog.map("m").expect("the map").clone()
}

fn shardlet(catalog: &Catalog, key: i32) -> Shardlet {
    let map = map_of(catalog);
    let mapping = map.route(&[key.into()]).expect("a route").mapping;
    Shardlet::new(map, mapping).expect("a shardlet")
}

fn since(catalog: &Catalog, key: i32) -> Epoch {
    map_of(catalog).route(&[key.into()]).expect("a route").placement.since
}

fn schema() -> Schema {
    let schema = Schema::parse(
        "map = \"m\"\n[sharded.t]\nkey = \"k\"\nprimary_key = [\"k\", \"n\"]\n\
         columns = { k = \"int32\", n = \"int32\", text = \"text null\" }\n\
         [reference.r]\nprimary_key = \"k\"\ncolumns = { k = \"int32\" }",
    );
    schema.expect("a schema")
}

fn row(k: i32, n: i32, text: &str) -> Row {
    Row { values: vec![k.into(), n.into(), text.into()] }
}

fn key(k: i32, n: i32) -> RowKey {
    RowKey { values: vec![KeyValue::Int32(k), KeyValue::Int32(n)] }
}

struct Stage {
    catalog: Catalog,
    schema: Schema,
    local: Arc<MemoryLocal>,
    backend: MemoryBackend,
}

impl Stage {
    /// The catalog is published, and nothing is written.
    async fn new(capabilities: Capabilities) -> Self {
        let random: Arc<dyn Random> = Arc::new(Counter::default());
        let local = Arc::new(MemoryLocal::new("here", random.clone()));
        let backend = MemoryBackend::new("here", capabilities, local.clone(), random);
        let stage = Stage { catalog: catalog(), schema: schema(), local, backend };
        stage.backend.create_tables(&stage.schema);
        stage.publish().await;
        stage
    }

    async fn publish(&self) {
        let there = self.local.read().await.expect("an answer").map(|stored| stored.revision);
        let copy = LocalCopy::of(&self.catalog, "here");
        self.local.replace(there.as_ref(), copy.as_ref()).await.expect("an answer");
    }

    /// The mapping of a key gets this state.
    async fn set(&mut self, key: i32, state: MapState) {
        let mappings = match map_of(&self.catalog).route(&[key.into()]).expect("a route").mapping {
            MappingId::Pin(_) => Selection::Pin(vec![key.into()]),
            _ => Selection::Range(Vec::new()),
        };
        let change = Change::Map(name("m"), MapChange::SetState { mappings, state });
        self.catalog = self.catalog.apply(&[change]).expect("a change").catalog;
        self.publish().await;
    }

    fn table(&self) -> &TableSchema {
        self.schema.table("t").expect("the table")
    }

    /// Writes rows of the shardlet of a key, by its present epoch.
    async fn write(&self, of: i32, rows: &[Row]) -> Result<(), BackendError> {
        self.write_held(of, FenceHold::Open(since(&self.catalog, of)), rows).await
    }

    async fn write_held(&self, of: i32, hold: FenceHold, rows: &[Row]) -> Result<(), BackendError> {
        self.backend.write(self.table(), &shardlet(&self.catalog, of), hold, rows).await
    }

    /// Rows 0 to 14, two of each.
    async fn fill(&self) {
        for k in 0..15 {
            self.write(k, &[row(k, 1, "one"), row(k, 0, "zero")]).await.expect("a write");
        }
    }

    /// The keys of a scan in batches, and how many batches there were.
    async fn scan(&self, shardlet: &Shardlet, bounds: BatchBounds) -> (Vec<(i32, i32)>, usize) {
        let (mut keys, mut batches, mut after) = (Vec::new(), 0, None);
        loop {
            let batch = self.backend.scan(self.table(), shardlet, after.as_ref(), bounds).await;
            let batch = batch.expect("a batch");
            batches += 1;
            for row in &batch.rows {
                match row.values.as_slice() {
                    [Value::Int32(k), Value::Int32(n), _] => keys.push((*k, *n)),
                    other => panic!("{other:?}"),
                }
            }
            after = batch.next;
            if after.is_none() {
                return (keys, batches);
            }
        }
    }
}

#[tokio::test]
async fn a_scan_has_the_rows_of_its_shardlet_in_order() {
    let stage = Stage::new(Capabilities::SQLITE).await;
    stage.fill().await;
    let pairs = |keys: &[i32]| keys.iter().flat_map(|k| [(*k, 0), (*k, 1)]).collect::<Vec<_>>();
    let bounds =
        |rows_max, looked_at_rows_max| BatchBounds { rows_max, looked_at_rows_max, ..Default::default() };
    let low: Vec<i32> = (0..10).filter(|k| ![3, 5].contains(k)).collect();
    for (of, keys) in [(0, low), (3, vec![3]), (5, vec![5]), (12, (10..15).collect())] {
        let shardlet = shardlet(&stage.catalog, of);
        for (rows_max, looked_at_rows_max) in [(1000, 1000), (1, 1000), (3, 1000), (1000, 1), (7, 5)] {
            let (found, batches) = stage.scan(&shardlet, bounds(rows_max, looked_at_rows_max)).await;
            assert_eq!(found, pairs(&keys), "{of} {rows_max} {looked_at_rows_max}");
            assert!(batches >= found.len() / rows_max.min(looked_at_rows_max), "{batches}");
        }
        assert_eq!(stage.backend.count(stage.table(), &shardlet).await, Ok(2 * keys.len() as u64));
    }
    assert_eq!(stage.scan(&Shardlet::all(), BatchBounds::default()).await.0.len(), 30);
    // After keys that are before, in and behind the shardlet, there or not.
    let shardlet = shardlet(&stage.catalog, 12);
    for (after, expected) in
        [(key(4, 0), 10), (key(10, 0), 9), (key(11, 7), 6), (key(14, 1), 0), (key(99, 0), 0)]
    {
        let batch = stage.backend.scan(stage.table(), &shardlet, Some(&after), BatchBounds::default()).await;
        let batch = batch.expect("a batch");
        assert_eq!((batch.rows.len(), batch.next), (expected, None), "{after}");
    }
    let tiny = BatchBounds { bytes_max: 0, ..Default::default() };
    assert_eq!(stage.scan(&shardlet, tiny).await.1, 10);
}

#[tokio::test]
async fn rows_of_another_shardlet_are_neither_written_nor_deleted() {
    let stage = Stage::new(Capabilities::SQLITE).await;
    stage.fill().await;
    let before = stage.backend.contents("t");
    let hold = FenceHold::Open(since(&stage.catalog, 0));
    let of_0 = shardlet(&stage.catalog, 0);
    let mixed = [row(1, 5, "new"), row(3, 5, "pinned")];
    assert!(matches!(stage.write(0, &mixed).await, Err(BackendError::OtherShardlet { .. })));
    let keys = [key(1, 0), key(12, 0)];
    let deleted = stage.backend.delete(stage.table(), &of_0, hold, &keys).await;
    assert!(matches!(deleted, Err(BackendError::OtherShardlet { .. })), "{deleted:?}");
    let all = stage.backend.write(stage.table(), &Shardlet::all(), hold, &[row(1, 5, "new")]).await;
    assert!(matches!(all, Err(BackendError::OtherShardlet { .. })), "{all:?}");
    let reference = stage.schema.table("r").expect("the table");
    let rows = [Row { values: vec![1.into()] }];
    let written = stage.backend.write(reference, &of_0, hold, &rows).await;
    assert!(matches!(written, Err(BackendError::OtherShardlet { .. })), "{written:?}");
    assert_eq!(stage.backend.write(reference, &Shardlet::all(), hold, &rows).await, Ok(()));
    let bad = Row { values: vec![1.into(), Value::Null, Value::Null] };
    assert!(matches!(stage.write(0, &[bad]).await, Err(BackendError::Row { .. })));
    let many = vec![row(1, 5, "new"); crate::limits::BATCH_ROWS_MAX + 1];
    assert!(matches!(stage.write(0, &many).await, Err(BackendError::Batch { .. })));
    assert_eq!(stage.backend.contents("t"), before);
    // The last of several rows of one key stays; a row that is not there is deleted.
    assert_eq!(stage.write(0, &[row(1, 0, "a"), row(1, 0, "b")]).await, Ok(()));
    assert_eq!(stage.backend.delete(stage.table(), &of_0, hold, &[key(1, 1), key(1, 9)]).await, Ok(()));
    let found = stage.backend.contents("t");
    assert!(found.contains(&row(1, 0, "b")) && found.len() == before.len() - 1);
}

#[tokio::test]
async fn fence_and_claim_decide_which_writes_pass() {
    let mut stage = Stage::new(Capabilities::SQLITE).await;
    let known = since(&stage.catalog, 3);
    let write = async |stage: &Stage, hold| stage.write_held(3, hold, &[row(3, 0, "x")]).await;
    let of_3 = shardlet(&stage.catalog, 3);
    assert_eq!(write(&stage, FenceHold::Open(known)).await, Ok(()));
    let late = write(&stage, FenceHold::Open(Epoch(known.0 + 1))).await;
    assert!(matches!(late, Err(BackendError::Fence { .. })), "{late:?}");
    // A claim is taken while the mapping is online, and opens nothing.
    assert_eq!(stage.backend.claim(&of_3, Epoch(8)).await, Ok(()));
    let online = write(&stage, FenceHold::Closed(Epoch(8))).await;
    assert!(matches!(online, Err(BackendError::TakesWrites { .. })), "{online:?}");
    for state in [MapState::ReadOnly, MapState::Offline] {
        stage.set(3, state).await;
        let open = write(&stage, FenceHold::Open(since(&stage.catalog, 3))).await;
        assert!(matches!(open, Err(BackendError::Fence { .. })), "{open:?}");
        assert_eq!(write(&stage, FenceHold::Closed(Epoch(8))).await, Ok(()));
    }
    let refused = |outcome: Result<(), BackendError>| match outcome {
        Err(BackendError::Claimed { there, given, .. }) => (there.0, given.0),
        other => panic!("{other:?}"),
    };
    for claim in [7, 9] {
        assert_eq!(refused(write(&stage, FenceHold::Closed(Epoch(claim))).await), (8, claim));
    }
    assert_eq!(refused(stage.backend.claim(&of_3, Epoch(7)).await), (8, 7));
    assert_eq!(stage.backend.claim(&of_3, Epoch(8)).await, Ok(()));
    // Of another one, a release is without effect.
    for claim in [7, 9] {
        assert_eq!(stage.backend.release(&of_3, Epoch(claim)).await, Ok(()));
        assert_eq!(write(&stage, FenceHold::Closed(Epoch(8))).await, Ok(()));
    }
    for _ in 0..2 {
        assert_eq!(stage.backend.release(&of_3, Epoch(8)).await, Ok(()));
        let released = write(&stage, FenceHold::Closed(Epoch(8))).await;
        assert!(matches!(released, Err(BackendError::Released { given: Epoch(8), .. })), "{released:?}");
        let again = stage.backend.claim(&of_3, Epoch(8)).await;
        assert!(matches!(again, Err(BackendError::Released { .. })), "{again:?}");
    }
    assert_eq!(refused(stage.backend.claim(&of_3, Epoch(7)).await), (8, 7));
    assert_eq!(stage.backend.claim(&of_3, Epoch(9)).await, Ok(()));
    assert_eq!(write(&stage, FenceHold::Closed(Epoch(9))).await, Ok(()));
    // Another mapping has claims of its own.
    stage.set(5, MapState::Offline).await;
    assert_eq!(refused(stage.write_held(5, FenceHold::Closed(Epoch(9)), &[row(5, 0, "x")]).await), (0, 9));
}

#[tokio::test]
async fn failures_on_purpose_are_before_or_after() {
    let stage = Stage::new(Capabilities::SQLITE).await;
    stage.fill().await;
    let before = stage.backend.contents("t");
    let always = |not_done_one_in, done_one_in| MemoryFaults { not_done_one_in, done_one_in };
    stage.backend.set_down(true);
    let down = stage.write(0, &[row(0, 9, "new")]).await.expect_err("out of reach");
    assert!(!down.may_be_done());
    stage.backend.set_down(false);
    stage.backend.set_faults(always(1, 0));
    let failed = stage.write(0, &[row(0, 9, "new")]).await.expect_err("a failure");
    assert!(failed.may_be_done());
    assert_eq!(stage.backend.contents("t"), before);
    stage.backend.set_faults(always(0, 1));
    let failed = stage.write(0, &[row(0, 9, "new")]).await.expect_err("a failure");
    assert!(failed.may_be_done());
    assert_eq!(stage.backend.contents("t").len(), before.len() + 1);
    let of_0 = shardlet(&stage.catalog, 0);
    assert!(stage.backend.count(stage.table(), &of_0).await.is_err());
    assert!(stage.backend.claim(&of_0, Epoch(9)).await.expect_err("a failure").may_be_done());
    stage.backend.set_faults(always(0, 0));
    assert!(matches!(stage.backend.claim(&of_0, Epoch(8)).await, Err(BackendError::Claimed { .. })));
}

#[tokio::test]
async fn without_transactions_a_part_of_a_batch_may_be_done_and_no_fence_is_held() {
    let stage = Stage::new(Capabilities::STORAGE_TABLES).await;
    stage.backend.set_faults(MemoryFaults { not_done_one_in: 0, done_one_in: 1 });
    let rows: Vec<Row> = (0..9).map(|n| row(0, n, "x")).collect();
    let late = FenceHold::Open(Epoch(77));
    let mut counts = Vec::new();
    for _ in 0..20 {
        let failed = stage.write_held(0, late, &rows).await.expect_err("a failure");
        assert!(failed.may_be_done());
        counts.push(stage.backend.contents("t").len());
    }
    assert!(counts.first().is_some_and(|count| *count < rows.len()), "{counts:?}");
    assert_eq!(counts.last(), Some(&rows.len()));
}
