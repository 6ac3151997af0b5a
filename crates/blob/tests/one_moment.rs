//! What is returned of one blob is of one moment, whoever writes it meanwhile. On the simulated disk, in
//! virtual time, with tiny memory tables and a tiny cache, so that reads wait for the disk in between.

use base::{Clock, Environment};
use blob::{
    BlobAt, BlobService, BlobType, BlockSource, Conditions, NewBlob, PublicAccess, Revision, Uploaded,
};
use bytes::Bytes;
use futures_util::future::join;
use partition::{PartitionSettings, Partitions};
use sim::{Faults, SimClock, SimRandom, World};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use stream::{StreamSettings, Streams};

const ACCOUNT: &str = "acct";
const SEED_COUNT: u64 = 20;
const ROUNDS: u64 = 25;

struct Stage {
    seed: u64,
    service: BlobService,
    random: SimRandom,
    clock: Arc<SimClock>,
}

impl Stage {
    async fn open(seed: u64, env: &Environment, random: SimRandom, clock: Arc<SimClock>) -> Stage {
        let streams = Streams::open(env, StreamSettings::tiny()).await.unwrap();
        let settings = PartitionSettings { cache_size_bytes_max: 1 << 10, ..PartitionSettings::tiny() };
        let partitions = Arc::new(Partitions::open(env, streams, settings).await.unwrap());
        let service = BlobService::new(partitions, env.clock.clone(), Default::default());
        let made = service
            .create_container(ACCOUNT, "box", Vec::new(), PublicAccess::None, Default::default())
            .await;
        made.unwrap();
        Stage { seed, service, random, clock }
    }

    async fn at(&self, name: &str) -> BlobAt {
        let container = self.service.container(ACCOUNT, "box").await.unwrap();
        self.service.blob(ACCOUNT, &container, name).unwrap()
    }

    async fn upload(&self, at: &BlobAt, size: usize, may_be_inline: bool) -> Uploaded {
        let mut upload = self.service.upload(at, may_be_inline, false);
        upload.write(Bytes::from(vec![7; size])).await.unwrap();
        upload.finish().await.unwrap()
    }

    /// Other blobs, so that rows leave memory.
    async fn make_bulk(&self, round: u64) {
        for part in 0..4 {
            let at = self.at(&format!("bulk {round} {part}")).await;
            let uploaded = self.upload(&at, 7000, true).await;
            self.service
                .put_blob(&at, BlobType::Block, uploaded, NewBlob::default(), Default::default())
                .await
                .unwrap();
        }
    }

    async fn pause(&self) {
        self.clock.sleep(Duration::from_micros(self.random.below(1500))).await;
    }
}

fn run<F: Future<Output = ()>>(play: impl Fn(Arc<Stage>) -> F) {
    for seed in 0..SEED_COUNT {
        let world = World::new(seed);
        world.disk.set_faults(Faults { slow_one_in: 4, ..Faults::default() });
        let random = world.random.clone();
        let play = &play;
        let finished = world.run(|env, clock| async move {
            play(Arc::new(Stage::open(seed, &env, random, clock).await)).await;
        });
        assert!(finished.is_some(), "seed {seed}: the disk crashed unasked");
    }
}

/// The list and the staged blocks were read one after the other: blocks that were committed in between were
/// in neither.
#[test]
fn a_block_is_staged_or_committed_at_every_moment() {
    run(|stage| async move {
        let stage = &*stage;
        let at = &stage.at("blocks").await;
        for round in 0..ROUNDS {
            let id = Bytes::from(format!("{round:04}"));
            let uploaded = stage.upload(at, 10, false).await;
            stage.service.put_block(at, id.clone(), uploaded, None, Default::default(), false).await.unwrap();
            stage.make_bulk(round).await;
            let done = Cell::new(false);
            let commit = async {
                stage.pause().await;
                let list = vec![(BlockSource::Latest, id.clone())];
                stage.service.put_block_list(at, list, NewBlob::default(), Default::default()).await.unwrap();
                done.set(true);
            };
            let read = async {
                while !done.get() {
                    let lists = stage
                        .service
                        .block_lists(at, Revision::Current, &Conditions::default())
                        .await
                        .unwrap();
                    let is_in = |blocks: &[(Bytes, u64)]| blocks.iter().any(|block| block.0 == id);
                    let places = (is_in(&lists.committed), is_in(&lists.staged));
                    assert!(
                        matches!(places, (true, false) | (false, true)),
                        "seed {}, round {round}: committed and staged: {places:?}",
                        stage.seed
                    );
                    stage.pause().await;
                }
            };
            join(commit, read).await;
        }
    });
}

/// The blob and its ranges were read one after the other: an answer had a blob with ranges that it got later.
#[test]
fn ranges_of_pages_are_those_that_the_blob_has_with_its_etag() {
    run(|stage| async move {
        let stage = &*stage;
        let at = &stage.at("pages").await;
        stage
            .service
            .create_empty(at, BlobType::Page, 1 << 20, 0, NewBlob::default(), Default::default())
            .await
            .unwrap();
        let known = std::cell::RefCell::new(std::collections::BTreeMap::new());
        for round in 0..ROUNDS {
            stage.make_bulk(round).await;
            let done = Cell::new(false);
            let write = async {
                stage.pause().await;
                let uploaded = stage.upload(at, 512, false).await;
                let range = (1024 * round, 512);
                let (sequence, conditions) = Default::default();
                let written =
                    stage.service.put_pages(at, range, Some(uploaded), sequence, conditions).await.unwrap();
                known.borrow_mut().insert(written.etag, round + 1);
                done.set(true);
            };
            let read = async {
                let mut seen = Vec::new();
                while !done.get() {
                    let (revision, conditions) = Default::default();
                    let lists =
                        stage.service.page_ranges(at, revision, None, None, &conditions).await.unwrap();
                    seen.push((lists.found.record.version.etag, lists.written.len() as u64));
                    stage.pause().await;
                }
                seen
            };
            let (_, seen) = join(write, read).await;
            for (etag, count) in seen {
                let expected = known.borrow().get(&etag).copied().unwrap_or(0);
                assert_eq!(count, expected, "seed {}, round {round}", stage.seed);
            }
        }
    });
}
