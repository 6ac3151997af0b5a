//! Parts and seals that arrive late.

use crate::stage::{N, Stage, W, log};
use stamp::{
    AfterAppend, AfterSealedOut, AfterStop, AppendStop, Change, ChangeError, FirstPart, Found, HeldRange,
    LogProgress, PartPath, PutAnswer, SealWalk, WalkStep, apply_changes, choose_after_sealed_out,
    choose_after_stop, choose_first_part,
};

/// W sends a part and is paused; its lease ends; N seals, loads, drops the extent; a sweep deletes parts *and
/// seal*; the part arrives and is created; W acknowledged it: lost.
#[test]
fn acknowledged_into_a_deleted_extent() {
    let mut stage = Stage::new();
    let (held, mut window) = stage.writer(W);
    let part = window.push(10, 1).unwrap();
    stage.expire(W);
    let mut successor = stage.take(N);
    assert_eq!(stage.replay(successor.document()), [0u64; 0]);
    stage.trim(&mut successor, 1);

    // The rule: the seal stays as a tombstone. The late part is refused by it.
    let mut with_tombstone = window.clone();
    let answer = stage.put(part);
    assert_eq!(answer, PutAnswer::Refused);
    let found = stage.read(&part);
    let choice = with_tombstone.answered(0, answer, Some(&found), true);
    assert_eq!(choice, Some(AfterAppend::Stop(AppendStop::SealedOut)));

    // The other rule: the lease is asked after the answer. Without the tombstone the part is created, in
    // vain.
    stage.store.delete(PartPath { extent: held.document().streams[&log()].extents[0].name, offset: 0 });
    let answer = stage.put(part);
    assert_eq!(answer, PutAnswer::Created);
    let choice = window.answered(0, answer, None, false);
    assert_eq!(choice, Some(AfterAppend::Stop(AppendStop::LeaseEnded)));
    assert_eq!(window.acknowledge(true), [], "and never later");
}

/// The same, but the read of the header says 404, W takes it for unknown and puts again: created, lost.
#[test]
fn not_there_after_refused_is_not_unknown() {
    let mut stage = Stage::new();
    let (held, mut window) = stage.writer(W);
    let part = window.push(10, 1).unwrap();
    stage.expire(W);
    let mut successor = stage.take(N);
    stage.trim(&mut successor, 1);
    let answer = stage.put(part);
    assert_eq!(answer, PutAnswer::Refused);
    stage.store.delete(PartPath { extent: held.document().streams[&log()].extents[0].name, offset: 0 });
    let found = stage.read(&part);
    assert_eq!(found, Found::NotThere);

    // The rule: refused and then not there means that the extent was deleted. Nothing more is sent.
    let choice = window.answered(0, answer, Some(&found), true);
    assert_eq!(choice, Some(AfterAppend::Stop(AppendStop::Deleted)));
    assert_eq!(choose_after_stop(&AppendStop::Deleted, true), AfterStop::ReadOwnEntry);
}

/// N finds no part in W's tail and drops the extent without sealing it; W's first part arrives: lost.
#[test]
fn an_empty_tail_is_sealed_before_it_is_dropped() {
    let mut stage = Stage::new();
    let (held, mut window) = stage.writer(W);
    let part = window.push(10, 1).unwrap();
    let extent = part.place.extent;
    stage.expire(W);
    let taking = stage.begin_take(N);

    // The rule: the taker seals every extent without a length, also the empty one, and none can be dropped
    // before that.
    assert_eq!(taking.walks().map(|walk| walk.place().extent).collect::<Vec<_>>(), [extent]);
    let drop_it = Change::Unlist { stream: log(), extents: vec![extent] };
    let refused = apply_changes(held.document(), std::slice::from_ref(&drop_it)).unwrap_err();
    assert_eq!(refused, ChangeError::NotSealed(extent));
    let mut successor = stage.finish_take(taking);
    stage.change(&mut successor, &[drop_it]);
    assert_eq!(stage.put(part), PutAnswer::Refused);
}

