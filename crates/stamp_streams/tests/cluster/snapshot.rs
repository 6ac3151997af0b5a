//! A stamp is read without owning it: what is read is what was appended, whoever has the range, and neither
//! store is changed.

use crate::world::{STAMP, World};
use bytes::Bytes;
use stamp::{ExtentName, PART_HEADER_SIZE, PartPath, RangeId};
use stamp_streams::{
    Life, OwnedRange, RangeWatch, SnapshotLayer, StampLayer, StampSettings, StampSnapshot, Surroundings,
    Taken,
};
use std::sync::Arc;
use stream::{Location, Owner, StreamChange, StreamError, StreamLayer, StreamName};

fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(test);
}

/// A stamp whose first range has an owner that lives, with streams of several extents, the last ones open.
struct Stage {
    world: Arc<World>,
    operator: Surroundings,
    owned: Arc<OwnedRange>,
    layer: Arc<StampLayer>,
    _life: Arc<Life>,
    blocks: Vec<(Location, Bytes)>,
}

fn stream(name: &str) -> StreamName {
    StreamName::new(name)
}

impl Stage {
    async fn new(seed: u64) -> Stage {
        let world = World::new(seed, None, false).await;
        world.hosts.lock().iter().for_each(|host| host.gate.kill());
        let operator = world.operator();
        let settings = StampSettings { extent_size_bytes: 4000, ..(*operator.settings).clone() };
        let operator = Surroundings { settings: Arc::new(settings), ..operator };
        let life = Life::join(&operator).await.expect("joined");
        let watch = RangeWatch::new(&life);
        let range = *watch.look().await.expect("ranges").keys().next().expect("a range");
        let Ok(Taken::Range(owned)) = watch.take(range).await else { panic!("it is not free") };
        let layer = StampLayer::open(owned.clone()).await.expect("a layer");
        let owner = owned.owner();
        layer.create(&[stream("a"), stream("b"), stream("empty")], owner).await.expect("created");
        let mut blocks = Vec::new();
        for at in 0..60u32 {
            let put: Vec<Bytes> =
                (0..1 + at % 3).map(|block| vec![at as u8; (block * 100 + at) as usize].into()).collect();
            let places = layer.append(&stream("a"), owner, put.clone()).await.expect("appended");
            blocks.extend(places.into_iter().zip(put));
        }
        layer.append(&stream("b"), owner, vec![Bytes::from_static(b"b")]).await.expect("appended");
        Stage { world, operator, owned, layer, _life: life, blocks }
    }

    fn range(&self) -> RangeId {
        self.owned.document().range
    }

    async fn snapshot(&self) -> StampSnapshot {
        StampSnapshot::read(&self.operator).await.expect("a snapshot").expect("a stamp")
    }

    fn object(&self, extent: ExtentName, offset: u64) -> String {
        PartPath { extent, offset }.format(STAMP)
    }

    /// An extent of stream "a" that has a recorded length, and the last one, which is open.
    fn extents(&self) -> (ExtentName, ExtentName) {
        let document = self.owned.document();
        let entry = document.streams.values().find(|entry| entry.purpose == "a").expect("a stream");
        let sealed = entry.extents.iter().find(|extent| extent.length.is_some_and(|length| length > 0));
        let open = entry.extents.last().filter(|extent| extent.length.is_none());
        (sealed.expect("a sealed one").name, open.expect("an open one").name)
    }
}

#[test]
fn parts_are_read_whoever_owns_them_and_nothing_is_changed() {
    run(async {
        let stage = Stage::new(1).await;
        let (names, revision) = (stage.world.objects.names(), stage.snapshot().await.revision());
        let snapshot = stage.snapshot().await;
        assert_eq!(snapshot.revision(), revision);
        assert!(snapshot.is_served() && snapshot.is_collection_on());
        assert_eq!(snapshot.ranges().len(), 2);
        let range = &snapshot.ranges()[&stage.range()];
        assert_eq!(range.own.owner, Some(stage.owned.owner().incarnation));
        assert_eq!(range.document, stage.owned.document());
        let owner = &snapshot.processes()[&stage.owned.owner().incarnation];
        assert!(owner.has_key && owner.beat.is_some());
        let (mut size, mut open) = (0, 0);
        for extent in snapshot.extents(stage.range()) {
            let mut parts = snapshot.read_parts(&extent);
            while let Some(part) = parts.next().await.expect("a part") {
                size += part.body.len() as u64;
            }
            assert!(extent.length.is_none_or(|length| length == parts.end()));
            open += u64::from(extent.length.is_none() && parts.end() > 0);
        }
        let blocks: u64 = stage.blocks.iter().map(|(place, _)| place.end() - place.offset).sum();
        assert_eq!(size, blocks + stream::BLOCK_HEADER_SIZE as u64 + 1, "each appended byte is read once");
        assert_eq!(open, 2, "the tails are read to their ends");
        assert_eq!(stage.world.objects.names(), names, "nothing is created, sealed or deleted");
        assert_eq!(stage.snapshot().await.revision(), revision, "no key is written");
        assert!(stage.owned.admits_writes(), "its owner goes on");
    });
}

