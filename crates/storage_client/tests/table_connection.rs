//! A table over one connection sends what the pooled client sends, and fails and retries as that does,
//! against a scripted server in virtual time.
#![allow(clippy::disallowed_methods)] // The clock of tests is tokio's paused one.

mod script;

use retry::Reason;
use script::{
    Connection, Script, Step, account, account_with, answer, assert_attempts_of_one_request, header, refusal,
};
use std::sync::Arc;
use std::time::Duration;
use storage_client::{
    ChangeKind, Continuation, Entity, Error, ErrorKind, GroupOperation, IfMatch, Proxies, Query, RawChange,
    Settings, TableConnection, TextEntity,
};

const SAS: &str = "TableEndpoint=http://127.0.0.1:1/abc;SharedAccessSignature=sv=2020-12-06&sig=a%2Fb";
const HOST_STYLE: &str = "AccountName=abc;AccountKey=AAEC;DefaultEndpointsProtocol=http";
const ROW: TextEntity<'_> =
    TextEntity {
        partition_key: "p'ü /", row_key: "r", properties: &[("Data", "a\"b\\\u{1}ü"), ("B", "x")]
    };
const FOUND: &str = "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}";

fn connection(script: &Arc<Script>) -> TableConnection {
    account(script).table("T").connection().expect("plain HTTP")
}

fn found() -> Step {
    answer(200, "", FOUND)
}

fn inserted() -> Step {
    answer(204, "etag: e\r\n", "")
}

fn group_answer(parts: &[&str]) -> Step {
    let parts: String = parts
        .iter()
        .map(|part| format!("--c\r\nContent-Type: application/http\r\n\r\n{part}\r\n\r\n"))
        .collect();
    let body = format!("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{parts}--c--\r\n--b--\r\n");
    answer(202, "content-type: multipart/mixed; boundary=b\r\n", &body)
}

fn grouped() -> Step {
    group_answer(&["HTTP/1.1 204 x\r\nETag: e\r\n"; 2])
}

fn query() -> Query {
    let from = Continuation { partition_key: "a b".to_owned(), row_key: Some("c".to_owned()) };
    Query { page_size_max: Some(7), from: Some(from), ..Query::matching("PartitionKey eq 'ü'") }
}

fn page() -> Step {
    answer(200, "x-ms-continuation-NextPartitionKey: d\r\n", &format!("{{\"value\":[{FOUND},{FOUND}]}}"))
}

/// A request with its lines in order, its random ids named, and without what signs such an id.
fn normal(request: &str) -> Vec<String> {
    let id = header(request, "content-type").split_once("boundary=batch_").map_or("", |(_, id)| id);
    let (head, body) = request.split_once("\r\n\r\n").expect("a head");
    let is_fixed = |line: &&str| {
        !line.starts_with("x-ms-client-request-id: ")
            && (id.is_empty() || !line.starts_with("authorization: "))
    };
    let mut lines: Vec<&str> = head.lines().filter(is_fixed).collect();
    lines[1..].sort_unstable();
    let named = |text: &str| if id.is_empty() { text.to_owned() } else { text.replace(id, "ID") };
    lines.into_iter().chain([body]).map(named).collect()
}

#[tokio::test(start_paused = true)]
async fn it_sends_what_the_pooled_client_sends() {
    let steps = || [Connection::Open(vec![found(), inserted(), inserted(), grouped(), page()])];
    for text in ["UseDevelopmentStorage=true", SAS, HOST_STYLE] {
        let (pooled, own) = (Script::of(steps()), Script::of(steps()));
        let table = account_with(&pooled, text, |_| {}).table("T");
        let entity = Entity::from(&ROW);
        table.get(ROW.partition_key, "r").await.expect("an entity");
        table.insert(&entity).await.expect("inserted");
        table.insert_or_replace(&entity).await.expect("replaced");
        let insert = GroupOperation::Insert(entity);
        table.submit(&[insert.clone(), insert]).await.expect("inserted");
        table.query_page(&query()).await.expect("a page");

        let mut table = account_with(&own, text, |_| {}).table("T").connection().expect("plain HTTP");
        assert!(table.get(ROW.partition_key, "r").await.expect("an entity"));
        table.insert(&ROW).await.expect("inserted");
        table.insert_or_replace(&ROW).await.expect("replaced");
        table.begin_group();
        table.add_insert(&ROW);
        table.add_insert(&ROW);
        table.submit().await.expect("inserted");
        let page = table.count_page(&query()).await.expect("a page");
        let next = page.continuation.map(|next| next.partition_key);
        assert_eq!((page.count, next.as_deref()), (2, Some("d")));

        let (pooled, own) = (pooled.requests(), own.requests());
        assert_eq!((pooled.len(), own.len()), (5, 5));
        for (pooled, own) in pooled.iter().zip(&own) {
            assert_eq!(normal(own), normal(pooled));
            assert_eq!(header(own, "x-ms-client-request-id").len(), 36);
        }
        // Each request has an id of its own, and only accounts with a key sign.
        assert_ne!(header(&own[0], "x-ms-client-request-id"), header(&own[1], "x-ms-client-request-id"));
        assert_eq!(header(&own[3], "authorization").is_empty(), text == SAS);
    }
}

