//! The rules over a real store, if one is named:
//!
//! ```text
//! LARIMAR_TEST_S3_BUCKET=bucket LARIMAR_TEST_S3_ENDPOINT=http://127.0.0.1:8000 \
//!   AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… cargo test -p stamp_stores -- --ignored real_s3
//! ```

use crate::object_rules;
use base::system::{SystemClock, SystemRandom, TokioSpawner};
use bytes::Bytes;
use stamp::PutAnswer;
use stamp_stores::{
    ObjectStoreSettings, OpenedObjectStore, RequestKind, StoreSurroundings, open_object_store,
};
use stamp_streams::{ObjectStore, StampSettings, Surroundings, probe};
use std::sync::Arc;
use std::time::Instant;

/// The bucket that the variables name, and its own prefix for this run.
async fn open() -> OpenedObjectStore {
    let surroundings = StoreSurroundings::system();
    let variable = |name: &str| surroundings.variables.get(name).cloned();
    let bucket = variable("LARIMAR_TEST_S3_BUCKET").expect("LARIMAR_TEST_S3_BUCKET is set");
    let settings = ObjectStoreSettings {
        endpoint: variable("LARIMAR_TEST_S3_ENDPOINT"),
        region: variable("LARIMAR_TEST_S3_REGION"),
        ca_file: variable("LARIMAR_TEST_S3_CA_FILE"),
        ..ObjectStoreSettings::default()
    };
    let run = format!("test-{:016x}", base::Random::next_u64(&SystemRandom::new()));
    let url = format!("s3://{bucket}/{run}");
    open_object_store(&url, &settings, &surroundings).await.expect("a store")
}

async fn clear(store: &dyn ObjectStore) {
    let mut after: Option<String> = None;
    loop {
        let page = store.list("", after.as_deref()).await.expect("a page");
        for name in &page.names {
            store.delete(name).await.expect("a deletion");
        }
        after = page.names.last().cloned();
        if !page.has_more {
            return;
        }
    }
}

/// Prints what one client's requests take, one after the other.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a bucket: LARIMAR_TEST_S3_BUCKET, LARIMAR_TEST_S3_ENDPOINT and credentials"]
async fn a_real_bucket_is_measured() {
    let opened = open().await;
    for (size, count) in [(4 << 10, 300), (1 << 20, 50), (4 << 20, 30)] {
        let content = Bytes::from(vec![7; size]);
        let (mut creates, mut reads) = (Vec::new(), Vec::new());
        for number in 0..count {
            let name = format!("{size}/{number}");
            let began_at = Instant::now();
            assert_eq!(opened.store.create(&name, content.clone()).await, PutAnswer::Created);
            creates.push(began_at.elapsed());
            let began_at = Instant::now();
            let read = opened.store.read(&name, 0, 4096).await.expect("a piece");
            reads.push(began_at.elapsed());
            assert_eq!(read.len(), 4096);
        }
        creates.sort();
        reads.sort();
        let (create, read) = (creates[count / 2], reads[count / 2]);
        println!("{size} bytes: create p50 {create:?}, read of 4 KiB p50 {read:?}");
    }
    clear(&*opened.store).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a bucket: LARIMAR_TEST_S3_BUCKET, LARIMAR_TEST_S3_ENDPOINT and credentials"]
async fn a_real_bucket_keeps_the_rules() {
    let opened = open().await;
    for warning in opened.check_first_start().await.expect("a fit bucket") {
        println!("warning: {warning}");
    }
    let process = Surroundings {
        clock: Arc::new(SystemClock::new()),
        random: Arc::new(SystemRandom::new()),
        spawner: Arc::new(TokioSpawner::current()),
        objects: opened.store.clone(),
        cache: None,
        keys: Arc::new(crate::keys::HostKeys {
            store: Arc::new(crate::keys::SimKeys::new(stamp::StampId(1), false)),
            link: crate::calm_link(),
        }),
        settings: Arc::new(StampSettings::new(stamp::StampId(1))),
        ahead: Arc::default(),
    };
    probe(&process).await.expect("a store that creates once");
    object_rules::hold(opened.store.clone(), "rules").await;
    for kind in [RequestKind::Create, RequestKind::Read, RequestKind::List, RequestKind::Delete] {
        let reading = opened.counts.reading(kind);
        println!("{}: {reading:?}", kind.label());
    }
    clear(&*opened.store).await;
}
