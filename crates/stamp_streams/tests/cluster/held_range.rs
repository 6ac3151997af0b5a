//! What a process does with a range that it holds, beside its logs: it gives the range up, keeps the document
//! within its bound, and deletes old backups.

use crate::objects::Health;
use crate::world::World;
use stamp::{Change, DOCUMENT_SIZE_BYTES_MAX, ExtentName, StreamId, backups_folder, encode_document};
use stamp_streams::{
    Life, OwnedRange, RangeStop, RangeWatch, StampError, StampSettings, Surroundings, Taken, back_up_all,
    prune_backups,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(test);
}

/// A world whose hosts are dead, and a process that has its first range.
async fn holder() -> (Arc<World>, Surroundings, Arc<Life>, Arc<OwnedRange>) {
    let world = World::new(3, None, false).await;
    world.hosts.lock().iter().for_each(|host| host.gate.kill());
    let operator = world.operator();
    let life = Life::join(&operator).await.expect("joined");
    let range = take(&life).await.expect("it is free");
    (world, operator, life, range)
}

/// Takes the first range, if it may be taken at once.
async fn take(life: &Arc<Life>) -> Option<Arc<OwnedRange>> {
    let watch = RangeWatch::new(life);
    let first = *watch.look().await.expect("ranges").keys().next().expect("a range");
    match watch.take(first).await.expect("an answer") {
        Taken::Range(range) => Some(range),
        _ => None,
    }
}

fn create(life: &Life, purpose: String) -> Change {
    Change::CreateStream { stream: StreamId(life.next_name()), purpose }
}

#[test]
fn a_range_that_was_given_up_is_free_at_once_and_serves_nothing() {
    run(async {
        let (_world, operator, life, range) = holder().await;
        let other = Life::join(&operator).await.expect("joined");
        assert!(take(&other).await.is_none(), "its owner lives");
        assert!(take(&life).await.is_none(), "it has it, and would answer twice");
        range.give_up().await.expect("given up");
        assert!(!range.admits_reads() && !range.admits_writes());
        let taken = take(&other).await.expect("it is free");
        assert!(taken.owner().epoch > range.owner().epoch);
        assert!(range.give_up().await.is_err(), "it is another's");
        assert!(taken.admits_writes(), "and stays so");
    });
}

