//! The crate `storage_client` against the real front end over sockets: every operation it has, and TLS.
#![allow(clippy::disallowed_methods)] // Tests open the sockets that production code is handed.

mod stamp;

use base::connector::SystemConnector;
use base::system::{SystemClock, SystemRandom, TokioSpawner};
use base::{BoxFuture, Clock, Ticks};
use bytes::Bytes;
use front_end::TlsIdentity;
use futures_util::future::join3;
use stamp::Stamp;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use storage_client::{
    AccountAddress, BlobCondition, BlobQuery, BlobWrite, DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME,
    Entity, EntityCount, ErrorKind, GroupOperation, IfMatch, MessageLife, Proxies, PutMessage, Query,
    QueryExtensions, Settings, SnapshotToken, StorageAccount, Surroundings, TlsRoots, Value,
};
use tokio::net::TcpListener;

const CERTIFICATE: &[u8] = include_bytes!("certificates/server.pem");
const KEY: &[u8] = include_bytes!("certificates/server-key.pem");

/// A stamp whose three services listen, until it is dropped with the runtime.
struct Served {
    stamp: Arc<Stamp>,
    /// Blob, queue, table.
    addresses: [SocketAddr; 3],
}

async fn serve(identity: Option<TlsIdentity>) -> Served {
    let stamp = Arc::new(Stamp::with_settings(|settings| settings.tls = identity).await);
    let mut listeners = Vec::new();
    for _ in 0..3 {
        listeners.push(TcpListener::bind("127.0.0.1:0").await.expect("a port"));
    }
    let addresses = [0, 1, 2].map(|index: usize| listeners[index].local_addr().expect("an address"));
    let served = stamp.clone();
    tokio::spawn(async move {
        let (table, queue, blob) = (listeners.pop(), listeners.pop(), listeners.pop());
        let front_end = &served.front_end;
        let for_ever = || Box::pin(std::future::pending::<()>());
        join3(
            front_end.serve_blob(blob.expect("three"), for_ever()),
            front_end.serve_queue(queue.expect("three"), for_ever()),
            front_end.serve_table(table.expect("three"), for_ever()),
        )
        .await;
    });
    Served { stamp, addresses }
}

impl Served {
    fn endpoints(&self, scheme: &str) -> String {
        let [blob, queue, table] = self.addresses.map(|address| address.port());
        let at = |port| format!("{scheme}://localhost:{port}/{DEVELOPMENT_ACCOUNT_NAME}");
        format!("BlobEndpoint={};QueueEndpoint={};TableEndpoint={}", at(blob), at(queue), at(table))
    }

    fn account(&self) -> StorageAccount {
        let credentials =
            format!("AccountName={DEVELOPMENT_ACCOUNT_NAME};AccountKey={DEVELOPMENT_ACCOUNT_KEY}");
        self.account_with("http", &credentials, TlsRoots::System)
    }

    fn account_with(&self, scheme: &str, credentials: &str, tls_roots: TlsRoots) -> StorageAccount {
        self.account_at(self.stamp.clock.clone(), scheme, credentials, tls_roots)
    }

    fn account_at(
        &self,
        clock: Arc<dyn Clock>,
        scheme: &str,
        credentials: &str,
        tls_roots: TlsRoots,
    ) -> StorageAccount {
        let text = format!("{};{credentials}", self.endpoints(scheme));
        let address = AccountAddress::parse(&text).expect("a connection string");
        let settings = Settings { proxies: Proxies::none(), tls_roots, ..Settings::default() };
        let surroundings = Surroundings {
            clock,
            random: Arc::new(SystemRandom::new()),
            spawner: Arc::new(TokioSpawner::current()),
            connector: Arc::new(SystemConnector),
        };
        StorageAccount::new(address, settings, surroundings)
    }
}

/// The system's clock, an hour late.
struct Late(SystemClock);

impl Clock for Late {
    fn now(&self) -> Ticks {
        Ticks::from_unix(self.0.now().since_unix() - Duration::from_secs(3600))
    }
    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }
    fn sleep(&self, sleep_for: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(sleep_for)
    }
}

