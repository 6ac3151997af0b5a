//! Retries, broken connections, the secondary, proxies and pools, against a scripted server in virtual time.
#![allow(clippy::disallowed_methods)] // The clock of tests is tokio's paused one.

mod script;

use retry::Reason;
use script::{
    Connection, Script, Step, account, account_with, answer, assert_attempts_of_one_request, header, refusal,
};
use std::sync::Arc;
use std::time::Duration;
use storage_client::{
    BlobWrite, Entity, Error, ErrorKind, GroupOperation, Proxies, PutMessage, Query, RepeatedAttempt,
    RetryObserver, Settings, TlsRoots,
};

const HOST_STYLE: &str = "AccountName=abc;AccountKey=AAEC;DefaultEndpointsProtocol=http";

fn busy() -> Step {
    refusal(503, "ServerBusy")
}

/// The one answer that says that nothing was done.
fn throttled() -> Step {
    refusal(429, "TooManyRequests")
}

fn inserted() -> Step {
    answer(204, "etag: W/\"1\"\r\n", "")
}

fn entity() -> Entity {
    Entity::new("p", "r").with("A", 1)
}

#[tokio::test(start_paused = true)]
async fn attempts_share_an_id_and_have_dates_and_signatures_of_their_own() {
    let script = Script::of([Connection::Open(vec![busy(), busy(), inserted()])]);
    assert_eq!(account(&script).table("T").insert(&entity()).await.expect("an ETag"), "W/\"1\"");
    let requests = script.requests();
    assert_eq!((requests.len(), script.hosts().len()), (3, 1), "one connection serves all");
    assert_attempts_of_one_request(&requests);
    assert!(requests[0].starts_with("POST /devstoreaccount1/T HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[2].ends_with("{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"A\":1}"), "{}", requests[2]);
}

/// An insert whose first answer was lost fails with its own success; who calls must be able to see that.
#[tokio::test(start_paused = true)]
async fn a_repeated_insert_that_exists_says_that_it_may_be_its_own() {
    let exists = || refusal(409, "EntityAlreadyExists");
    let script = Script::of([Connection::Open(vec![Step::Close]), Connection::Open(vec![exists()])]);
    let error = account(&script).table("T").insert(&entity()).await.expect_err("it exists");
    assert_eq!((error.status(), error.code(), error.attempts()), (Some(409), "EntityAlreadyExists", 2));
    assert!(error.may_be_done() && error.is_retried());
    assert_eq!(error.request_id(), "its-id");

    // A busy service may have done it.
    let script = Script::of([Connection::Open(vec![busy(), exists()])]);
    let error = account(&script).table("T").insert(&entity()).await.expect_err("it exists");
    assert!(error.is_retried() && error.may_be_done());

    // A refusal leaves no doubt, and neither does a first answer.
    let script = Script::of([Connection::Open(vec![throttled(), exists()])]);
    let error = account(&script).table("T").insert(&entity()).await.expect_err("it exists");
    assert!(error.is_retried() && !error.may_be_done());
    let script = Script::of([Connection::Open(vec![exists()])]);
    let error = account(&script).table("T").insert(&entity()).await.expect_err("it exists");
    assert!(!error.is_retried() && !error.may_be_done());
}

#[tokio::test(start_paused = true)]
async fn a_message_is_put_again_only_if_it_cannot_be_there() {
    let put = || {
        answer(
            201,
            "",
            "<QueueMessagesList><QueueMessage><MessageId>i</MessageId></QueueMessage></QueueMessagesList>",
        )
    };
    for broken in [Step::Close, Step::Silence, refusal(500, "InternalError"), busy()] {
        let script = Script::of([Connection::Open(vec![broken, put()])]);
        let error =
            account(&script).queue("q").put("text", PutMessage::default()).await.expect_err("unknown");
        assert_eq!((error.attempts(), error.gave_up()), (1, Some(Reason::NotIdempotent)), "{error}");
        assert!(error.may_be_done(), "{error}");
    }
    let script = Script::of([Connection::Refused, Connection::Open(vec![throttled(), put()])]);
    let message = account(&script).queue("q").put("text", PutMessage::default()).await.expect("a message");
    assert_eq!(message.id, "i");
    // If asked for, it is.
    let script = Script::of([Connection::Open(vec![Step::Close]), Connection::Open(vec![put()])]);
    let account = account_with(&script, "UseDevelopmentStorage=true", |settings| {
        settings.retry = settings.retry.retrying_all();
    });
    assert!(account.queue("q").put("text", PutMessage::default()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn reads_go_to_the_secondary_and_back() {
    let entity = answer(200, "", "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}");
    let script = Script::of([
        Connection::Open(vec![busy(), entity]),
        Connection::Open(vec![refusal(404, "ResourceNotFound")]),
    ]);
    let account = account_with(&script, HOST_STYLE, |settings| settings.reads_secondary = true);
    assert!(account.table("T").get("p", "r").await.is_ok());
    assert_eq!(script.hosts(), ["abc.table.core.windows.net:80", "abc-secondary.table.core.windows.net:80"]);
    let hosts: Vec<String> = script.requests().iter().map(|one| header(one, "host").to_owned()).collect();
    let (primary, secondary) = ("abc.table.core.windows.net", "abc-secondary.table.core.windows.net");
    assert_eq!(hosts, [primary, secondary, primary]);
    // Writes do not.
    let script = Script::of([Connection::Open(vec![busy(), inserted()])]);
    let account = account_with(&script, HOST_STYLE, |settings| settings.reads_secondary = true);
    assert!(account.table("T").insert(&self::entity()).await.is_ok());
    assert_eq!(script.hosts().len(), 1);
}

/// Getting messages is a `GET` that changes the queue.
#[tokio::test(start_paused = true)]
async fn messages_are_not_got_of_the_secondary_nor_twice() {
    let got = || answer(200, "", "<QueueMessagesList />");
    let reads_secondary = |settings: &mut Settings| settings.reads_secondary = true;
    for broken in [Step::Close, Step::Silence, refusal(500, "InternalError"), busy()] {
        let script = Script::of([Connection::Open(vec![broken, got()]), Connection::Open(vec![got()])]);
        let queue = account_with(&script, HOST_STYLE, reads_secondary).queue("q");
        let error = queue.get(1, Duration::from_secs(30)).await.expect_err("messages may be invisible");
        assert_eq!((error.attempts(), error.gave_up()), (1, Some(Reason::NotIdempotent)), "{error}");
        assert!(error.may_be_done(), "{error}");
    }
    let script = Script::of([Connection::Refused, Connection::Open(vec![throttled(), got()])]);
    let queue = account_with(&script, HOST_STYLE, reads_secondary).queue("q");
    assert!(queue.get(1, Duration::from_secs(30)).await.is_ok());
    assert_eq!(script.hosts(), ["abc.queue.core.windows.net:80"; 2]);
    // Peeking is a read.
    let script = Script::of([Connection::Open(vec![busy()]), Connection::Open(vec![got()])]);
    let queue = account_with(&script, HOST_STYLE, reads_secondary).queue("q");
    assert!(queue.peek(1).await.is_ok());
    assert_eq!(script.hosts()[1], "abc-secondary.queue.core.windows.net:80");
}

#[tokio::test(start_paused = true)]
async fn a_secondary_in_the_path_is_signed_as_its_primary() {
    let entity = answer(200, "", "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}");
    let script = Script::of([Connection::Open(vec![busy()]), Connection::Open(vec![entity])]);
    let account =
        account_with(&script, "UseDevelopmentStorage=true", |settings| settings.reads_secondary = true);
    assert!(account.table("T").get("p", "r").await.is_ok());
    let requests = script.requests();
    assert!(requests[0].starts_with("GET /devstoreaccount1/T("), "{}", requests[0]);
    assert!(requests[1].starts_with("GET /devstoreaccount1-secondary/T("), "{}", requests[1]);
    let same = |name: &str| header(&requests[0], name) == header(&requests[1], name);
    assert!(same("x-ms-date") && same("authorization"), "{requests:?}");
}

/// A block that was not staged must not be left out of the blob.
#[tokio::test(start_paused = true)]
async fn an_upload_that_lost_a_block_is_not_committed() {
    let staged = || answer(201, "", "");
    for failed in [refusal(403, "AuthorizationFailure"), Step::Silence] {
        let script = Script::of([
            Connection::Open(vec![staged(), failed]),
            Connection::Open(vec![staged(), staged(), staged()]),
        ]);
        let blob = account(&script).container("c").blob("b");
        let mut upload = blob.upload_in_blocks(BlobWrite::default(), 4);
        upload.write(&b"0123456"[..]).await.expect("a block");
        // It fails, or is dropped before an answer is there.
        let second = tokio::time::timeout(Duration::from_secs(1), upload.write(&b"789"[..])).await;
        assert!(!matches!(second, Ok(Ok(()))), "{second:?}");
        let error = upload.write(&b"abcdef"[..]).await.expect_err("a block is missing");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        let error = upload.finish().await.expect_err("a block is missing");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert_eq!(script.requests().len(), 2, "nothing is sent any more");
    }
}

#[tokio::test(start_paused = true)]
async fn plain_requests_name_the_whole_address_to_a_proxy() {
    let script = Script::of([Connection::Open(vec![inserted()])]);
    let account = account_with(&script, HOST_STYLE, |settings| {
        settings.proxies = Proxies::new("http://user:word@proxy:3128", "", "");
    });
    assert!(account.table("T").insert(&entity()).await.is_ok());
    assert_eq!(script.hosts(), ["proxy:3128"]);
    let request = &script.requests()[0];
    assert!(request.starts_with("POST http://abc.table.core.windows.net/T HTTP/1.1\r\n"), "{request}");
    assert_eq!(header(request, "host"), "abc.table.core.windows.net");
    assert_eq!(header(request, "proxy-authorization"), "Basic dXNlcjp3b3Jk");
}

#[tokio::test(start_paused = true)]
async fn a_proxy_is_asked_for_a_tunnel_to_an_encrypted_endpoint() {
    let script = Script::of([Connection::Open(vec![answer(407, "", "")])]);
    let pem = include_bytes!("../../front_end/tests/certificates/server.pem").to_vec();
    let account = account_with(&script, "AccountName=abc;AccountKey=AAEC", |settings| {
        settings.proxies = Proxies::new("", "http://proxy:3128", "");
        settings.tls_roots = TlsRoots::Pem(pem);
    });
    let error = account.table("T").insert(&entity()).await.expect_err("no tunnel");
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Connection, 1), "{error}");
    assert!(error.message().contains("name and a password"), "{error}");
    let request = &script.requests()[0];
    assert!(request.starts_with("CONNECT abc.table.core.windows.net:443 HTTP/1.1\r\n"), "{request}");
    assert!(!request.contains("Authorization: SharedKey"), "nothing of the request is shown to the proxy");
}

#[tokio::test(start_paused = true)]
async fn connections_are_bounded_shared_and_renewed() {
    let script = Script::of([
        Connection::Open(vec![inserted(), inserted(), inserted()]),
        Connection::Open(vec![inserted()]),
        Connection::Open(vec![inserted()]),
    ]);
    let account =
        account_with(&script, "UseDevelopmentStorage=true", |settings| settings.connections_max = 1);
    let (table, entity) = (account.table("T"), entity());
    let (one, two, three) = tokio::join!(table.insert(&entity), table.insert(&entity), table.insert(&entity));
    assert!(one.is_ok() && two.is_ok() && three.is_ok());
    assert_eq!(script.hosts().len(), 1, "one connection at most");
    // The server closed it meanwhile: no attempt is lost by that.
    assert!(table.insert(&entity).await.is_ok());
    assert_eq!(script.hosts().len(), 2);
    assert_eq!(script.requests().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_not_used_when_it_is_old() {
    let script =
        Script::of([Connection::Open(vec![inserted(), inserted()]), Connection::Open(vec![inserted()])]);
    let account = account(&script);
    let table = account.table("T");
    assert!(table.insert(&entity()).await.is_ok());
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(table.insert(&entity()).await.is_ok());
    assert_eq!(script.hosts().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn silence_ends_in_time() {
    let silent = || Connection::Open(vec![Step::Silence]);
    let script = Script::of([silent(), silent(), silent(), silent()]);
    let account = account(&script);
    let started = tokio::time::Instant::now();
    let error = account.table("T").get("p", "r").await.expect_err("no answer");
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::TimedOut, 4), "{error}");
    assert_eq!(error.gave_up(), Some(Reason::RetriesExhausted));
    let took = started.elapsed();
    assert!(took > Duration::from_secs(160) && took < Duration::from_secs(170), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn the_budget_ends_retries() {
    let silent = || Connection::Open(vec![Step::Silence]);
    let script = Script::of([silent(), silent(), silent(), silent()]);
    let account = account_with(&script, "UseDevelopmentStorage=true", |settings| {
        settings.retry = settings.retry.within(Duration::from_secs(70));
    });
    let error = account.table("T").get("p", "r").await.expect_err("no answer");
    assert_eq!((error.attempts(), error.gave_up()), (2, Some(Reason::BudgetExhausted)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_download_goes_on_where_it_broke_in_the_same_version() {
    let head = "HTTP/1.1 200 OK\r\netag: \"1\"\r\nx-ms-blob-type: BlockBlob\r\ncontent-length: 10\r\n\r\n";
    let rest = answer(206, "etag: \"1\"\r\ncontent-range: bytes 4-9/10\r\n", "456789");
    let script =
        Script::of([Connection::Open(vec![Step::Cut(format!("{head}0123"))]), Connection::Open(vec![rest])]);
    let blob = account(&script).container("c").blob("b");
    assert_eq!(blob.read(None).await.expect("bytes"), "0123456789");
    let request = &script.requests()[1];
    assert_eq!((header(request, "x-ms-range"), header(request, "if-match")), ("bytes=4-9", "\"1\""));
    // Changed meanwhile: an error, not a mixture.
    let changed = refusal(412, "ConditionNotMet");
    let script = Script::of([
        Connection::Open(vec![Step::Cut(format!("{head}0123"))]),
        Connection::Open(vec![changed]),
    ]);
    let error = account(&script).container("c").blob("b").read(None).await.expect_err("another version");
    assert_eq!(error.status(), Some(412));
}

#[tokio::test(start_paused = true)]
async fn empty_pages_are_walked_and_a_repeated_page_ends() {
    let page = |token: &str, entities: &str| {
        let header = if token.is_empty() {
            String::new()
        } else {
            format!("x-ms-continuation-NextPartitionKey: {token}\r\n")
        };
        answer(200, &header, &format!("{{\"value\":[{entities}]}}"))
    };
    let one = "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}";
    let script = Script::of([Connection::Open(vec![
        page("1!4!YQ--", ""),
        page("b", one),
        page("c", ""),
        page("", ""),
    ])]);
    let account = account(&script);
    let found = account.table("T").query(Query::all()).entities().take(9).await.expect("entities");
    assert_eq!(found, [Entity::new("p", "r")]);
    let requests = script.requests();
    assert_eq!(requests.len(), 4);
    assert!(
        requests[1].starts_with("GET /devstoreaccount1/T()?NextPartitionKey=1%214%21YQ-- "),
        "{}",
        requests[1]
    );

    let script = Script::of([Connection::Open(vec![page("a", ""), page("a", "")])]);
    let account = script::account(&script);
    let error = account.table("T").query(Query::all()).entities().next().await.expect_err("a circle");
    assert_eq!(error.kind(), ErrorKind::UnreadableAnswer);
}

#[tokio::test(start_paused = true)]
async fn a_refused_clock_is_named() {
    let headers = "date: Sat, 21 Nov 2026 10:30:00 GMT\r\nx-ms-error-code: AuthenticationFailed\r\n";
    let script = Script::of([Connection::Open(vec![answer(403, headers, "")])]);
    let error = account(&script).table("T").get("p", "r").await.expect_err("refused");
    assert_eq!(
        error.remedy().as_deref(),
        Some("this machine's clock is 90 min behind the service's: set it")
    );
}

#[tokio::test(start_paused = true)]
async fn a_large_group_is_refused_before_it_is_sent() {
    let script = Script::of([]);
    let operations = vec![GroupOperation::Insert(entity()); 101];
    let error = account(&script).table("T").submit(&operations).await.expect_err("too many");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(script.hosts().is_empty());
}

/// A load test counts by code what retries repaired, and what they did not.
#[tokio::test(start_paused = true)]
async fn an_observer_learns_what_retries_made_of_an_operation() {
    #[derive(Debug, Default)]
    struct Seen(parking_lot::Mutex<Vec<String>>);
    impl RetryObserver for Seen {
        fn ended(&self, operation: &'static str, repeated: &[RepeatedAttempt], end: Result<(), &Error>) {
            let codes: Vec<String> =
                repeated.iter().map(|one| format!("{:?} {}", one.status, one.code)).collect();
            self.0.lock().push(format!(
                "{operation}: {}; {}",
                codes.join(", "),
                end.map_or_else(Error::code, |()| "done")
            ));
        }
    }
    let seen = Arc::new(Seen::default());
    let script = Script::of([
        Connection::Open(vec![inserted(), busy(), Step::Close]),
        Connection::Open(vec![inserted(), busy(), refusal(409, "EntityAlreadyExists")]),
        Connection::Open(vec![]),
    ]);
    let account =
        account_with(&script, HOST_STYLE, |settings| settings.observer = Some(seen.clone() as Arc<_>));
    let table = account.table("T");
    table.insert(&entity()).await.expect("at once, which nobody is called for");
    table.insert(&entity()).await.expect("the third attempt");
    table.insert(&entity()).await.expect_err("it exists");
    let expected = [
        "insert entity: Some(503) ServerBusy, None ; done",
        "insert entity: Some(503) ServerBusy; EntityAlreadyExists",
    ];
    assert_eq!(*seen.0.lock(), expected);
}
