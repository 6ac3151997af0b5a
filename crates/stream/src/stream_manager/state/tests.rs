//! Lists of commands are applied whole or not at all, and what is encoded comes back.

use super::apply::OwnerCheck;
use super::codec::StateFormat;
use super::*;
use crate::ids::OwnerEpoch;
use crate::owner::Incarnation;
use crate::sealed::ExtentDigest;
use base::codec::Decoder;

fn name(text: &str) -> StreamName {
    StreamName::new(text)
}

/// The stream as process 7 names it in this epoch.
fn by(text: &str, epoch: u64) -> OwnedStream {
    name(text).owned_by(Owner { incarnation: Incarnation(7), epoch: OwnerEpoch(epoch) })
}

fn own(text: &str) -> OwnedStream {
    by(text, 1)
}

fn sealed(length: u64, digest: Option<u64>) -> Seal {
    Seal { length, digest: digest.map(ExtentDigest) }
}

fn two_streams() -> State {
    let mut state = State::default();
    let (a, b) = (own("a"), own("b"));
    state
        .apply_all(&[
            Command::Create(a.clone()),
            Command::Add { stream: a.clone(), extent: ExtentId(1) },
            Command::Seal { stream: None, extent: ExtentId(1), sealed: sealed(10, Some(77)) },
            Command::Add { stream: a.clone(), extent: ExtentId(2) },
            Command::Create(b.clone()),
            Command::Share { from: a, to: b, extents: vec![ExtentId(1)] },
        ])
        .unwrap();
    state
}

#[test]
fn unlisted_extents_go_wherever_they_stand_and_open_ones_stay() {
    let mut state = two_streams();
    let unlist = |extents: &[u64]| Command::Unlist {
        stream: own("a"),
        extents: extents.iter().copied().map(ExtentId).collect(),
    };
    let before = state.clone();
    assert!(state.apply_all(&[unlist(&[1, 2])]).is_err(), "the last one is open");
    assert!(state.apply_all(&[unlist(&[7])]).is_err(), "not listed");
    assert_eq!(state, before);
    state.apply_all(&[unlist(&[1])]).unwrap();
    assert_eq!(state.tail(&name("a")), Ok(Some(ExtentId(2))));
    assert_eq!(state.unreferenced(), [], "the other stream lists it");
}

#[test]
fn an_extent_that_comes_back_from_two_heirs_is_listed_once() {
    let mut state = two_streams();
    let share = |from: &str| Command::Share { from: own(from), to: own("c"), extents: vec![ExtentId(1)] };
    state.apply_all(&[Command::Create(own("c")), share("a"), share("b")]).unwrap();
    assert_eq!(state.streams[&name("c")].extents, [ExtentId(1)]);
    assert_eq!(state.extents[&ExtentId(1)].references, 3);
}

#[test]
fn a_shared_extent_lives_until_its_last_stream_drops_it() {
    let mut state = two_streams();
    state.apply_all(&[Command::Trim { stream: own("a"), first_kept: ExtentId(2) }]).unwrap();
    assert_eq!(state.unreferenced(), []);
    assert!(state.clone().apply_all(&[Command::Forget(ExtentId(1))]).is_err());
    state.apply_all(&[Command::Delete(own("b"))]).unwrap();
    assert_eq!(state.unreferenced(), [ExtentId(1)]);
    state.apply_all(&[Command::Forget(ExtentId(1))]).unwrap();
    assert!(
        state.apply_all(&[Command::Add { stream: by("a", 1), extent: ExtentId(1) }]).is_err(),
        "ids are not reused"
    );
}

#[test]
fn a_list_of_commands_is_all_or_nothing() {
    let mut state = two_streams();
    let before = state.clone();
    let refused = state.apply_all(&[
        Command::Delete(own("b")),
        Command::Share { from: own("a"), to: own("c"), extents: vec![ExtentId(1)] },
    ]);
    assert_eq!(refused, Err(StreamError::NoStream(name("c"))));
    assert_eq!(state, before);
    assert!(
        state
            .apply_all(&[Command::Share { from: own("a"), to: own("b"), extents: vec![ExtentId(2)] }])
            .is_err(),
        "open extents can't be shared"
    );
    assert!(
        state.apply_all(&[Command::Add { stream: by("a", 1), extent: ExtentId(9) }]).is_err(),
        "the last is open"
    );
}

