//! Random lives of the partition layer over the real stream layer, on a disk that lies: every acknowledged
//! operation is there after every crash, with its last acknowledged content; one that was cut off is there
//! whole or not at all; no reader ever sees half of a transaction; versions rise whatever the clock does;
//! ranges split and merge under all this and no request fails for it.
//!
//! `LARIMAR_SIM_SEEDS` sets how many seeds run, `LARIMAR_SIM_SEED` runs one.

use crate::seeds::chosen_seeds;
use base::{Environment, Random};
use bytes::Bytes;
use futures_util::future::join_all;
use parking_lot::Mutex;
use partition::{
    Decision, KeyRange, ObjectTable, Operation, PartitionError, PartitionSettings, Partitions, PlantedFault,
    Read, RowChange, RowKey, RowRef, RowVersion, Rows, Scan, ScanEnd, Visit,
};
use sim::{Faults, SimClock, SimDisk, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stream::{StreamSettings, Streams};

const SEED_COUNT: u64 = 1000;
const LIVES: u64 = 4;
const WRITERS: u64 = 4;
const ROWS_PER_WRITER: u64 = 6;
const COUNTER: &str = "counter";

/// What the test's writers ask for.
#[derive(Clone, Debug)]
enum Ask {
    /// Puts and deletes, all or none. With `expect`, refused unless the first row has that value.
    Write { changes: Vec<(String, Option<Vec<u8>>)>, expect: Option<Vec<u8>> },
    /// Removes the first row of the partition name and returns its name.
    TakeFirst,
    /// Adds one to a row that all writers share.
    Increment,
}

#[derive(Clone, Debug)]
struct TestOperation {
    container: u64,
    partition: String,
    ask: Ask,
}

#[derive(Clone, Debug, PartialEq)]
enum TestReply {
    Done(RowVersion),
    Refused,
    Took(Option<String>),
}

fn row(container: u64, partition: &str, name: &str) -> RowKey {
    RowKey::new("acct", container, partition, name)
}

/// The container of what writers share.
const SHARED: u64 = 1;

/// The first container of a writer; each time it is deleted and made anew it gets the next id.
fn first_container(writer: u64) -> u64 {
    1_000 * (writer + 1)
}

impl Operation for TestOperation {
    type Reply = TestReply;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Entity
    }

    fn reads(&self) -> Vec<Read> {
        match &self.ask {
            Ask::Write { changes, .. } => changes
                .iter()
                .map(|(name, _)| Read::Point(row(self.container, &self.partition, name)))
                .collect(),
            Ask::TakeFirst => {
                vec![Read::Range {
                    range: KeyRange::partition("acct", self.container, &self.partition),
                    limit: 1,
                }]
            }
            Ask::Increment => vec![Read::Point(row(self.container, &self.partition, COUNTER))],
        }
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<TestReply> {
        match &self.ask {
            Ask::Write { expect: Some(expected), .. }
                if rows.point(0).map(|row| &row.value[..]) != Some(expected) =>
            {
                Decision::unchanged(TestReply::Refused)
            }
            Ask::Write { changes, .. } => {
                let change = |(name, value): &(String, Option<Vec<u8>>)| {
                    let key = row(self.container, &self.partition, name);
                    match value {
                        Some(value) => RowChange::Put { key, value: value.clone().into() },
                        None => RowChange::Delete { key },
                    }
                };
                Decision { changes: changes.iter().map(change).collect(), reply: TestReply::Done(version) }
            }
            Ask::TakeFirst => match rows.range(0).first() {
                Some(first) => Decision {
                    changes: vec![RowChange::Delete { key: first.key.clone() }],
                    reply: TestReply::Took(first.key.parts().map(|parts| parts.object_name)),
                },
                None => Decision::unchanged(TestReply::Took(None)),
            },
            Ask::Increment => {
                let count = rows.point(0).map_or(0, |row| read_count(&row.value));
                let key = row(self.container, &self.partition, COUNTER);
                let changes =
                    vec![RowChange::Put { key, value: Bytes::from((count + 1).to_le_bytes().to_vec()) }];
                Decision { changes, reply: TestReply::Done(version) }
            }
        }
    }
}

fn read_count(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().unwrap())
}

