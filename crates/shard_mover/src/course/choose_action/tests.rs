//! Tables of states and maps, and what follows.

use super::*;
use crate::log::id::MoveId;
use crate::log::state::StateRecord;
use base::Ticks;
use shard_map::Name;

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

fn order() -> MoveOrder {
    MoveOrder {
        map: name("m"),
        mapping: "virtual-3".to_owned(),
        from: name("a"),
        to: name("b"),
        since: Epoch(5),
        catalog_epoch: Epoch(9),
        is_offline: false,
        rows: 0,
        schema: String::new(),
    }
}

/// A move that is in a state, with the states before it.
fn at(last: MoveState) -> Move {
    use MoveState::*;
    let verified = Verified { key_id: String::new(), tables: Vec::new() };
    let mut states = vec![Planned { order: order() }];
    let course = [Marked { epoch: Epoch(10) }, Drained, Claimed, Copied { rows: 0 }, verified];
    states.extend(course.into_iter().take(place(&last).saturating_sub(1)));
    if place(&last) > 6 {
        states.push(Placed { epoch: Epoch(11) });
    }
    if last.name() != "planned" {
        states.push(last);
    }
    let states = states.into_iter().map(|state| StateRecord { at: String::new(), state });
    Move::of(MoveId::new(Ticks(1), 1), states.collect()).expect("a move")
}

fn place(state: &MoveState) -> usize {
    let course = ["planned", "marked", "drained", "claimed", "copied", "verified", "placed", "switched"];
    // What is apart from the course follows a copy.
    course.iter().position(|name| *name == state.name()).unwrap_or(5)
}

fn seen(shard: &str, state: State, since: u64, freeze: Freeze) -> Observed {
    let placement = Some(Placement { shard: name(shard), state, since: Epoch(since) });
    Observed { placement, freeze, epoch: Epoch(20) }
}

const OWN: Freeze = Freeze::Own(Epoch(10));

fn planned() -> MoveState {
    MoveState::Planned { order: order() }
}

/// A certificate of a move that was switched at 12.
fn certificate() -> Box<Certificate> {
    let mut of = at(MoveState::Placed { epoch: Epoch(11) });
    of.states.push(StateRecord { at: String::new(), state: MoveState::Switched { epoch: Epoch(12) } });
    Box::new(Certificate::of(&of).expect("a certificate"))
}

fn done() -> MoveState {
    MoveState::Done { certificate: certificate() }
}

#[test]
fn each_state_leads_to_the_next() {
    use MoveState::*;
    let marked = || seen("a", State::ReadOnly, 10, OWN);
    let verified = || Verified { key_id: String::new(), tables: Vec::new() };
    let record = |state| Action::Record(state);
    for (state, seen, expected) in [
        (planned(), seen("a", State::Online, 5, Freeze::None), Action::Mark),
        (planned(), seen("a", State::Online, 5, Freeze::Other), Action::Refuse(FROZEN)),
        (planned(), marked(), record(Marked { epoch: Epoch(10) })),
        (Marked { epoch: Epoch(10) }, marked(), Action::Drain(Epoch(10))),
        (Drained, marked(), Action::Claim(Epoch(10))),
        (Claimed, marked(), Action::Copy(Epoch(10))),
        (Copied { rows: 0 }, marked(), Action::Verify),
        (verified(), marked(), Action::Place),
        (verified(), seen("b", State::ReadOnly, 11, OWN), record(Placed { epoch: Epoch(11) })),
        (Placed { epoch: Epoch(11) }, seen("b", State::ReadOnly, 11, OWN), Action::Open(Epoch(11))),
        // It was opened, and the mover was killed before it put that; or others set it online.
        (
            Placed { epoch: Epoch(11) },
            seen("b", State::Online, 12, Freeze::None),
            Action::Settle { claim: Epoch(11), since: Epoch(12) },
        ),
        (
            Placed { epoch: Epoch(11) },
            seen("b", State::Online, 13, OWN),
            Action::Settle { claim: Epoch(11), since: Epoch(13) },
        ),
        (
            Switched { epoch: Epoch(12) },
            seen("b", State::Online, 12, Freeze::None),
            Action::Finish(Epoch(12)),
        ),
        (Undone { note: None }, seen("a", State::Online, 12, Freeze::None), Action::Stop),
        (Failed { reason: String::new() }, marked(), Action::Stop),
    ] {
        assert_eq!(choose_action(&at(state.clone()), &seen, Wish::Finish), expected, "{state:?} {seen:?}");
    }
}

#[test]
fn a_mapping_that_others_changed_ends_the_move() {
    use MoveState::*;
    for state in [Marked { epoch: Epoch(10) }, Drained, Claimed, Copied { rows: 0 }] {
        for other in [
            seen("a", State::Online, 12, OWN),
            seen("a", State::ReadOnly, 12, OWN),
            // Thawed by others, its keys may change at any time.
            seen("a", State::ReadOnly, 10, Freeze::None),
            seen("b", State::ReadOnly, 10, OWN),
            Observed { placement: None, freeze: Freeze::None, epoch: Epoch(20) },
        ] {
            let action = choose_action(&at(state.clone()), &other, Wish::Finish);
            assert!(matches!(action, Action::Record(Failed { .. })), "{state:?} {other:?}: {action:?}");
        }
    }
    let action = choose_action(&at(planned()), &seen("a", State::Online, 6, Freeze::None), Wish::Finish);
    assert!(matches!(action, Action::Record(Undone { .. })), "{action:?}");
}

