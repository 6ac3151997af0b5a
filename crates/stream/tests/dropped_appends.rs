//! Requesters that are dropped in the middle of an append: their append is there whole or not at all, and no
//! other append suffers.

use base::{Clock, Environment};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{Either, select};
use sim::{Faults, SimClock, World};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use stream::{Incarnation, Owner, StreamName, StreamSettings, Streams};

const OWNER: Owner = Owner::first(Incarnation(1));
/// Past the journal, under [`StreamSettings::tiny`].
const LARGE: usize = 9000;

fn block(tag: u8, size: usize) -> Bytes {
    vec![tag; size].into()
}

async fn append(streams: &Streams, stream: &StreamName, block: Bytes) {
    let appended = streams.append(stream, OWNER, vec![block.clone()]).await;
    let place = appended.unwrap_or_else(|error| panic!("{} bytes: {error}", block.len()))[0];
    assert_eq!(streams.read(place).await.unwrap(), block);
}

/// Starts an append and leaves it after `leave_after` of virtual time.
async fn append_and_leave(
    streams: &Streams,
    clock: &SimClock,
    stream: &StreamName,
    block: Bytes,
    leave_after: Duration,
) {
    let appending = pin!(streams.append(stream, OWNER, vec![block]));
    if let Either::Left((appended, _)) = select(appending, clock.sleep(leave_after)).await {
        appended.unwrap();
    }
}

/// The stream holds `kept` in order, and besides nothing but whole blocks of those that were left.
async fn verify(streams: &Streams, stream: &StreamName, kept: &[Bytes], left: &[Bytes], what: &str) {
    let mut replay = streams.replay(stream, None).unwrap();
    let mut found = Vec::new();
    while let Some((_, block)) = replay.next().await.unwrap_or_else(|error| panic!("{what}: {error}")) {
        found.push(block);
    }
    found.retain(|block| !left.contains(block));
    assert!(
        found == kept,
        "{what}: {:?}",
        found.iter().map(|block| (block[0], block.len())).collect::<Vec<_>>()
    );
}

/// One life of a new stream on a slow disk, and a look at it after the next start.
fn run<L, F>(seed: u64, what: &str, kept: &[Bytes], left: &[Bytes], life: L)
where
    L: FnOnce(Arc<Streams>, Arc<SimClock>, StreamName) -> F,
    F: Future<Output = ()>,
{
    let world = World::new(seed);
    let stream = StreamName::new("test/0");
    let disk = world.disk.clone();
    let open = |env: Environment| async move { Streams::open(&env, StreamSettings::tiny()).await.unwrap() };
    world.run(|env, clock| async {
        let streams = open(env).await;
        streams.create(std::slice::from_ref(&stream), OWNER).await.unwrap();
        disk.set_faults(Faults { slow_one_in: 1, ..Faults::default() });
        life(streams.clone(), clock, stream.clone()).await;
        verify(&streams, &stream, kept, left, what).await;
    });
    world.disk.set_faults(Faults::default());
    world.run(|env, _| async {
        let streams = open(env).await;
        verify(&streams, &stream, kept, left, &format!("{what}, after a restart")).await;
    });
}

/// The extent's tail was free again as soon as the requester had gone, although its append still waited in
/// the journal: a large append was then written over it, and refused because it did not follow.
#[test]
fn a_large_append_follows_a_small_one_whose_requester_has_gone() {
    for seed in 0..20 {
        let (first, left, large, last) = (block(1, 10), block(2, 500), block(3, LARGE), block(4, 20));
        let (kept, gone) = ([first.clone(), large.clone(), last.clone()], [left.clone()]);
        run(seed, &format!("seed {seed}"), &kept, &gone, |streams, _, stream| async move {
            append(&streams, &stream, first).await;
            assert!(streams.append(&stream, OWNER, vec![left]).now_or_never().is_none());
            append(&streams, &stream, large).await;
            append(&streams, &stream, last).await;
        });
    }
}

/// The same between two large ones: the second was written over the first, whose length was still on its way.
#[test]
fn a_large_append_follows_a_large_one_whose_requester_has_gone() {
    for leave_ms in 0..30 {
        let (first, left, large) = (block(1, 10), block(2, LARGE + 700), block(3, LARGE));
        let (small, again) = (block(4, 20), block(5, LARGE + 90));
        let (kept, gone) = ([first.clone(), large.clone(), small.clone(), again.clone()], [left.clone()]);
        let what = format!("left after {leave_ms} ms");
        run(leave_ms, &what, &kept, &gone, |streams, clock, stream| async move {
            append(&streams, &stream, first).await;
            append_and_leave(&streams, &clock, &stream, left, Duration::from_millis(leave_ms)).await;
            append(&streams, &stream, large).await;
            append(&streams, &stream, small).await;
            append(&streams, &stream, again).await;
        });
    }
}

/// A requester that went away while its stream got a new extent left the extent half listed: the next one's
/// was refused.
#[test]
fn a_new_extent_is_listed_whole_although_its_requester_has_gone() {
    for leave_ms in 0..40 {
        let (left, first, second) = (block(1, 10), block(2, LARGE), block(3, LARGE));
        let (left_too, third) = (block(4, 30), block(5, 40));
        let kept = [first.clone(), second.clone(), third.clone()];
        let leave_after = Duration::from_millis(leave_ms);
        let what = format!("left after {leave_ms} ms");
        run(leave_ms, &what, &kept, &[left.clone(), left_too.clone()], |streams, clock, stream| async move {
            // The stream has no extent yet.
            append_and_leave(&streams, &clock, &stream, left, leave_after).await;
            append(&streams, &stream, first).await;
            append(&streams, &stream, second).await;
            // Its extent is full.
            append_and_leave(&streams, &clock, &stream, left_too, leave_after).await;
            append(&streams, &stream, third).await;
        });
    }
}