/// Collects rows, some at a time.
struct Collect {
    rows: Vec<(String, RowVersion, Vec<u8>)>,
    page: usize,
}

impl Scan for Collect {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        if self.rows.len() == self.page {
            return Visit::StopBefore;
        }
        let name = partition::key::parse_row_key(row.key).unwrap().object_name;
        self.rows.push((name, row.version, row.value.to_vec()));
        Visit::Continue
    }
}

type Rows1 = BTreeMap<String, Vec<u8>>;

/// One writer's partition name: what must be there, and the operation whose outcome nobody knows.
#[derive(Clone, Debug)]
struct Owned {
    container: u64,
    rows: Rows1,
    unknown: Option<Ask>,
    last_version: RowVersion,
}

impl Owned {
    fn new(writer: u64) -> Self {
        let container = first_container(writer);
        Owned { container, rows: Rows1::new(), unknown: None, last_version: RowVersion(0) }
    }
}

#[derive(Default)]
struct Model {
    owned: BTreeMap<u64, Owned>,
    increments_acknowledged: u64,
    increments_unknown: u64,
    flushes: u64,
    merges: u64,
    range_splits: u64,
    range_merges: u64,
    balanced: u64,
    retired: u64,
    looked_for_leftovers: u64,
}

fn apply(rows: &mut Rows1, ask: &Ask) {
    match ask {
        Ask::Write { changes, .. } => {
            for (name, value) in changes {
                match value {
                    Some(value) => rows.insert(name.clone(), value.clone()),
                    None => rows.remove(name),
                };
            }
        }
        Ask::TakeFirst => drop(rows.pop_first()),
        Ask::Increment => {}
    }
}

fn partition_name(writer: u64) -> String {
    format!("writer{writer}")
}

async fn read_all(
    partitions: &Partitions,
    container: u64,
    partition: &str,
    page: usize,
) -> Vec<(String, RowVersion, Vec<u8>)> {
    let mut range = KeyRange::partition("acct", container, partition);
    let mut all = Vec::new();
    loop {
        let scan = Collect { rows: Vec::new(), page };
        let (scan, end) = partitions.scan(ObjectTable::Entity, range.clone(), scan).await.unwrap();
        all.extend(scan.rows);
        match end {
            ScanEnd::Complete => return all,
            ScanEnd::More(start) => range.start = start,
        }
    }
}

/// After a start: each partition name holds what was acknowledged, plus all or nothing of what was cut off.
async fn verify(partitions: &Partitions, model: &Mutex<Model>, seed: u64) {
    let owned = model.lock().owned.clone();
    for (writer, mut owned) in owned {
        let found = read_all(partitions, owned.container, &partition_name(writer), 3).await;
        let rows: Rows1 = found.iter().map(|(name, _, value)| (name.clone(), value.clone())).collect();
        let mut with_unknown = owned.rows.clone();
        if let Some(unknown) = &owned.unknown {
            apply(&mut with_unknown, unknown);
        }
        assert!(
            rows == owned.rows || rows == with_unknown,
            "seed {seed}: writer {writer} finds {rows:?}, expected {:?} or, with {:?}, {with_unknown:?}",
            owned.rows,
            owned.unknown
        );
        for (name, version, value) in &found {
            let got = partitions
                .get(ObjectTable::Entity, &row(owned.container, &partition_name(writer), name))
                .await
                .unwrap()
                .unwrap();
            assert_eq!(
                (&got.value[..], got.version),
                (&value[..], *version),
                "seed {seed}: get and scan differ"
            );
        }
        owned.rows = rows;
        owned.unknown = None;
        model.lock().owned.insert(writer, owned);
    }
    let counter = partitions.get(ObjectTable::Entity, &row(SHARED, "shared", COUNTER)).await.unwrap();
    let count = counter.map_or(0, |row| read_count(&row.value));
    let mut model = model.lock();
    let (least, most) =
        (model.increments_acknowledged, model.increments_acknowledged + model.increments_unknown);
    assert!((least..=most).contains(&count), "seed {seed}: counter is {count}, expected {least} to {most}");
    model.increments_acknowledged = count;
    model.increments_unknown = 0;
}

