//! A stamp that nobody serves becomes a data folder, which is whole and takes appends; the stamp stays as it
//! is.

use crate::host::Gate;
use crate::migration::{
    Blocks, STEP, blocks, blocks_of, environment, files, folder, migrate, name, run, take,
};
use crate::world::World;
use base::memory_disk::MemoryDisk;
use bytes::Bytes;
use stamp_streams::{Migrated, MigrationError, StampLayer, migrate_into_folder};
use std::sync::Arc;
use stream::{Owner, StreamSettings, Streams};

/// A stamp that was migrated, and what it has.
async fn migrated_stamp(seed: u64) -> (Arc<World>, Blocks) {
    let (world, disk) = (World::empty(seed, None, false), folder().await);
    let expected = blocks_of(&files(&disk).await).await;
    let (gate, surroundings) = world.new_process();
    migrate(&gate, &surroundings, &disk).await.expect("migrated");
    gate.kill();
    (world, expected)
}

async fn back(world: &Arc<World>, disk: &Arc<MemoryDisk>) -> Result<Migrated, MigrationError> {
    let (gate, surroundings) = world.new_process();
    let env = environment(disk, &gate);
    let stop = std::future::pending();
    migrate_into_folder(&surroundings, &env, StreamSettings::tiny(), &|_, _, _| {}, stop).await
}

/// Whether the folder has what the stamp has, is whole, and takes appends.
async fn check_folder(disk: &Arc<MemoryDisk>, expected: &Blocks) {
    let gate = Arc::new(Gate::default());
    let env = environment(disk, &gate);
    let found = stream::check_streams(&env, &mut |_, _| {}).await.expect("a check");
    assert_eq!((found.damages, found.undigested_extent_count), (Vec::new(), 0));
    assert!(blocks_of(&files(disk).await).await == *expected, "the folder has other blocks");
    let streams = Streams::open(&env, StreamSettings::tiny()).await.expect("streams");
    let seen = streams.owner(&name(0)).expect("an owner");
    let owner = Owner { incarnation: streams.join(&*env.random), epoch: stamp::next_epoch(seen.epoch) };
    streams.take_over(&name(0), owner).await.expect("taken over");
    let places = streams.append(&name(0), owner, vec![Bytes::from_static(b"new")]).await.expect("appended");
    assert_eq!(streams.read(places[0]).await.unwrap(), "new");
    streams.close().await;
    let again = Streams::open(&env, StreamSettings::tiny()).await.expect("streams");
    assert_eq!(again.read(places[0]).await.unwrap(), "new");
    gate.kill();
}

#[test]
fn a_stamp_becomes_a_folder_and_stays_as_it_is() {
    run(async {
        let (world, expected) = migrated_stamp(5).await;
        let (documents, objects) = (world.keys.documents(), world.objects.names());
        let disk = Arc::new(MemoryDisk::new());
        let migrated = back(&world, &disk).await.expect("migrated");
        assert_eq!((migrated.streams, migrated.copied_bytes), (6, migrated.bytes));
        assert_eq!((world.keys.documents(), world.objects.names()), (documents, objects), "it was changed");
        check_folder(&disk, &expected).await;
        let refused = back(&world, &disk).await.expect_err("it is not empty");
        assert!(refused.to_string().contains("is not empty"), "{refused}");
        // A tail that its owner left open, and what was served in between.
        let (life, range) = take(&world.operator()).await;
        let streams = Streams::of_stamp(StampLayer::open(range.clone()).await.expect("a layer"));
        streams.append(&name(1), range.owner(), vec![Bytes::from_static(b"tail")]).await.expect("appended");
        let served = back(&world, &Arc::new(MemoryDisk::new())).await.expect_err("it is served");
        assert!(served.to_string().contains("serves the stamp"), "{served}");
        let expected = blocks(&streams).await;
        range.release().await.expect("released");
        life.leave().await;
        let disk = Arc::new(MemoryDisk::new());
        back(&world, &disk).await.expect("migrated");
        check_folder(&disk, &expected).await;
    });
}

#[test]
fn a_folder_that_was_cut_off_is_none_and_is_gone_on_with() {
    run(async {
        let (world, expected) = migrated_stamp(6).await;
        let disk = Arc::new(MemoryDisk::new());
        let mut kills = 0;
        let migrated = loop {
            let (gate, surroundings) = world.new_process();
            let (env, settings) = (environment(&disk, &gate), StreamSettings::tiny());
            let stop = std::future::pending();
            let migrating = migrate_into_folder(&surroundings, &env, settings, &|_, _, _| {}, stop);
            // What is dropped is sent no further.
            let outcome = tokio::time::timeout(STEP * kills, migrating).await;
            gate.kill();
            if let Ok(outcome) = outcome {
                break outcome.expect("migrated");
            }
            kills += 1;
            assert!(kills < 200, "it makes no progress");
            // A server would refuse it, unless nothing was begun.
            if let Err(error) = Streams::check_folder(&environment(&disk, &gate)).await {
                assert!(error.to_string().contains("run larimar migrate again"), "{error}");
            }
        };
        assert!(kills > 5 && migrated.copied_bytes < migrated.bytes, "{kills} {migrated:?}");
        check_folder(&disk, &expected).await;
    });
}
