//! What an operator does: takes out a process that is gone, and restores a lost metadata store.

use crate::world::{STAMP, World};
use async_trait::async_trait;
use parking_lot::Mutex;
use stamp::{Change, Incarnation, KeyLimits, Revision, StampId, StreamId, backups_folder};
use stamp_streams::{
    FirstRange, Forgotten, KeyAnswer, KeyTransaction, KeyValues, Life, OwnedRange, RangeWatch, ReadPage,
    RestoreStep, Selection, StampError, StampSettings, StampSnapshot, StoreError, StoreLease, Surroundings,
    Taken, back_up_all, forget_process, found, restore, restore_in_steps,
};
use std::sync::Arc;
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

/// Takes the first range, as soon as it may be taken.
async fn take(life: &Arc<Life>, operator: &Surroundings) -> Arc<OwnedRange> {
    let watch = RangeWatch::new(life);
    loop {
        let first = *watch.look().await.expect("ranges").keys().next().expect("a range");
        if let Taken::Range(range) = watch.take(first).await.expect("an answer") {
            return range;
        }
        operator.clock.sleep(Duration::from_millis(300)).await;
    }
}

#[test]
fn only_what_is_left_of_a_process_that_is_gone_and_owns_nothing_is_removed() {
    run(async {
        let (world, operator) = empty_world().await;
        let (gate, process) = world.new_process();
        let life = Life::join(&process).await.expect("joined");
        let name = life.incarnation();
        let range = take(&life, &process).await;
        let forget = async |name| forget_process(&operator, name).await.expect("an answer");
        let snapshot = async || StampSnapshot::read(&operator).await.expect("an answer").expect("a stamp");
        assert_eq!(forget(Incarnation(1)).await, Forgotten::Unknown);
        assert_eq!(forget(name).await, Forgotten::Lives, "its lease lives");
        gate.kill();
        operator.clock.sleep(Duration::from_secs(30)).await;
        let owned = range.document().range;
        assert_eq!(forget(name).await, Forgotten::Owns(owned), "its beat proves its silence");
        assert!(snapshot().await.processes()[&name].beat.is_some());
        let heir = Life::join(&operator).await.expect("joined");
        take(&heir, &operator).await;
        assert_eq!(forget(name).await, Forgotten::Done);
        assert!(!snapshot().await.processes().contains_key(&name));
        assert_eq!(forget(name).await, Forgotten::Unknown, "nothing is left of it");
        assert_eq!(forget(heir.incarnation()).await, Forgotten::Lives);
        assert!(heir.holds());
    });
}

/// A restore read every backup that was there, so that one old backup that was damaged kept it from the
/// newest one.
#[test]
fn a_restore_reads_the_newest_complete_backup_and_says_what_it_made() {
    run(async {
        let (world, operator) = empty_world().await;
        let life = Life::join(&operator).await.expect("joined");
        let range = take(&life, &operator).await;
        let create = |purpose: &str| Change::CreateStream {
            stream: StreamId(life.next_name()),
            purpose: purpose.to_owned(),
        };
        let mut backups = Vec::new();
        for name in ["first", "second"] {
            range.change(&[create(name)]).await.expect("changed");
            backups.push(back_up_all(&life).await.expect("a backup"));
        }
        let refused = restore_in_steps(&operator, true, Duration::ZERO, &|_| ()).await;
        assert!(matches!(refused, Err(StampError::Raced(_))), "there is a stamp: {refused:?}");
        operator.clock.sleep(Duration::from_secs(9)).await;
        let former = life.life();
        let oldest = format!("{}{:016x}", backups_folder(former), backups[0].0);
        world.objects.replace(&oldest, "damaged".into());
        drop(world.keys.lose());
        world.keys.renew(1);
        let steps = Mutex::new(Vec::new());
        let note = |step| steps.lock().push(step);
        let report = restore_in_steps(&operator, false, Duration::ZERO, &note).await.expect("restored");
        let wait = operator.settings.ttl + operator.settings.margin;
        let steps = steps.into_inner();
        assert_eq!(steps[..2], [RestoreStep::Waits(wait), RestoreStep::HasBackup(backups[1])]);
        assert_eq!(steps.last(), Some(&RestoreStep::HasRanges(2, 2)));
        assert_eq!((report.backup, report.restores, report.epochs.len()), (backups[1], 1, 2));
        assert_ne!(report.life.generation, former.generation);
        let snapshot = StampSnapshot::read(&operator).await.expect("an answer").expect("a stamp");
        assert_eq!((snapshot.life(), snapshot.restores()), (report.life, 1));
        let document = &snapshot.ranges()[&range.document().range].document;
        assert!(document.streams.values().any(|stream| stream.purpose == "second"));
        assert!(document.own.epoch > range.owner().epoch && snapshot.life().stamp == STAMP);
        // Listings lag.
        operator.clock.sleep(Duration::from_secs(9)).await;
        assert!(snapshot.newest_backup().await.expect("an answer").is_some());
        assert!(!life.holds() || range.change(&[create("late")]).await.is_err(), "it is fenced");
    });
}

