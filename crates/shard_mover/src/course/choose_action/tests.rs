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

fn seen(shard: &str, state: State, since: u64, own: OwnChanges) -> Observed {
    let placement = Some(Placement { shard: name(shard), state, since: Epoch(since) });
    Observed { own, placement, epoch: Epoch(20) }
}

const NONE: OwnChanges = OwnChanges { mark: None, place: None, open: None, reopen: None };

#[test]
fn each_state_leads_to_the_next() {
    use MoveState::*;
    let marked = || seen("a", State::ReadOnly, 10, OwnChanges { mark: Some(Epoch(10)), ..NONE });
    let planned = || Planned { order: order() };
    let verified = || Verified { key_id: String::new(), tables: Vec::new() };
    let placed = OwnChanges { mark: Some(Epoch(10)), place: Some(Epoch(11)), ..NONE };
    let opened = OwnChanges { open: Some(Epoch(12)), ..placed };
    let record = |state| Action::Record(state);
    for (state, seen, expected) in [
        (planned(), seen("a", State::Online, 5, NONE), Action::Mark),
        (planned(), marked(), record(Marked { epoch: Epoch(10) })),
        (Marked { epoch: Epoch(10) }, marked(), Action::Drain(Epoch(10))),
        (Drained, marked(), Action::Claim(Epoch(10))),
        (Claimed, marked(), Action::Copy(Epoch(10))),
        (Copied { rows: 0 }, marked(), Action::Verify),
        (verified(), marked(), Action::Place),
        (verified(), seen("b", State::ReadOnly, 11, placed), record(Placed { epoch: Epoch(11) })),
        (Placed { epoch: Epoch(11) }, seen("b", State::ReadOnly, 11, placed), Action::Open(Epoch(11))),
        (
            Placed { epoch: Epoch(11) },
            seen("b", State::Online, 12, opened),
            record(Switched { epoch: Epoch(12) }),
        ),
        // Others set it online.
        (
            Placed { epoch: Epoch(11) },
            seen("b", State::Online, 13, placed),
            Action::Settle { claim: Epoch(11), since: Epoch(13) },
        ),
        (Switched { epoch: Epoch(12) }, seen("b", State::Online, 12, opened), Action::Finish(Epoch(12))),
        (Undone { note: None }, seen("a", State::Online, 12, NONE), Action::Stop),
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
            seen("a", State::Online, 12, NONE),
            seen("a", State::ReadOnly, 12, NONE),
            seen("b", State::ReadOnly, 10, NONE),
            Observed { own: NONE, placement: None, epoch: Epoch(20) },
        ] {
            let action = choose_action(&at(state.clone()), &other, Wish::Finish);
            assert!(matches!(action, Action::Record(Failed { .. })), "{state:?} {other:?}: {action:?}");
        }
    }
    let planned = at(Planned { order: order() });
    let action = choose_action(&planned, &seen("a", State::Online, 6, NONE), Wish::Finish);
    assert!(matches!(action, Action::Record(Undone { .. })), "{action:?}");
}

#[test]
fn what_is_not_switched_is_undone_and_nothing_else() {
    use MoveState::*;
    let undoing = || at(Undoing { reason: String::new() });
    let mark = OwnChanges { mark: Some(Epoch(10)), ..NONE };
    let reopened = OwnChanges { reopen: Some(Epoch(11)), ..mark };
    let placed = OwnChanges { place: Some(Epoch(11)), ..mark };
    for state in
        [Planned { order: order() }, Marked { epoch: Epoch(10) }, Claimed, Failed { reason: String::new() }]
    {
        let action = choose_action(&at(state), &seen("a", State::ReadOnly, 10, mark), Wish::Undo);
        assert!(matches!(action, Action::Record(Undoing { .. })), "{action:?}");
    }
    for state in [Placed { epoch: Epoch(11) }, Switched { epoch: Epoch(12) }] {
        let action = choose_action(&at(state), &seen("b", State::ReadOnly, 11, placed), Wish::Undo);
        assert_eq!(action, Action::Refuse(TOO_LATE));
    }
    for (seen, expected) in [
        (seen("a", State::ReadOnly, 10, mark), Action::Reopen),
        (seen("a", State::Online, 11, reopened), Action::Record(Reopened { claim: Epoch(11) })),
        // Others changed it: the claim is newer than the mark all the same.
        (seen("a", State::Online, 13, mark), Action::Record(Reopened { claim: Epoch(20) })),
        // The switch of another mover was faster.
        (seen("b", State::ReadOnly, 11, placed), Action::Record(Placed { epoch: Epoch(11) })),
    ] {
        assert_eq!(choose_action(&undoing(), &seen, Wish::Finish), expected, "{seen:?}");
    }
    // Rows of clients are not deleted.
    let reopened = at(Reopened { claim: Epoch(11) });
    for (shard, is_cleared) in [("a", true), ("c", true), ("b", false)] {
        let action = choose_action(&reopened, &seen(shard, State::Online, 11, mark), Wish::Finish);
        assert_eq!(action == Action::ClearTarget(Epoch(11)), is_cleared, "{shard}: {action:?}");
    }
    assert_eq!(choose_action(&at(Drained), &seen("a", State::ReadOnly, 10, mark), Wish::DeleteSource), {
        Action::Refuse(NOT_DONE)
    });
}

#[test]
fn an_undo_before_the_mark_makes_a_late_mark_impossible() {
    // Another mover may be about to mark the mapping, which would stay so with no move that has it.
    use MoveState::*;
    let states = [Planned { order: order() }, Undoing { reason: String::new() }];
    let states = states.into_iter().map(|state| StateRecord { at: String::new(), state }).collect();
    let of = Move::of(MoveId::new(Ticks(1), 1), states).expect("a move");
    let action = choose_action(&of, &seen("a", State::Online, 5, NONE), Wish::Finish);
    assert_eq!(action, Action::Mark);
    let mark = OwnChanges { mark: Some(Epoch(10)), ..NONE };
    assert_eq!(choose_action(&of, &seen("a", State::ReadOnly, 10, mark), Wish::Finish), Action::Reopen);
    // It was changed: no mark can be made any more.
    let action = choose_action(&of, &seen("a", State::Online, 6, NONE), Wish::Finish);
    assert!(matches!(action, Action::Record(Undone { .. })), "{action:?}");
}
