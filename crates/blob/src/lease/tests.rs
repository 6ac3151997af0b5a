//! Actions on a lease and uses of it in every state, as tables, and the stored form of leases.

use super::*;
use LeaseError::*;
use proptest::prelude::*;

const A: &str = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";
const B: &str = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb";

fn at(seconds: u64) -> Ticks {
    Ticks(1_000_000_000_000).plus(Duration::from_secs(seconds))
}

fn acquire(id: &str, seconds: Option<u32>) -> LeaseAction {
    LeaseAction::Acquire { seconds, id: id.to_owned() }
}

/// One lease in each state, seen at second 100.
fn in_state(state: LeaseState) -> Lease {
    let lease = match state {
        LeaseState::Available => Lease::None,
        LeaseState::Leased => leased(A, Some(30), at(90)),
        LeaseState::Expired => leased(A, Some(30), at(0)),
        LeaseState::Breaking => Lease::Breaking { id: A.to_owned(), until: at(105) },
        LeaseState::Broken => Lease::Broken { id: A.to_owned() },
    };
    assert_eq!(lease.state(at(100)), state);
    lease
}

const STATES: [LeaseState; 5] = [
    LeaseState::Available,
    LeaseState::Leased,
    LeaseState::Breaking,
    LeaseState::Broken,
    LeaseState::Expired,
];

#[test]
fn the_table_of_actions() {
    let change =
        |id: &str, proposed: &str| LeaseAction::Change { id: id.to_owned(), proposed: proposed.to_owned() };
    let renew = |id: &str| LeaseAction::Renew { id: id.to_owned() };
    let release = |id: &str| LeaseAction::Release { id: id.to_owned() };
    let ok = Ok(LeaseState::Leased);
    let free = Ok(LeaseState::Available);
    let broken = Ok(LeaseState::Broken);
    let breaking = Ok(LeaseState::Breaking);
    let none = Err(NotPresentWithLeaseOperation);
    let other = Err(IdMismatchWithLeaseOperation);
    // Columns: available, leased, breaking, broken, expired. A lease that is not there has another id for
    // those who renew or release one (as tests of the .NET client that run against the service have it), and
    // is missing for the others.
    let table = [
        (acquire(B, Some(15)), [ok, Err(AlreadyPresent), Err(AlreadyPresent), ok, ok]),
        (acquire(A, Some(15)), [ok, ok, Err(IsBreakingAndCannotBeAcquired), ok, ok]),
        (renew(A), [other, ok, Err(IsBrokenAndCannotBeRenewed), Err(IsBrokenAndCannotBeRenewed), ok]),
        (renew(B), [other, other, other, other, other]),
        (change(A, B), [none, ok, Err(IsBreakingAndCannotBeChanged), none, none]),
        (change(B, A), [none, ok, other, none, none]),
        (change(B, B), [none, other, other, none, none]),
        (release(A), [other, free, free, free, free]),
        (release(B), [other, other, other, other, other]),
        (LeaseAction::Break { seconds: Some(0) }, [none, broken, broken, broken, broken]),
        (LeaseAction::Break { seconds: Some(3) }, [none, breaking, breaking, broken, broken]),
        (LeaseAction::Break { seconds: None }, [none, breaking, breaking, broken, broken]),
    ];
    for (action, expected) in table {
        for (state, expected) in STATES.into_iter().zip(expected) {
            let found = in_state(state).act(&action, at(100)).map(|outcome| outcome.lease.state(at(100)));
            assert_eq!(found, expected, "{action:?} while {state:?}");
        }
    }
}

#[test]
fn the_table_of_uses() {
    // Columns: available, leased, breaking, broken, expired.
    let ok = Ok(());
    let table = [
        (Some(A), true, [Err(NotPresentWithOperation), ok, ok, Err(Lost), Err(Lost)]),
        (
            Some(B),
            true,
            [
                Err(NotPresentWithOperation),
                Err(IdMismatchWithOperation),
                Err(IdMismatchWithOperation),
                Err(NotPresentWithOperation),
                Err(NotPresentWithOperation),
            ],
        ),
        (None, true, [ok, Err(IdMissing), Err(IdMissing), ok, ok]),
        (Some(A), false, [Err(NotPresentWithOperation), ok, ok, Err(Lost), Err(Lost)]),
        (None, false, [ok, ok, ok, ok, ok]),
    ];
    for (given, writes, expected) in table {
        for (state, expected) in STATES.into_iter().zip(expected) {
            let lease = in_state(state);
            let found = match writes {
                true => lease.check_write(given, at(100)).map(|_| ()),
                false => lease.check_read(given, at(100)),
            };
            assert_eq!(found, expected, "{given:?}, writes: {writes}, while {state:?}");
        }
    }
    assert_eq!(
        in_state(LeaseState::Broken).check_write(None, at(100)),
        Ok(Lease::None),
        "a write forgets it"
    );
    assert_eq!(in_state(LeaseState::Expired).check_write(None, at(100)), Ok(Lease::None));
}

