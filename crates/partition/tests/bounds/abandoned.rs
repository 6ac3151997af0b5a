//! Ranges that nobody closes, because whoever opened them or closes them does not wait any longer, go with
//! all that they hold in memory. Each was kept by its group commit, for ever.

use crate::rows::{Everything, TABLE, key, open, put, value};
use base::Environment;
use partition::{PartitionSettings, Partitions};
use sim::World;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use stream::{StreamSettings, Streams};

/// Polls a future so often; `None`: it has not completed by then.
async fn polled<T>(mut future: Pin<&mut impl Future<Output = T>>, count: usize) -> Option<T> {
    let mut left = count;
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// Polls a future once.
async fn is_ready<T>(mut future: Pin<&mut impl Future<Output = T>>) -> bool {
    std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
}

/// Ranges hold the streams, and the cache as they do.
async fn nobody_holds(env: &Environment, streams: Arc<Streams>) {
    for _ in 0..100 {
        if Arc::strong_count(&streams) == 1 {
            return;
        }
        env.clock.sleep(Duration::from_millis(100)).await;
    }
    panic!("{} still hold the streams", Arc::strong_count(&streams) - 1);
}

async fn with_rows(env: &Environment) -> (Arc<Streams>, Partitions) {
    let (streams, partitions) = open(env, PartitionSettings::tiny()).await.unwrap();
    let mut all = Everything::new();
    for at in 0..20 {
        put(&partitions, &mut all, key(1, "p", &format!("r{at}")), Some(value(at, 3000))).await.unwrap();
    }
    (streams, partitions)
}

#[test]
fn those_that_are_dropped() {
    let world = World::new(11);
    let ran = world.run(|env, _| async move {
        let (streams, partitions) = with_rows(&env).await;
        drop(partitions);
        nobody_holds(&env, streams).await;
    });
    ran.unwrap();
}

#[test]
fn those_whose_end_nobody_waits_for() {
    let mut was_held_up = false;
    for yields in 0..40 {
        let world = World::new(12);
        let held_up = world.run(|env, _| async move {
            let (_streams, partitions) = with_rows(&env).await;
            let split_at = key(1, "p", "r5");
            let mut split = pin!(partitions.split(TABLE, &split_at));
            assert!(!is_ready(split.as_mut()).await);
            for _ in 0..yields {
                tokio::task::yield_now().await;
            }
            // A hand-over that is under way holds the end up.
            let held_up = !is_ready(pin!(partitions.close())).await;
            let refused =
                put(&partitions, &mut Everything::new(), key(1, "p", "r9"), Some(value(1, 10))).await;
            assert!(refused.is_err(), "after {yields} yields");
            held_up
        });
        was_held_up |= held_up.unwrap();
    }
    assert!(was_held_up);
}

#[test]
fn those_whose_opening_nobody_waits_for() {
    let mut completed = false;
    for polls in (0..).step_by(3) {
        let world = World::new(13);
        let made = world.run(|env, _| async move {
            let (streams, partitions) = with_rows(&env).await;
            partitions.close().await;
            streams.close().await;
        });
        made.unwrap();
        let opened = world.run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
            let opened =
                polled(pin!(Partitions::open(&env, streams.clone(), PartitionSettings::tiny())), polls).await;
            let is_open = opened.is_some();
            drop(opened);
            nobody_holds(&env, streams).await;
            is_open
        });
        completed = opened.unwrap();
        if completed {
            assert!(polls > 10, "it was cut off {polls} times only");
            break;
        }
    }
    assert!(completed);
}
