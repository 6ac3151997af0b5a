//! Lists of commands are applied whole or not at all, and what is encoded comes back.

use super::*;
use crate::sealed::ExtentDigest;
use base::codec::Decoder;

fn name(text: &str) -> StreamName {
    StreamName::new(text)
}

fn sealed(length: u64, digest: Option<u64>) -> Seal {
    Seal { length, digest: digest.map(ExtentDigest) }
}

fn two_streams() -> State {
    let mut state = State::default();
    let (a, b) = (name("a"), name("b"));
    state
        .apply_all(&[
            Command::Create(a.clone()),
            Command::Add { stream: a.clone(), extent: ExtentId(1), epoch: OwnerEpoch(1) },
            Command::Seal { extent: ExtentId(1), sealed: sealed(10, Some(77)) },
            Command::Add { stream: a.clone(), extent: ExtentId(2), epoch: OwnerEpoch(1) },
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
        stream: name("a"),
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
    let share = |from: &str| Command::Share { from: name(from), to: name("c"), extents: vec![ExtentId(1)] };
    state.apply_all(&[Command::Create(name("c")), share("a"), share("b")]).unwrap();
    assert_eq!(state.streams[&name("c")].extents, [ExtentId(1)]);
    assert_eq!(state.extents[&ExtentId(1)].references, 3);
}

#[test]
fn a_shared_extent_lives_until_its_last_stream_drops_it() {
    let mut state = two_streams();
    state.apply_all(&[Command::Trim { stream: name("a"), first_kept: ExtentId(2) }]).unwrap();
    assert_eq!(state.unreferenced(), []);
    assert!(state.clone().apply_all(&[Command::Forget(ExtentId(1))]).is_err());
    state.apply_all(&[Command::Delete(name("b"))]).unwrap();
    assert_eq!(state.unreferenced(), [ExtentId(1)]);
    state.apply_all(&[Command::Forget(ExtentId(1))]).unwrap();
    assert!(
        state
            .apply_all(&[Command::Add { stream: name("a"), extent: ExtentId(1), epoch: OwnerEpoch(1) }])
            .is_err(),
        "ids are not reused"
    );
}

#[test]
fn a_list_of_commands_is_all_or_nothing() {
    let mut state = two_streams();
    let before = state.clone();
    let refused = state.apply_all(&[
        Command::Delete(name("b")),
        Command::Share { from: name("a"), to: name("c"), extents: vec![ExtentId(1)] },
    ]);
    assert_eq!(refused, Err(StreamError::NoStream(name("c"))));
    assert_eq!(state, before);
    assert!(
        state
            .apply_all(&[Command::Share { from: name("a"), to: name("b"), extents: vec![ExtentId(2)] }])
            .is_err(),
        "open extents can't be shared"
    );
    assert!(
        state
            .apply_all(&[Command::Add { stream: name("a"), extent: ExtentId(9), epoch: OwnerEpoch(1) }])
            .is_err(),
        "the last is open"
    );
}

#[test]
fn each_command_is_undone_when_a_later_one_is_refused() {
    let (mut before, extent) = (two_streams(), ExtentId(9));
    before.apply_all(&[Command::Create(name("d"))]).unwrap();
    let open = ExtentId(2);
    let changes = [
        Command::Create(name("c")),
        Command::Add { stream: name("b"), extent, epoch: OwnerEpoch(5) },
        Command::Seal { extent: open, sealed: sealed(7, None) },
        Command::Delete(name("a")),
        Command::Rename { from: name("a"), to: name("c") },
        Command::Share { from: name("a"), to: name("d"), extents: vec![ExtentId(1)] },
        Command::Trim { stream: name("a"), first_kept: open },
        Command::Unlist { stream: name("a"), extents: vec![ExtentId(1)] },
        Command::Own { stream: name("a"), epoch: OwnerEpoch(8) },
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
    let seal = |sealed| [Command::Seal { extent: ExtentId(1), sealed }];
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

#[test]
fn a_former_owner_adds_no_extents() {
    let mut state = two_streams();
    let stream = name("b");
    state.apply_all(&[Command::Own { stream: stream.clone(), epoch: OwnerEpoch(3) }]).unwrap();
    let zombie = Command::Add { stream: stream.clone(), extent: ExtentId(9), epoch: OwnerEpoch(2) };
    assert!(matches!(state.apply_all(&[zombie]), Err(StreamError::NotOwner { .. })));
    state.apply_all(&[Command::Add { stream, extent: ExtentId(9), epoch: OwnerEpoch(3) }]).unwrap();
}

#[test]
fn state_and_commands_come_back() {
    let state = two_streams();
    let mut out = Vec::new();
    state.encode(&mut out);
    assert_eq!(State::decode(&mut Decoder::new(&out), true), Ok(state.clone()));
    let mut without = state.clone();
    without.apply_all(&[Command::Seal { extent: ExtentId(2), sealed: sealed(9, None) }]).unwrap();
    let mut out = Vec::new();
    without.encode(&mut out);
    assert_eq!(State::decode(&mut Decoder::new(&out), true), Ok(without));
    let commands = [
        Command::Create(name("x")),
        Command::Add { stream: name("x"), extent: ExtentId(7), epoch: OwnerEpoch(1) },
        Command::Seal { extent: ExtentId(7), sealed: sealed(1 << 40, None) },
        Command::Seal { extent: ExtentId(7), sealed: sealed(1 << 40, Some(u64::MAX)) },
        Command::Delete(name("x")),
        Command::Rename { from: name("x"), to: name("y") },
        Command::Share { from: name("x"), to: name("y"), extents: vec![ExtentId(1), ExtentId(2)] },
        Command::Trim { stream: name("x"), first_kept: ExtentId(3) },
        Command::Unlist { stream: name("x"), extents: vec![ExtentId(3), ExtentId(9)] },
        Command::Forget(ExtentId(3)),
        Command::Own { stream: name("x"), epoch: OwnerEpoch(4) },
    ];
    let mut out = Vec::new();
    commands.iter().for_each(|command| command.encode(&mut out));
    let mut decoder = Decoder::new(&out);
    for command in commands {
        assert_eq!(Command::decode(&mut decoder), Ok(command));
    }
}
