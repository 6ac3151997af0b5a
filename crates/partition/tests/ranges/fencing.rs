//! Two processes over the same streams: one that was paused, and one that took its ranges over meanwhile.

use crate::rows::{Everything, TABLE, key, put, read_everything, value};
use bytes::Bytes;
use partition::{PartitionError, PartitionSettings, Partitions};
use sim::World;
use std::sync::Arc;
use std::time::Duration;
use stream::{Owner, StreamName, StreamSettings, Streams};

async fn streams(env: &base::Environment) -> Arc<Streams> {
    Streams::open(env, StreamSettings::tiny()).await.unwrap()
}

async fn join(env: &base::Environment, streams: &Arc<Streams>) -> Partitions {
    Partitions::open(env, streams.clone(), PartitionSettings::tiny()).await.unwrap()
}

/// A start removed the streams of a range that the map did not name yet, with their extents, while another
/// process was about to name it.
#[test]
fn a_start_removes_nothing_that_another_process_has_just_made() {
    let run = World::new(1).run(|env, _| async move {
        let streams = streams(&env).await;
        let first = join(&env, &streams).await;
        let other = streams.join(&*env.random);
        let names = ["metadata", "log"].map(|purpose| StreamName::new(&format!("entity/7/{purpose}")));
        let owner = Owner::first(other);
        streams.create(&names, owner).await.unwrap();
        let place = streams.append(&names[1], owner, vec![Bytes::from_static(b"x")]).await.unwrap()[0];
        let _second = join(&env, &streams).await;
        assert!(names.iter().all(|name| streams.exists(name)), "its streams are gone");
        assert_eq!(streams.read(place).await.unwrap(), Bytes::from_static(b"x"), "its extent is there");
        // Once it has gone, they are orphans.
        streams.leave(other);
        let _third = join(&env, &streams).await;
        assert!(names.iter().all(|name| !streams.exists(name)), "nobody will ever name them");
        drop(first);
    });
    assert_eq!(run, Some(()));
}

/// Each change of a former owner: writes, flushes, compactions, splits. Nothing of them is in what its
/// successor has.
#[test]
fn whatever_a_former_owner_still_does_its_successor_has_all_rows_and_no_others() {
    for seed in 0..8u64 {
        let run = World::new(seed).run(|env, _| async move {
            let streams = streams(&env).await;
            let former = join(&env, &streams).await;
            let mut expected = Everything::new();
            for at in 0..60 {
                let row = key(1, &format!("p{}", at % 4), &format!("r{at}"));
                put(&former, &mut expected, row, Some(value(at, 200))).await.unwrap();
            }
            let successor = join(&env, &streams).await;
            for at in 0..60 {
                let row = key(1, &format!("p{}", at % 4), &format!("late{at}"));
                let late = put(&former, &mut Everything::new(), row, Some(value(at, 200))).await;
                assert!(matches!(late, Err(PartitionError::Unavailable(_))), "seed {seed}: {late:?}");
                let row = key(1, &format!("p{}", at % 5), &format!("s{at}"));
                put(&successor, &mut expected, row, Some(value(at, 300))).await.unwrap();
            }
            // Its heirs have the ids that the former owner would give next.
            assert_eq!(successor.split(TABLE, &key(1, "p3", "")).await, Ok(true), "seed {seed}");
            let row = key(1, "p3", "in an heir");
            put(&successor, &mut expected, row, Some(value(seed, 300))).await.unwrap();
            let split = former.split(TABLE, &key(1, "p2", "")).await;
            assert!(split.is_err(), "seed {seed}: {split:?}");
            // Time for what both of them do in the background.
            env.clock.sleep(Duration::from_secs(30)).await;
            former.close().await;
            assert_eq!(read_everything(&successor).await, Ok(expected.clone()), "seed {seed}");
            successor.close().await;
            let third = join(&env, &streams).await;
            assert_eq!(read_everything(&third).await, Ok(expected), "seed {seed}");
        });
        assert_eq!(run, Some(()));
    }
}

/// A former owner that made heirs with an id that its successor had given, too, removed the successor's range
/// once that process had closed: it chose the owner in whose name it removes only then.
#[test]
fn heirs_of_a_former_owner_take_nothing_from_a_successor_that_has_closed() {
    for seed in 0..4u64 {
        let run = World::new(seed).run(|env, _| async move {
            let streams = streams(&env).await;
            let former = join(&env, &streams).await;
            let mut expected = Everything::new();
            for at in 0..40 {
                let row = key(1, &format!("p{}", at % 4), &format!("r{at}"));
                put(&former, &mut expected, row, Some(value(at, 200))).await.unwrap();
            }
            let successor = join(&env, &streams).await;
            assert_eq!(successor.split(TABLE, &key(1, "p2", "")).await, Ok(true), "seed {seed}");
            for at in 0..40 {
                let row = key(1, &format!("p{}", at % 4), &format!("s{at}"));
                put(&successor, &mut expected, row, Some(value(at, 300))).await.unwrap();
            }
            successor.close().await;
            for _ in 0..3 {
                let split = former.split(TABLE, &key(1, "p2", "")).await;
                assert!(split.is_err(), "seed {seed}: {split:?}");
            }
            env.clock.sleep(Duration::from_secs(30)).await;
            former.close().await;
            let third = join(&env, &streams).await;
            assert_eq!(read_everything(&third).await, Ok(expected), "seed {seed}");
        });
        assert_eq!(run, Some(()));
    }
}