#[test]
fn time_passes() {
    let lease = leased(A, Some(15), at(0));
    assert_eq!(lease.state(at(14)), LeaseState::Leased);
    assert_eq!(lease.state(at(15)), LeaseState::Expired);
    let renewed = lease.act(&LeaseAction::Renew { id: A.to_owned() }, at(40)).unwrap().lease;
    assert_eq!(renewed.state(at(54)), LeaseState::Leased, "an expired lease that nobody took can be renewed");
    assert_eq!(leased(A, None, at(0)).state(at(1 << 40)), LeaseState::Leased);
    assert_eq!(leased(A, None, at(0)).is_infinite(at(1)), Some(true));
    let broken = |lease: &Lease, seconds, now| lease.act(&LeaseAction::Break { seconds }, at(now)).unwrap();
    let outcome = broken(&lease, None, 5);
    assert_eq!(outcome.break_seconds, Some(10), "a fixed lease runs out its time");
    assert_eq!(outcome.lease.state(at(14)), LeaseState::Breaking);
    assert_eq!(outcome.lease.state(at(15)), LeaseState::Broken);
    assert_eq!(broken(&lease, Some(60), 5).break_seconds, Some(10), "no longer than what is left");
    assert_eq!(broken(&outcome.lease, Some(3), 6).break_seconds, Some(3), "the shorter one wins");
    assert_eq!(broken(&outcome.lease, Some(30), 6).break_seconds, Some(9));
    assert_eq!(broken(&leased(A, None, at(0)), None, 1).break_seconds, Some(0));
    assert_eq!(broken(&leased(A, None, at(0)), Some(7), 1).break_seconds, Some(7));
}

/// Each break of a lease that was being broken counted its rounded rest from anew: a client that asked again
/// and again how much was left kept it from ever being broken.
#[test]
fn asking_again_does_not_put_off_the_break() {
    let half = |halves: u64| Ticks(at(0).0 + halves * base::clock::TICKS_PER_SECOND / 2);
    let action = LeaseAction::Break { seconds: Some(3) };
    let mut lease = leased(A, Some(15), at(0));
    let mut told = Vec::new();
    for halves in 0..7 {
        let outcome = lease.act(&action, half(halves)).unwrap();
        lease = outcome.lease;
        told.push(outcome.break_seconds.unwrap());
    }
    assert_eq!(told, [3, 3, 2, 2, 1, 1, 0]);
    assert_eq!(lease.state(half(5)), LeaseState::Broken);
}

#[test]
fn ids_in_all_forms() {
    let id = "0a1b2c3d-0000-1111-2222-ABCDEFabcdef";
    let expected = Some(id.to_ascii_lowercase());
    for form in [id.to_owned(), format!("{{{id}}}"), format!("({id})"), id.replace('-', "")] {
        assert_eq!(parse_lease_id(&form), expected, "{form}");
    }
    for form in ["", "abc", "0a1b2c3d-0000-1111-2222-ABCDEFabcdeg", "0a1b2c3d0-000-1111-2222-ABCDEFabcdef"] {
        assert_eq!(parse_lease_id(form), None, "{form}");
    }
}

proptest! {
    #[test]
    fn leases_come_back(kind in 0..4u8, seconds in prop::option::of(1..100u32), at: u64) {
        let lease = match kind {
            0 => Lease::None,
            1 => Lease::Leased { id: A.to_owned(), seconds, ends_at: seconds.map(|_| Ticks(at.max(1))) },
            2 => Lease::Breaking { id: B.to_owned(), until: Ticks(at) },
            _ => Lease::Broken { id: A.to_owned() },
        };
        let mut out = Vec::new();
        lease.encode(&mut out);
        let mut decoder = Decoder::new(&out);
        prop_assert_eq!(Lease::decode(&mut decoder), Ok(lease));
        prop_assert!(decoder.is_empty());
    }
}
