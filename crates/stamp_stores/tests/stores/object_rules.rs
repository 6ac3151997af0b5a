//! What every store of objects does, below a prefix of its own.

use bytes::Bytes;
use futures_util::future::join_all;
use stamp::PutAnswer;
use stamp_streams::{LIST_PAGE_NAMES_MAX, ObjectStore, StoreError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Creations of one name that race.
const RACING_CREATES: usize = 16;
/// Requests at a time where many objects are made.
const SIDE_BY_SIDE: usize = 32;
/// How long a listing may lag.
const LIST_LAGS_FOR_MAX: Duration = Duration::from_secs(20);
/// How often a request of unknown outcome is sent again, against a real store that is busy.
const TRIES_MAX: usize = 20;

/// Creates until the outcome is known.
pub(crate) async fn create(store: &dyn ObjectStore, name: &str, content: &Bytes) -> PutAnswer {
    for _ in 0..TRIES_MAX {
        match store.create(name, content.clone()).await {
            PutAnswer::Unknown => tokio::time::sleep(Duration::from_millis(50)).await,
            answer => return answer,
        }
    }
    PutAnswer::Unknown
}

/// Runs all rules.
pub(crate) async fn hold(store: Arc<dyn ObjectStore>, prefix: &str) {
    a_name_is_created_once(&*store, &format!("{prefix}/once")).await;
    pieces_are_read(&*store, &format!("{prefix}/pieces")).await;
    of_racing_creations_one_wins(&store, &format!("{prefix}/race")).await;
    what_is_deleted_is_gone(&*store, &format!("{prefix}/deleted")).await;
    names_are_listed_in_order(&*store, &format!("{prefix}/names")).await;
    listings_come_in_pages(&store, &format!("{prefix}/pages")).await;
}

async fn a_name_is_created_once(store: &dyn ObjectStore, prefix: &str) {
    let name = format!("{prefix}/ab/0123456789abcdef-01/00");
    let (first, second) = (Bytes::from_static(b"first"), Bytes::from_static(b"second"));
    assert_eq!(create(store, &name, &first).await, PutAnswer::Created);
    assert_eq!(create(store, &name, &second).await, PutAnswer::Refused);
    assert_eq!(create(store, &name, &first).await, PutAnswer::Refused, "the same again");
    assert_eq!(store.read(&name, 0, 100).await, Ok(first));
    let empty = format!("{prefix}/empty");
    assert_eq!(create(store, &empty, &Bytes::new()).await, PutAnswer::Created);
    assert_eq!(store.read(&empty, 0, 10).await, Ok(Bytes::new()));
    assert_eq!(create(store, &empty, &second).await, PutAnswer::Refused);
}

async fn pieces_are_read(store: &dyn ObjectStore, prefix: &str) {
    let name = format!("{prefix}/large");
    let content: Vec<u8> = (0..5_000_000u32).map(|number| (number ^ (number >> 8)) as u8).collect();
    let content = Bytes::from(content);
    let size = content.len() as u64;
    assert_eq!(create(store, &name, &content).await, PutAnswer::Created);
    for (offset, length) in [
        (0, 256),
        (0, size),
        (0, u64::MAX),
        (1_234_567, 100_000),
        (size - 1, 1),
        (size - 10, 100),
        (size, 10),
        (size + 1, 10),
        (u64::MAX, u64::MAX),
        (5, 0),
        (size, 0),
    ] {
        let from = offset.min(size) as usize;
        let to = offset.saturating_add(length).min(size) as usize;
        let read = store.read(&name, offset, length).await;
        assert!(
            read.as_deref() == Ok(&content[from..to]),
            "{offset} {length}: {:?}",
            read.map(|read| read.len())
        );
    }
    let absent = format!("{prefix}/absent");
    for length in [0, 1, 256] {
        assert_eq!(store.read(&absent, 0, length).await, Err(StoreError::NotThere), "{length}");
    }
    // A name below another one, and the folder of one, are no objects.
    assert_eq!(store.read(&format!("{name}/below"), 0, 1).await, Err(StoreError::NotThere));
}

async fn of_racing_creations_one_wins(store: &Arc<dyn ObjectStore>, prefix: &str) {
    for round in 0..8 {
        let name = format!("{prefix}/{round}/part");
        let contents: Vec<Bytes> =
            (0..RACING_CREATES).map(|number| Bytes::from(vec![number as u8; 1000])).collect();
        let tasks = contents.iter().map(|content| {
            let (store, name, content) = (store.clone(), name.clone(), content.clone());
            tokio::spawn(async move { create(&*store, &name, &content).await })
        });
        let answers: Vec<PutAnswer> =
            join_all(tasks).await.into_iter().map(|answer| answer.expect("a task")).collect();
        let winners: Vec<usize> =
            (0..RACING_CREATES).filter(|index| answers[*index] == PutAnswer::Created).collect();
        let losers = answers.iter().filter(|answer| **answer == PutAnswer::Refused).count();
        assert_eq!((winners.len(), losers), (1, RACING_CREATES - 1), "{answers:?}");
        assert_eq!(store.read(&name, 0, 2000).await.as_ref(), Ok(&contents[winners[0]]));
    }
}

async fn what_is_deleted_is_gone(store: &dyn ObjectStore, prefix: &str) {
    let name = format!("{prefix}/x/1");
    let (first, second) = (Bytes::from_static(b"first"), Bytes::from_static(b"second"));
    assert_eq!(store.delete(&name).await, Ok(()), "not there");
    for content in [&first, &second] {
        assert_eq!(create(store, &name, content).await, PutAnswer::Created);
        assert_eq!(store.read(&name, 0, 100).await.as_ref(), Ok(content));
        assert_eq!(store.delete(&name).await, Ok(()));
        assert_eq!(store.delete(&name).await, Ok(()), "twice");
        assert_eq!(store.read(&name, 0, 100).await, Err(StoreError::NotThere));
    }
}

async fn names_are_listed_in_order(store: &dyn ObjectStore, prefix: &str) {
    // '-' is before '/', which is before digits: whole names are in order, whatever is a folder.
    let below = ["a-b/1", "a/1", "a/2", "a0/1", "b", "c/d/e/f"];
    for name in below {
        let content = Bytes::from_static(b"x");
        assert_eq!(create(store, &format!("{prefix}/{name}"), &content).await, PutAnswer::Created);
    }
    let listed = async |inside: &str, after: Option<&str>| {
        let after = after.map(|after| format!("{prefix}/{after}"));
        let page = store.list(&format!("{prefix}/{inside}"), after.as_deref()).await.expect("a page");
        let strip =
            |name: &String| name.strip_prefix(&format!("{prefix}/")).expect("a name below").to_owned();
        page.names.iter().map(strip).collect::<Vec<String>>()
    };
    all_listed(store, &format!("{prefix}/"), below.len()).await;
    assert_eq!(listed("", None).await, below);
    assert_eq!(listed("a", None).await, below[..4]);
    assert_eq!(listed("a/", None).await, below[1..3]);
    assert_eq!(listed("a/1", None).await, below[1..2]);
    assert_eq!(listed("", Some("a/1")).await, below[2..]);
    assert_eq!(listed("", Some("a/15")).await, below[2..], "behind what is not there");
    assert_eq!(listed("a/", Some("a/2")).await, below[..0]);
    assert_eq!(listed("a/", Some("0")).await, below[1..3], "before the prefix");
    assert_eq!(listed("zzz", None).await, below[..0]);
}

async fn listings_come_in_pages(store: &Arc<dyn ObjectStore>, prefix: &str) {
    let count = LIST_PAGE_NAMES_MAX + 7;
    let names: Vec<String> =
        (0..count).map(|number| format!("{prefix}/{}/{number:05}", number % 3)).collect();
    for some in names.chunks(SIDE_BY_SIDE) {
        let answers = some.iter().map(async |name| create(&**store, name, &Bytes::from_static(b"x")).await);
        assert!(join_all(answers).await.iter().all(|answer| *answer == PutAnswer::Created));
    }
    let mut sorted = names.clone();
    sorted.sort();
    let (listed, pages) = all_listed(&**store, &format!("{prefix}/"), count).await;
    assert!(listed == sorted && pages > 1, "{} names on {pages} pages", listed.len());
    for some in names.chunks(SIDE_BY_SIDE) {
        let answers = some.iter().map(async |name| store.delete(name).await);
        assert!(join_all(answers).await.iter().all(Result::is_ok));
    }
    assert!(all_listed(&**store, &format!("{prefix}/"), 0).await.0.is_empty());
}

/// All names page by page, and how many pages they had, once there are so many: a listing may lag.
async fn all_listed(store: &dyn ObjectStore, prefix: &str, count: usize) -> (Vec<String>, usize) {
    let began_at = Instant::now();
    loop {
        let (mut names, mut pages) = (Vec::<String>::new(), 0);
        loop {
            let after = names.last().cloned();
            let page = store.list(prefix, after.as_deref()).await.expect("a page");
            assert!(page.names.len() <= LIST_PAGE_NAMES_MAX && (!page.has_more || !page.names.is_empty()));
            names.extend(page.names);
            pages += 1;
            if !page.has_more {
                break;
            }
        }
        if names.len() == count || began_at.elapsed() > LIST_LAGS_FOR_MAX {
            return (names, pages);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