#[test]
fn each_command_is_undone_when_a_later_one_is_refused() {
    let (mut before, extent) = (two_streams(), ExtentId(9));
    before.apply_all(&[Command::Create(own("d"))]).unwrap();
    let open = ExtentId(2);
    let changes = [
        Command::Create(own("c")),
        Command::Add { stream: by("b", 5), extent },
        Command::Seal { stream: None, extent: open, sealed: sealed(7, None) },
        Command::Delete(own("a")),
        Command::Rename { from: own("a"), to: own("c") },
        Command::Share { from: own("a"), to: own("d"), extents: vec![ExtentId(1)] },
        Command::Trim { stream: own("a"), first_kept: open },
        Command::Unlist { stream: own("a"), extents: vec![ExtentId(1)] },
        Command::Own(by("a", 8)),
    ];
    for change in changes {
        let mut state = before.clone();
        assert_eq!(state.apply_all(std::slice::from_ref(&change)), Ok(()), "{change:?}");
        assert_ne!(state, before, "{change:?}");
        let mut state = before.clone();
        let refused = [change.clone(), Command::Forget(ExtentId(77))];
        assert!(state.apply_all(&refused).is_err());
        assert_eq!(state, before, "{change:?}");
    }
}

#[test]
fn an_extent_is_sealed_once() {
    let mut state = two_streams();
    let before = state.clone();
    let seal = |sealed| [Command::Seal { stream: None, extent: ExtentId(1), sealed }];
    assert_eq!(state.apply_all(&seal(sealed(10, Some(77)))), Ok(()), "again");
    for other in [sealed(11, Some(77)), sealed(10, Some(78)), sealed(10, None)] {
        assert!(matches!(state.apply_all(&seal(other)), Err(StreamError::Corrupt(_))), "{other}");
        assert_eq!(state, before);
    }
}

#[test]
fn a_state_that_contradicts_itself_is_noticed() {
    let healthy = two_streams();
    assert_eq!(healthy.inconsistencies(), Vec::<String>::new());
    let mut counts = healthy.clone();
    counts.extents.get_mut(&ExtentId(1)).unwrap().references = 5;
    let mut unknown = healthy.clone();
    unknown.extents.remove(&ExtentId(1));
    let mut open = healthy.clone();
    open.extents.get_mut(&ExtentId(1)).unwrap().sealed = None;
    let next = State { next_extent: 1, ..healthy };
    for broken in [counts, unknown, open, next] {
        assert!(!broken.inconsistencies().is_empty(), "{broken:?}");
    }
}

/// Each command that names a stream, asked for by `owner`.
fn commands_of(owner: Owner) -> Vec<Command> {
    let of = |text: &str| name(text).owned_by(owner);
    vec![
        Command::Create(of("r/1/new")),
        Command::Add { stream: of("r/1/b"), extent: ExtentId(9) },
        Command::Own(of("r/1/a")),
        Command::Seal { stream: Some(of("r/1/a")), extent: ExtentId(2), sealed: sealed(7, None) },
        Command::Delete(of("r/1/a")),
        Command::Rename { from: of("r/1/a"), to: of("r/1/c") },
        Command::Rename { from: of("r/1/a"), to: by("free", 1) },
        Command::Share { from: of("r/1/a"), to: of("r/1/b"), extents: vec![ExtentId(1)] },
        Command::Share { from: of("r/1/a"), to: by("other", 1), extents: vec![ExtentId(1)] },
        Command::Share { from: by("other", 1), to: of("r/1/b"), extents: vec![] },
        Command::Trim { stream: of("r/1/a"), first_kept: ExtentId(2) },
        Command::Unlist { stream: of("r/1/a"), extents: vec![ExtentId(1)] },
    ]
}

