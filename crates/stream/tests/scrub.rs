//! The background scrub: damage in a sealed extent is noticed without any reader of it, and the rate is
//! kept.

use base::{Clock, Environment};
use bytes::Bytes;
use sim::{SimClock, World};
use std::sync::Arc;
use std::time::Duration;
use stream::{Incarnation, Owner, StreamName, StreamSettings, Streams};

/// The owner of all streams here.
const OWNER: Owner = Owner::first(Incarnation(1));

const RATE: u64 = 64 << 10;

fn settings() -> StreamSettings {
    StreamSettings { scrub_bytes_per_second: RATE, ..StreamSettings::tiny() }
}

/// Some sealed extents and an open one.
async fn fill(env: Environment) {
    let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
    let name = StreamName::new("test/scrub");
    streams.create(std::slice::from_ref(&name), OWNER).await.unwrap();
    for at in 0..200u64 {
        let block = Bytes::from(vec![at as u8; 1000]);
        streams.append(&name, OWNER, vec![block]).await.unwrap();
    }
    streams.close().await;
}

async fn scrub_for(env: Environment, clock: Arc<SimClock>, scrub_for: Duration) -> stream::ScrubStatistics {
    let streams = Streams::open(&env, settings()).await.unwrap();
    clock.sleep(scrub_for).await;
    streams.scrub_statistics()
}

#[test]
fn damage_is_noticed_and_the_rate_is_kept() {
    let world = World::new(1);
    world.run(|env, _| fill(env));
    let minute = Duration::from_secs(60);
    let healthy = world.run(|env, clock| scrub_for(env, clock, minute)).unwrap();
    assert_eq!((healthy.damaged_extents, healthy.rounds), (0, 1));
    assert!(healthy.size_bytes > 150_000, "{healthy:?}");

    let second = world.run(|env, clock| scrub_for(env, clock, Duration::from_secs(1))).unwrap();
    assert!(second.rounds == 0 && second.size_bytes <= 2 * RATE, "{second:?}");

    let extents =
        world.disk.files().into_iter().filter(|(path, size)| path.starts_with("extents/") && *size > 10_000);
    let (path, _) = extents.into_iter().nth(2).unwrap();
    world.disk.flip_bit(&path, 8 * 5000);
    let found = world.run(|env, clock| scrub_for(env, clock, minute)).unwrap();
    assert_eq!((found.damaged_extents, found.rounds), (1, 1));
    // And again in the next round.
    let found = world.run(|env, clock| scrub_for(env, clock, 70 * minute)).unwrap();
    assert_eq!((found.damaged_extents, found.rounds), (2, 2));
}

/// The scrub slept through the end of its process, and panicked when the timers went.
#[test]
fn a_scrub_that_pauses_ends_with_its_node() {
    let world = World::new(2);
    let took = world.run(|env, clock| async move {
        fill(env.clone()).await;
        let streams = Streams::open(&env, settings()).await.unwrap();
        clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(streams.scrub_statistics().rounds, 1, "it pauses until the next round");
        let closing_at = clock.monotonic();
        streams.close().await;
        clock.monotonic() - closing_at
    });
    assert!(took.unwrap() < Duration::from_secs(1), "closing took {took:?}");
}