fn random_ask(random: &dyn Random, rows: &Rows1) -> Ask {
    let pick = |bound: u64| random.next_u64() % bound;
    let name = || format!("r{}", pick(ROWS_PER_WRITER));
    let value = |tag: u64| {
        let mut value = tag.to_le_bytes().to_vec();
        value.resize(8 + pick([8, 100, 3000][pick(3) as usize]) as usize, tag as u8);
        value
    };
    match pick(10) {
        0 => Ask::Increment,
        1 => Ask::TakeFirst,
        2 => Ask::Write { changes: vec![(name(), None)], expect: None },
        3 | 4 => {
            // A group transaction: every row gets the same value, which concurrent readers check.
            let tag = random.next_u64();
            let value = value(tag);
            let changes =
                (0..ROWS_PER_WRITER).map(|index| (format!("r{index}"), Some(value.clone()))).collect();
            Ask::Write { changes, expect: None }
        }
        5 => {
            let name = name();
            let wrong = pick(2) == 0;
            let expect = if wrong { Some(b"never".to_vec()) } else { rows.get(&name).cloned() };
            Ask::Write { changes: vec![(name, Some(value(random.next_u64())))], expect }
        }
        _ => Ask::Write { changes: vec![(name(), Some(value(random.next_u64())))], expect: None },
    }
}

async fn write(
    partitions: &Partitions,
    model: &Mutex<Model>,
    random: &dyn Random,
    writer: u64,
    seed: u64,
) -> Result<(), PartitionError> {
    for _ in 0..random.next_u64() % 40 {
        let mut owned = model.lock().owned.entry(writer).or_insert_with(|| Owned::new(writer)).clone();
        if random.next_u64().is_multiple_of(25) {
            recreate(partitions, model, &mut owned, writer).await?;
            continue;
        }
        let ask = random_ask(random, &owned.rows);
        let shared = matches!(ask, Ask::Increment);
        let partition = if shared { "shared".to_owned() } else { partition_name(writer) };
        if shared {
            model.lock().increments_unknown += 1;
        } else {
            owned.unknown = Some(ask.clone());
            model.lock().owned.insert(writer, owned.clone());
        }
        let container = if shared { SHARED } else { owned.container };
        let outcome = partitions.execute(TestOperation { container, partition, ask: ask.clone() }).await;
        if outcome.as_ref().is_err_and(PartitionError::is_refusal) {
            // Refused for certain: nothing of it may ever show.
            owned.unknown = None;
            if shared {
                model.lock().increments_unknown -= 1;
            } else {
                model.lock().owned.insert(writer, owned);
            }
            continue;
        }
        let reply = outcome?;
        match (&ask, reply) {
            (Ask::Increment, _) => {
                let mut model = model.lock();
                model.increments_unknown -= 1;
                model.increments_acknowledged += 1;
                continue;
            }
            (Ask::Write { expect, changes }, TestReply::Refused) => {
                assert_ne!(
                    expect.as_ref(),
                    owned.rows.get(&changes[0].0),
                    "seed {seed}: refused although it matched"
                );
            }
            (Ask::Write { .. }, TestReply::Done(version)) => {
                assert!(version > owned.last_version, "seed {seed}: versions of a partition name must rise");
                owned.last_version = version;
                apply(&mut owned.rows, &ask);
            }
            (Ask::TakeFirst, TestReply::Took(name)) => {
                assert_eq!(
                    name.as_ref(),
                    owned.rows.keys().next(),
                    "seed {seed}: took another than the first row"
                );
                apply(&mut owned.rows, &ask);
            }
            (ask, reply) => panic!("seed {seed}: {ask:?} was answered {reply:?}"),
        }
        owned.unknown = None;
        model.lock().owned.insert(writer, owned.clone());
        // Read your own write.
        let found = read_all(partitions, owned.container, &partition_name(writer), 100).await;
        let rows: Rows1 = found.into_iter().map(|(name, _, value)| (name, value)).collect();
        assert_eq!(rows, owned.rows, "seed {seed}: writer {writer} after {ask:?}");
    }
    Ok(())
}

