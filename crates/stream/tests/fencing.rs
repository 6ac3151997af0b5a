//! A former owner that was paused comes late, or another process counts on from the same epoch: whatever it
//! asks for is refused and changes nothing.

use bytes::Bytes;
use sim::World;
use std::sync::Arc;
use stream::{
    Incarnation, Owner, OwnerEpoch, StreamChange, StreamError, StreamName, StreamSettings, StreamStat,
    Streams,
};

/// The former owner.
const A: Owner = Owner::first(Incarnation(1));
/// Its successor.
const B: Owner = Owner { incarnation: Incarnation(2), epoch: OwnerEpoch(2) };

fn log() -> StreamName {
    StreamName::new("entity/1/log")
}

fn checkpoint() -> StreamName {
    StreamName::new("entity/1/row_data/1")
}

/// Two streams of A with three sealed extents and an open one each. B has taken over the range that they are
/// of, by its log.
async fn taken_over(env: &base::Environment) -> Arc<Streams> {
    let streams = Streams::open(env, StreamSettings::tiny()).await.unwrap();
    streams.create(&[log(), checkpoint()], A).await.unwrap();
    for name in [log(), checkpoint()] {
        for byte in 0..4 {
            let places = streams.append(&name, A, vec![Bytes::from(vec![byte; 100])]).await.unwrap();
            if byte < 3 {
                streams.seal(&name, A, places[0].extent).await.unwrap();
            }
        }
    }
    streams.take_over(&log(), B).await.unwrap();
    streams
}

fn stats(streams: &Streams) -> [Result<StreamStat, StreamError>; 2] {
    [log(), checkpoint()].map(|name| streams.stat(&name))
}

fn is_refused<T>(outcome: &Result<T, StreamError>) -> bool {
    matches!(outcome, Err(StreamError::NotOwner { .. } | StreamError::OldEpoch { .. }))
}

/// It was removed, with its extents, below the owner that served it.
#[test]
fn a_late_delete_by_a_former_owner_removes_no_stream() {
    World::new(1).run(|env, _| async move {
        let streams = taken_over(&env).await;
        let before = stats(&streams);
        // Of the checkpoint the stream layer has heard of no other owner.
        for name in [log(), checkpoint()] {
            let late = streams.delete(&name, A).await;
            assert!(is_refused(&late), "{name}: {late:?}");
        }
        assert_eq!(stats(&streams), before);
        streams.delete(&checkpoint(), B).await.unwrap();
    });
}

/// Extents were removed whose blocks rows of the new owner named.
#[test]
fn a_late_unlist_by_a_former_owner_removes_no_extents() {
    World::new(1).run(|env, _| async move {
        let streams = taken_over(&env).await;
        let before = stats(&streams);
        for (name, stat) in [log(), checkpoint()].into_iter().zip(&before) {
            let extents = vec![stat.as_ref().unwrap().extents[1].0];
            let unlist = StreamChange::Unlist { stream: name.owned_by(A), extents };
            let late = streams.multi_modify(&[unlist]).await;
            assert!(is_refused(&late), "{name}: {late:?}");
        }
        assert_eq!(stats(&streams), before);
    });
}

/// The log was trimmed by what the former owner had flushed, and not its successor.
#[test]
fn a_late_trim_by_a_former_owner_keeps_what_a_replay_needs() {
    World::new(1).run(|env, _| async move {
        let streams = taken_over(&env).await;
        let before = stats(&streams);
        for (name, stat) in [log(), checkpoint()].into_iter().zip(&before) {
            let late = streams.trim(&name, A, stat.as_ref().unwrap().extents[2].0).await;
            assert!(is_refused(&late), "{name}: {late:?}");
        }
        assert_eq!(stats(&streams), before);
    });
}

/// Two processes that had counted on from the same epoch both appended to one stream.
#[test]
fn of_two_owners_of_one_epoch_only_the_first_is_accepted() {
    World::new(1).run(|env, _| async move {
        let streams = taken_over(&env).await;
        let third = |incarnation| Owner { incarnation: Incarnation(incarnation), epoch: OwnerEpoch(3) };
        streams.take_over(&log(), third(3)).await.unwrap();
        streams.append(&log(), third(3), vec![Bytes::from_static(b"first")]).await.unwrap();
        let before = stats(&streams);
        let taken = streams.take_over(&log(), third(4)).await;
        assert!(is_refused(&taken), "{taken:?}");
        for size in [5, 100_000] {
            let appended = streams.append(&log(), third(4), vec![Bytes::from(vec![7; size])]).await;
            assert!(is_refused(&appended), "{appended:?}");
        }
        assert_eq!(stats(&streams), before);
    });
}

/// An extent that was frozen by a former owner takes nothing of its successor, which has to begin another: no
/// loss, but the former owner acted.
#[test]
fn a_former_owner_ends_no_extent_and_makes_no_stream() {
    World::new(1).run(|env, _| async move {
        let streams = taken_over(&env).await;
        let place = streams.append(&log(), B, vec![Bytes::from_static(b"b")]).await.unwrap()[0];
        let late = streams.seal(&log(), A, place.extent).await;
        assert!(is_refused(&late), "{late:?}");
        let heir = StreamName::new("entity/2/log");
        streams.create(std::slice::from_ref(&heir), A).await.unwrap();
        let share = StreamChange::Share { from: log().owned_by(A), to: heir.owned_by(A) };
        let late = streams.multi_modify(&[share]).await;
        assert!(is_refused(&late), "{late:?}");
        let next = streams.append(&log(), B, vec![Bytes::from_static(b"b")]).await.unwrap()[0];
        assert_eq!(next.extent, place.extent, "it still takes appends");
        let late = streams.create(&[StreamName::new("entity/1/row_data/2")], A).await;
        assert!(is_refused(&late), "{late:?}");
        // Its open extent is A's still at the extent node; the manager knows of B.
        let late = streams.append(&checkpoint(), A, vec![Bytes::from_static(b"a")]).await;
        assert!(is_refused(&late), "{late:?}");
        let late = streams.reserve(&checkpoint(), A).await;
        assert!(is_refused(&late), "{late:?}");
    });
}

/// What a start reads of who owns what is what was written, in the log, in its snapshot and in the journal.
#[test]
fn owners_outlive_the_process() {
    let world = World::new(1);
    for start in 0..3 {
        world.run(|env, _| async move {
            let streams = match start {
                0 => taken_over(&env).await,
                _ => Streams::open(&env, StreamSettings::tiny()).await.unwrap(),
            };
            assert_eq!(streams.owner(&checkpoint()), Ok(B));
            let late = streams.delete(&checkpoint(), A).await;
            assert!(is_refused(&late), "start {start}: {late:?}");
            let late = streams.append(&log(), A, vec![Bytes::from_static(b"late")]).await;
            assert!(is_refused(&late), "start {start}: {late:?}");
            let other = Owner { incarnation: Incarnation(9), ..B };
            let late = streams.append(&log(), other, vec![Bytes::from_static(b"late")]).await;
            assert!(is_refused(&late), "start {start}: {late:?}");
            streams.append(&log(), B, vec![Bytes::from_static(b"own")]).await.unwrap();
        });
    }
}