/// v0 at 0 and v1 at 1 are under way; W gives up, reads its log again, writes v2 at 0; v1 and v2 arrive late:
/// the chain is broken, or v1 is taken for its end.
#[test]
fn a_log_is_sealed_before_it_is_read_again() {
    let mut stage = Stage::new();
    let (mut held, mut window) = stage.writer(W);
    let (v0, v1) = (window.push(1, 1).unwrap(), window.push(1, 2).unwrap());
    window.stop(AppendStop::GivenUp);

    // The rule: seal before every reload; the extent takes nothing more.
    assert_eq!(choose_after_stop(&AppendStop::GivenUp, true), AfterStop::SealAndReload);
    assert!(window.push(1, 3).is_err(), "an offset is given out once");
    let mut walk = SealWalk::new(held.life(), window.place(), held.owner());
    let length = stage.seal(&mut walk);
    assert_eq!(length, 0);
    let extent = v0.place.extent;
    stage.change(&mut held, &[Change::RecordLength { stream: log(), extent, length }]);
    let next = stage.name_extent(&mut held);
    let mut again = stage.open(&held, next, Some(extent));
    let v2 = again.push(1, 3).unwrap();
    assert_eq!(stage.put(v0), PutAnswer::Refused);
    assert_eq!(stage.put(v1), PutAnswer::Created, "behind the hole, where nothing counts");
    assert_eq!(stage.put(v2), PutAnswer::Created);
    stage.expire(W);
    let successor = stage.take(N);
    assert_eq!(stage.replay(successor.document()), [3]);
}

/// W names e1 and writes v1 there while v0 is under way in e0; v1 arrives, v0 does not; N reads v1 without
/// v0.
#[test]
fn the_next_extent_takes_parts_when_the_one_before_is_sealed() {
    let mut stage = Stage::new();
    let (mut held, mut window) = stage.writer(W);
    let v0 = window.push(1, 1).unwrap();
    let (first, second) = (v0.place.extent, stage.name_extent(&mut held));
    let may = |held: &HeldRange, sealed| {
        let progress = LogProgress { opened: Some(first), sealed };
        choose_first_part(held.document(), log(), second, progress)
    };

    // The rule: naming is fine, the first part waits for the seal.
    assert_eq!(may(&held, None), FirstPart::AfterSealOf(first));
    assert_eq!(may(&held, Some(first)), FirstPart::May);

    // And N seals every open extent, the earlier too: v0 is refused for ever.
    stage.expire(W);
    let taking = stage.begin_take(N);
    assert_eq!(taking.walks().map(|walk| walk.place().extent).collect::<Vec<_>>(), [first, second]);
    stage.finish_take(taking);
    assert_eq!(stage.put(v0), PutAnswer::Refused);
}

/// A late seal of a hand-over that was given up reaches W's tail; W stops; the document still names W and its
/// lease lives: nobody ever serves the range.
#[test]
fn a_stray_seal_is_answered_by_taking_the_range_again() {
    let mut stage = Stage::new();
    let (held, mut window) = stage.writer(W);
    let mut stray =
        SealWalk::new(held.life(), window.place(), stamp::Owner { incarnation: N, ..held.owner() });
    stage.seal(&mut stray);
    let part = window.push(10, 1).unwrap();
    let answer = stage.put(part);
    let found = stage.read(&part);
    let choice = window.answered(0, answer, Some(&found), true);
    assert_eq!(choice, Some(AfterAppend::Stop(AppendStop::SealedOut)));

    // The rule: the own entry decides, and a range that is still ours is taken again.
    assert_eq!(choose_after_stop(&AppendStop::SealedOut, true), AfterStop::ReadOwnEntry);
    assert_eq!(choose_after_sealed_out(Some(stage.own()), held.owner()), AfterSealedOut::TakeAgain);
    let (again, mut window) = stage.writer(W);
    assert_eq!(again.owner().epoch.0, held.owner().epoch.0 + 1);
    let part = window.push(10, 2).unwrap();
    assert_eq!(stage.put(part), PutAnswer::Created);
}

/// The seal is an object of its own name; a part arrives at the end beside it: acknowledged, and not counted.
#[test]
fn a_seal_and_the_next_part_compete_for_one_name() {
    let mut stage = Stage::new();
    let (held, mut window) = stage.writer(W);
    let part = window.push(10, 1).unwrap();
    let mut walk = SealWalk::new(held.life(), window.place(), held.owner());
    walk.found(&Found::NotThere);
    let WalkStep::Create(seal) = walk.step() else { panic!("{:?}", walk.step()) };

    // The rule: one name. Whichever comes first excludes the other, and a part that was first counts.
    assert_eq!((seal.place.extent, seal.offset), (part.place.extent, part.offset));
    let mut sealed_first = Stage::new();
    assert_eq!((sealed_first.put(seal), sealed_first.put(part)), (PutAnswer::Created, PutAnswer::Refused));
    assert_eq!((stage.put(part), stage.put(seal)), (PutAnswer::Created, PutAnswer::Refused));
    walk.answered(PutAnswer::Refused);
    assert_eq!(stage.seal(&mut walk), 10);
}
