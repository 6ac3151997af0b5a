//! One move, and its mover killed at each operation, before and after it was done; or the operation fails; or
//! it arrives when another mover has gone on.

use crate::clients::{Stop, client};
use crate::gate::{Gate, Kind};
use crate::shards::{Setting, name};
use base::Environment;
use futures_util::future::join;
use shard_backend::Capabilities;
use shard_map::Catalog;
use shard_mover::{Move, MoveError, MoveId, MoveState, Mover, Planted};
use sim::World;
use std::sync::Arc;

const HELD: Capabilities = Capabilities::POSTGRES;
const SIGNED: Capabilities = Capabilities::STORAGE_TABLES;
/// Kinds of shards, source first.
const PAIRS: [[Capabilities; 3]; 4] =
    [[HELD, HELD, HELD], [SIGNED, HELD, HELD], [HELD, SIGNED, HELD], [SIGNED, SIGNED, HELD]];

/// More operations than a move has.
const OPERATIONS_MAX: u64 = 2000;

/// What is done after the kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Finish,
    Undo,
}

struct Case {
    capabilities: [Capabilities; 3],
    fault: Option<(u64, Kind)>,
    then: Then,
    has_clients: bool,
    /// After how many operations of the next mover a late operation arrives.
    late_after: u64,
}

/// What a case came to.
struct Outcome {
    end: Move,
    /// Whether the fault was reached.
    is_reached: bool,
}

async fn drive(mover: &Mover, id: &MoveId, then: Then) -> Move {
    let ended = match then {
        Then::Finish => mover.finish(id, &|_| {}).await,
        Then::Undo => match mover.undo(id, &|_| {}).await {
            // The switch was faster.
            Err(MoveError::WrongState { .. }) => mover.finish(id, &|_| {}).await,
            other => other,
        },
    };
    ended.unwrap_or_else(|error| panic!("{error}"))
}

async fn catalog(setting: &Setting) -> Catalog {
    setting.home().load().await.expect("a catalog")
}

/// Runs a case on a world of its own.
fn run(case: &Case) -> Outcome {
    let world = World::new(case.fault.map_or(0, |(at, _)| at));
    world.run(|env, _| of_case(env, case)).expect("the disk does not crash")
}

async fn of_case(env: Environment, case: &Case) -> Outcome {
    let setting = Setting::new(&env, case.capabilities).await;
    let outside = || (env.clock.clone(), env.random.clone());
    let open = Gate::new(outside(), None, 0);
    let before = catalog(&setting).await;
    let planned = setting.planned(&before, 0, "b");
    let id = setting.mover(&open, Planted::default()).begin(&planned).await.expect("begun");
    let stop = Arc::new(Stop::default());
    let clients = async {
        if case.has_clients {
            join(client(setting.clone(), stop.clone(), 1), client(setting.clone(), stop.clone(), 2)).await;
        }
    };
    let driven = async {
        let gate = Gate::new(outside(), case.fault, 0);
        let mover = setting.mover(&gate, Planted::default());
        let ended = tokio::select! { biased;
            ended = drive(&mover, &id, Then::Finish) => Some(ended),
            () = gate.killed() => None,
        };
        let next = Gate::new(outside(), None, 0);
        if let Some(late) = gate.left_behind() {
            next.arrive_after(case.late_after, late);
        }
        let mover = setting.mover(&next, Planted::default());
        let ended = match ended {
            Some(ended) if case.then == Then::Finish => ended,
            _ => drive(&mover, &id, case.then).await,
        };
        // What has not arrived yet does so now.
        drop(mover.moves().await);
        stop.stop();
        let at = case.fault.map_or(u64::MAX, |(at, _)| at);
        Outcome { end: ended, is_reached: gate.passed() > at }
    };
    let (outcome, ()) = join(driven, clients).await;
    check(&setting, &id, case, &outcome).await;
    outcome
}