const KINDS: [ChangeKind; 4] =
    [ChangeKind::Insert, ChangeKind::InsertOrReplace, ChangeKind::InsertOrMerge, ChangeKind::Delete];

/// Changes in JSON are on the wire what changes in values are, over both transports.
#[tokio::test(start_paused = true)]
async fn raw_changes_and_pages_are_the_same_requests() {
    let parts = ["HTTP/1.1 204 x\r\nETag: e\r\n"; 4];
    let steps = || {
        let singles = [inserted(), inserted(), inserted(), inserted()];
        [Connection::Open(singles.into_iter().chain([group_answer(&parts), page()]).collect())]
    };
    let entity = Entity::from(&ROW);
    let json = entity.to_json();
    let changes = |etag| {
        KINDS.map(|kind| {
            let entity = if kind == ChangeKind::Delete { &[][..] } else { &json };
            RawChange { kind, partition_key: ROW.partition_key, row_key: "r", entity, etag }
        })
    };
    const ETAG: &str = "W/\"datetime'1'\"";
    for (text, etag) in [("UseDevelopmentStorage=true", ""), (SAS, ""), (SAS, ETAG)] {
        let version = || if etag.is_empty() { IfMatch::Any } else { IfMatch::ETag(etag.to_owned()) };
        let raw = changes(etag);
        let scripts = [(); 3].map(|()| Script::of(steps()));
        let table = account_with(&scripts[0], text, |_| {}).table("T");
        table.insert(&entity).await.expect("inserted");
        table.insert_or_replace(&entity).await.expect("replaced");
        table.insert_or_merge(&entity).await.expect("merged");
        table.delete_entity(ROW.partition_key, "r", &version()).await.expect("deleted");
        let (partition_key, row_key) = (ROW.partition_key.to_owned(), "r".to_owned());
        let group = [
            GroupOperation::Insert(entity.clone()),
            GroupOperation::InsertOrReplace(entity.clone()),
            GroupOperation::InsertOrMerge(entity.clone()),
            GroupOperation::Delete { partition_key, row_key, if_match: version() },
        ];
        table.submit(&group).await.expect("done");
        table.query_page(&query()).await.expect("a page");

        let pooled = account_with(&scripts[1], text, |_| {}).table("T");
        let mut own = account_with(&scripts[2], text, |_| {}).table("T").connection().expect("plain HTTP");
        for change in &raw {
            pooled.change(change).await.expect("done");
            own.change(change).await.expect("done");
        }
        pooled.submit_changes(&raw).await.expect("done");
        own.submit_changes(&raw).await.expect("done");
        let (body, next) = pooled.raw_page(&query()).await.expect("a page");
        let mut own_body = b"of another page".to_vec();
        assert_eq!(own.raw_page(&query(), &mut own_body).await.expect("a page"), next);
        assert_eq!((own_body.as_slice(), next.is_some()), (&body[..], true));

        let [values, pooled, own] = scripts.map(|script| script.requests());
        assert_eq!((values.len(), pooled.len(), own.len()), (6, 6, 6));
        for ((values, pooled), own) in values.iter().zip(&pooled).zip(&own) {
            assert_eq!(normal(pooled), normal(values));
            assert_eq!(normal(own), normal(values));
        }
    }
    let script = Script::of([]);
    let many = vec![changes("")[0]; 101];
    let error = account(&script).table("T").submit_changes(&many).await.expect_err("too many");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(
        connection(&script).submit_changes(&many).await.expect_err("too many").kind(),
        ErrorKind::Invalid
    );
    account(&script).table("T").submit_changes(&[]).await.expect("nothing to do");
    connection(&script).submit_changes(&[]).await.expect("nothing to do");
}

