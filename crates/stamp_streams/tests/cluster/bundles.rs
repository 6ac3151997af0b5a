//! Small parts are copied into bundles, so that whoever takes a range reads its log with few requests; and
//! nothing depends on them.

use crate::world::{STAMP, World};
use bytes::Bytes;
use stamp::{BundleBounds, BundlePath, StreamId};
use stamp_streams::{Bundles, Life, OwnedRange, RangeWatch, StampSettings, Surroundings, Sweeper, Taken};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const PARTS: u64 = 200;
/// Reads that a take of them has, if all are in whole bundles.
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
        let bounds = BundleBounds { parts_max: 16, ..BundleBounds::default() };
        let settings = StampSettings {
            extent_size_bytes: 1 << 20,
            bundles: Bundles { bounds, of: |_| true },
            ..(*operator.settings).clone()
        };
        let owner = Surroundings { settings: Arc::new(settings), ..operator };
        let life = Life::join(&owner).await.expect("joined");
        let range = take(&life).await;
        let stream = *range.document().streams.keys().next().expect("a stream");
        let log = range.log(stream);
        for at in 0..PARTS {
            let appended = log.append(body(at)).await.expect("its place");
            appended.durable().await.expect("durable");
        }
        // The last bundle is sent, and listed.
        tokio::time::sleep(Duration::from_secs(10)).await;
        Stage { world, owner, stream, range, _life: life }
    }

    fn bundles(&self) -> Vec<String> {
        let names = self.world.objects.names().into_iter();
        names.filter(|name| BundlePath::parse(name, STAMP).is_some()).collect()
    }

    /// Another process takes the range and reads the log. How many reads the store had.
    async fn take_over(&self) -> usize {
        self.range.give_up().await.expect("given up");
        let taker = Surroundings { ahead: Arc::default(), ..self.owner.clone() };
        let life = Life::join(&taker).await.expect("joined");
        let before = self.world.objects.reads.load(Ordering::Relaxed);
        taker.ahead.begin(1 << 20, |_| true);
        let range = take(&life).await;
        taker.ahead.use_up();
        let document = range.document();
        let mut at = 0;
        for extent in &document.streams[&self.stream].extents {
            let mut reader = range.reader(extent).expect("it is sealed");
            while let Some(part) = reader.next(|| true).await.expect("a part") {
                assert_eq!(part.body, body(at));
                at += 1;
            }
        }
        assert_eq!(at, PARTS);
        self.world.objects.reads.load(Ordering::Relaxed) - before
    }
}

fn body(at: u64) -> Bytes {
    at.to_le_bytes().to_vec().into()
}

#[test]
fn a_log_of_small_parts_is_taken_with_few_reads() {
    run(async {
        let stage = Stage::new().await;
        let bundles = stage.bundles();
        assert_eq!(bundles.len() as u64, PARTS / 16, "{bundles:?}");
        // Those that the store has damaged on its way cost a read for each part.
        for name in &bundles {
            let path = BundlePath::parse(name, STAMP).expect("a bundle");
            let mut whole = Vec::new();
            let parts = (path.offset..path.end).step_by(8);
            for part in parts.map(|offset| stamp::PartPath { extent: path.extent, offset }.format(STAMP)) {
                whole.extend_from_slice(&stage.world.objects.read(&part).expect("well").expect("a part"));
            }
            stage.world.objects.replace(name, whole.into());
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        let reads = stage.take_over().await;
        assert!(reads <= READS_MAX, "{reads}");
    });
}

#[test]
fn bundles_that_are_damaged_or_gone_are_made_up_for() {
    run(async {
        let stage = Stage::new().await;
        for (at, name) in stage.bundles().into_iter().enumerate() {
            let content = match at % 3 {
                0 => Bytes::new(),
                1 => Bytes::from_static(b"damage"),
                _ => continue,
            };
            stage.world.objects.replace(&name, content);
        }
        let reads = stage.take_over().await;
        assert!(reads > READS_MAX, "{reads}");
    });
}

#[test]
fn a_sweep_deletes_the_bundles_of_what_was_dropped() {
    run(async {
        let stage = Stage::new().await;
        stage.range.give_up().await.expect("given up");
        let life = Life::join(&stage.owner).await.expect("joined");
        let range = take(&life).await;
        let sweeper = Sweeper::new(&life);
        let count = stage.bundles().len();
        sweeper.sweep().await.expect("a sweep");
        assert_eq!(stage.bundles().len(), count, "the extent is named");
        range.change(&[stamp::Change::DeleteStream { stream: stage.stream }]).await.expect("dropped");
        sweeper.sweep().await.expect("a sweep");
        assert_eq!(stage.bundles(), [""; 0]);
    });
}