async fn check(setting: &Arc<Setting>, id: &MoveId, case: &Case, outcome: &Outcome) {
    let what = format!("{:?} {:?} late after {}", case.fault, case.then, case.late_after);
    let after = catalog(setting).await;
    setting.check(&after).unwrap_or_else(|why| panic!("{what}: {why}"));
    let placement = |catalog: &Catalog| {
        let map = catalog.map("m").expect("it").clone();
        map.placement(&shard_map::MappingId::Virtual(0)).expect("it").clone()
    };
    let history = setting.home().history(shard_map::Epoch(0), usize::MAX).await.expect("history");
    let notes: Vec<&str> = history.iter().map(|entry| entry.note.as_str()).collect();
    let states = &outcome.end.states;
    assert_eq!(placement(&after).state, shard_map::State::Online, "{what}: {states:?} {notes:?}");
    let open = Gate::new((setting.clock.clone(), setting.random.clone()), None, 0);
    let mover = setting.mover(&open, Planted::default());
    match outcome.end.state() {
        MoveState::Done { certificate } => {
            assert_eq!(placement(&after).shard, name("b"), "{what}");
            let rows: u64 = certificate.tables.iter().map(|table| table.rows).sum();
            assert!(case.has_clients || rows > 0, "{what}: {certificate:?}");
            mover.delete_source(id, &|_| {}).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(setting.count_on(&after, "a", 0), 0, "{what}");
        }
        MoveState::Undone { .. } => {
            assert_eq!((case.then, placement(&after).shard), (Then::Undo, name("a")), "{what}");
            let has_claimed = outcome.end.states.iter().any(|state| state.state == MoveState::Claimed);
            assert!(!has_claimed || setting.count_on(&after, "b", 0) == 0, "{what}");
        }
        other => panic!("{what}: {other:?}"),
    }
    setting.check(&after).unwrap_or_else(|why| panic!("{what}: {why}"));
    // The mapping can be moved again: nothing has it any more.
    let from = placement(&after).shard;
    let to = if from == name("c") { "b" } else { "c" };
    let again = mover.begin(&setting.planned(&after, 0, to)).await.expect("begun again");
    let ended = mover.finish(&again, &|_| {}).await.expect("finished");
    assert!(matches!(ended.state(), MoveState::Done { .. }), "{what}: {ended:?}");
    setting.check(&catalog(setting).await).unwrap_or_else(|why| panic!("{what}: moved again: {why}"));
}

/// Runs a case for each operation of a move until the fault is not reached; how many.
fn for_all_operations(mut case: Case, kind: Kind, mut each: impl FnMut(&Outcome)) -> u64 {
    for at in 0..OPERATIONS_MAX {
        case.fault = Some((at, kind));
        let outcome = run(&case);
        if !outcome.is_reached {
            return at;
        }
        each(&outcome);
    }
    panic!("a move has fewer than {OPERATIONS_MAX} operations");
}

fn case(capabilities: [Capabilities; 3]) -> Case {
    Case { capabilities, fault: None, then: Then::Finish, has_clients: false, late_after: 0 }
}

/// What a certificate has that does not depend on epochs and times.
fn tables(of: &Move) -> Vec<shard_mover::TableReport> {
    match of.state() {
        MoveState::Done { certificate } => certificate.tables.clone(),
        other => panic!("{other:?}"),
    }
}

/// A mover that is killed anywhere, or whose operation fails, is followed by another that goes on: nothing is
/// lost, nothing is there twice, and the certificate is the same.
#[test]
fn a_move_that_is_killed_or_fails_anywhere_comes_to_the_same_end() {
    for capabilities in [PAIRS[0], PAIRS[3]] {
        let expected = tables(&run(&case(capabilities)).end);
        assert!(expected.iter().all(|table| table.rows > 0 && table.high_water.is_some()), "{expected:?}");
        for kind in [Kind::KillBefore, Kind::KillAfter, Kind::FailBefore, Kind::FailAfter] {
            let same = |outcome: &Outcome| assert_eq!(tables(&outcome.end), expected);
            let count = for_all_operations(case(capabilities), kind, same);
            println!("{kind:?}: {count} operations");
            assert!(count > 80, "{count}");
        }
    }
}

#[test]
fn a_move_that_is_killed_while_clients_write_loses_nothing() {
    for capabilities in PAIRS {
        let case = Case { has_clients: true, ..case(capabilities) };
        for_all_operations(case, Kind::KillAfter, |_| {});
    }
}

/// A write, a claim, a record or a copy that was on its way when its mover was killed arrives while the next
/// one goes on, or after it.
#[test]
fn an_operation_that_arrives_late_changes_nothing() {
    for capabilities in PAIRS {
        for late_after in [25, 70] {
            let case = Case { late_after, has_clients: true, ..case(capabilities) };
            for_all_operations(case, Kind::Late, |_| {});
        }
    }
}

#[test]
fn a_move_is_undone_at_each_step() {
    let mut undone = 0;
    for (capabilities, has_clients) in [(PAIRS[0], false), (PAIRS[1], true), (PAIRS[2], true)] {
        for kind in [Kind::KillBefore, Kind::KillAfter, Kind::Late] {
            let case = Case { then: Then::Undo, has_clients, late_after: 12, ..case(capabilities) };
            for_all_operations(case, kind, |outcome| {
                undone += usize::from(matches!(outcome.end.state(), MoveState::Undone { .. }));
            });
        }
    }
    assert!(undone > 300, "{undone}");
}