/// How an operation ended, in all that a load test looks at.
fn end(result: Result<(), Error>) -> String {
    match result {
        Ok(()) => "done".to_owned(),
        Err(error) => format!(
            "{:?} {:?} {} attempts={} {} {:?} {:?} {}",
            error.kind(),
            error.status(),
            error.code(),
            error.attempts(),
            error.may_be_done(),
            error.gave_up(),
            error.batch_index(),
            // The texts of a broken connection are those of the transport.
            if error.kind() == ErrorKind::Connection { String::new() } else { error.to_string() },
        ),
    }
}

/// Each script is played to both.
#[tokio::test(start_paused = true)]
async fn it_ends_as_the_pooled_client_ends() {
    let open = |steps: Vec<Step>| Connection::Open(steps);
    let cut = |text: &str| Step::Cut(text.to_owned());
    type Steps = fn() -> Vec<Step>;
    let scripts: Vec<(&str, Steps)> = vec![
        ("busy, then done", || vec![refusal(503, "ServerBusy"), refusal(500, "x"), inserted()]),
        ("refused", || vec![refusal(409, "EntityAlreadyExists")]),
        ("doubtful", || vec![refusal(503, "ServerBusy"), refusal(409, "EntityAlreadyExists")]),
        ("throttled", || vec![refusal(429, "x"), refusal(409, "EntityAlreadyExists")]),
        ("not modified", || vec![answer(304, "", "")]),
        ("moved", || vec![answer(301, "location: x\r\n", "")]),
        ("a body with an error", || {
            let body =
                r#"{"odata.error":{"code":"C","message":{"lang":"en-US","value":"text\nRequestId:x"}}}"#;
            vec![answer(400, "x-ms-request-id: its-id\r\n", body)]
        }),
        ("a skewed clock", || {
            let headers = "date: Sat, 21 Nov 2026 10:30:00 GMT\r\nx-ms-error-code: AuthenticationFailed\r\n";
            vec![answer(403, headers, "")]
        }),
        ("interim", || {
            vec![Step::Answer("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 x\r\netag: e\r\n\r\n".to_owned())]
        }),
        ("chunked", || {
            let text = "HTTP/1.1 201 x\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
            vec![Step::Answer(text.to_owned()), inserted()]
        }),
    ];
    for (name, steps) in scripts {
        let play = || Script::of([open(steps())]);
        compare(name, play).await;
    }
    compare("closed without an answer", || Script::of([open(vec![Step::Close]), open(vec![inserted()])]))
        .await;
    compare("closed for good", || Script::of([open(vec![Step::Close])])).await;
    compare("refused at once", || Script::of([Connection::Refused])).await;
    compare("refused, then open", || Script::of([Connection::Refused, open(vec![inserted()])])).await;
    compare("silent", || Script::of((0..4).map(|_| open(vec![Step::Silence])))).await;
    for part in [
        "HTTP/1.1 20",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
        "garbage\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nuntil it closes",
        "HTTP/1.1 204 x\r\nconnection: close\r\n\r\n",
    ] {
        compare(part, || Script::of([open(vec![cut(part)]), open(vec![inserted()])])).await;
    }
}

async fn compare(name: &str, play: impl Fn() -> Arc<Script>) {
    let (pooled, own) = (play(), play());
    let started = tokio::time::Instant::now();
    let first = account(&pooled).table("T").insert(&Entity::from(&ROW)).await.map(drop);
    let first_for = started.elapsed();
    let started = tokio::time::Instant::now();
    let second = connection(&own).insert(&ROW).await;
    let second_for = started.elapsed();
    assert_eq!(end(second), end(first), "{name}");
    assert_eq!((own.requests().len(), own.hosts()), (pooled.requests().len(), pooled.hosts()), "{name}");
    // But for the spread of waits, which is drawn.
    assert!(first_for.abs_diff(second_for) < Duration::from_secs(10), "{name}: {first_for:?} {second_for:?}");
}

