//! Whatever a range answers, it asks its lease for, and the last question decides: an answer that was true
//! once may be none any more, because another process has changed what it says. That the last question comes
//! behind the work, `an_answer_leaves_only_while_the_lease_holds` and the histories of ends of leases show.

use crate::rows::{Everything, TABLE, key, put, value};
use base::BoxFuture;
use bytes::Bytes;
use partition::{
    KeyRange, Lease, ObjectTable, PartitionError, PartitionSettings, Partitions, RowRef, Scan, Visit,
};
use sim::World;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use stream::{StreamSettings, Streams};

/// A lease that holds for so many questions more.
#[derive(Debug)]
struct Holds(AtomicU64);

impl Lease for Holds {
    fn holds(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

struct All;

impl Scan for All {
    fn visit(&mut self, _: RowRef<'_>) -> Visit {
        Visit::Continue
    }
}

type Ask = for<'a> fn(&'a Partitions) -> BoxFuture<'a, Result<(), PartitionError>>;

/// Each kind of answer, and how many questions it takes at least: one before it is begun, if it takes time,
/// and one when it is done.
const ANSWERS: [(&str, u64, Ask); 6] = [
    ("now", 1, |partitions| Box::pin(async { partitions.now(TABLE, &key(1, "p", "r")).map(drop) })),
    ("moment", 1, |partitions| Box::pin(async { partitions.moment(TABLE, &key(1, "p", "r")).map(drop) })),
    ("get", 2, |partitions| Box::pin(async { partitions.get(TABLE, &key(1, "p", "r")).await.map(drop) })),
    ("scan", 2, |partitions| {
        Box::pin(async { partitions.scan(TABLE, KeyRange::all(), All).await.map(drop) })
    }),
    ("get_with_data", 2, |partitions| {
        Box::pin(async { partitions.get_with_data(ObjectTable::Blob, &key(1, "p", "r")).await.map(drop) })
    }),
    ("append_data", 2, |partitions| {
        let bytes = Bytes::from_static(b"piece");
        Box::pin(async {
            partitions.append_data(ObjectTable::Blob, &key(1, "p", "r"), bytes).await.map(drop)
        })
    }),
];

#[test]
fn no_answer_leaves_without_a_last_look_at_the_lease() {
    let run = World::new(1).run(|env, _| async move {
        for (name, least, ask) in ANSWERS {
            let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
            let lease = Arc::new(Holds(AtomicU64::new(u64::MAX)));
            let open = Partitions::open_while(&env, streams, PartitionSettings::tiny(), lease.clone());
            let partitions = open.await.unwrap();
            put(&partitions, &mut Everything::new(), key(1, "p", "r"), Some(value(1, 20))).await.unwrap();
            let before = lease.0.load(Ordering::Relaxed);
            assert_eq!(ask(&partitions).await, Ok(()), "{name}");
            let questions = before - lease.0.load(Ordering::Relaxed);
            assert!(questions >= least, "{name}: {questions} questions");
            lease.0.store(questions - 1, Ordering::Relaxed);
            let refused = ask(&partitions).await;
            assert!(
                matches!(refused, Err(PartitionError::NotMine | PartitionError::Unavailable(_))),
                "{name}: {refused:?}"
            );
            partitions.close().await;
        }
    });
    assert_eq!(run, Some(()));
}