/// A metadata store that keeps what was sent to it, to send it again.
struct Recorder {
    store: Arc<dyn KeyValues>,
    sent: Mutex<Vec<KeyTransaction>>,
}

#[async_trait]
impl KeyValues for Recorder {
    async fn commit(&self, transaction: &KeyTransaction) -> KeyAnswer {
        self.sent.lock().push(transaction.clone());
        self.store.commit(transaction).await
    }

    async fn read_page(
        &self,
        selections: &[Selection],
        at: Option<Revision>,
    ) -> Result<ReadPage, StoreError> {
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

/// What was sent arrives a second time, when what it made was removed again but for the life, which never is.
async fn assert_late_tries_do_nothing(recorder: &Recorder) {
    let sent = recorder.sent.lock().clone();
    let life = sent.last().expect("the life").puts[0].0.clone();
    let made = sent.iter().flat_map(|transaction| &transaction.puts).map(|(key, ..)| key.clone());
    let deletes: Vec<String> = made.filter(|key| *key != life).collect();
    assert!(deletes.len() >= 3, "documents, owners, collection: {deletes:?}");
    let removal = KeyTransaction { deletes, ..KeyTransaction::default() };
    assert!(matches!(recorder.store.commit(&removal).await, KeyAnswer::Committed(_)));
    for transaction in &sent {
        let answer = recorder.store.commit(transaction).await;
        assert!(matches!(answer, KeyAnswer::CompareFailed(_)), "{:?}", transaction.puts);
    }
}

/// The document of a range came back that had been split since a restore (seed 4415 of the histories), with a
/// try of the restore's that arrived late: its writes since then were not read any more.
#[test]
fn what_a_restore_or_a_first_start_sends_twice_brings_back_nothing_once_its_life_is_in_force() {
    run(async {
        let (world, operator) = empty_world().await;
        let recorded = || Arc::new(Recorder { store: operator.keys.clone(), sent: Mutex::default() });
        let recorder = recorded();
        let settings = StampSettings::new(StampId(77));
        let other = Surroundings { keys: recorder.clone(), settings: Arc::new(settings), ..operator.clone() };
        let keys = KeyLimits { from: Vec::new(), to: None };
        found(&other, &[FirstRange { keys, purposes: Vec::new() }]).await.expect("a stamp");
        assert_late_tries_do_nothing(&recorder).await;

        let life = Life::join(&operator).await.expect("joined");
        back_up_all(&life).await.expect("a backup");
        operator.clock.sleep(Duration::from_secs(9)).await;
        drop(world.keys.lose());
        world.keys.renew(1);
        let recorder = recorded();
        let restorer = Surroundings { keys: recorder.clone(), ..operator.clone() };
        restore(&restorer, false, Duration::ZERO).await.expect("restored");
        assert_late_tries_do_nothing(&recorder).await;
    });
}