/// Creates streams with names of this length, so many at a time, until the document has no room for more.
async fn fill(life: &Life, range: &OwnedRange, name_length: usize, at_once: usize) {
    for round in 0.. {
        let names = (0..at_once).map(|at| format!("{:0>name_length$}", format!("{at_once}-{round}-{at}")));
        let changes: Vec<Change> = names.map(|name| create(life, name)).collect();
        match range.change(&changes).await {
            Ok(_) => {}
            Err(StampError::Full(..)) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_document_without_room_takes_the_ends_of_its_extents() {
    run(async {
        let (_world, _operator, life, range) = holder().await;
        let stream = StreamId(life.next_name());
        let extents: Vec<ExtentName> = (0..100).map(|_| ExtentName(life.next_name())).collect();
        let mut changes = vec![Change::CreateStream { stream, purpose: "extents".to_owned() }];
        changes.extend(extents.iter().map(|extent| Change::AddExtent { stream, extent: *extent }));
        range.change(&changes).await.expect("there is room");
        for (name_length, at_once) in [(200, 60), (200, 1), (20, 1)] {
            fill(&life, &range, name_length, at_once).await;
        }
        let ends = |extent: &ExtentName| Change::RecordLength { stream, extent: *extent, length: 1 << 40 };
        let ends: Vec<Change> = extents.iter().map(ends).collect();
        let ended = range.change(&ends).await.expect("it is on the way to become smaller");
        let size = encode_document(&ended, life.life().stamp).len();
        assert!(size > DOCUMENT_SIZE_BYTES_MAX, "{size} bytes: there was room");
        range.change(&[Change::DeleteStream { stream }]).await.expect("it becomes smaller");
    });
}

/// Whoever can run runs; no time passes.
async fn others_run() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn changes_that_come_together_go_together_and_are_answered_each_for_itself() {
    run(async {
        let (_world, _operator, life, range) = holder().await;
        let count_before = range.document().streams.len();
        let callers = (0..40).map(|at| {
            let change = match at {
                20 => Change::DeleteStream { stream: StreamId(life.next_name()) },
                _ => create(&life, format!("s{at}")),
            };
            let range = range.clone();
            async move { range.change(&[change]).await }
        });
        let outcomes = futures_util::future::join_all(callers).await;
        let mut marks = BTreeSet::new();
        for (at, outcome) in outcomes.into_iter().enumerate() {
            match outcome {
                Ok(document) => {
                    let is_there = document.streams.values().any(|entry| entry.purpose == format!("s{at}"));
                    assert!(is_there, "{at} is answered and not made");
                    marks.insert(document.mark);
                }
                Err(error) => assert!(at == 20 && matches!(error, StampError::Change(_)), "{at}: {error}"),
            }
        }
        assert_eq!(range.document().streams.len(), count_before + 39);
        assert!(marks.len() <= 2, "{} transactions", marks.len());
    });
}

#[test]
fn changes_of_callers_that_go_away_are_made_if_they_were_sent() {
    run(async {
        let (_world, _operator, life, range) = holder().await;
        let start = |name: &str| {
            let (range, change) = (range.clone(), create(&life, name.to_owned()));
            tokio::spawn(async move { range.change(&[change]).await.map(drop) })
        };
        let first = start("first");
        others_run().await;
        let [sender, companion, waiting] = ["sender", "companion", "waiting"].map(start);
        others_run().await;
        waiting.abort();
        first.await.expect("not ended").expect("changed");
        others_run().await;
        // It has sent its own changes and its companion's, and waits for the answer.
        assert!(!sender.is_finished());
        sender.abort();
        companion.await.expect("not ended").expect("changed");
        let document = range.document();
        let is_there = |name: &&str| document.streams.values().any(|entry| entry.purpose == *name);
        let there: Vec<_> =
            ["first", "sender", "companion", "waiting"].into_iter().filter(is_there).collect();
        assert_eq!(there, ["first", "sender", "companion"]);
    });
}

/// What goes on with a range holds it: broken off, and kept, it kept the range from being given up for ever.
#[test]
fn a_range_that_can_not_go_on_in_time_can_be_given_up() {
    run(async {
        let (world, operator, life, range) = holder().await;
        let (log, other) = (StreamId(life.next_name()), StreamId(life.next_name()));
        let create = |stream, purpose: &str| Change::CreateStream { stream, purpose: purpose.to_owned() };
        range.change(&[create(log, "a"), create(other, "b")]).await.expect("changed");
        let first = range.log(log).append("part".into()).await.expect("sent");
        first.durable().await.expect("durable");
        // An extent of which this process knows no end: only a seal can close it.
        let extent = ExtentName(life.next_name());
        range.change(&[Change::AddExtent { stream: other, extent }]).await.expect("changed");
        world.objects.state.lock().health = Health::Down;
        let lost = range.log(log).append("part".into()).await.expect("sent");
        assert!(lost.durable().await.is_err(), "the store is away");
        assert_eq!(range.until_stopped().await, RangeStop::Reload);
        let gone_on = range.go_on_within(Duration::from_secs(60)).await.expect("no damage");
        assert!(gone_on.is_none(), "nobody can seal it");
        let given_up = tokio::time::timeout(Duration::from_secs(5), range.give_up()).await;
        assert_eq!(given_up, Ok(Ok(())), "it waits for what was broken off");
        world.objects.state.lock().health = Health::Well;
        let other = Life::join(&operator).await.expect("joined");
        assert!(take(&other).await.is_some(), "it is free");
    });
}

/// Whoever took a range and could not seal it left it named, and others waited for its lease.
#[test]
fn a_range_that_can_not_be_opened_is_handed_back() {
    run(async {
        let (world, operator, life, range) = holder().await;
        let stream = *range.document().streams.keys().next().expect("a stream");
        range.log(stream).append("part".into()).await.expect("sent").durable().await.expect("durable");
        range.give_up().await.expect("given up");
        let [taker, other] = [Life::join(&operator).await, Life::join(&operator).await].map(Result::unwrap);
        let watch = RangeWatch::new(&taker);
        let name = range.range();
        watch.hand_back(name).await.expect("it is nobody's");
        world.objects.state.lock().health = Health::Down;
        let taking = tokio::time::timeout(Duration::from_secs(3), watch.take(name)).await;
        assert!(taking.is_err(), "nobody can seal it");
        world.objects.state.lock().health = Health::Well;
        RangeWatch::new(&other).hand_back(name).await.expect("an answer");
        assert!(take(&other).await.is_none(), "it was another's to hand back");
        watch.hand_back(name).await.expect("handed back");
        assert!(take(&other).await.is_some(), "it is free at once");
        watch.hand_back(name).await.expect("an answer");
        assert!(life.holds() && taker.holds() && other.holds());
    });
}

#[test]
fn the_newest_backups_stay() {
    run(async {
        let (_world, operator, life, range) = holder().await;
        let mut revisions = Vec::new();
        for at in 0..5 {
            range.change(&[create(&life, format!("s{at}"))]).await.expect("changed");
            revisions.push(back_up_all(&life).await.expect("a backup").0);
        }
        // Listings lag.
        operator.clock.sleep(Duration::from_secs(9)).await;
        let folder = backups_folder(life.life());
        let names = async || operator.objects.list(&folder, None).await.expect("a page").names;
        let others = names().await.len() - revisions.len();
        assert_eq!(prune_backups(&life, 2).await, Ok(3 + others));
        let kept: Vec<String> =
            revisions[3..].iter().map(|revision| format!("{folder}{revision:016x}")).collect();
        operator.clock.sleep(Duration::from_secs(9)).await;
        assert_eq!(names().await, kept);
        assert_eq!(prune_backups(&life, 0).await, Ok(1), "one always stays");
    });
}

/// Whoever takes a range reads a header for each part of what is open. A log of small parts had 4,096.
#[test]
fn a_log_of_small_parts_goes_on_in_another_extent_in_time() {
    run(async {
        let (_world, operator, life, range) = holder().await;
        range.give_up().await.expect("given up");
        life.leave().await;
        let settings = StampSettings { extent_size_bytes: 1 << 20, ..(*operator.settings).clone() };
        let roomy = Surroundings { settings: Arc::new(settings), ..operator.clone() };
        let life = Life::join(&roomy).await.expect("joined");
        let range = take(&life).await.expect("it is free");
        let document = range.document();
        let stream = *document.streams.keys().next().expect("a stream");
        let log = range.log(stream);
        let mut extents = Vec::new();
        for _ in 0..600 {
            let appended = log.append(vec![1].into()).await.expect("its place");
            extents.push(appended.header().place.extent);
            appended.durable().await.expect("durable");
        }
        let runs: Vec<usize> = extents.chunk_by(|one, other| one == other).map(<[_]>::len).collect();
        assert_eq!(runs, [512, 88]);
    });
}

#[test]
fn a_process_that_its_object_store_does_not_answer_says_so_until_it_is_answered() {
    run(async {
        let (world, operator, life, range) = holder().await;
        let settings = &operator.settings;
        let other = Life::join(&operator).await.expect("joined");
        let watch = RangeWatch::new(&other);
        let says_so = async || {
            watch.look().await.expect("ranges");
            watch.is_cut_off(life.incarnation())
        };
        let stream = *range.document().streams.keys().next().expect("a stream");
        let log = range.log(stream);
        // Nothing waits for an answer.
        world.objects.state.lock().health = Health::Down;
        operator.clock.sleep(settings.ttl).await;
        assert!(!says_so().await);
        world.objects.state.lock().health = Health::Well;
        log.append(vec![1].into()).await.expect("its place").durable().await.expect("durable");
        world.objects.state.lock().health = Health::Down;
        let appended = log.append(vec![2].into()).await.expect("its place");
        assert!(!says_so().await, "the part was just sent");
        let gives_up_after = settings.give_up_after.max(settings.object_try_for);
        operator.clock.sleep(gives_up_after * 3 / 5).await;
        assert!(says_so().await);
        assert!(!watch.is_cut_off(other.incarnation()), "it has sent nothing");
        world.objects.state.lock().health = Health::Well;
        appended.durable().await.expect("durable");
        operator.clock.sleep(gives_up_after / 5).await;
        assert!(!says_so().await);
        world.objects.state.lock().health = Health::Down;
        let appended = log.append(vec![3].into()).await.expect("its place");
        operator.clock.sleep(gives_up_after * 3 / 5).await;
        assert!(says_so().await);
        appended.durable().await.expect_err("it is given up");
        assert!(says_so().await, "the range is given up next");
        operator.clock.sleep(settings.ttl * 2).await;
        assert!(!says_so().await, "nobody waits for it any longer");
    });
}