fn full_entity() -> Entity {
    Entity::new("p'1é", "r 1+%")
        .with("S", "x\"\n")
        .with("I", 5)
        .with("L", 1_i64 << 40)
        .with("D", 2.0)
        .with("E", 1e300)
        .with("B", true)
        .with("BIN", Bytes::from_static(&[0, 255]))
        .with("G", Value::Guid([7; 16]))
        .with("T", Ticks(132_223_104_000_000_001))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entities_of_all_types_live_and_die() {
    let served = serve(None).await;
    let account = served.account();
    let table = account.table("People");
    let absent = table.insert(&full_entity()).await.expect_err("no table");
    assert_eq!((absent.status(), absent.code()), (Some(404), "TableNotFound"));
    assert!(!absent.request_id().is_empty() && absent.remedy().is_some(), "{absent}");
    assert!(table.create_if_absent().await.expect("made") && !table.create_if_absent().await.expect("there"));

    let entity = full_entity();
    let etag = table.insert(&entity).await.expect("an ETag");
    let exists = table.insert(&entity).await.expect_err("it exists");
    assert!(exists.code() == "EntityAlreadyExists" && !exists.may_be_done());
    let found = table.get("p'1é", "r 1+%").await.expect("an entity");
    assert_eq!(found.etag.as_ref(), Some(&etag));
    assert_eq!(found.timestamp.map(|at| at >= served.stamp.clock.now()), Some(true));
    for (name, value) in &entity.properties {
        assert_eq!(found.value(name), Some(value), "{name}");
    }
    assert_eq!(found.properties.len(), entity.properties.len());

    let merged = Entity::new("p'1é", "r 1+%").with("New", "n");
    let newer = table.merge(&merged, &IfMatch::ETag(etag.clone())).await.expect("an ETag");
    let unmet = table.replace(&merged, &IfMatch::ETag(etag)).await.expect_err("changed");
    assert_eq!((unmet.status(), unmet.code()), (Some(412), "UpdateConditionNotSatisfied"));
    assert_eq!(table.get("p'1é", "r 1+%").await.expect("it").properties.len(), 10);
    table.replace(&merged, &IfMatch::ETag(newer)).await.expect("an ETag");
    assert_eq!(table.get("p'1é", "r 1+%").await.expect("it").properties.len(), 1);
    table.insert_or_merge(&Entity::new("p", "r").with("A", 1)).await.expect("an ETag");
    table.insert_or_replace(&Entity::new("p", "r").with("B", 1)).await.expect("an ETag");
    table.delete_entity("p", "r", &IfMatch::Any).await.expect("deleted");
    assert_eq!(table.get_if_present("p", "r").await.expect("a look"), None);
    let none = table.delete_entity("p", "r", &IfMatch::Any).await.expect_err("gone");
    assert!(none.is_not_found());
    table.delete().await.expect("deleted");
    assert!(account.table_page(None, None).await.expect("a page").names.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_and_groups_go_over_pages() {
    let served = serve(None).await;
    let account = served.account();
    let table = account.table("Rows");
    table.create().await.expect("made");
    for first in (0..250).step_by(50) {
        let group: Vec<GroupOperation> = (first..first + 50)
            .map(|row| GroupOperation::Insert(Entity::new("p", format!("{row:04}")).with("N", row)))
            .collect();
        let etags = table.submit(&group).await.expect("done");
        assert!(etags.len() == 50 && etags.iter().all(Option::is_some));
    }
    let filter =
        format!("PartitionKey eq {} and N ge {}", Value::from("p").literal(), Value::from(40).literal());
    let query = Query {
        page_size_max: Some(60),
        select: vec!["N".into(), "RowKey".into()],
        ..Query::matching(filter)
    };
    let mut pages = table.query(query);
    let mut rows = Vec::new();
    let mut count = 0;
    while let Some(page) = pages.next_page().await.expect("a page") {
        count += 1;
        assert!(page.entities.len() <= 60);
        rows.extend(page.entities.into_iter().map(|entity| entity.row_key));
    }
    let expected: Vec<String> = (40..250).map(|row| format!("{row:04}")).collect();
    assert_eq!((rows, count >= 4), (expected, true));

    let mut query = Query::matching("PartitionKey eq 'p' and startswith(RowKey,'003')");
    assert_eq!(table.query_page(&query).await.expect_err("not of the protocol").code(), "InvalidInput");
    query.extensions = QueryExtensions { starts_with: true, ..QueryExtensions::default() };
    assert_eq!(table.query_page(&query).await.expect("a page").entities.len(), 10);
    let snapshot = table.pin_snapshot().await.expect("an answer").expect("it has them");
    let late = Entity::new("p", "0035x").with("N", 1);
    table.insert(&late).await.expect("done");
    let of = |snapshot: Option<SnapshotToken>| QueryExtensions { starts_with: true, reverse: true, snapshot };
    let last = async |snapshot| {
        let query = Query { page_size_max: Some(5), extensions: of(snapshot), ..query.clone() };
        let page = table.query_page(&query).await.expect("a page");
        let rest = Query { from: page.continuation.clone(), ..query };
        let rest = table.query_page(&rest).await.expect("the rest").entities;
        page.entities.into_iter().chain(rest).map(|entity| entity.row_key).collect::<Vec<_>>()
    };
    let then: Vec<String> = (30..40).rev().map(|row| format!("{row:04}")).collect();
    assert_eq!(last(Some(snapshot.clone())).await, then);
    assert_eq!(last(None).await[4..6], ["0035x", "0035"]);
    table.end_snapshot(&snapshot).await.expect("done");
    let gone = Query { extensions: of(Some(snapshot.clone())), ..query.clone() };
    assert_eq!(table.query_page(&gone).await.expect_err("gone").code(), "SnapshotExpired");
    table.end_snapshot(&snapshot).await.expect("nothing to do");
    table.delete_entity("p", "0035x", &IfMatch::Any).await.expect("done");
    let counted = table.counted_by_service(&query).await.expect("an answer").expect("it counts");
    // "p" and four digits, and a number "N".
    let size_bytes = 10 * (4 + 2 * 5 + 8 + 2 + 4);
    assert_eq!(counted, EntityCount { entities: 10, size_bytes, continuation: None });
    let mut connection = table.connection().expect("plain HTTP");
    assert_eq!(connection.count_page(&query).await.expect("a page").count, 10);
    assert!(connection.count_page(&Query { extensions: QueryExtensions::default(), ..query }).await.is_err());

    let entity = |row: &str| Entity::new("p", row).with("N", 1);
    let group = [
        GroupOperation::Delete { partition_key: "p".into(), row_key: "0000".into(), if_match: IfMatch::Any },
        GroupOperation::Replace(entity("0001"), IfMatch::Any),
        GroupOperation::Merge(entity("0002"), IfMatch::Any),
        GroupOperation::InsertOrReplace(entity("new")),
        GroupOperation::InsertOrMerge(entity("0003")),
    ];
    let etags = table.submit(&group).await.expect("done");
    assert_eq!(etags.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, true, true, true]);
    let group = [GroupOperation::Insert(entity("fresh")), GroupOperation::Insert(entity("0002"))];
    let error = table.submit(&group).await.expect_err("it exists");
    assert_eq!(
        (error.code(), error.batch_index(), error.status()),
        ("EntityAlreadyExists", Some(1), Some(409))
    );
    assert_eq!(error.message(), "The specified entity already exists.");
    assert_eq!(table.get_if_present("p", "fresh").await.expect("a look"), None, "all or none");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_live_and_die() {
    let served = serve(None).await;
    let account = served.account();
    let queue = account.queue("tasks");
    let absent = queue.put("x", PutMessage::default()).await.expect_err("no queue");
    assert_eq!(absent.code(), "QueueNotFound");
    let metadata = BTreeMap::from([("owner".to_owned(), "me".to_owned())]);
    assert!(queue.create(&metadata).await.expect("made"));
    assert!(!queue.create_if_absent().await.expect("there"), "with other metadata");

    let text = " a <b> & \"c\" é\n";
    let how = PutMessage { visible_after: None, lives: Some(MessageLife::Unlimited) };
    let put = queue.put(text, how).await.expect("a message");
    assert!(!put.id.is_empty() && !put.pop_receipt.is_empty() && put.expires_at > put.inserted_at);
    let late = PutMessage { visible_after: Some(Duration::from_secs(60)), lives: None };
    queue.put("later", late).await.expect("a message");
    let peeked = queue.peek(32).await.expect("messages");
    assert_eq!((peeked.len(), peeked[0].text.as_str(), peeked[0].dequeue_count), (1, text, 0));
    let properties = queue.properties().await.expect("properties");
    assert_eq!((properties.message_count, properties.metadata), (2, metadata));

    let got = queue.get(32, Duration::from_secs(30)).await.expect("messages");
    assert_eq!((got.len(), got[0].id.as_str(), got[0].dequeue_count), (1, put.id.as_str(), 1));
    assert!(queue.get(32, Duration::from_secs(30)).await.expect("messages").is_empty());
    let updated = queue.update(&got[0], Duration::ZERO, Some("new")).await.expect("updated");
    assert!(queue.delete_message(&got[0]).await.expect_err("an old receipt").is_not_found());
    let again = queue.get(1, Duration::from_secs(30)).await.expect("messages");
    assert_eq!((again[0].text.as_str(), again[0].dequeue_count), ("new", 2));
    assert_ne!(again[0].pop_receipt, updated.pop_receipt);
    queue.delete_message(&again[0]).await.expect("deleted");
    queue.clear().await.expect("cleared");
    assert_eq!(queue.properties().await.expect("properties").message_count, 0);

    for name in ["tasks-1", "tasks-2", "other"] {
        account.queue(name).create_if_absent().await.expect("made");
    }
    let page = account.queue_page("tasks", None).await.expect("a page");
    assert_eq!((page.names, page.marker), (vec!["tasks".into(), "tasks-1".into(), "tasks-2".into()], None));
    queue.delete().await.expect("deleted");
    let unsuited = account.queue("other").put("\u{1}", PutMessage::default()).await.expect_err("no XML");
    assert_eq!(unsuited.kind(), ErrorKind::Invalid);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blobs_live_and_die() {
    let served = serve(None).await;
    let account = served.account();
    let container = account.container("files");
    assert_eq!(
        container.blob("x").put("x", &BlobWrite::default()).await.expect_err("none").code(),
        "ContainerNotFound"
    );
    assert!(
        container.create_if_absent().await.expect("made")
            && !container.create_if_absent().await.expect("there")
    );
    let metadata = BTreeMap::from([("kind".to_owned(), "test".to_owned())]);
    let write = BlobWrite {
        content_type: Some("text/plain".to_owned()),
        metadata: metadata.clone(),
        condition: BlobCondition::Absent,
        ..BlobWrite::default()
    };
    let blob = container.blob("dir a/é+%'b");
    let etag = blob.put("0123456789", &write).await.expect("an ETag");
    assert_eq!(blob.put("x", &write).await.expect_err("there").code(), "BlobAlreadyExists");
    let properties = blob.properties().await.expect("properties");
    assert_eq!((properties.size_bytes, properties.etag.as_str()), (10, etag.as_str()));
    assert_eq!((properties.content_type.as_str(), properties.kind.as_str()), ("text/plain", "BlockBlob"));
    assert_eq!(properties.metadata, metadata);
    assert_eq!(blob.read(None).await.expect("bytes"), "0123456789");
    assert_eq!(blob.read(Some(3..5)).await.expect("bytes"), "34");
    assert_eq!(blob.read(Some(8..99)).await.expect("bytes"), "89");
    assert!(blob.read(Some(3..3)).await.expect("bytes").is_empty());
    assert_eq!(blob.read(Some(99..100)).await.expect_err("beyond").status(), Some(416));

    blob.stage_block(b"b1", "abc").await.expect("staged");
    blob.stage_block(b"b2", "def").await.expect("staged");
    let list = blob.block_list().await.expect("blocks");
    let staged: BTreeSet<Vec<u8>> = list.uncommitted.into_iter().map(|block| block.id).collect();
    assert_eq!(staged, BTreeSet::from([b"b1".to_vec(), b"b2".to_vec()]));
    let write = BlobWrite { condition: BlobCondition::Match(IfMatch::ETag(etag)), ..BlobWrite::default() };
    blob.commit_blocks(&[b"b2".to_vec(), b"b1".to_vec()], &write).await.expect("an ETag");
    assert_eq!(blob.read(None).await.expect("bytes"), "defabc");
    assert_eq!(blob.commit_blocks(&[], &write).await.expect_err("changed").status(), Some(412));

    // Larger than what is sent or received at a time.
    let content: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let large = container.blob("large");
    let mut upload = large.upload_in_blocks(BlobWrite::default(), 1 << 20);
    for part in content.chunks(70_001) {
        upload.write(part).await.expect("taken");
    }
    upload.finish().await.expect("an ETag");
    assert_eq!(large.block_list().await.expect("blocks").committed.len(), 3);
    assert!(large.read(None).await.expect("bytes") == content);
    let small = container.blob("small");
    let mut upload = small.upload(BlobWrite::default());
    upload.write(&b"few"[..]).await.expect("taken");
    upload.finish().await.expect("an ETag");
    assert!(small.block_list().await.expect("blocks").committed.is_empty(), "in one request");

    let append = container.blob("log");
    append.create_append_blob(&BlobWrite::default()).await.expect("made");
    assert_eq!(append.append("one", Some(0)).await.expect("an offset"), 0);
    assert_eq!(append.append("two", None).await.expect("an offset"), 3);
    assert_eq!(
        append.append("x", Some(0)).await.expect_err("longer").code(),
        "AppendPositionConditionNotMet"
    );
    assert_eq!(append.read(None).await.expect("bytes"), "onetwo");
    let pages = container.blob("pages");
    pages.create_page_blob(2048, &BlobWrite::default()).await.expect("made");
    pages.put_pages(512, vec![9; 1024]).await.expect("written");
    pages.clear_pages(1024..1536).await.expect("cleared");
    let expected = [vec![0; 512], vec![9; 512], vec![0; 1024]].concat();
    assert_eq!(pages.read(None).await.expect("bytes"), expected);

    let query = BlobQuery { delimiter: "/".to_owned(), with_metadata: true, ..BlobQuery::default() };
    let page = container.list_page(&query).await.expect("a page");
    assert_eq!(page.prefixes, ["dir a/"]);
    let names: Vec<&str> = page.blobs.iter().map(|blob| blob.name.as_str()).collect();
    assert_eq!(names, ["large", "log", "pages", "small"]);
    assert_eq!(page.blobs[0].properties.etag, large.properties().await.expect("properties").etag);
    let query = BlobQuery { page_size_max: Some(2), ..BlobQuery::default() };
    assert_eq!(container.list(&query, 99).await.expect("blobs").len(), 5);
    assert_eq!(container.list(&query, 3).await.expect("blobs").len(), 3);
    blob.delete(&BlobCondition::None, false).await.expect("deleted");
    assert_eq!(blob.properties().await.expect_err("gone").code(), "BlobNotFound");
    assert_eq!(account.container_page("fi", None).await.expect("a page").names, ["files"]);
    container.delete().await.expect("deleted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signature_opens_what_it_names() {
    let served = serve(None).await;
    served.account().table("Rows").create().await.expect("made");
    let sas = stamp::answers::account_sas(&served.stamp, "t", "o", "ra");
    let account = served.account_with("http", &format!("SharedAccessSignature={sas}"), TlsRoots::System);
    let table = account.table("Rows");
    table.insert(&Entity::new("p", "r")).await.expect("an ETag");
    assert_eq!(table.query(Query::all()).entities().take(9).await.expect("entities").len(), 1);
    let refused = table.delete_entity("p", "r", &IfMatch::Any).await.expect_err("no permission");
    assert_eq!(refused.code(), "AuthorizationPermissionMismatch");
    assert!(!refused.to_string().contains("sig="), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_key_and_a_wrong_clock_are_named() {
    let served = serve(None).await;
    // Answers have the date of the system's clock.
    let clock = SystemClock::new();
    served.stamp.clock.set(clock.now());
    let credentials = format!("AccountName={DEVELOPMENT_ACCOUNT_NAME};AccountKey=AAEC");
    let account = served.account_with("http", &credentials, TlsRoots::System);
    let error = account.table("Rows").create().await.expect_err("refused");
    assert_eq!((error.code(), error.attempts()), ("AuthenticationFailed", 1));
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("name and key")), "{error}");
    assert!(!error.to_string().contains('\n'), "one line: {error}");
    let credentials = format!("AccountName={DEVELOPMENT_ACCOUNT_NAME};AccountKey={DEVELOPMENT_ACCOUNT_KEY}");
    let account = served.account_at(Arc::new(Late(clock)), "http", &credentials, TlsRoots::System);
    let error = account.table("Rows").create().await.expect_err("refused");
    assert_eq!(error.code(), "AuthenticationFailed");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("behind the service's")), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_trusts_the_given_authority_only() {
    let served = serve(Some(TlsIdentity::from_pem(CERTIFICATE, KEY).expect("a pair"))).await;
    let credentials = format!("AccountName={DEVELOPMENT_ACCOUNT_NAME};AccountKey={DEVELOPMENT_ACCOUNT_KEY}");
    let account = served.account_with("https", &credentials, TlsRoots::Pem(CERTIFICATE.to_vec()));
    account.table("Rows").create().await.expect("made");
    let content = vec![5; 300_000];
    let container = account.container("files");
    container.create_if_absent().await.expect("made");
    container.blob("b").put(content.clone(), &BlobWrite::default()).await.expect("an ETag");
    assert!(container.blob("b").read(None).await.expect("bytes") == content);
    let other = include_bytes!("certificates/renewed.pem").to_vec();
    let account = served.account_with("https", &credentials, TlsRoots::Pem(other));
    let error = account.table("Rows").create().await.expect_err("another authority");
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Connection, 1), "{error}");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("authority")), "{error}");
    let unusable = served.account_with("https", &credentials, TlsRoots::Pem(b"nothing".to_vec()));
    let error = unusable.table("Rows").create().await.expect_err("no certificate");
    assert!(error.message().contains("holds no certificate"), "{error}");
}
