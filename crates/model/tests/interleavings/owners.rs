//! Former owners that still read, or that do not know what became of their release.

use crate::stage::{LIFE, N, Stage, W, range};
use base::Ticks;
use stamp::{
    AfterTransaction, DocumentRead, Instants, Key, LEASE_MARGIN, LEASE_TTL, Lease, Mark, Release, TakeChoice,
    TransactionAnswer, choose_take,
};
use std::time::Duration;

/// W releases and still reads; N has taken the range and written: a stale read.
#[test]
fn reads_stop_before_the_release_is_sent() {
    let mut stage = Stage::new();
    let (mut held, window) = stage.writer(W);
    let mut release = Release::default().begin();
    assert!(release.admits_reads() && !release.admits_writes());
    release = release.drained(window.is_drained());

    // The rule: before the release can be sent, reads have stopped.
    assert!(!release.admits_reads());
    release = release.sent();
    let mark = Mark::new(W, stage.counter());
    let transaction = held.begin_release(mark).unwrap().transaction.clone();
    let answer = stage.commit(&transaction);
    let successor = stage.take(N);
    assert_eq!(successor.owner().incarnation, N, "without waiting for a lease");
    assert!(!release.admits_reads(), "while the answer is on its way");
    let after = held.answered(answer, None).unwrap();
    assert_eq!(release.settled(&after), Release::Released);
}

/// A release times out; W reads "not released" and serves; the delayed transaction arrives, N takes: a stale
/// read.
#[test]
fn a_release_of_unknown_outcome_is_sent_again_until_it_is_known() {
    let mut stage = Stage::new();
    let (mut held, _) = stage.writer(W);
    let release = Release::default().begin().drained(true).sent();
    let mark = Mark::new(W, stage.counter());
    let transaction = held.begin_release(mark).unwrap().transaction.clone();
    assert_eq!(stage.own().owner, Some(W), "it has not arrived");

    // The rule: nothing is served, and the same is sent again, whatever a read says.
    let after = held.answered(TransactionAnswer::Unknown, None).unwrap();
    assert_eq!(after, AfterTransaction::SendAgain);
    assert_eq!(release.settled(&after), Release::Sent);
    assert!(!release.settled(&after).admits_reads() && release.abort() == Release::Sent);

    // The first arrives, then the second: its compare fails, and the read shows the mark of this change.
    assert!(matches!(stage.commit(&transaction), TransactionAnswer::Committed(_)));
    let answer = stage.commit(&transaction);
    assert_eq!(answer, TransactionAnswer::CompareFailed);
    let document = stage.metadata.document(range()).unwrap();
    let revision = stage.metadata.changed_at(Key::Document(range()));
    let read = DocumentRead::There { mark: document.mark, revision };
    let after = held.answered(answer, Some(read)).unwrap();
    assert_eq!(release.settled(&after), Release::Released);
}

/// A stuck old leader of etcd revokes a lease that lives, or answers keep-alives of one that was revoked; N
/// takes the range while W still reads: a stale read.
#[test]
fn a_live_lease_that_etcd_ends_is_not_enough_to_take_a_range() {
    let mut stage = Stage::new();
    stage.writer(W);
    stage.expire(W);

    // The rule: beats are transactions that fail without the key, and a taker waits until none has come for a
    // lease time.
    let mark = Mark::new(N, stage.counter());
    let early = choose_take(LIFE, N, &stage.observed(false), LEASE_TTL, mark);
    assert_eq!(early, TakeChoice::Wait(LEASE_TTL / 2));
    let beat = stamp::beat(LIFE.generation, W);
    assert_eq!(stage.commit(&beat), TransactionAnswer::CompareFailed);

    // By then W's own deadline has passed, and nothing revives it.
    let at = |seconds| Instants {
        boot: Duration::from_secs(seconds),
        wall: Ticks::from_unix(Duration::from_secs(1_000_000 + seconds)),
    };
    let mut lease = Lease::new(LEASE_TTL, LEASE_MARGIN);
    lease.beat_committed(at(100), at(100));
    assert!(lease.holds(at(108)));
    assert!(!lease.holds(at(110)));
    lease.beat_committed(at(109), at(111));
    assert!(!lease.holds(at(111)));
    assert!(matches!(choose_take(LIFE, N, &stage.observed(true), LEASE_TTL, mark), TakeChoice::Take(_)));
}
