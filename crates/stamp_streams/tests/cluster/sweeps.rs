//! Sweeps of a stamp of which much was dropped: what takes a time for each thing must not take it one after
//! the other, nor within the time of one request.

use crate::world::{STAMP, World};
use async_trait::async_trait;
use bytes::Bytes;
use stamp::{Change, ExtentName, Incarnation, PutAnswer, Revision, StreamId, Value};
use stamp_streams::{
    KeyAnswer, KeyTransaction, KeyValues, Life, ListPage, ObjectStore, OwnedRange, RangeWatch, ReadPage,
    Selection, StampSnapshot, StoreError, StoreLease, Surroundings, Sweeper, Swept, TRY_FOR, Taken,
    back_up_all, encode_value,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(test);
}

/// A world whose hosts are dead.
async fn empty_world() -> (Arc<World>, Surroundings) {
    let world = World::new(3, None, false).await;
    world.hosts.lock().iter().for_each(|host| host.gate.kill());
    let operator = world.operator();
    (world, operator)
}

async fn take(life: &Arc<Life>) -> Arc<OwnedRange> {
    let watch = RangeWatch::new(life);
    let first = *watch.look().await.expect("ranges").keys().next().expect("a range");
    match watch.take(first).await.expect("an answer") {
        Taken::Range(range) => range,
        _ => panic!("it is free"),
    }
}

/// A metadata store that takes its time for each page.
struct SlowPages {
    store: Arc<dyn KeyValues>,
    pages: AtomicUsize,
}

#[async_trait]
impl KeyValues for SlowPages {
    async fn commit(&self, transaction: &KeyTransaction) -> KeyAnswer {
        self.store.commit(transaction).await
    }

    async fn read_page(
        &self,
        selections: &[Selection],
        at: Option<Revision>,
    ) -> Result<ReadPage, StoreError> {
        self.pages.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(TRY_FOR / 2).await;
        self.store.read_page(selections, at).await
    }

    async fn wait_for_change(&self, after: Revision) -> Result<(), StoreError> {
        self.store.wait_for_change(after).await
    }

    async fn grant(&self, ttl: Duration) -> Result<StoreLease, StoreError> {
        self.store.grant(ttl).await
    }

    async fn keep_alive(&self, lease: StoreLease) -> Result<(), StoreError> {
        self.store.keep_alive(lease).await
    }

    async fn revoke(&self, lease: StoreLease) -> Result<(), StoreError> {
        self.store.revoke(lease).await
    }

    async fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        self.store.compact(revision).await
    }
}

/// All pages of a list had the time of one request: a stamp that had dropped much was never swept again.
#[test]
fn a_long_list_is_read_page_by_page() {
    run(async {
        let (_world, operator) = empty_world().await;
        let generation =
            StampSnapshot::read(&operator).await.expect("an answer").expect("a stamp").life().generation;
        let put = |counter| {
            let key = format!("{generation}/gc/{}", ExtentName::new(Incarnation(9), counter));
            let value = encode_value(&key, &Value::Dropped { length: counter }, STAMP);
            (key, value, None)
        };
        let puts = (0..200).map(put).collect();
        let dropped = KeyTransaction { puts, ..KeyTransaction::default() };
        assert!(matches!(operator.keys.commit(&dropped).await, KeyAnswer::Committed(_)));
        let slow = Arc::new(SlowPages { store: operator.keys.clone(), pages: AtomicUsize::new(0) });
        let surroundings = Surroundings { keys: slow.clone(), ..operator };
        let snapshot = StampSnapshot::read(&surroundings).await.expect("an answer").expect("a stamp");
        assert_eq!(snapshot.dropped().len(), 200);
        assert!(slow.pages.load(Ordering::Relaxed) > 3, "it came at once");
    });
}

/// An object store that notes how many deletions it has at a time, and refuses one.
struct Deletions {
    store: Arc<dyn ObjectStore>,
    under_way: AtomicUsize,
    most: AtomicUsize,
    /// The first object of which a deletion comes, if it is refused.
    refused: Option<OnceLock<String>>,
}

