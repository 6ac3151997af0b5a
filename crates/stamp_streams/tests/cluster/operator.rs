//! What an operator does: takes out a process that is gone, and restores a lost metadata store.

use crate::world::{STAMP, World};
use stamp::{Change, Incarnation, StreamId, backups_folder};
use stamp_streams::{
    Forgotten, Life, OwnedRange, RangeWatch, RestoreStep, StampError, StampSnapshot, Surroundings, Taken,
    back_up_all, forget_process, restore_in_steps,
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
        let steps = parking_lot::Mutex::new(Vec::new());
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
