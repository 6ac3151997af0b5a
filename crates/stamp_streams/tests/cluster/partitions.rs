//! Partitions over the layer of a stamp, in seeded histories: processes one after the other serve rows, blob
//! data and splits over models of both stores; each is killed, or hands over, while an operation is under
//! way.
//!
//! What is checked: at each take-over every acknowledged row is there with its version, no other is but what
//! was under way at the kill, and blob data reads; a process that was replaced acknowledges nothing and
//! answers nothing; sweeps delete nothing that is read.

use crate::host::Gate;
use crate::network::Weather;
use crate::world::World;
use base::codec::Decoder;
use base::memory_disk::MemoryDisk;
use base::{Disk, Environment, LoopSign, Metrics, OpenMode};
use bytes::Bytes;
use partition::{
    Decision, KeyRange, Lease, ObjectTable, Operation, PartitionError, PartitionSettings, Partitions, Read,
    RowChange, RowKey, RowRef, RowVersion, Rows, Scan, Visit, put_pieces, take_pieces,
};
use stamp_streams::{
    BlockCache, CacheBounds, Life, OwnedRange, RangeWatch, StampLayer, StampSettings, Surroundings, Sweeper,
    Taken, back_up_all,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use stream::Streams;

type Everything = BTreeMap<Vec<u8>, (RowVersion, Vec<u8>)>;

/// Of each host's cache: so few that they go while they are wanted.
const CACHE: CacheBounds = CacheBounds { size_bytes_max: 512 << 20, blocks_max: 40 };
/// Lives of processes in one history.
const LIVES: u64 = 5;

pub(crate) struct Put {
    pub(crate) table: ObjectTable,
    pub(crate) key: RowKey,
    pub(crate) value: Option<Bytes>,
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
        let key = self.key.clone();
        let change = match &self.value {
            Some(value) => RowChange::Put { key, value: value.clone() },
            None => RowChange::Delete { key },
        };
        Decision { changes: vec![change], reply: version }
    }
}

#[derive(Default)]
struct Collect(Everything);

impl Scan for Collect {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        self.0.insert(row.key.to_vec(), (row.version, row.value.to_vec()));
        Visit::Continue
    }
}

struct RangeLease(Arc<OwnedRange>);

impl Lease for RangeLease {
    fn holds(&self) -> bool {
        self.0.admits_reads()
    }

    fn watch_loop(&self, name: &str) -> Option<Box<dyn LoopSign>> {
        Some(Box::new(self.0.watch_loop(name)))
    }
}

/// A process that serves.
pub(crate) struct Server {
    pub(crate) gate: Arc<Gate>,
    pub(crate) life: Arc<Life>,
    pub(crate) range: Arc<OwnedRange>,
    pub(crate) partitions: Arc<Partitions>,
    cache: Arc<BlockCache>,
}

/// What was acknowledged, and what the operation under way at a kill would have made.
#[derive(Default)]
struct Ledger {
    rows: Everything,
    unsure: Option<(Vec<u8>, Option<Vec<u8>>)>,
    pieces: Vec<(RowKey, Bytes)>,
}

fn key(at: u64) -> RowKey {
    RowKey::new("acct", 1, &format!("p{}", at % 5), &format!("r{:04}", at % 300))
}

pub(crate) fn value(tag: u64, size: usize) -> Bytes {
    let mut state = tag;
    let mut out = Vec::with_capacity(size + 8);
    while out.len() < size {
        out.extend_from_slice(&base::random::splitmix64(&mut state).to_le_bytes());
    }
    out.truncate(size);
    out.into()
}