/// Deletes the writer's container and makes it anew: the old id is retired, its rows go in the background,
/// and none of them may ever show under the new one.
async fn recreate(
    partitions: &Partitions,
    model: &Mutex<Model>,
    owned: &mut Owned,
    writer: u64,
) -> Result<(), PartitionError> {
    let old = owned.container;
    owned.container += 1;
    owned.rows.clear();
    {
        let mut model = model.lock();
        model.retired += 1;
        model.owned.insert(writer, owned.clone());
    }
    match partitions.retire_container(ObjectTable::Entity, "acct", old).await {
        // It is not marked then: its service would find it at the next start.
        Err(error) if !error.is_refusal() => Err(error),
        _ => Ok(()),
    }
}

/// What a service does after a start: containers with rows that are not in use any more are retired.
async fn retire_lost(partitions: &Partitions, model: &Mutex<Model>) -> Result<(), PartitionError> {
    let mut after: Option<(String, u64)> = None;
    loop {
        let place = after.as_ref().map(|(account, id)| (account.as_str(), *id));
        let Some((account, id)) = partitions.next_container(ObjectTable::Entity, place).await? else {
            return Ok(());
        };
        let in_use = id == SHARED || model.lock().owned.values().any(|owned| owned.container == id);
        if !in_use {
            partitions.retire_container(ObjectTable::Entity, &account, id).await?;
        }
        after = Some((account, id));
    }
}