#[test]
fn the_layer_of_a_snapshot_reads_as_its_owner_does_and_changes_nothing() {
    run(async {
        let stage = Stage::new(2).await;
        let layer = SnapshotLayer::open(&stage.snapshot().await, stage.range()).await.expect("a layer");
        assert_eq!(layer.list(""), stage.layer.list(""));
        assert_eq!(layer.count(), stage.layer.count());
        for name in layer.list("") {
            assert_eq!(layer.stat(&name), stage.layer.stat(&name), "{name}");
            assert_eq!(layer.owner(&name), stage.layer.owner(&name));
        }
        for (from, place) in [(0, None), (37, Some(stage.blocks[37].0))] {
            let mut replay = layer.replay(&stream("a"), place).expect("a replay");
            for block in &stage.blocks[from..] {
                assert_eq!(replay.next().await, Ok(Some(block.clone())));
            }
            assert_eq!(replay.next().await, Ok(None));
        }
        for (place, payload) in stage.blocks.iter().rev() {
            assert_eq!(layer.read(*place).await.as_ref(), Ok(payload));
        }
        let run: Vec<Location> = stage.blocks[..6].iter().map(|(place, _)| *place).collect();
        let payloads: Vec<Bytes> = stage.blocks[..6].iter().map(|(_, payload)| payload.clone()).collect();
        assert_eq!(layer.read_run(&run).await, Ok(payloads));
        let (owner, first) = (layer.owner(&stream("a")).expect("an owner"), stage.blocks[0].0.extent);
        assert_eq!(layer.listed_by(first), 1);
        let refused = [
            layer.append(&stream("a"), owner, vec![Bytes::from_static(b"x")]).await.map(drop),
            layer.create(&[stream("c")], owner).await,
            layer.take_over(&stream("a"), Owner::first(owner.incarnation)).await,
            layer.trim(&stream("a"), owner, first).await,
            layer.seal(&stream("a"), owner, first).await,
            layer.multi_modify(&[StreamChange::Delete(stream("a").owned_by(owner))]).await,
            layer.check_writes(),
        ];
        for refused in refused {
            assert!(matches!(&refused, Err(StreamError::Unavailable(why)) if why.contains("read only")));
        }
    });
}

#[test]
fn a_flipped_byte_and_a_missing_part_are_errors_and_a_hole_in_an_open_extent_is_its_end() {
    run(async {
        let stage = Stage::new(3).await;
        let (sealed, open) = stage.extents();
        let snapshot = stage.snapshot().await;
        let by_name = |name| {
            let extents = snapshot.extents(stage.range());
            extents.into_iter().find(|extent| extent.name == name).expect("it is listed")
        };
        let read = async |name| {
            let mut parts = snapshot.read_parts(&by_name(name));
            let mut starts = Vec::new();
            loop {
                match parts.next().await {
                    Ok(Some(part)) => starts.push(part.header.offset),
                    Ok(None) => return (starts, None),
                    Err(error) => return (starts, Some(error.to_string())),
                }
            }
        };
        for name in [sealed, open] {
            let (starts, error) = read(name).await;
            assert!(starts.len() > 2 && error.is_none(), "{starts:?} {error:?}");
            let object = stage.object(name, starts[1]);
            let good = stage.world.objects.read(&object).expect("an answer").expect("a part");
            let mut flipped = good.to_vec();
            flipped[PART_HEADER_SIZE + 1] ^= 1;
            stage.world.objects.replace(&object, flipped.into());
            let (before, error) = read(name).await;
            let error = error.expect("damage");
            assert!(before == starts[..1] && error.contains(&name.to_string()), "{error}");
            assert!(error.contains("the checksum of its body differs"), "{error}");
            stage.world.objects.replace(&object, good.clone());
            stage.operator.objects.delete(&object).await.expect("deleted");
            let (before, error) = read(name).await;
            assert_eq!(before, starts[..1]);
            assert_eq!(error.is_some(), name == sealed, "what is behind a hole was never acknowledged");
            assert!(error.is_none_or(|error| error.contains("is missing")));
            stage.world.objects.replace(&object, good);
        }
    });
}