#[async_trait]
impl ObjectStore for Deletions {
    async fn create(&self, name: &str, content: Bytes) -> PutAnswer {
        self.store.create(name, content).await
    }

    async fn read(&self, name: &str, offset: u64, length: u64) -> Result<Bytes, StoreError> {
        self.store.read(name, offset, length).await
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<ListPage, StoreError> {
        self.store.list(prefix, after).await
    }

    async fn delete(&self, name: &str) -> Result<(), StoreError> {
        let under_way = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(under_way, Ordering::Relaxed);
        let refused = self.refused.as_ref().map(|refused| refused.get_or_init(|| name.to_owned()));
        let deleted = match refused.is_some_and(|refused| refused == name) {
            true => Err(StoreError::Refused("it is locked".to_owned())),
            false => self.store.delete(name).await,
        };
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        deleted
    }
}

/// A stamp that has dropped 50 parts, and who sweeps it.
async fn dropped_parts(objects: Arc<Deletions>, operator: Surroundings) -> (Arc<Life>, Sweeper) {
    let surroundings = Surroundings { objects, ..operator };
    let life = Life::join(&surroundings).await.expect("joined");
    let range = take(&life).await;
    let stream = StreamId(life.next_name());
    let create = Change::CreateStream { stream, purpose: "parts".to_owned() };
    range.change(&[create]).await.expect("changed");
    for _ in 0..50 {
        let part = range.log(stream).append("part".into()).await.expect("sent");
        part.durable().await.expect("durable");
    }
    // Whoever takes it seals what is open.
    range.give_up().await.expect("given up");
    let range = take(&life).await;
    range.change(&[Change::DeleteStream { stream }]).await.expect("changed");
    let sweeper = Sweeper::new(&life);
    (life, sweeper)
}

/// Deletions of this store; one object is never deleted, if `refuses`.
fn deletions(operator: &Surroundings, refuses: bool) -> Arc<Deletions> {
    Arc::new(Deletions {
        store: operator.objects.clone(),
        under_way: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
        refused: refuses.then(OnceLock::new),
    })
}

/// One after the other: a million parts of 10 ms took three hours, longer than between two drops.
#[test]
fn what_was_dropped_is_deleted_side_by_side() {
    run(async {
        let (_world, operator) = empty_world().await;
        let objects = deletions(&operator, false);
        let clock = operator.clock.clone();
        let (life, sweeper) = dropped_parts(objects.clone(), operator).await;
        let mut deleted = 0;
        for _ in 0..4 {
            back_up_all(&life).await.expect("a backup");
            clock.sleep(Duration::from_secs(2 * 3600)).await;
            deleted += sweeper.sweep().await.expect("swept").deleted;
        }
        assert!(deleted >= 50, "{deleted} of 50 parts are deleted");
        let most = objects.most.load(Ordering::Relaxed);
        assert!((2..=16).contains(&most), "{most} at a time");
    });
}

/// Each sweep ended at the first object that a store does not delete: nothing behind it ever went.
#[test]
fn an_object_that_can_not_be_deleted_keeps_no_other() {
    run(async {
        let (world, operator) = empty_world().await;
        let objects = deletions(&operator, true);
        let clock = operator.clock.clone();
        let parts = || world.objects.names().iter().filter(|name| name.contains("/x/")).count();
        let (life, sweeper) = dropped_parts(objects.clone(), operator).await;
        let before = parts();
        let mut last = Ok(Swept::default());
        for _ in 0..4 {
            back_up_all(&life).await.expect("a backup");
            clock.sleep(Duration::from_secs(2 * 3600)).await;
            last = sweeper.sweep().await;
        }
        let error = last.expect_err("one is not deleted").to_string();
        let refused = objects.refused.as_ref().and_then(OnceLock::get).expect("one was refused");
        assert!(error.contains(refused.as_str()), "{error}");
        let names = world.objects.names();
        assert!(names.contains(refused), "it is there");
        assert!(before - parts() >= 49, "{} of 50 parts are deleted", before - parts());
    });
}