/// Writes the same value to every row of one partition name, again and again.
async fn storm(partitions: &Partitions, random: &dyn Random) -> Result<(), PartitionError> {
    for _ in 0..random.next_u64() % 20 {
        let value = random.next_u64().to_le_bytes().to_vec();
        let changes = (0..ROWS_PER_WRITER).map(|index| (format!("r{index}"), Some(value.clone()))).collect();
        let ask = Ask::Write { changes, expect: None };
        match partitions
            .execute(TestOperation { container: SHARED, partition: "storm".to_owned(), ask })
            .await
        {
            Err(error) if !error.is_refusal() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Whoever looks at the storm sees each transaction whole or not at all.
async fn watch_storm(partitions: &Partitions, seed: u64) {
    let found = read_all(partitions, SHARED, "storm", 100).await;
    assert!(
        found.is_empty() || found.len() as u64 == ROWS_PER_WRITER,
        "seed {seed}: half a transaction is there"
    );
    assert!(
        found.windows(2).all(|pair| pair[0].1 == pair[1].1 && pair[0].2 == pair[1].2),
        "seed {seed}: two halves"
    );
}

/// Splits and merges ranges, wherever the writers are.
async fn change_ranges(partitions: &Partitions, clock: &SimClock, random: &dyn Random, model: &Mutex<Model>) {
    for _ in 0..random.next_u64() % 10 {
        base::Clock::sleep(clock, std::time::Duration::from_millis(random.next_u64() % 8)).await;
        let (container, name) = match random.next_u64() % (WRITERS + 2) {
            0 => (SHARED, "storm".to_owned()),
            1 => (SHARED, "shared".to_owned()),
            writer => (first_container(writer - 2), partition_name(writer - 2)),
        };
        let key = row(container, &name, "r0");
        // A failure (a full disk, a failed sync) leaves things as they are, which is what the rest checks.
        match random.next_u64() % 6 {
            0 => {
                let changed = partitions.balance_now().await.unwrap_or(0);
                model.lock().balanced += changed;
            }
            1 | 2 => {
                let merged = partitions.merge(ObjectTable::Entity, &key).await;
                model.lock().range_merges += u64::from(merged == Ok(true));
            }
            _ => {
                let split = partitions.split(ObjectTable::Entity, &key).await;
                model.lock().range_splits += u64::from(split == Ok(true));
            }
        }
    }
}

/// Walks everything over all ranges: keys rise, and the storm's transaction is whole.
async fn watch_all(partitions: &Partitions, seed: u64) {
    let scan = WholeKeys::default();
    let (scan, end) = partitions.scan(ObjectTable::Entity, KeyRange::all(), scan).await.unwrap();
    assert_eq!(end, ScanEnd::Complete);
    assert!(scan.keys.windows(2).all(|pair| pair[0] < pair[1]), "seed {seed}: keys must rise");
    let storm = KeyRange::partition("acct", SHARED, "storm");
    let count = scan.keys.iter().filter(|key| storm.contains(key)).count() as u64;
    assert!(count == 0 || count == ROWS_PER_WRITER, "seed {seed}: half a transaction in a long walk");
}

#[derive(Default)]
struct WholeKeys {
    keys: Vec<Vec<u8>>,
}

impl Scan for WholeKeys {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        self.keys.push(row.key.to_vec());
        Visit::Continue
    }
}

/// Once the disk does all it is asked, nothing stays of what was replaced, handed over or given up while it
/// did not.
async fn find_no_leftovers(streams: &Streams, partitions: &Partitions, clock: &SimClock, seed: u64) {
    let mut found = None;
    for _ in 0..60 {
        base::Clock::sleep(clock, std::time::Duration::from_secs(1)).await;
        let names = streams.list("entity/");
        let checkpoints = names.iter().filter(|name| name.as_str().contains("/row_data/")).count();
        let ids: BTreeSet<_> = names.iter().filter_map(|name| name.as_str().split('/').nth(1)).collect();
        let ranges = partitions.range_statistics(ObjectTable::Entity);
        let known: usize = ranges.iter().map(|range| range.checkpoints).sum();
        if (checkpoints, ids.len()) == (known, ranges.len()) {
            return;
        }
        found = Some((names.clone(), ranges));
    }
    panic!("seed {seed}: streams that nothing refers to stay: {found:?}");
}

/// One life. `refusing` is the disk if it refuses things, and nothing worse.
async fn life(
    env: Environment,
    clock: Arc<SimClock>,
    refusing: Option<Arc<SimDisk>>,
    model: Arc<Mutex<Model>>,
    settings: PartitionSettings,
    seed: u64,
) -> Result<(), PartitionError> {
    let streams = Streams::open(&env, StreamSettings::tiny()).await?;
    let partitions = Partitions::open(&env, streams.clone(), settings).await?;
    verify(&partitions, &model, seed).await;
    watch_storm(&partitions, seed).await;
    let random = &*env.random;
    let (writing, storming, (), (), ()) = tokio::join!(
        async {
            let writers = (0..WRITERS).map(|writer| write(&partitions, &model, random, writer, seed));
            join_all(writers).await.into_iter().collect::<Result<Vec<()>, _>>()
        },
        storm(&partitions, random),
        change_ranges(&partitions, &clock, random, &model),
        async {
            for _ in 0..30 {
                watch_storm(&partitions, seed).await;
                watch_all(&partitions, seed).await;
                base::Clock::sleep(&*clock, std::time::Duration::from_millis(random.next_u64() % 4)).await;
            }
        },
        async {
            for _ in 0..5 {
                base::Clock::sleep(&*clock, std::time::Duration::from_millis(3)).await;
                clock.move_wall(random.next_u64() as i64 % 100_000_000);
            }
        },
    );
    writing?;
    storming?;
    if let Some(disk) = refusing {
        disk.set_faults(Faults::default());
        find_no_leftovers(&streams, &partitions, &clock, seed).await;
        model.lock().looked_for_leftovers += 1;
    }
    let statistics = partitions.statistics();
    {
        let mut model = model.lock();
        model.flushes += statistics.flushes;
        model.merges += statistics.compactions;
    }
    if random.next_u64().is_multiple_of(2) {
        partitions.close().await;
        streams.close().await;
    }
    Ok(())
}

/// What became of one history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    /// The digest of all that the disk was asked.
    trace: u64,
    flushes: u64,
    merges: u64,
    range_splits: u64,
    range_merges: u64,
    balanced: u64,
    retired: u64,
    looked_for_leftovers: u64,
}

/// A fault that the layers must suffer from: then a history is expected to panic.
#[derive(Clone, Copy, Debug)]
enum Planted {
    None,
    /// Syncs of files with this prefix do nothing.
    SkippedSync(&'static str),
    InLayer(PlantedFault),
}

/// One history.
fn history(seed: u64, planted: Planted) -> Outcome {
    let (skip_sync_of, planted_fault) = match planted {
        Planted::None => (None, None),
        Planted::SkippedSync(prefix) => (Some(prefix), None),
        Planted::InLayer(fault) => (None, Some(fault)),
    };
    let settings = PartitionSettings { planted_fault, ..PartitionSettings::tiny() };
    let world = World::new(seed);
    let model = Arc::new(Mutex::new(Model::default()));
    for _ in 0..LIVES {
        let random = &world.random;
        let used: u64 = world.disk.files().iter().map(|(_, size)| size).sum();
        let create_refused_one_in = if matches!(planted, Planted::None) && random.one_in(6) { 4 } else { 0 };
        let capacity_bytes = if used > 0 && random.one_in(6) { used + random.below(250_000) } else { 0 };
        let refuses = create_refused_one_in > 0 || capacity_bytes > 0;
        // Half of the lives on a disk that refuses things go on, to see that nothing stays of what was
        // refused.
        let crash_at_operation = if random.one_in(if refuses { 2 } else { 4 }) {
            0
        } else {
            world.disk.operation_count() + 1 + random.below(1000)
        };
        let faults = Faults {
            slow_one_in: 4,
            sync_fails_one_in: if random.one_in(5) { 50 } else { 0 },
            full_at_operation: 0,
            crash_at_operation,
            create_refused_one_in,
            capacity_bytes,
            skip_sync_of,
        };
        world.disk.set_faults(faults);
        let is_worse = faults.sync_fails_one_in > 0 || skip_sync_of.is_some();
        let refusing = (refuses && !is_worse).then(|| world.disk.clone());
        let outcome =
            world.run(|env, clock| life(env, clock, refusing, model.clone(), settings.clone(), seed));
        match outcome {
            None | Some(Ok(())) | Some(Err(PartitionError::Storage(_))) => {}
            Some(Err(error)) if error.is_refusal() => {}
            Some(Err(error)) => panic!("seed {seed}: {error}"),
        }
    }
    world.disk.set_faults(Faults::default());
    let verified = model.clone();
    world
        .run(|env, clock| async move {
            let streams = Streams::open(&env, StreamSettings::tiny())
                .await
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let partitions = Partitions::open(&env, streams, settings.clone())
                .await
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            verify(&partitions, &verified, seed).await;
            retire_lost(&partitions, &verified).await.unwrap();
            // Some rounds of the partition manager later every row of a deleted container is gone, and no
            // other. A mark may go after two minutes; one that was made under a clock up to two minutes ahead
            // of this one after four.
            base::Clock::sleep(&*clock, std::time::Duration::from_secs(300)).await;
            assert_eq!(partitions.retired_container_count(), 0, "seed {seed}: marks stay");
            let used: Vec<u64> = verified.lock().owned.values().map(|owned| owned.container).collect();
            let mut after = None;
            while let Some((account, id)) = partitions
                .next_container(ObjectTable::Entity, after.as_ref().map(|id| ("acct", *id)))
                .await
                .unwrap()
            {
                assert!(
                    account == "acct" && (id == SHARED || used.contains(&id)),
                    "seed {seed}: {id} has rows"
                );
                after = Some(id);
            }
            verify(&partitions, &verified, seed).await;
        })
        .unwrap();
    let model = model.lock();
    Outcome {
        trace: world.disk.trace(),
        flushes: model.flushes,
        merges: model.merges,
        range_splits: model.range_splits,
        range_merges: model.range_merges,
        balanced: model.balanced,
        retired: model.retired,
        looked_for_leftovers: model.looked_for_leftovers,
    }
}

/// One history; some run twice, and must leave the same trace.
fn repeatable_history(seed: u64) -> Outcome {
    let outcome = history(seed, Planted::None);
    if seed.is_multiple_of(100) {
        assert_eq!(
            history(seed, Planted::None),
            outcome,
            "seed {seed}: the same seed must give the same run"
        );
        println!("seed {seed}: trace {:016x}", outcome.trace);
    }
    outcome
}

#[test]
fn acknowledged_operations_survive_every_crash() {
    let seeds = chosen_seeds(SEED_COUNT, 1);
    println!("partition histories: {} seeds, {} to {}", seeds.len(), seeds[0], seeds[seeds.len() - 1]);
    let count = seeds.len() as u64;
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // Each history has its world: they run side by side.
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let parts = seeds.chunks(seeds.len().div_ceil(threads));
        let run = |part: &[u64]| part.iter().map(|seed| repeatable_history(*seed)).collect::<Vec<_>>();
        let running: Vec<_> = parts.map(|part| scope.spawn(move || run(part))).collect();
        running.into_iter().flat_map(|part| part.join().expect("a history fails: see above")).collect()
    });
    let sum = |part: fn(&Outcome) -> u64| outcomes.iter().map(part).sum::<u64>();
    let (flushes, merges) = (sum(|outcome| outcome.flushes), sum(|outcome| outcome.merges));
    let (range_splits, range_merges) =
        (sum(|outcome| outcome.range_splits), sum(|outcome| outcome.range_merges));
    let (balanced, retired) = (sum(|outcome| outcome.balanced), sum(|outcome| outcome.retired));
    println!("{flushes} memory tables flushed, {merges} merges done");
    println!(
        "{range_splits} ranges split, {range_merges} pairs of ranges merged, {balanced} changes by the manager"
    );
    println!("{retired} containers deleted and made anew");
    let looked = sum(|outcome| outcome.looked_for_leftovers);
    println!("{looked} times nothing was left over once a disk that had refused things did all it was asked");
    assert!(count < 100 || looked > count / 20, "disks must refuse things");
    assert!(count < 100 || retired > count, "the histories must delete containers");
    assert!(count < 100 || (flushes > count && merges > count / 10), "the histories must flush and merge");
    assert!(
        count < 100 || (range_splits > count && range_merges > count / 4),
        "and their ranges must change"
    );
}