#[test]
fn the_layer_of_a_snapshot_names_a_broken_tail() {
    run(async {
        let stage = Stage::new(4).await;
        let (sealed, open) = stage.extents();
        let snapshot = stage.snapshot().await;
        let taken = stage.world.objects.read(&stage.object(sealed, 0)).expect("an answer").expect("a part");
        stage.world.objects.replace(&stage.object(open, 0), taken);
        let (layer, broken) = SnapshotLayer::open_damaged(&snapshot, stage.range()).await.expect("a layer");
        assert_eq!(broken.iter().map(|(extent, _)| *extent).collect::<Vec<_>>(), [open]);
        let stat = layer.stat(&stream("a")).expect("a stream");
        assert_eq!(stat.extents.last(), Some(&(open.short(), 0)), "it ends before the break");
        assert!(SnapshotLayer::open(&snapshot, stage.range()).await.is_err(), "a copy is not made of it");
    });
}

#[test]
fn there_is_no_snapshot_of_a_stamp_that_is_not_there() {
    run(async {
        let world = World::new(5, None, false).await;
        let operator = world.operator();
        let settings = StampSettings::new(stamp::StampId(7));
        let other = Surroundings { settings: Arc::new(settings), ..operator.clone() };
        assert!(StampSnapshot::read(&other).await.expect("an answer").is_none());
        world.keys.replace(|key| key.contains("/own/"), |bytes| bytes[2] ^= 1);
        let error = StampSnapshot::read(&operator).await.err().expect("damage").to_string();
        assert!(error.contains("own/") && error.contains("checksum"), "{error}");
    });
}

#[test]
fn a_check_of_an_extent_names_each_damaged_object() {
    run(async {
        let stage = Stage::new(6).await;
        let (sealed, _) = stage.extents();
        let snapshot = stage.snapshot().await;
        let layer = SnapshotLayer::open(&snapshot, stage.range()).await.expect("a layer");
        let length =
            |name| layer.lengths().into_iter().find(|(extent, _)| *extent == name).expect("listed").1;
        let check = async |name| {
            let mut read = 0;
            let checked = snapshot.check_extent(name, length(name), &mut |bytes| read += bytes).await;
            let checked = checked.expect("an answer");
            assert_eq!(read, checked.size_bytes);
            checked
        };
        let (mut blocks, mut parts) = (0, Vec::new());
        for (extent, _) in layer.lengths() {
            let checked = check(extent).await;
            assert_eq!(checked.damages, []);
            blocks += checked.block_count;
            if extent == sealed {
                assert!(checked.is_sealed && checked.part_count > 3);
                let names = stage.world.objects.names().into_iter();
                parts = names.filter(|name| name.contains(&sealed.to_string())).collect();
                parts.sort();
            }
        }
        assert_eq!(blocks, stage.blocks.len() as u64 + 1);
        let good = |name: &str| stage.world.objects.read(name).expect("an answer").expect("an object");
        let flip = |name: &str, at: usize| {
            let (mut flipped, good) = (good(name).to_vec(), good(name));
            flipped[at] ^= 1;
            stage.world.objects.replace(name, flipped.into());
            good
        };
        let (first, third) = (flip(&parts[0], PART_HEADER_SIZE + 3), flip(&parts[2], PART_HEADER_SIZE));
        let seal = parts.last().expect("a seal").clone();
        let of_seal = flip(&seal, PART_HEADER_SIZE);
        let found: Vec<String> =
            check(sealed).await.damages.into_iter().map(|damage| damage.object).collect();
        assert_eq!(found, [&parts[0], &parts[2], &seal].map(String::clone));
        for (name, good) in [(&parts[0], first), (&parts[2], third), (&seal, of_seal)] {
            stage.world.objects.replace(name, good);
        }
        stage.operator.objects.delete(&parts[1]).await.expect("deleted");
        let damages = check(sealed).await.damages;
        assert_eq!(damages.len(), 1, "what is behind it has no chain: {damages:?}");
        assert!(damages[0].object == parts[1] && damages[0].problem.contains("is missing"), "{damages:?}");
    });
}