/// A former owner that had been paused deleted, trimmed and unlisted what its successor relied on. Two owners
/// that had counted on from the same epoch both changed the stream.
#[test]
fn a_former_owner_and_another_one_of_the_same_epoch_change_nothing() {
    let mut state = State::default();
    let first = own("r/1/a");
    state
        .apply_all(&[
            Command::Create(first.clone()),
            Command::Create(own("r/1/b")),
            Command::Create(own("other")),
            Command::Add { stream: first.clone(), extent: ExtentId(1) },
            Command::Seal { stream: Some(first.clone()), extent: ExtentId(1), sealed: sealed(10, None) },
            Command::Add { stream: first, extent: ExtentId(2) },
            // One of its streams is enough.
            Command::Own(by("r/1/b", 5)),
        ])
        .unwrap();
    let owner =
        |incarnation, epoch| Owner { incarnation: Incarnation(incarnation), epoch: OwnerEpoch(epoch) };
    for (who, accepted) in [
        (owner(7, 1), false),
        (owner(7, 4), false),
        (owner(8, 5), false),
        (owner(7, 5), true),
        (owner(8, 6), true),
    ] {
        for command in commands_of(who) {
            let mut after = state.clone();
            let applied = after.apply_all(std::slice::from_ref(&command));
            if accepted {
                assert_eq!(applied, Ok(()), "{command:?}");
            } else {
                assert!(matches!(applied, Err(StreamError::NotOwner { .. })), "{command:?}: {applied:?}");
                assert_eq!(after, state, "{command:?}");
            }
        }
    }
}

/// The commands of former formats had no owner or no incarnation: they were accepted once, and a new start
/// reads them again.
#[test]
fn a_log_of_a_former_format_is_not_compared() {
    let mut state = State::default();
    let unowned = |text: &str, epoch: u64| name(text).owned_by(Owner::of_epoch(OwnerEpoch(epoch)));
    let commands = [
        Command::Create(unowned("r/1/a", 0)),
        Command::Own(unowned("r/1/a", 5)),
        Command::Create(unowned("r/1/b", 0)),
        Command::Add { stream: unowned("r/1/b", 3), extent: ExtentId(1) },
        Command::Delete(unowned("r/1/b", 0)),
    ];
    state.apply_checked(&commands, OwnerCheck::Logged).unwrap();
    assert_eq!(state.owner(&name("r/1/a")), Ok(Owner::of_epoch(OwnerEpoch(5))));
    assert_eq!(state.inconsistencies(), Vec::<String>::new());
    let late = Command::Delete(unowned("r/1/a", 0));
    assert!(matches!(state.apply_all(&[late]), Err(StreamError::NotOwner { .. })), "from now on they are");
}

#[test]
fn state_and_commands_come_back() {
    let state = two_streams();
    let mut out = Vec::new();
    state.encode(&mut out);
    assert_eq!(State::decode(&mut Decoder::new(&out), StateFormat::WithOwners), Ok(state.clone()));
    let mut without = state.clone();
    without
        .apply_all(&[Command::Seal { stream: None, extent: ExtentId(2), sealed: sealed(9, None) }])
        .unwrap();
    let mut out = Vec::new();
    without.encode(&mut out);
    assert_eq!(State::decode(&mut Decoder::new(&out), StateFormat::WithOwners), Ok(without));
    let commands = [
        Command::Create(own("x")),
        Command::Add { stream: by("x", 1), extent: ExtentId(7) },
        Command::Seal { stream: None, extent: ExtentId(7), sealed: sealed(1 << 40, None) },
        Command::Seal { stream: None, extent: ExtentId(7), sealed: sealed(1 << 40, Some(u64::MAX)) },
        Command::Delete(own("x")),
        Command::Rename { from: own("x"), to: own("y") },
        Command::Share { from: own("x"), to: own("y"), extents: vec![ExtentId(1), ExtentId(2)] },
        Command::Trim { stream: own("x"), first_kept: ExtentId(3) },
        Command::Unlist { stream: own("x"), extents: vec![ExtentId(3), ExtentId(9)] },
        Command::Forget(ExtentId(3)),
        Command::Own(by("x", 4)),
    ];
    let mut out = Vec::new();
    commands.iter().for_each(|command| command.encode(&mut out));
    let mut decoder = Decoder::new(&out);
    for command in commands {
        assert_eq!(Command::decode(&mut decoder), Ok(command));
    }
}