/// The histories are worth nothing if they can't fail: a journal that is never synced must be noticed.
#[test]
fn a_journal_without_syncs_is_caught() {
    assert_caught(Planted::SkippedSync("journal"), 10);
}

/// Nor if the stream manager's log is never synced: streams that were made, shared and removed come back
/// wrong.
#[test]
fn a_stream_manager_log_without_syncs_is_caught() {
    assert_caught(Planted::SkippedSync("stream_manager"), 10);
}

/// Nor if a range that takes over hides rows that are its own.
#[test]
fn a_wrong_range_of_an_heir_is_caught() {
    // A bit more than a third of all seeds; of 40 it may be less than a quarter by chance.
    assert_caught_in(80, Planted::InLayer(PlantedFault::WrongHeirRange), 20);
}

/// Nor if one record of a log is left out when it is replayed.
#[test]
fn a_record_dropped_at_replay_is_caught() {
    // The first record after a checkpoint is often overwritten by later ones.
    assert_caught(Planted::InLayer(PlantedFault::DroppedLogRecord), 3);
}

/// Nor if bytes that were appended straight to extents are never synced: the journal would vouch for nothing.
#[test]
fn extents_without_syncs_are_caught() {
    assert_caught(Planted::SkippedSync("extents"), 10);
}

fn assert_caught(planted: Planted, at_least: usize) {
    assert_caught_in(40, planted, at_least);
}