#[test]
fn what_is_not_switched_is_undone_and_nothing_else() {
    use MoveState::*;
    let undoing = || at(Undoing { reason: String::new() });
    for state in [planned(), Marked { epoch: Epoch(10) }, Claimed, Failed { reason: String::new() }] {
        let action = choose_action(&at(state), &seen("a", State::ReadOnly, 10, OWN), Wish::Undo);
        assert!(matches!(action, Action::Record(Undoing { .. })), "{action:?}");
    }
    for state in [Placed { epoch: Epoch(11) }, Switched { epoch: Epoch(12) }, done(), SourceDeleting] {
        let action = choose_action(&at(state), &seen("b", State::ReadOnly, 11, OWN), Wish::Undo);
        assert_eq!(action, Action::Refuse(TOO_LATE));
    }
    for (seen, expected) in [
        (seen("a", State::ReadOnly, 10, OWN), Action::Reopen(Epoch(10))),
        (seen("a", State::Online, 11, OWN), Action::Record(Reopened { claim: Epoch(11) })),
        // Others changed it and thawed it: the claim is newer than the mark all the same.
        (seen("a", State::Online, 13, Freeze::None), Action::Record(Reopened { claim: Epoch(20) })),
        // The switch of another mover was faster.
        (seen("b", State::ReadOnly, 11, OWN), Action::Record(Placed { epoch: Epoch(11) })),
    ] {
        assert_eq!(choose_action(&undoing(), &seen, Wish::Finish), expected, "{seen:?}");
    }
    // Rows of clients are not deleted, nor any of a mapping whose keys may change.
    let reopened = at(Reopened { claim: Epoch(11) });
    for (shard, freeze, is_cleared) in
        [("a", OWN, true), ("c", OWN, true), ("b", OWN, false), ("a", Freeze::None, false)]
    {
        let action = choose_action(&reopened, &seen(shard, State::Online, 11, freeze), Wish::Finish);
        assert_eq!(action == Action::ClearTarget(Epoch(11)), is_cleared, "{shard}: {action:?}");
        let is_ended = matches!(action, Action::EndClaim { claim: Epoch(11), .. });
        assert_eq!(is_ended, !is_cleared, "{shard}: {action:?}");
    }
    let gone = Observed { placement: None, freeze: Freeze::None, epoch: Epoch(20) };
    let action = choose_action(&reopened, &gone, Wish::Finish);
    assert_eq!(action, Action::EndClaim { claim: Epoch(11), note: GONE.to_owned() });
    assert_eq!(choose_action(&at(Drained), &seen("a", State::ReadOnly, 10, OWN), Wish::DeleteSource), {
        Action::Refuse(NOT_DONE)
    });
}

#[test]
fn a_deletion_has_the_mapping_frozen_until_no_late_delete_arrives() {
    use MoveState::*;
    let own = Freeze::Own(Epoch(15));
    let there = |since, freeze| seen("b", State::Online, since, freeze);
    let cleared = || SourceCleared { rows: 3, note: None };
    let record = |state| Action::Record(state);
    for (state, seen, expected) in [
        (done(), there(12, Freeze::None), record(SourceDeleting)),
        (done(), there(12, Freeze::Other), Action::Refuse(FROZEN)),
        (done(), there(13, Freeze::None), Action::Refuse(CHANGED_SINCE)),
        (done(), seen("a", State::Online, 12, Freeze::None), Action::Refuse(CHANGED_SINCE)),
        (SourceDeleting, there(12, Freeze::None), Action::Freeze(Epoch(12))),
        // The claim is of the epoch that froze it: later than that of a repair in between.
        (SourceDeleting, there(12, own), Action::DeleteSource(Epoch(15))),
        // Others were faster: nothing was deleted, and the move is what it was.
        (SourceDeleting, there(13, Freeze::None), record(done())),
        (SourceDeleting, there(12, Freeze::Other), record(done())),
        (cleared(), there(12, own), Action::Thaw(Epoch(15))),
        (cleared(), there(12, Freeze::None), record(SourceDeleted { rows: 3, note: None })),
    ] {
        let mut of = at(Placed { epoch: Epoch(11) });
        for state in [done(), state.clone()] {
            of.states.push(StateRecord { at: String::new(), state });
        }
        assert_eq!(choose_action(&of, &seen, Wish::DeleteSource), expected, "{state:?} {seen:?}");
        if state != done() {
            assert_eq!(choose_action(&of, &seen, Wish::Finish), expected, "{state:?} {seen:?}");
        }
    }
}

#[test]
fn an_undo_before_the_mark_makes_a_late_mark_impossible() {
    // Another mover may be about to mark the mapping, which would stay so with no move that has it.
    use MoveState::*;
    let states = [planned(), Undoing { reason: String::new() }];
    let states = states.into_iter().map(|state| StateRecord { at: String::new(), state }).collect();
    let of = Move::of(MoveId::new(Ticks(1), 1), states).expect("a move");
    for (seen, expected) in [
        (seen("a", State::Online, 5, Freeze::None), Action::Mark),
        (seen("a", State::Online, 5, Freeze::Other), Action::Refuse(FROZEN)),
        (seen("a", State::ReadOnly, 10, OWN), Action::Reopen(Epoch(10))),
    ] {
        assert_eq!(choose_action(&of, &seen, Wish::Finish), expected, "{seen:?}");
    }
    // It was changed: no mark can be made any more.
    let action = choose_action(&of, &seen("a", State::Online, 6, Freeze::None), Wish::Finish);
    assert!(matches!(action, Action::Record(Undone { .. })), "{action:?}");
}