/// Joins, takes the stamp's first range as soon as it may, and opens partitions over it; again, if its lease
/// ends meanwhile.
pub(crate) async fn serve(world: &Arc<World>, disk: &Arc<MemoryDisk>, seed: u64) -> Server {
    loop {
        match try_to_serve(world, disk).await {
            Ok(server) => return server,
            // The weather.
            Err(
                PartitionError::StoreAway(_) | PartitionError::OutcomeUnknown(_) | PartitionError::NotMine,
            ) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
}

async fn try_to_serve(world: &Arc<World>, disk: &Arc<MemoryDisk>) -> Result<Server, PartitionError> {
    let (gate, surroundings) = world.new_process();
    damage_one_byte(world, disk).await;
    let cache =
        BlockCache::open(disk.clone(), surroundings.clock.clone(), &*surroundings.spawner, CACHE).await;
    let cache = cache.expect("a cache");
    let settings = StampSettings {
        extent_size_bytes: 8 << 10,
        names_early: false,
        give_up_after: Duration::from_secs(20),
        ..(*surroundings.settings).clone()
    };
    let surroundings =
        Surroundings { settings: Arc::new(settings), cache: Some(cache.clone()), ..surroundings };
    let (life, range) = loop {
        let Ok(life) = Life::join(&surroundings).await else { continue };
        if let Some(range) = take(&life, &surroundings).await {
            break (life, range);
        }
    };
    let layer = StampLayer::open(range.clone()).await.expect("a layer");
    let env = Environment {
        clock: surroundings.clock.clone(),
        random: surroundings.random.clone(),
        disk: Arc::new(MemoryDisk::new()),
        spawner: surroundings.spawner.clone(),
        metrics: Metrics::default(),
    };
    let lease = Arc::new(RangeLease(range.clone()));
    let settings =
        PartitionSettings { range_count_max: 6, log_groups_max: 1 << 9, ..PartitionSettings::tiny() };
    match Partitions::open_while(&env, Streams::of_stamp(layer), settings, lease).await {
        Ok(partitions) => Ok(Server { gate, life, range, partitions: Arc::new(partitions), cache }),
        Err(error) => {
            life.leave().await;
            gate.kill();
            Err(error)
        }
    }
}

/// What is on the disk of a host while nobody looks.
async fn damage_one_byte(world: &World, disk: &MemoryDisk) {
    let names = disk.list("").await.expect("files");
    let Some(name) = names.get(world.random.below(names.len().max(1) as u64) as usize) else { return };
    let file = disk.open(name, OpenMode::Write).await.expect("a file");
    let size = file.size().await.expect("a size");
    if size > 0 {
        let bytes = vec![world.random.below(256) as u8];
        file.write_at(world.random.below(size), bytes.into()).await.expect("written");
    }
}

async fn take(life: &Arc<Life>, surroundings: &Surroundings) -> Option<Arc<OwnedRange>> {
    let watch = RangeWatch::new(life);
    while life.holds() {
        if let Ok(ranges) = watch.look().await
            && let Some(first) = ranges.into_keys().next()
            && let Ok(Taken::Range(range)) = watch.take(first).await
        {
            return Some(range);
        }
        surroundings.clock.sleep(Duration::from_millis(300)).await;
    }
    None
}

async fn read_table(partitions: &Partitions, table: ObjectTable) -> Result<Everything, PartitionError> {
    Ok(partitions.scan(table, KeyRange::all(), Collect::default()).await?.0.0)
}

async fn check(server: &Server, ledger: &mut Ledger, seed: u64) {
    let found = read_table(&server.partitions, ObjectTable::Entity).await.expect("rows");
    let blobs = read_table(&server.partitions, ObjectTable::Blob).await.expect("rows");
    // Their rows change by themselves when their data is moved.
    let named: Vec<&[u8]> = ledger.pieces.iter().map(|(key, _)| &key.as_bytes()[..]).collect();
    assert!(blobs.len() == named.len() && named.iter().all(|key| blobs.contains_key(*key)), "seed {seed}");
    // What was under way is there as a whole, or not at all.
    if let Some((key, value)) = ledger.unsure.take() {
        let now = found.get(&key).map(|(_, value)| value.clone());
        if now == value {
            match found.get(&key) {
                Some(row) => ledger.rows.insert(key, row.clone()),
                None => ledger.rows.remove(&key),
            };
        }
    }
    for (key, row) in &ledger.rows {
        let name = key.escape_ascii();
        assert!(found.get(key) == Some(row), "seed {seed}: {name} is {:?}, not {row:?}", found.get(key));
    }
    for (key, row) in &found {
        assert!(ledger.rows.contains_key(key), "seed {seed}: {} is there, {row:?}", key.escape_ascii());
    }
    for (key, content) in &ledger.pieces {
        let (row, pin) = server
            .partitions
            .get_with_data(ObjectTable::Blob, key)
            .await
            .expect("a blob")
            .unwrap_or_else(|| panic!("seed {seed}: a blob is gone"));
        let pieces = take_pieces(&mut Decoder::new(&row.value)).expect("pieces");
        let mut read = Vec::new();
        for piece in &pieces {
            read.extend(pin.read(piece, 0).await.expect("its data"));
        }
        assert!(read == content[..], "seed {seed}: a blob's data differs");
    }
}

async fn work(world: &World, server: &Server, ledger: &mut Ledger, seed: u64) {
    let count = 40 + world.random.below(160);
    for _ in 0..count {
        let at = world.random.below(1500);
        let (key, tag) = (key(at), world.random.below(u64::MAX));
        let put = (!world.random.one_in(5)).then(|| value(tag, 20 + world.random.below(700) as usize));
        match world.random.below(30) {
            0 => {
                let key = RowKey::new("acct", 2, &format!("b{at:04}"), "b");
                let content = value(tag, 1000 + world.random.below(9000) as usize);
                let appended = server.partitions.append_data(ObjectTable::Blob, &key, content.clone()).await;
                let (piece, _pin) = appended.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                let mut named = Vec::new();
                put_pieces(&mut named, std::slice::from_ref(&piece));
                let put = Put { table: ObjectTable::Blob, key: key.clone(), value: Some(named.into()) };
                server.partitions.execute(put).await.expect("a name");
                ledger.pieces.retain(|(other, ..)| *other != key);
                ledger.pieces.push((key, content));
            }
            1 => drop(server.partitions.split(ObjectTable::Entity, &key).await),
            2 => drop(server.partitions.flush_now(ObjectTable::Entity, None).await),
            3 => drop(server.partitions.compact_now(ObjectTable::Entity, None).await),
            4 => drop(Sweeper::new(&server.life).sweep().await),
            5 => drop(back_up_all(&server.life).await),
            _ => {
                let write = Put { table: ObjectTable::Entity, key: key.clone(), value: put.clone() };
                let version = server.partitions.execute(write).await;
                let version = version.unwrap_or_else(|error| {
                    panic!("seed {seed}: {error}; the range: {:?}", server.range.stopped())
                });
                match put {
                    Some(value) => ledger.rows.insert(key.as_bytes().to_vec(), (version, value.to_vec())),
                    None => ledger.rows.remove(&key.as_bytes()[..]),
                };
            }
        }
    }
}

/// An operation is under way when the process is killed: whoever serves next finds out what became of it.
async fn kill_with_a_write(world: &World, server: &Server, ledger: &mut Ledger) {
    let (key, put) = (key(world.random.below(1500)), value(world.random.below(u64::MAX), 300));
    ledger.unsure = Some((key.as_bytes().to_vec(), Some(put.to_vec())));
    let partitions = server.partitions.clone();
    let write = Put { table: ObjectTable::Entity, key, value: Some(put) };
    server.gate.spawn(async move { drop(partitions.execute(write).await) });
    tokio::time::sleep(Duration::from_millis(world.random.below(30))).await;
    server.gate.kill();
}

/// One that is paused beyond its lease and goes on: it answers nothing, and what it still does changes
/// nothing.
async fn outlive(former: &Server, seed: u64) {
    let write = Put { table: ObjectTable::Entity, key: key(7), value: Some(value(1, 50)) };
    let late = former.partitions.execute(write).await;
    assert!(late.is_err(), "seed {seed}: a former owner has acknowledged {late:?}");
    let read = former.partitions.get(ObjectTable::Entity, &key(7)).await;
    assert!(read.is_err(), "seed {seed}: a former owner has answered");
    drop(former.partitions.flush_now(ObjectTable::Entity, None).await);
}

/// How many reads the caches have answered, and the ranges that were served: nothing keeps them at the end.
async fn history(seed: u64) -> (u64, Vec<Weak<OwnedRange>>) {
    let world = World::new(seed, None, false).await;
    world.hosts.lock().iter().for_each(|host| host.gate.kill());
    let mut ledger = Ledger::default();
    let mut former: Option<Server> = None;
    // Of two hosts in turn, since a process that is paused has its disk yet.
    let disks = [(); 2].map(|()| Arc::new(MemoryDisk::new()));
    let (mut hits, mut ranges) = (0, Vec::new());
    for life in 0..LIVES {
        let disk = &disks[(life % 2) as usize];
        *world.weather.lock() = match world.random.below(3) {
            0 => Weather { slow_one_in: 40, late_one_in: 0, lost_one_in: 60, answer_lost_one_in: 60 },
            _ => Weather::CALM,
        };
        let mut server = serve(&world, disk, seed).await;
        if let Some(former) = former.take() {
            former.gate.resume();
            outlive(&former, seed).await;
            former.gate.kill();
        }
        // What is not answered for long has the range sealed and read again, which is not done here.
        *world.weather.lock() = Weather::CALM;
        // A beat that the weather has swallowed may end the lease yet.
        tokio::time::sleep(world.operator().settings.ttl).await;
        if server.range.stopped().is_some() {
            server.gate.kill();
            server = serve(&world, disk, seed).await;
        }
        ranges.push(Arc::downgrade(&server.range));
        check(&server, &mut ledger, seed).await;
        work(&world, &server, &mut ledger, seed).await;
        hits += server.cache.reading().hits;
        match (life + seed) % 3 {
            0 => {
                server.cache.close().await;
                server.partitions.close().await;
                server.range.release().await.expect("released");
                server.life.leave().await;
                server.gate.kill();
            }
            1 => kill_with_a_write(&world, &server, &mut ledger).await,
            _ => {
                // It beats no more, and wakes up when another serves.
                server.gate.pause();
                former = Some(server);
            }
        }
    }
    if let Some(former) = former {
        former.gate.kill();
    }
    assert_eq!(world.wrong(), None, "seed {seed}");
    world.forget();
    (hits, ranges)
}

fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    match number("LARIMAR_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LARIMAR_SIM_SEEDS").unwrap_or(20).max(8) / 2,
    }
}

#[test]
fn partitions_of_a_stamp_lose_nothing_whoever_serves_them() {
    let mut hits = 0;
    for seed in seeds() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
        let (answered, ranges) = runtime.block_on(history(seed));
        drop(runtime);
        hits += answered;
        // A process that lost its stamp would keep its caches, and a circle of handles keeps them for ever.
        assert!(ranges.iter().all(|range| range.strong_count() == 0), "seed {seed}: a range is kept");
    }
    assert!(hits > 0 || seeds().count() < 4, "no cache has answered");
}