fn assert_caught_in(history_count: u64, planted: Planted, at_least: usize) {
    let caught = |seed: &u64| std::panic::catch_unwind(|| history(*seed, planted)).is_err();
    let count = (0..history_count).filter(caught).count();
    println!("{planted:?} was caught in {count} of {history_count} histories");
    assert!(count >= at_least, "only {count} of {history_count} histories noticed {planted:?}");
}

/// A scan over rows in memory never waits for anything; it used to hold its thread, and the group commit with
/// it, until its page was done.
#[test]
fn a_long_scan_lets_others_run() {
    let world = World::new(1);
    let turns = world.run(|env, _| async move {
        let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
        let settings = PartitionSettings {
            memory_table_size_bytes: 1 << 20,
            memory_tables_size_bytes_max: 8 << 20,
            ..PartitionSettings::tiny()
        };
        let partitions = Partitions::open(&env, streams, settings).await.unwrap();
        let changes = (0..1000).map(|index| (format!("r{index:04}"), Some(vec![0]))).collect();
        let ask = Ask::Write { changes, expect: None };
        partitions
            .execute(TestOperation { container: SHARED, partition: "long".to_owned(), ask })
            .await
            .unwrap();
        let done = std::cell::Cell::new(false);
        let scan = async {
            assert_eq!(read_all(&partitions, SHARED, "long", 2000).await.len(), 1000);
            done.set(true);
        };
        let others = async {
            let mut turns = 0;
            while !done.get() {
                turns += 1;
                tokio::task::yield_now().await;
            }
            turns
        };
        tokio::join!(scan, others).1
    });
    assert!(turns.unwrap() >= 5, "others had {turns:?} turns during a scan of 1,000 rows");
}