#[tokio::test(start_paused = true)]
async fn attempts_share_an_id_and_have_dates_and_signatures_of_their_own() {
    let busy = || refusal(503, "ServerBusy");
    let script = Script::of([Connection::Open(vec![busy(), busy(), found()])]);
    assert!(connection(&script).get("p", "r").await.expect("an entity"));
    let requests = script.requests();
    assert_eq!((requests.len(), script.hosts().len()), (3, 1), "one connection serves all");
    assert_attempts_of_one_request(&requests);
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_used_again_unless_it_is_old_or_closed() {
    // The server closes the first one while it is idle: no attempt is lost by that, of which there is one.
    let script = Script::of([
        Connection::Open(vec![found(), found()]),
        Connection::Open(vec![found(), found()]),
        Connection::Open(vec![found()]),
    ]);
    let account = account_with(&script, HOST_STYLE, |settings| settings.retry = retry::Policy::none());
    let mut table = account.table("T").connection().expect("plain HTTP");
    for expected in [1, 1, 2] {
        assert!(table.get("p", "r").await.expect("an entity"));
        tokio::task::yield_now().await;
        assert_eq!(script.hosts().len(), expected);
    }
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(table.get("p", "r").await.expect("an entity"));
    assert_eq!((script.hosts().len(), script.requests().len()), (3, 4));
    // What comes behind an answer, or while nothing was asked for, is no answer to the next request.
    for more in ["HTTP/1.1 404 x\r\ncontent-length: 0\r\n\r\n", "x"] {
        let text = format!("HTTP/1.1 204 x\r\n\r\n{more}");
        let script =
            Script::of([Connection::Open(vec![Step::Answer(text)]), Connection::Open(vec![inserted()])]);
        let mut table = connection(&script);
        for _ in 0..2 {
            table.insert(&ROW).await.expect("inserted");
        }
        assert_eq!(script.hosts().len(), 2);
    }
}

/// A load test drops what is under way when its time is over; the answer to that must not be the next one's.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_closes_its_connection() {
    let script = Script::of([Connection::Open(vec![Step::Silence]), Connection::Open(vec![found()])]);
    let mut table = connection(&script);
    let dropped = tokio::time::timeout(Duration::from_secs(1), table.get("p", "r")).await;
    assert!(dropped.is_err());
    assert!(table.get("p", "r").await.expect("an entity"));
    assert_eq!(script.hosts().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn silence_ends_in_time_whatever_was_answered_before() {
    let silent = || Connection::Open(vec![Step::Silence]);
    let script = Script::of([Connection::Open(vec![found(), Step::Silence]), silent(), silent(), silent()]);
    let mut table = connection(&script);
    assert!(table.get("p", "r").await.expect("an entity"));
    tokio::time::advance(Duration::from_secs(30)).await;
    let started = tokio::time::Instant::now();
    let error = table.get("p", "r").await.expect_err("no answer");
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::TimedOut, 4), "{error}");
    assert_eq!(error.gave_up(), Some(Reason::RetriesExhausted));
    assert!(error.message().contains("no answer in 40 s"), "{error}");
    let took = started.elapsed();
    assert!(took > Duration::from_secs(160) && took < Duration::from_secs(170), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn entities_of_other_keys_and_answers_that_are_none_are_seen() {
    let get = |body: &'static str| async move {
        let script = Script::of([Connection::Open(vec![answer(200, "", body)])]);
        connection(&script).get("p", "r").await.map_err(|error| error.kind())
    };
    assert_eq!(get(FOUND).await, Ok(true));
    assert_eq!(get("{ \"RowKey\" : \"r\", \"PartitionKey\": \"p\" }").await, Ok(true));
    assert_eq!(get("{\"RowKey\":\"\\u0072\"}").await, Ok(true));
    assert_eq!(get("{\"RowKey\":\"r2\"}").await, Ok(false));
    assert_eq!(get("{}").await, Ok(false));
    assert_eq!(get("{\"PartitionKey\":\"p\",\"RowKey\":\"r\"").await, Err(ErrorKind::UnreadableAnswer));
    assert_eq!(get("").await, Err(ErrorKind::UnreadableAnswer));
    // A key that JSON escapes is not taken for its own end.
    let script = Script::of([Connection::Open(vec![answer(200, "", "{\"RowKey\":\"a\\\"b\"}")])]);
    assert!(!connection(&script).get("p", "a\\").await.expect("an entity"));
}

#[tokio::test(start_paused = true)]
async fn groups_and_pages_fail_as_they_do_pooled() {
    let failed = || {
        let json = r#"{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"1:It exists."}}}"#;
        group_answer(&[&format!("HTTP/1.1 409 x\r\nContent-Type: application/json\r\n\r\n{json}")])
    };
    let few = || group_answer(&["HTTP/1.1 204 x\r\n"]);
    for (name, step) in [("failed", failed as fn() -> Step), ("few", few)] {
        let (pooled, own) =
            (Script::of([Connection::Open(vec![step()])]), Script::of([Connection::Open(vec![step()])]));
        let insert = GroupOperation::Insert(Entity::from(&ROW));
        let first = account(&pooled).table("T").submit(&[insert.clone(), insert]).await.map(drop);
        let mut table = connection(&own);
        table.begin_group();
        (0..2).for_each(|_| table.add_insert(&ROW));
        let second = table.submit().await;
        assert!(second.is_err(), "{name}");
        assert_eq!(end(second), end(first), "{name}");
    }
    let script = Script::of([]);
    let mut table = connection(&script);
    table.begin_group();
    (0..101).for_each(|_| table.add_insert(&ROW));
    assert_eq!(table.submit().await.expect_err("too many").kind(), ErrorKind::Invalid);
    table.begin_group();
    table.submit().await.expect("nothing to do");
    assert!(script.hosts().is_empty());

    let repeated = answer(200, "x-ms-continuation-NextPartitionKey: d\r\n", "{\"value\":[]}");
    let script = Script::of([Connection::Open(vec![repeated, answer(200, "", "{}")])]);
    let mut table = connection(&script);
    let from = Some(Continuation { partition_key: "d".to_owned(), row_key: None });
    for _ in 0..2 {
        let error = table.count_page(&Query { from: from.clone(), ..Query::all() }).await;
        assert_eq!(error.expect_err("a circle, and no page").kind(), ErrorKind::UnreadableAnswer);
    }
}

#[tokio::test(start_paused = true)]
async fn what_it_does_not_know_is_left_to_the_pooled_client() {
    let script = Script::of([]);
    let has = |text: &str, change: fn(&mut Settings)| {
        account_with(&script, text, change).table("T").connection().is_some()
    };
    let plain = |_: &mut Settings| {};
    assert!(has(HOST_STYLE, plain) && has(SAS, plain));
    assert!(!has("AccountName=abc;AccountKey=AAEC", plain), "TLS");
    assert!(!has(HOST_STYLE, |settings| settings.proxies = Proxies::new("http://proxy:1", "", "")));
    assert!(!has(HOST_STYLE, |settings| settings.reads_secondary = true));
    assert!(!has(HOST_STYLE, |settings| settings.user_agent = "a\nb".to_owned()));
    assert!(!has("AccountName=abc;AccountKey=AAEC;BlobEndpoint=http://127.0.0.1:1/abc", plain), "no tables");
}

/// Two connections of an account that may have one: the second one waits for it, and is refused in time.
#[tokio::test(start_paused = true)]
async fn it_counts_among_the_connections_of_its_endpoint() {
    let script = Script::of([Connection::Open(vec![found()]), Connection::Open(vec![found()])]);
    let account = account_with(&script, HOST_STYLE, |settings| {
        settings.connections_max = 1;
        settings.retry = retry::Policy::none();
    });
    let mut first = account.table("T").connection().expect("plain HTTP");
    let mut second = account.table("T").connection().expect("plain HTTP");
    assert!(first.get("p", "r").await.expect("an entity"));
    let error = second.get("p", "r").await.expect_err("the first one has it");
    assert!(error.message().contains("all 1 connections are busy"), "{error}");
    drop(first);
    assert!(second.get("p", "r").await.expect("an entity"));
}
