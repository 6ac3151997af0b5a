//! Small parts are copied into bundles, so that whoever takes a range reads its log with few requests; and
//! nothing depends on them.

use crate::application::LOG;
use crate::world::{STAMP, World};
use bytes::Bytes;
use stamp::{BundleBounds, BundlePath, Change, PartPath, StreamId};
use stamp_streams::{
    Bundles, Life, OwnedRange, RangeWatch, SnapshotLayer, StampLayer, StampSettings, StampSnapshot,
    Surroundings, Sweeper, Taken,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stream::{ReplayBlocks, StreamLayer, StreamName};

const PARTS: u64 = 200;
const PARTS_OF_BUNDLE: usize = 16;
/// A part of this number has a large body, and is in no bundle.
const LARGE: u64 = 100;
/// Reads of a log whose bundles are whole: those, what is in none, seals.
const READS_MAX: usize = 60;

fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(test);
}

async fn take(life: &Arc<Life>) -> Arc<OwnedRange> {
    let watch = RangeWatch::new(life);
    loop {
        let first = *watch.look().await.expect("ranges").keys().next().expect("a range");
        if let Taken::Range(range) = watch.take(first).await.expect("an answer") {
            return range;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

fn body(at: u64) -> Bytes {
    let size = if at == LARGE { 2000 } else { 8 };
    at.to_le_bytes().repeat(size / 8).into()
}

async fn check(mut replay: Box<dyn ReplayBlocks>) {
    let mut at = 0;
    while let Some((_, block)) = replay.next().await.expect("a block") {
        assert_eq!(block, body(at));
        at += 1;
    }
    assert_eq!(at, PARTS);
}

/// A process that has appended small parts to a log.
struct Stage {
    world: Arc<World>,
    owner: Surroundings,
    stream: StreamId,
    range: Arc<OwnedRange>,
    _life: Arc<Life>,
}

impl Stage {
    async fn new() -> Stage {
        let world = World::new(3, None, false).await;
        world.hosts.lock().iter().for_each(|host| host.gate.kill());
        let operator = world.operator();
        let bounds =
            BundleBounds { parts_max: PARTS_OF_BUNDLE, part_size_bytes_max: 1000, ..BundleBounds::default() };
        let settings = StampSettings {
            extent_size_bytes: 1 << 20,
            bundles: Bundles { bounds, of: |purpose| purpose == LOG },
            ..(*operator.settings).clone()
        };
        let owner = Surroundings { settings: Arc::new(settings), ..operator };
        let life = Life::join(&owner).await.expect("joined");
        let range = take(&life).await;
        let layer = StampLayer::open(range.clone()).await.expect("a layer");
        let name = StreamName::new(LOG);
        for at in 0..PARTS {
            layer.append(&name, range.owner(), vec![body(at)]).await.expect("appended");
        }
        // The last bundle is sent, and listed.
        tokio::time::sleep(Duration::from_secs(10)).await;
        let document = range.document();
        let stream =
            document.streams.iter().find(|(_, entry)| entry.purpose == LOG).map(|(stream, _)| *stream);
        Stage { world, owner, stream: stream.expect("a log"), range, _life: life }
    }

    fn bundles(&self) -> Vec<String> {
        let names = self.world.objects.names().into_iter();
        names.filter(|name| BundlePath::parse(name, STAMP).is_some()).collect()
    }

    /// Makes whole what the store has damaged on its way.
    fn mend(&self) {
        let objects = &self.world.objects;
        let parts: Vec<PartPath> =
            objects.names().iter().filter_map(|name| PartPath::parse(name, STAMP)).collect();
        for name in self.bundles() {
            let bundle = BundlePath::parse(&name, STAMP).expect("a bundle");
            let is_in = |part: &&PartPath| {
                part.extent == bundle.extent && (bundle.offset..bundle.end).contains(&part.offset)
            };
            let read = |part: &PartPath| objects.read(&part.format(STAMP)).expect("well").expect("a part");
            let whole: Vec<u8> = parts.iter().filter(is_in).flat_map(read).collect();
            objects.replace(&name, whole.into());
        }
    }

    fn reads(&self) -> usize {
        self.world.objects.reads.load(Ordering::Relaxed)
    }

    /// Another process, of which nothing is known.
    async fn joined(&self) -> (Surroundings, Arc<Life>) {
        let other = Surroundings { ahead: Arc::default(), ..self.owner.clone() };
        let life = Life::join(&other).await.expect("joined");
        (other, life)
    }

    /// Another process takes the range and reads the log. How many reads the store had.
    async fn take_over(&self) -> usize {
        self.range.give_up().await.expect("given up");
        let (taker, life) = self.joined().await;
        let before = self.reads();
        taker.ahead.begin(1 << 20, |purpose| purpose == LOG);
        let range = take(&life).await;
        taker.ahead.use_up();
        let layer = StampLayer::open(range.clone()).await.expect("a layer");
        check(layer.replay(&StreamName::new(LOG), None).expect("a log")).await;
        let reads = self.reads() - before;
        range.give_up().await.expect("given up");
        reads
    }
}

#[test]
fn a_log_of_small_parts_is_taken_with_few_reads() {
    run(async {
        let stage = Stage::new().await;
        let count = stage.bundles().len();
        // One more in front of the large part.
        assert_eq!(count, PARTS as usize / PARTS_OF_BUNDLE + 1, "{:?}", stage.bundles());
        stage.mend();
        tokio::time::sleep(Duration::from_secs(10)).await;
        let reads = stage.take_over().await;
        assert!((count..READS_MAX).contains(&reads), "{reads}");
    });
}

/// What is sealed and was not read ahead is read from bundles, too: by a load, and by who reads ahead.
#[test]
fn a_sealed_log_is_read_with_few_reads() {
    run(async {
        let stage = Stage::new().await;
        stage.mend();
        tokio::time::sleep(Duration::from_secs(10)).await;
        stage.take_over().await;
        let (taker, life) = stage.joined().await;
        let range = take(&life).await;
        let before = stage.reads();
        let layer = StampLayer::open(range.clone()).await.expect("a layer");
        check(layer.replay(&StreamName::new(LOG), None).expect("a log")).await;
        let reads = stage.reads() - before;
        assert!(reads < READS_MAX, "{reads} of a load");
        let before = stage.reads();
        taker.ahead.begin(1 << 20, |purpose| purpose == LOG);
        let snapshot = StampSnapshot::read(&taker).await.expect("a snapshot").expect("a stamp");
        let (layer, _) = SnapshotLayer::open_damaged(&snapshot, range.range()).await.expect("a layer");
        check(layer.replay(&StreamName::new(LOG), None).expect("a log")).await;
        let reads = stage.reads() - before;
        assert!(reads < READS_MAX, "{reads} of a reader ahead");
    });
}

#[test]
fn bundles_that_are_damaged_or_gone_are_made_up_for() {
    run(async {
        let stage = Stage::new().await;
        stage.mend();
        for (at, name) in stage.bundles().into_iter().enumerate() {
            match at % 3 {
                0 => stage.world.objects.replace(&name, Bytes::from_static(b"damage")),
                1 => stage.owner.objects.delete(&name).await.expect("deleted"),
                _ => {}
            }
        }
        let reads = stage.take_over().await;
        assert!((READS_MAX..PARTS as usize).contains(&reads), "{reads}");
    });
}

#[test]
fn a_sweep_deletes_the_bundles_of_what_was_dropped() {
    run(async {
        let stage = Stage::new().await;
        stage.range.give_up().await.expect("given up");
        let (_, life) = stage.joined().await;
        let range = take(&life).await;
        let sweeper = Sweeper::new(&life);
        let count = stage.bundles().len();
        sweeper.sweep().await.expect("a sweep");
        assert!(count > 0 && stage.bundles().len() == count, "the extent is named");
        range.change(&[Change::DeleteStream { stream: stage.stream }]).await.expect("dropped");
        sweeper.sweep().await.expect("a sweep");
        assert_eq!(stage.bundles(), [""; 0]);
    });
}
