//! Keys in etcd, over members that are killed, paused and asked for a password.

use crate::etcd_server::{EtcdServer, gateway};
use crate::key_rules::{self, commit, put, read};
use crate::s3_server::{Fault, S3Server};
use crate::surroundings;
use stamp::Revision;
use stamp_stores::{KeyValueSettings, RequestKind, Secret, open_key_values};
use stamp_streams::{KeyAnswer, KeyCompare, KeyTransaction, KeyValues, Selection, StoreError};
use std::sync::Arc;
use std::time::{Duration, Instant};

async fn open_with(urls: &[String], settings: &KeyValueSettings) -> Arc<dyn KeyValues> {
    open_key_values(urls, settings, &surroundings(&[])).await.expect("a store").store
}

async fn open(urls: &[String]) -> Arc<dyn KeyValues> {
    open_with(urls, &KeyValueSettings::default()).await
}

fn one(key: &str) -> Selection {
    Selection::Key(key.to_owned())
}

/// Three start together.
async fn until_it_answers(store: &dyn KeyValues) {
    let began_at = Instant::now();
    while store.read(&[one("a")]).await.is_err() {
        assert!(began_at.elapsed() < Duration::from_secs(30), "etcd does not answer");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_keeps_the_rules() {
    let server = EtcdServer::start(1);
    let settings = KeyValueSettings { prefix: "stamps/".to_owned(), ..KeyValueSettings::default() };
    let opened = open_key_values(&server.urls(), &settings, &surroundings(&[])).await.expect("a store");
    until_it_answers(&*opened.store).await;
    key_rules::hold(opened.store.clone(), "one/").await;
    key_rules::hold(open(&server.urls()).await, "").await;
    let waits = opened.counts.reading(RequestKind::Wait);
    assert_eq!((waits.answered, waits.abandoned), (4, 0));
    assert!(opened.counts.reading(RequestKind::Commit).answered > 20);
}

/// Two stamps share an etcd: neither reads, lists or waits for what is the other's.
#[tokio::test(flavor = "multi_thread")]
async fn prefixes_keep_stamps_apart() {
    let server = EtcdServer::start(1);
    let with = async |prefix: &str, wait_for| {
        let prefix = prefix.to_owned();
        open_with(&server.urls(), &KeyValueSettings { prefix, wait_for, ..KeyValueSettings::default() }).await
    };
    let (first, second) =
        (with("a/", Duration::from_secs(4)).await, with("b/", Duration::from_millis(500)).await);
    until_it_answers(&*first).await;
    let state = commit(&*first, &put("k", "1")).await;
    assert!(read(&*second, &[Selection::Prefix(String::new())]).await.entries.is_empty());
    let entries = read(&*first, &[Selection::Prefix(String::new())]).await.entries;
    assert_eq!(entries.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["k"]);
    // A change of the other's is none: the wait ends after its time.
    let began_at = Instant::now();
    let waiting = tokio::spawn(async move { second.wait_for_change(state.revision).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    commit(&*first, &put("k", "2")).await;
    assert_eq!(waiting.await.expect("a task"), Ok(()));
    assert!(began_at.elapsed() >= Duration::from_millis(450), "{:?}", began_at.elapsed());
}

/// A wait whose revision was compacted away would end for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_goes_on_after_a_compaction() {
    let server = EtcdServer::start(1);
    let store = open(&server.urls()).await;
    until_it_answers(&*store).await;
    let old = commit(&*store, &put("k", "0")).await.revision;
    let mut newest = old;
    for number in 1..20 {
        newest = commit(&*store, &put("k", &number.to_string())).await.revision;
    }
    gateway(
        server.ports()[0],
        "/v3/kv/compaction",
        &format!(r#"{{"revision":"{}","physical":true}}"#, newest.0),
        None,
    );
    // A new watch begins before the compaction.
    let late = open(&server.urls()).await;
    let began_at = Instant::now();
    assert_eq!(late.wait_for_change(old).await, Ok(()));
    assert!(began_at.elapsed() < Duration::from_secs(2), "it is woken");
    for store in [&store, &late] {
        let waiter = store.clone();
        let waiting = tokio::spawn(async move { waiter.wait_for_change(newest).await });
        tokio::time::sleep(Duration::from_millis(200)).await;
        newest = commit(&**store, &put("k", "new")).await.revision;
        assert_eq!(
            tokio::time::timeout(Duration::from_secs(2), waiting).await.expect("in time").expect("a task"),
            Ok(())
        );
    }
}

/// etcd kept every value that a document had had, until its quota was full and it took no change any more.
#[tokio::test(flavor = "multi_thread")]
async fn former_values_go_and_what_keys_hold_stays() {
    let server = EtcdServer::start(1);
    let store = open(&server.urls()).await;
    until_it_answers(&*store).await;
    let mut revisions = Vec::new();
    for number in 0..5 {
        revisions.push(commit(&*store, &put("k", &number.to_string())).await.revision);
    }
    assert_eq!(store.compact(revisions[3]).await, Ok(()));
    let is_there = |revision: Revision| {
        let body = format!(r#"{{"key":"aw==","revision":"{}"}}"#, revision.0);
        // It panics at any answer but 200.
        std::panic::catch_unwind(|| gateway(server.ports()[0], "/v3/kv/range", &body, None)).is_ok()
    };
    assert_eq!(
        revisions.iter().map(|revision| is_there(*revision)).collect::<Vec<_>>(),
        [false, false, false, true, true]
    );
    let read = store.read(&[one("k")]).await.expect("an answer");
    assert_eq!(read.entries[0].value, "4");
    // Somebody else may compact it, too.
    assert_eq!(store.compact(revisions[1]).await, Ok(()));
    assert!(store.compact(Revision(revisions[4].0 + 1000)).await.is_err(), "of the future");
}

/// One watch serves all waits: it is not opened anew for each.
#[tokio::test(flavor = "multi_thread")]
async fn many_waits_share_a_watch() {
    let server = EtcdServer::start(1);
    let store = open(&server.urls()).await;
    until_it_answers(&*store).await;
    let mut revision = commit(&*store, &put("k", "0")).await.revision;
    for number in 0..200 {
        let waiter = store.clone();
        let waiting = tokio::spawn(async move { waiter.wait_for_change(revision).await });
        if number % 2 == 0 {
            tokio::task::yield_now().await;
        }
        revision = commit(&*store, &put("k", &number.to_string())).await.revision;
        let ended = tokio::time::timeout(Duration::from_secs(2), waiting).await;
        assert_eq!(ended.expect("in time").expect("a task"), Ok(()), "{number}");
    }
}

/// A waiter that knows more, and reads for all, does not keep one that knows less.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_less_ends_first() {
    let server = EtcdServer::start(1);
    let store = open(&server.urls()).await;
    until_it_answers(&*store).await;
    let revision = commit(&*store, &put("k", "0")).await.revision;
    let wait = |after: u64| {
        let store = store.clone();
        tokio::spawn(async move { store.wait_for_change(Revision(after)).await })
    };
    // Its watch begins where the less knowing one's does, so that both are of the same change.
    let first = wait(revision.0);
    tokio::time::sleep(Duration::from_millis(200)).await;
    commit(&*store, &put("k", "1")).await;
    assert_eq!(first.await.expect("a task"), Ok(()));
    let more = wait(revision.0 + 1000);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let less = wait(revision.0 + 1);
    tokio::time::sleep(Duration::from_millis(200)).await;
    commit(&*store, &put("k", "2")).await;
    let ended = tokio::time::timeout(Duration::from_secs(1), less).await;
    assert_eq!(ended.expect("in time").expect("a task"), Ok(()));
    assert!(!more.is_finished());
}

/// A transaction that may have been done is not sent to another member; what was not sent, and reads, are.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_is_sent_once() {
    let (first, second) = (S3Server::start().await, S3Server::start().await);
    let closed = "http://127.0.0.1:1".to_owned();
    let counts = || (first.seen().len(), second.seen().len());
    let unavailable = r#"{"code":14,"message":"etcdserver: leader changed"}"#;
    for fault in [Some(Fault::Reset), Some(Fault::DoneThenReset), None] {
        let fail = || match fault {
            Some(fault) => first.fault(fault),
            None => first.fix("POST /v3/kv/txn", 503, unavailable),
        };
        let store = open(&[first.url(), second.url()]).await;
        fail();
        assert_eq!(store.commit(&put("k", "1")).await, KeyAnswer::Unknown);
        assert_eq!(counts(), (1, 0), "{fault:?}");
        let store = open(&[first.url(), second.url()]).await;
        fail();
        assert!(store.read(&[one("k")]).await.is_err());
        assert_eq!(counts(), (1, 1), "{fault:?}");
    }
    let store = open(&[closed, second.url()]).await;
    assert_eq!(store.commit(&put("k", "1")).await, KeyAnswer::Unknown);
    assert_eq!(counts(), (0, 1), "nothing was sent to the first");
}

/// Each member is killed, then paused, while transactions go on: each is answered in the end, and happened
/// once.
#[tokio::test(flavor = "multi_thread")]
async fn members_die_and_stand_still() {
    let mut server = EtcdServer::start(3);
    let store = open(&server.urls()).await;
    until_it_answers(&*store).await;
    let mut count = 0;
    let mut unknown = 0;
    commit(&*store, &put("count", "0")).await;
    for round in 0..6 {
        let index = round % 3;
        if round < 3 {
            server.kill(index)
        } else {
            server.pause(index)
        }
        let began_at = Instant::now();
        while began_at.elapsed() < Duration::from_secs(2) {
            unknown += increment(&*store, &mut count).await;
        }
        if round < 3 {
            server.start_member(index)
        } else {
            server.go_on(index)
        }
        let began_at = Instant::now();
        while began_at.elapsed() < Duration::from_millis(500) {
            unknown += increment(&*store, &mut count).await;
        }
    }
    let entries = read(&*store, &[one("count")]).await.entries;
    assert_eq!(entries[0].value, count.to_string());
    println!("{count} increments, {unknown} unknown outcomes");
    assert!(count > 100);
}

/// Adds one, once; gives how many outcomes were unknown.
async fn increment(store: &dyn KeyValues, count: &mut u64) -> u64 {
    let began_at = Instant::now();
    let mut transaction = put("count", &(*count + 1).to_string());
    transaction.compares.push(KeyCompare::Is("count".to_owned(), count.to_string().into()));
    let mut unknown = 0;
    loop {
        match store.commit(&transaction).await {
            KeyAnswer::Committed(_) => break,
            // An earlier try of ours.
            KeyAnswer::CompareFailed(_) if unknown > 0 => break,
            KeyAnswer::CompareFailed(state) => panic!("nobody else writes: {state:?}"),
            KeyAnswer::Unknown => unknown += 1,
        }
        assert!(began_at.elapsed() < Duration::from_secs(20), "no answer of two members of three");
    }
    *count += 1;
    unknown
}

/// A read of a paused member's goes to the next within its time, and the paused one is not the first for the
/// requests after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_member_costs_one_wait() {
    let server = EtcdServer::start(3);
    let store = open(&server.urls()).await;
    until_it_answers(&*store).await;
    commit(&*store, &put("k", "1")).await;
    // Which one is first is not known from outside: all reads until now may have moved on.
    for index in 0..3 {
        server.pause(index);
        let began_at = Instant::now();
        let ended = tokio::time::timeout(Duration::from_secs(5), store.read(&[one("k")])).await;
        // Two of three may be choosing a leader.
        drop(ended);
        let mut waited = began_at.elapsed();
        while store.read(&[one("k")]).await.is_err() {
            waited = began_at.elapsed();
            assert!(waited < Duration::from_secs(15), "no answer of two members of three");
        }
        let began_at = Instant::now();
        for _ in 0..5 {
            assert_eq!(read(&*store, &[one("k")]).await.entries.len(), 1);
        }
        assert!(began_at.elapsed() < Duration::from_secs(2), "{:?} after {waited:?}", began_at.elapsed());
        server.go_on(index);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_answers() {
    let mut server = EtcdServer::start(1);
    let store = open(&server.urls()).await;
    until_it_answers(&*store).await;
    let lease = store.grant(Duration::from_secs(10)).await.expect("a lease");
    server.kill(0);
    assert_eq!(store.commit(&put("k", "1")).await, KeyAnswer::Unknown);
    let unavailable = |error: StoreError| matches!(error, StoreError::Unavailable(_));
    assert!(store.read(&[one("k")]).await.is_err_and(unavailable));
    assert!(store.wait_for_change(Revision(u64::MAX / 2)).await.is_err_and(unavailable));
    assert!(store.keep_alive(lease).await.is_err_and(|error| error != StoreError::NotThere));
    server.start_member(0);
    until_it_answers(&*store).await;
    assert_eq!(
        store.commit(&put("k", "1")).await,
        KeyAnswer::Committed(read(&*store, &[one("k")]).await.state)
    );
}

/// User and password; the token of etcd ends with its restart, and is renewed.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_logs_in() {
    let mut server = EtcdServer::start(1);
    until_it_answers(&*open(&server.urls()).await).await;
    let port = server.ports()[0];
    for (path, body) in [
        ("/v3/auth/user/add", r#"{"name":"root","password":"hunter2"}"#),
        ("/v3/auth/role/add", r#"{"name":"root"}"#),
        ("/v3/auth/user/grant", r#"{"user":"root","role":"root"}"#),
        ("/v3/auth/enable", "{}"),
    ] {
        gateway(port, path, body, None);
    }
    let with = async |password: &str| {
        let password = Some(Secret::new(password));
        let settings =
            KeyValueSettings { user: Some("root".to_owned()), password, ..KeyValueSettings::default() };
        assert!(!format!("{settings:?}").contains("hunter"));
        open_with(&server.urls(), &settings).await
    };
    let store = with("hunter2").await;
    let state = commit(&*store, &put("k", "1")).await;
    assert_eq!(store.wait_for_change(Revision(state.revision.0 - 1)).await, Ok(()));
    let refused = with("hunter3").await;
    let error = refused.read(&[one("k")]).await.expect_err("a wrong password");
    assert!(matches!(error, StoreError::Refused(_)) && !error.to_string().contains("hunter"), "{error}");
    assert_eq!(refused.commit(&put("k", "2")).await, KeyAnswer::Unknown);
    let nobody = open(&server.urls()).await;
    assert!(matches!(nobody.read(&[one("k")]).await, Err(StoreError::Refused(_))));
    let variables = surroundings(&[("ETCDCTL_USER", "root:hunter2")]);
    let by_variables = open_key_values(&server.urls(), &KeyValueSettings::default(), &variables).await;
    let by_variables = by_variables.expect("a store").store;
    assert_eq!(read(&*by_variables, &[one("k")]).await.entries.len(), 1);
    server.kill(0);
    server.start_member(0);
    let began_at = Instant::now();
    loop {
        match store.commit(&put("k", "3")).await {
            KeyAnswer::Committed(_) => break,
            _ => assert!(began_at.elapsed() < Duration::from_secs(20), "the token is not renewed"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(read(&*store, &[one("k")]).await.entries[0].value, "3");
}

/// etcd refuses it for good, which the trait has no answer for: it is unknown, and nothing was done.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_long_changes_nothing() {
    let server = EtcdServer::start(1);
    let store = open(&server.urls()).await;
    until_it_answers(&*store).await;
    let before = commit(&*store, &put("k", "1")).await;
    let puts = vec![("k".to_owned(), vec![1u8; 2 << 20].into(), None)];
    let long = KeyTransaction { puts, ..KeyTransaction::default() };
    assert_eq!(store.commit(&long).await, KeyAnswer::Unknown);
    assert_eq!(read(&*store, &[one("k")]).await.state, before);
}
