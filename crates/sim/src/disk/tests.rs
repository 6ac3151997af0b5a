//! What survives a power loss, a kill and a full disk, over many seeds.

use crate::World;
use base::{Disk, OpenMode};
use bytes::Bytes;

#[test]
fn synced_bytes_survive_and_unsynced_ones_sometimes_do_not() {
    let mut lost = 0;
    for seed in 0..50 {
        let world = World::new(seed);
        world.run(|env, _| async move {
            let file = env.disk.open("f", OpenMode::CreateNew).await.unwrap();
            env.disk.sync_folder("").await.unwrap();
            file.write_at(0, Bytes::from(vec![1; 2000])).await.unwrap();
            file.sync_data().await.unwrap();
            file.write_at(1000, Bytes::from(vec![2; 2000])).await.unwrap();
        });
        world.run(|env, _| async move {
            let file = env.disk.open("f", OpenMode::Read).await.unwrap();
            assert_eq!(file.read_at(0, 1000).await.unwrap(), vec![1; 1000]);
        });
        lost += u32::from(world.disk.files()[0].1 < 3000);
    }
    assert!((5..45).contains(&lost), "{lost} of 50 unsynced writes were lost");
}

#[test]
fn a_write_without_space_may_be_done_in_part() {
    let mut parts = Vec::new();
    for seed in 0..50 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        let written = world.run(|env, _| async move {
            let file = env.disk.open("f", OpenMode::CreateNew).await.unwrap();
            file.write_at(0, Bytes::from(vec![1; 2000])).await.unwrap();
            disk.set_free_bytes(Some(1000));
            let refused = file.write_at(1000, Bytes::from(vec![2; 3000])).await.unwrap_err();
            assert_eq!(refused.kind(), std::io::ErrorKind::StorageFull);
            let twos = file.read_at(1000, file.size().await.unwrap() as usize - 1000).await.unwrap();
            twos.iter().filter(|byte| **byte == 2).count()
        });
        parts.push(written.unwrap());
    }
    assert!(parts.iter().all(|part| *part <= 2000), "{parts:?}");
    for expected in [0..1, 1..1000, 1000..2000, 2000..2001] {
        assert!(parts.iter().any(|part| expected.contains(part)), "none in {expected:?}: {parts:?}");
    }
}

#[test]
fn a_killed_process_leaves_what_it_wrote_to_the_next_power_loss() {
    let mut lost = 0;
    for seed in 0..50 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        let ended = world.run_until_killed(|env, _| async move {
            let file = env.disk.open("f", OpenMode::CreateNew).await.unwrap();
            env.disk.sync_folder("").await.unwrap();
            file.write_at(0, Bytes::from(vec![1; 2000])).await.unwrap();
            disk.crash();
            file.sync_data().await.unwrap();
        });
        assert_eq!(ended, None);
        world.run(|env, _| async move {
            let file = env.disk.open("f", OpenMode::Read).await.unwrap();
            assert_eq!(file.read_at(0, 2000).await.unwrap(), vec![1; 2000]);
        });
        lost += u32::from(world.disk.contents()["f"] != vec![1; 2000]);
    }
    assert!((5..45).contains(&lost), "{lost} of 50 unsynced writes were lost");
}

#[test]
fn a_crash_stops_the_life_at_the_chosen_operation() {
    let world = World::new(1);
    world.disk.set_faults(crate::Faults { crash_at_operation: 3, ..Default::default() });
    let disk = world.disk.clone();
    let outcome = world.run(|_, _| async move {
        for index in 0..10 {
            disk.open(&format!("f{index}"), OpenMode::CreateNew).await.unwrap();
        }
    });
    assert_eq!(outcome, None);
    assert_eq!(world.disk.operation_count(), 3);
}
