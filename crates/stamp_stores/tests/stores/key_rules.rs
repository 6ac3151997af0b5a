//! What every store of keys does, below a prefix of its own.

use bytes::Bytes;
use stamp::Revision;
use stamp_streams::{
    KeyAnswer, KeyCompare, KeyEntry, KeyTransaction, KeyValues, Selection, Snapshot, StoreError, StoreLease,
    StoreState,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a lease of these rules is: the shortest that etcd gives.
const TTL: Duration = Duration::from_secs(2);
/// How long a read is tried.
const PATIENCE: Duration = Duration::from_secs(20);
/// How much later a store may end one.
const ENDS_WITHIN: Duration = Duration::from_secs(8);

/// Runs all rules.
pub(crate) async fn hold(store: Arc<dyn KeyValues>, prefix: &str) {
    compares_decide(&*store, &format!("{prefix}compare/")).await;
    a_transaction_happens_as_a_whole(&*store, &format!("{prefix}whole/")).await;
    reads_are_of_one_revision(&*store, &format!("{prefix}read/")).await;
    any_bytes_come_back(&*store, &format!("{prefix}bytes/")).await;
    keys_go_with_their_lease(&*store, &format!("{prefix}lease/")).await;
    a_wait_ends(&store, &format!("{prefix}wait/")).await;
}

pub(crate) fn put(key: &str, value: &str) -> KeyTransaction {
    let puts = vec![(key.to_owned(), Bytes::copy_from_slice(value.as_bytes()), None)];
    KeyTransaction { puts, ..KeyTransaction::default() }
}

/// What a transaction that must happen left.
pub(crate) async fn commit(store: &dyn KeyValues, transaction: &KeyTransaction) -> StoreState {
    match store.commit(transaction).await {
        KeyAnswer::Committed(state) => state,
        other => panic!("{other:?}"),
    }
}

async fn is_committed(store: &dyn KeyValues, compare: KeyCompare) -> bool {
    let transaction = KeyTransaction { compares: vec![compare], ..KeyTransaction::default() };
    match store.commit(&transaction).await {
        KeyAnswer::Committed(_) => true,
        KeyAnswer::CompareFailed(_) => false,
        KeyAnswer::Unknown => panic!("no answer"),
    }
}

pub(crate) async fn read(store: &dyn KeyValues, selections: &[Selection]) -> Snapshot {
    let began_at = Instant::now();
    loop {
        match store.read(selections).await {
            Ok(snapshot) => return snapshot,
            // A machine that is busy answers late.
            Err(StoreError::Unavailable(_)) if began_at.elapsed() < PATIENCE => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn entry(key: &str, value: &str, changed_at: Revision) -> KeyEntry {
    KeyEntry { key: key.to_owned(), value: Bytes::copy_from_slice(value.as_bytes()), changed_at }
}

async fn compares_decide(store: &dyn KeyValues, prefix: &str) {
    let key = format!("{prefix}a");
    let is = |value: &str| KeyCompare::Is(key.clone(), Bytes::copy_from_slice(value.as_bytes()));
    let changed_at = |revision| KeyCompare::ChangedAt(key.clone(), revision);
    let exists = || KeyCompare::Exists(key.clone());
    assert!(is_committed(store, changed_at(Revision(0))).await, "not there");
    assert!(!is_committed(store, exists()).await);
    assert!(!is_committed(store, is("")).await, "an absent key has no value, not the empty one");
    let first = commit(store, &put(&key, "1")).await;
    let second = commit(store, &put(&key, "2")).await;
    assert!(second.revision > first.revision && second.cluster == first.cluster);
    for (compare, expected) in [
        (is("2"), true),
        (is("1"), false),
        (changed_at(second.revision), true),
        (changed_at(first.revision), false),
        (changed_at(Revision(0)), false),
        (exists(), true),
    ] {
        assert_eq!(is_committed(store, compare.clone()).await, expected, "{compare:?}");
    }
    // The same value again is a change.
    let third = commit(store, &put(&key, "2")).await;
    assert!(is_committed(store, changed_at(third.revision)).await);
    let delete = KeyTransaction { deletes: vec![key.clone()], ..KeyTransaction::default() };
    commit(store, &delete).await;
    assert!(is_committed(store, changed_at(Revision(0))).await, "gone");
}

async fn a_transaction_happens_as_a_whole(store: &dyn KeyValues, prefix: &str) {
    let key = |name: &str| format!("{prefix}{name}");
    commit(store, &put(&key("old"), "1")).await;
    let mut transaction = put(&key("a"), "1");
    transaction.puts.push((key("b"), Bytes::from_static(b"2"), None));
    transaction.deletes.push(key("old"));
    transaction.compares.push(KeyCompare::Exists(key("absent")));
    let before = read(store, &[Selection::Prefix(prefix.to_owned())]).await;
    let KeyAnswer::CompareFailed(state) = store.commit(&transaction).await else {
        panic!("a compare failed")
    };
    assert_eq!(state, before.state, "nothing changed");
    assert_eq!(read(store, &[Selection::Prefix(prefix.to_owned())]).await, before);
    transaction.compares[0] = KeyCompare::Exists(key("old"));
    let state = commit(store, &transaction).await;
    let after = read(store, &[Selection::Prefix(prefix.to_owned())]).await;
    assert_eq!(after.state, state);
    let entries = [entry(&key("a"), "1", state.revision), entry(&key("b"), "2", state.revision)];
    assert_eq!(after.entries, entries);
}

async fn reads_are_of_one_revision(store: &dyn KeyValues, prefix: &str) {
    let key = |name: &str| format!("{prefix}{name}");
    let mut revisions = Vec::new();
    for name in ["a/1", "a/2", "a0", "b/1"] {
        revisions.push(commit(store, &put(&key(name), name)).await.revision);
    }
    let all = [
        entry(&key("a/1"), "a/1", revisions[0]),
        entry(&key("a/2"), "a/2", revisions[1]),
        entry(&key("a0"), "a0", revisions[2]),
        entry(&key("b/1"), "b/1", revisions[3]),
    ];
    let one = |name: &str| Selection::Key(key(name));
    let below = |name: &str| Selection::Prefix(key(name));
    for (selections, expected) in [
        (vec![below("")], all.to_vec()),
        (vec![below("a/")], all[..2].to_vec()),
        (vec![below("a")], all[..3].to_vec()),
        (vec![one("a0"), one("a/1")], vec![all[0].clone(), all[2].clone()]),
        (vec![one("a/1"), below("a/"), one("a/1")], all[..2].to_vec()),
        (vec![one("absent"), below("z"), one("b/1")], all[3..].to_vec()),
        (vec![one("a/")], Vec::new()),
        (Vec::new(), Vec::new()),
    ] {
        let snapshot = read(store, &selections).await;
        assert_eq!(snapshot.entries, expected, "{selections:?}");
        assert!(snapshot.state.revision >= revisions[3]);
    }
    // More selections than one transaction has, and more keys than one page.
    let selections: Vec<Selection> =
        (0..300).map(|number| one(&format!("absent{number}"))).chain([below("a")]).collect();
    assert_eq!(read(store, &selections).await.entries, all[..3]);
    let many: Vec<String> = (0..450).map(|number| key(&format!("many/{number:04}"))).collect();
    for some in many.chunks(100) {
        let puts = some.iter().map(|key| (key.clone(), Bytes::from_static(b"x"), None)).collect();
        commit(store, &KeyTransaction { puts, ..KeyTransaction::default() }).await;
    }
    let snapshot = read(store, &[below("many/"), one("b/1")]).await;
    assert!(snapshot.entries.iter().skip(1).map(|entry| &entry.key).eq(&many));
    assert_eq!(snapshot.entries[0], all[3]);
}

async fn any_bytes_come_back(store: &dyn KeyValues, prefix: &str) {
    let key = format!("{prefix}ü \"\\\n/é");
    let value: Bytes = (0..=255u8).cycle().take(200_000).collect::<Vec<u8>>().into();
    let puts = vec![(key.clone(), value.clone(), None)];
    commit(store, &KeyTransaction { puts, ..KeyTransaction::default() }).await;
    assert!(is_committed(store, KeyCompare::Is(key.clone(), value.clone())).await);
    let snapshot = read(store, &[Selection::Prefix(prefix.to_owned())]).await;
    assert!(
        snapshot.entries.len() == 1 && snapshot.entries[0].key == key && snapshot.entries[0].value == value
    );
}

fn put_under(key: &str, lease: StoreLease) -> KeyTransaction {
    let puts = vec![(key.to_owned(), Bytes::from_static(b"1"), Some(lease))];
    KeyTransaction { puts, ..KeyTransaction::default() }
}

async fn is_there(store: &dyn KeyValues, key: &str) -> bool {
    !read(store, &[Selection::Key(key.to_owned())]).await.entries.is_empty()
}

async fn keys_go_with_their_lease(store: &dyn KeyValues, prefix: &str) {
    let (kept, left) = (format!("{prefix}kept"), format!("{prefix}left"));
    let lease = store.grant(TTL).await.expect("a lease");
    let other = store.grant(TTL).await.expect("a lease");
    assert_ne!(lease, other);
    commit(store, &put_under(&kept, lease)).await;
    commit(store, &put_under(&left, other)).await;
    for key in [&kept, &left] {
        let rest = store.lease_left(key).await.expect("an answer").expect("a lease");
        assert!(!rest.is_zero() && rest <= TTL + Duration::from_secs(1), "{rest:?}");
    }
    let began_at = Instant::now();
    while is_there(store, &left).await {
        assert_eq!(store.keep_alive(lease).await, Ok(()));
        assert!(began_at.elapsed() < TTL + ENDS_WITHIN, "a lease does not end");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(began_at.elapsed() > TTL / 2, "it ended at once");
    assert!(is_there(store, &kept).await);
    assert_eq!(store.lease_left(&left).await, Ok(None), "it has gone");
    assert_eq!(store.keep_alive(other).await, Err(StoreError::NotThere));
    let late = store.commit(&put_under(&left, other)).await;
    assert!(matches!(late, KeyAnswer::CompareFailed(_)), "a put under a lease that has ended: {late:?}");
    assert!(!is_there(store, &left).await);
    assert_eq!(store.revoke(lease).await, Ok(()));
    assert!(!is_there(store, &kept).await);
    assert_eq!(store.revoke(lease).await, Ok(()), "twice");
    assert_eq!(store.keep_alive(lease).await, Err(StoreError::NotThere));
}

async fn a_wait_ends(store: &Arc<dyn KeyValues>, prefix: &str) {
    let state = commit(&**store, &put(&format!("{prefix}a"), "1")).await;
    // What has changed already.
    let began_at = Instant::now();
    assert_eq!(store.wait_for_change(Revision(state.revision.0 - 1)).await, Ok(()));
    assert!(began_at.elapsed() < Duration::from_secs(2));
    // What changes while several wait.
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.wait_for_change(state.revision).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    commit(&**store, &put(&format!("{prefix}a"), "2")).await;
    for waiter in waiters {
        let ended = tokio::time::timeout(Duration::from_secs(2), waiter).await;
        assert_eq!(ended.expect("in time").expect("a task"), Ok(()));
    }
}
