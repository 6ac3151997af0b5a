//! `--simulate`: limits in virtual time, boundaries at every page, and faults that repeat.

mod stamp;

use bytes::Bytes;
use front_end::auth::shared_key::SignedService;
use front_end::{ConnectionInfo, Simulation, parse_rule_file};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::header::{HeaderName, HeaderValue};
use stamp::answers::{Row, Service};
use stamp::{Answer, ROOT, Stamp};
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const MARK: &str = "x-larimar-simulated";
const BUSY: &str = "The server is busy.";

/// A stamp whose monotonic time stands at one second.
async fn simulating(rules: &str) -> (Stamp, Arc<Simulation>) {
    let simulation = Arc::new(Simulation::new(parse_rule_file(rules).expect("good rules")));
    let given = simulation.clone();
    let stamp = Stamp::with_settings(move |settings| settings.simulation = Some(given)).await;
    stamp.clock.set_monotonic(Duration::from_secs(1));
    (stamp, simulation)
}

async fn insert(stamp: &Stamp, partition: &str, row: usize) -> Answer {
    stamp.insert("Tasks", &format!(r#"{{"PartitionKey":"{partition}","RowKey":"{row:05}"}}"#)).await
}

fn assert_throttled(answer: &Answer, message: &str) {
    assert_eq!(
        (answer.status.as_u16(), answer.header("x-ms-error-code")),
        (503, "ServerBusy"),
        "{}",
        answer.body
    );
    assert_eq!(answer.header(MARK), "throttled");
    let found = answer.json()["odata.error"]["message"]["value"].as_str().expect("a message").to_owned();
    assert!(found.starts_with(message), "{found}");
}

/// The published target of a partition, and that of its neighbour at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_partitions_take_2000_entities_a_second_each() {
    let (stamp, _) = simulating("profile = \"azure\"\n[balancing]\nenabled = false").await;
    stamp.create_table("Tasks").await;
    let partitions = ["p", "q"];
    let (mut admitted, mut refused) = ([0u32; 2], 0);
    let mut row = 0;
    // A second's tokens are there at once. Then come 2,500 requests to each partition in half a second.
    for step in 0..2000 + 1250 {
        if step == 2000 {
            assert_eq!(admitted, [2000, 2000]);
            assert_throttled(&insert(&stamp, "p", 99_999).await, BUSY);
        }
        if step >= 2000 {
            stamp.clock.set_monotonic(Duration::from_secs(1) + Duration::from_micros(400 * (step - 1999)));
        }
        for (index, partition) in partitions.iter().enumerate() {
            row += 1;
            let answer = insert(&stamp, partition, row).await;
            match answer.status.as_u16() {
                204 => admitted[index] += 1,
                _ => {
                    assert_throttled(&answer, BUSY);
                    refused += 1;
                }
            }
        }
    }
    for count in admitted.map(|count| count - 2000) {
        assert!((950..=1050).contains(&count), "{count} in half a second");
    }
    assert!(refused > 0);
}

/// Eleven partitions could take 22,000 entities a second, and their account takes 20,000.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_takes_20000_requests_a_second_over_eleven_partitions() {
    let (stamp, _) = simulating("profile = \"azure\"\n[balancing]\nenabled = false").await;
    let mut admitted = 0;
    let mut refused_by_account = 0;
    // A get of what is not there takes as much as another.
    let paths: Vec<String> =
        (0..11).map(|number| format!("/Tasks(PartitionKey='p{number}',RowKey='r')")).collect();
    let started = Duration::from_secs(1);
    for step in 0..2000 + 400u32 {
        if step == 2000 {
            assert_eq!(admitted, 20_000);
            admitted = 0;
        }
        if step >= 2000 {
            // 500 rounds in a quarter of a second would be 22,000 a second.
            stamp.clock.set_monotonic(started + Duration::from_micros(500) * (step - 1999));
        }
        for path in &paths {
            let answer = stamp.send("GET", path, &[], "").await;
            match answer.status.as_u16() {
                404 => admitted += 1,
                _ => {
                    assert_throttled(&answer, "Operations per second is over the account limit.");
                    refused_by_account += 1;
                }
            }
        }
    }
    // 400 rounds are a fifth of a second.
    assert!((3800..=4200).contains(&admitted), "{admitted} in a fifth of a second");
    assert!(refused_by_account > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_takes_as_much_as_its_entities_and_is_refused_whole() {
    let (stamp, _) = simulating("[limits]\npartition_entities_per_second = 5").await;
    stamp.create_table("Tasks").await;
    let batch = |rows: std::ops::Range<usize>| {
        let parts = rows.map(|row| {
            format!(
                "--c\r\nContent-Type: application/http\r\n\r\nPOST {ROOT}/Tasks HTTP/1.1\r\n\
                 Content-Type: application/json\r\n\r\n{{\"PartitionKey\":\"p\",\"RowKey\":\"{row}\"}}\r\n"
            )
        });
        let parts: String = parts.collect();
        format!("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{parts}--c--\r\n--b--\r\n")
    };
    let headers = [("content-type", "multipart/mixed; boundary=b")];
    let answer = stamp.send("POST", "/$batch", &headers, &batch(0..4)).await.expect(202);
    assert_eq!(answer.body.matches("HTTP/1.1 2").count(), 4, "{}", answer.body);
    let refused = stamp.send("POST", "/$batch", &headers, &batch(4..6)).await;
    assert_throttled(&refused, BUSY);
    insert(&stamp, "p", 7).await.expect(204);
    insert(&stamp, "p", 8).await.expect(503);
    stamp.clock.set_monotonic(Duration::from_millis(1400));
    stamp.send("POST", "/$batch", &headers, &batch(4..6)).await.expect(202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_count_when_they_are_taken() {
    let (stamp, _) = simulating("[limits]\nqueue_messages_per_second = 10").await;
    stamp.send_queue("PUT", "/jobs", &[], "").await.expect(201);
    let message = "<QueueMessage><MessageText>x</MessageText></QueueMessage>";
    for _ in 0..10 {
        stamp.send_queue("POST", "/jobs/messages", &[], message).await.expect(201);
    }
    let refused = stamp.send_queue("POST", "/jobs/messages", &[], message).await;
    let refused = refused.expect_error(503, "ServerBusy");
    assert!(refused.body.contains(BUSY), "{}", refused.body);
    // What is not about messages goes on.
    stamp.send_queue("GET", "/jobs?comp=metadata", &[], "").await.expect(200);
    stamp.clock.set_monotonic(Duration::from_secs(3));
    stamp.send_queue("GET", "/jobs/messages?numofmessages=8", &[], "").await.expect(200);
    stamp.send_queue("GET", "/jobs/messages?numofmessages=2", &[], "").await.expect(200);
    stamp.send_queue("GET", "/jobs/messages", &[], "").await.expect_error(503, "ServerBusy");
}

/// Follows the tokens of a query; gives the rows, the number of empty pages, and that of tokens without a
/// RowKey.
async fn all_pages(stamp: &Stamp, options: &str) -> (Vec<(String, String)>, usize, usize) {
    let (mut rows, mut empty, mut partition_only) = (Vec::new(), 0, 0);
    let mut token = String::new();
    for _ in 0..1000 {
        let path = format!("/Tasks()?{options}{token}");
        let answer = stamp.send("GET", &path, &[("accept", "application/json;odata=nometadata")], "").await;
        let answer = answer.expect(200);
        let values = answer.json()["value"].as_array().expect("rows").clone();
        let text = |value: &serde_json::Value, name: &str| value[name].as_str().expect("a key").to_owned();
        rows.extend(values.iter().map(|value| (text(value, "PartitionKey"), text(value, "RowKey"))));
        let next = answer.header("x-ms-continuation-nextpartitionkey").to_owned();
        if next.is_empty() {
            return (rows, empty, partition_only);
        }
        assert!(!answer.header(MARK).is_empty(), "{:?}", answer.headers);
        empty += usize::from(values.is_empty());
        token = format!("&NextPartitionKey={next}");
        match answer.header("x-ms-continuation-nextrowkey") {
            "" => partition_only += 1,
            row => token.push_str(&format!("&NextRowKey={row}")),
        }
    }
    panic!("the tokens lead nowhere: {rows:?}");
}

/// The pages that clients meet only on the live service, at every place where they may be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_follows_tokens_sees_every_row_once() {
    let (stamp, simulation) = simulating("").await;
    stamp.create_table("Tasks").await;
    let mut expected = Vec::new();
    for partition in ["a", "b", "c'\u{e9}"] {
        for row in 0..3 {
            let key = (partition.to_owned(), format!("{row:05}"));
            let body = format!(r#"{{"PartitionKey":"{}","RowKey":"{}","N":{row}}}"#, key.0, key.1);
            stamp.insert("Tasks", &body).await.expect(204);
            expected.push(key);
        }
    }
    assert_eq!(all_pages(&stamp, "").await, (expected.clone(), 0, 0));
    let every = "[boundaries]\npartitions = 1\nempty = 1\npage_rows = 1";
    simulation.replace_settings(parse_rule_file(every).expect("good rules"));
    let (rows, empty, partition_only) = all_pages(&stamp, "").await;
    // One page before each row, and one more before all of them.
    assert_eq!((rows, empty, partition_only), (expected.clone(), 10, 3));
    let (rows, empty, _) = all_pages(&stamp, "$filter=N%20eq%202").await;
    let filtered: Vec<_> = expected.iter().filter(|(_, row)| row.ends_with('2')).cloned().collect();
    assert_eq!(rows, filtered);
    assert!(empty >= 3, "before each match: {empty}");
    let (rows, ..) = all_pages(&stamp, "$top=2&$select=PartitionKey,RowKey").await;
    assert_eq!(rows, expected);
    // A budget of rows that are examined: pages without a match, and then one.
    let budget = "[boundaries]\nexamined_rows = 2";
    simulation.replace_settings(parse_rule_file(budget).expect("good rules"));
    let answer = stamp.send("GET", "/Tasks()?$filter=N%20eq%202", &[], "").await.expect(200);
    assert_eq!(answer.json()["value"].as_array().map(Vec::len), Some(0));
    assert!(!answer.header("x-ms-continuation-nextpartitionkey").is_empty());
    for seed in 0..10 {
        let some = format!("seed = {seed}\n[boundaries]\npartitions = 0.5\nempty = 0.5\nexamined_rows = 4");
        simulation.replace_settings(parse_rule_file(&some).expect("good rules"));
        let mut rows = Vec::new();
        let mut token = String::new();
        loop {
            let answer = stamp.send("GET", &format!("/Tasks()?{token}"), &[], "").await.expect(200);
            let page = answer.json()["value"].as_array().expect("rows").clone();
            rows.extend(page.iter().map(|row| format!("{}{}", row["PartitionKey"], row["RowKey"])));
            let header = |name: &str| answer.header(&format!("x-ms-continuation-next{name}")).to_owned();
            match (header("partitionkey"), header("rowkey")) {
                (next, _) if next.is_empty() => break,
                (next, row) => token = format!("NextPartitionKey={next}&NextRowKey={row}"),
            }
        }
        assert_eq!(rows.len(), expected.len(), "seed {seed}: {rows:?}");
    }
}

/// A page that is full, and has another behind it, says why it ended; the last one, and one that ends where
/// the request wants it to, do not.
#[tokio::test(flavor = "current_thread")]
async fn lists_have_small_pages_with_markers_and_marks() {
    let log = Log::default();
    let _guard = log.is_written_here();
    let (stamp, _) = simulating("[boundaries]\npage_rows = 2").await;
    for name in ["Aaa", "Bbb", "Ccc"] {
        stamp.create_table(name).await;
        let name = name.to_lowercase();
        stamp.send_queue("PUT", &format!("/{name}"), &[], "").await.expect(201);
        Row::of("PUT", format!("/{name}?restype=container")).send(&stamp, Service::Blob).await.expect(201);
        let blob = Row::of("PUT", format!("/aaa/{name}")).header("x-ms-blob-type", "BlockBlob");
        blob.send(&stamp, Service::Blob).await.expect(201);
    }
    let marked = |answer: &Answer| match answer.header(MARK) {
        "" => false,
        mark => mark == "boundary" || panic!("{mark}"),
    };
    for (query, count, has_next, is_marked) in [
        ("", 2, true, true),
        ("$top=1", 1, true, false),
        ("$top=2", 2, true, false),
        ("$filter=TableName%20gt%20'Aaa'", 2, false, false),
    ] {
        let tables = stamp.send("GET", &format!("/Tables?{query}"), &[], "").await.expect(200);
        let found = tables.json()["value"].as_array().map_or(0, Vec::len);
        let next = !tables.header("x-ms-continuation-nexttablename").is_empty();
        assert_eq!((found, next, marked(&tables)), (count, has_next, is_marked), "{query}");
    }
    for (service, path, element) in [
        (Service::Queue, "/?comp=list", "<Queue>"),
        (Service::Blob, "/?comp=list", "<Container>"),
        (Service::Blob, "/aaa?restype=container&comp=list", "<Blob>"),
    ] {
        for (query, count, has_next, is_marked) in [
            ("", 2, true, true),
            ("&maxresults=1", 1, true, false),
            ("&maxresults=2", 2, true, false),
            ("&prefix=b", 1, false, false),
        ] {
            let list = Row::of("GET", format!("{path}{query}")).send(&stamp, service).await.expect(200);
            let next =
                !list.body.contains("<NextMarker />") && !list.body.contains("<NextMarker></NextMarker>");
            let found = (list.body.matches(element).count(), next, marked(&list));
            assert_eq!(found, (count, has_next, is_marked), "{element} {query}: {}", list.body);
        }
    }
    let lines = log.lines();
    assert_eq!(lines.len(), 4, "{lines:?}");
    for (line, operation) in lines.iter().zip(["QueryTables", "ListQueues", "ListContainers", "ListBlobs"]) {
        let text = format!("simulated: a page ends with 2 entries, {operation} of devstoreaccount1: ");
        assert!(line.contains(&text), "{line}");
    }
}

/// A batch of deletions: status, whether the connection is reset, and the body.
async fn delete_in_batch(stamp: &Stamp, paths: &[&str]) -> (u16, bool, String) {
    let part = |path: &&str| {
        let path = format!("{ROOT}{path}");
        let headers = stamp.headers_signed_for(SignedService::BlobOrQueue, "DELETE", &path, &[]);
        let line = |(name, value): (&HeaderName, &HeaderValue)| {
            format!("{name}: {}\r\n", value.to_str().expect("text"))
        };
        let lines: String = headers.iter().map(line).collect();
        format!("--b\r\nContent-Type: application/http\r\n\r\nDELETE {path} HTTP/1.1\r\n{lines}\r\n")
    };
    let body: String = paths.iter().map(part).collect::<String>() + "--b--";
    let target = format!("{ROOT}/?comp=batch");
    let length = body.len().to_string();
    let headers = [
        ("x-ms-version", "2026-10-06"),
        ("content-length", length.as_str()),
        ("content-type", "multipart/mixed; boundary=b"),
    ];
    let signed = stamp.headers_signed_for(SignedService::BlobOrQueue, "POST", &target, &headers);
    let mut request = Request::builder().method("POST").uri(&target);
    for (name, value) in &signed {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(Bytes::from(body))).expect("a request");
    let connection = ConnectionInfo { peer: Some([127, 0, 0, 1].into()), encrypted: false };
    let (parts, body) = stamp.front_end.handle_blob(connection, request).await.into_parts();
    let resets = body.resets_connection();
    let body = body.collect().await.expect("a body").to_bytes().to_vec();
    (parts.status.as_u16(), resets, String::from_utf8(body).expect("text"))
}

/// The parts of a batch are requests of their own: each meets its faults in its place, and the batch its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_of_a_blob_batch_meet_their_own_faults() {
    let (stamp, simulation) = simulating("").await;
    Row::of("PUT", "/box?restype=container").send(&stamp, Service::Blob).await.expect(201);
    let paths = ["/box/a", "/box/b", "/box/c"];
    let nothing = [404; 3];
    for (rule, status, resets, answers, left) in [
        ("operation = \"BlobBatch\"\nreset = \"after\"", None, true, &[][..], nothing),
        ("operation = \"BlobBatch\"\nreset = \"before\"", None, true, &[], [200; 3]),
        ("operation = \"BlobBatch\"\nstatus = 500\nwhen = \"after\"", Some(500), false, &[], nothing),
        (
            "operation = \"DeleteBlob\"\nstatus = 500\nwhen = \"after\"",
            Some(202),
            false,
            &["500 ", "500 ", "500 "],
            nothing,
        ),
        (
            "operation = \"DeleteBlob\"\nevery = 2\nstatus = 500\nwhen = \"after\"",
            Some(202),
            false,
            &["202 ", "500 ", "202 "],
            nothing,
        ),
        (
            "operation = \"DeleteBlob\"\nevery = 3\nstatus = 503",
            Some(202),
            false,
            &["202 ", "202 ", "503 "],
            [404, 404, 200],
        ),
        (
            "key_prefix = \"box/b\"\noperation = \"DeleteBlob\"\nreset = \"before\"",
            None,
            true,
            &[],
            [404, 200, 404],
        ),
        ("key_prefix = \"box/b\"\noperation = \"DeleteBlob\"\nreset = \"after\"", None, true, &[], nothing),
    ] {
        simulation.replace_settings(parse_rule_file("").expect("good rules"));
        for path in paths {
            let blob = Row::of("PUT", path).header("x-ms-blob-type", "BlockBlob");
            blob.send(&stamp, Service::Blob).await.expect(201);
        }
        let rules = format!("[[fault]]\nname = \"it\"\n{rule}");
        simulation.replace_settings(parse_rule_file(&rules).expect("good rules"));
        let (found, is_reset, body) = delete_in_batch(&stamp, &paths).await;
        assert_eq!(is_reset, resets, "{rule}: {found} {body}");
        assert!(status.is_none_or(|status| status == found), "{rule}: {found} {body}");
        let parts: Vec<&str> = body.split("HTTP/1.1 ").skip(1).collect();
        assert_eq!(parts.len(), answers.len(), "{rule}: {body}");
        for (part, start) in parts.iter().zip(answers) {
            assert!(part.starts_with(start), "{rule}: {body}");
            assert_eq!(
                part.contains("x-larimar-simulated: fault it\r\n"),
                *start != "202 ",
                "{rule}: {body}"
            );
        }
        for (path, status) in paths.iter().zip(left) {
            Row::of("HEAD", *path).send(&stamp, Service::Blob).await.expect(status);
        }
    }
}

/// What is logged on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("not poisoned").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Takes what is logged on this thread.
    fn is_written_here(&self) -> tracing::subscriber::DefaultGuard {
        let writer = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .without_time()
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().expect("not poisoned").clone()).expect("text");
        text.lines().filter(|line| line.contains("simulated: ")).map(str::to_owned).collect()
    }
}

/// The same requests against a server with that seed: its log, and the statuses.
async fn run_with_seed(seed: u64) -> (Vec<String>, Vec<u16>) {
    let rules = format!(
        "seed = {seed}\n[boundaries]\nempty = 0.5\npartitions = 0.5\n\
         [[fault]]\nname = \"some\"\noperation = \"InsertEntity\"\nprobability = 0.3\nstatus = 500\nwhen = \"after\"\n\
         [[fault]]\nname = \"third\"\nkey_prefix = \"Tasks/q\"\nevery = 3\nreset = \"before\""
    );
    let log = Log::default();
    let _guard = log.is_written_here();
    let (stamp, _) = simulating(&rules).await;
    stamp.create_table("Tasks").await;
    let mut statuses = Vec::new();
    for row in 0..40 {
        for partition in ["p", "q"] {
            statuses.push(insert(&stamp, partition, row).await.status.as_u16());
        }
        statuses.push(stamp.send("GET", "/Tasks()", &[], "").await.status.as_u16());
    }
    (log.lines(), statuses)
}

#[tokio::test(flavor = "current_thread")]
async fn a_seed_repeats_its_faults() {
    let (first, second, other) = (run_with_seed(7).await, run_with_seed(7).await, run_with_seed(8).await);
    assert!(first.0.len() > 20, "{first:?}");
    assert_eq!(first, second);
    assert_ne!(first.0, other.0);
    let marked = |part: &str| first.0.iter().any(|line| line.contains(part));
    assert!(marked("fault some #") && marked("fault third #3") && marked("a page ends"), "{:?}", first.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_given_before_and_after_the_work() {
    let rule =
        |what: &str| format!("[[fault]]\nname = \"it\"\noperation = \"InsertEntity\"\ntimes = 1\n{what}");
    let (stamp, simulation) = simulating("").await;
    stamp.create_table("Tasks").await;
    for (row, what, status, code, message, is_done) in [
        (1, "status = 503", 503, "ServerBusy", BUSY, false),
        (
            2,
            "status = 500\ncode = \"OperationTimedOut\"\nwhen = \"after\"",
            500,
            "OperationTimedOut",
            "The server",
            true,
        ),
        (3, "status = 429\nmessage = \"slow down\"", 429, "TooManyRequests", "slow down", false),
        (
            4,
            "status = 504\ncode = \"GatewayTimeout\"\nwhen = \"after\"",
            504,
            "GatewayTimeout",
            "Gateway Timeout",
            true,
        ),
    ] {
        simulation.replace_settings(parse_rule_file(&rule(what)).expect("good rules"));
        let answer = insert(&stamp, "p", row).await.expect_error(status, code);
        assert_eq!((answer.header(MARK), answer.code().as_str()), ("fault it", code), "{}", answer.body);
        assert!(answer.body.contains(message), "{}", answer.body);
        let path = format!("/Tasks(PartitionKey='p',RowKey='{row:05}')");
        let found = stamp.send("GET", &path, &[], "").await.status.as_u16();
        assert_eq!(found, if is_done { 200 } else { 404 }, "{what}");
        // Once is enough, and the try after it is not disturbed.
        let again = insert(&stamp, "p", row).await;
        assert_eq!(
            (again.status.as_u16(), again.header(MARK)),
            (if is_done { 409 } else { 204 }, ""),
            "{what}"
        );
    }
    // XML of the other services, in the reason as well.
    simulation.replace_settings(
        parse_rule_file("[[fault]]\nservice = \"queue\"\nstatus = 503").expect("good rules"),
    );
    let answer = stamp.send_queue("GET", "/?comp=list", &[], "").await.expect_error(503, "ServerBusy");
    assert!(answer.body.contains("<Code>ServerBusy</Code>"), "{}", answer.body);
    stamp.send("GET", "/Tables", &[], "").await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delay_holds_up_what_it_matches() {
    let rules = "[[fault]]\nname = \"slow\"\nkey_prefix = \"Tasks/p/\"\ndelay_ms = 300";
    let (stamp, _) = simulating(rules).await;
    stamp.create_table("Tasks").await;
    #[allow(clippy::disallowed_methods)] // The test waits as a client does.
    let started = Instant::now();
    insert(&stamp, "q", 1).await.expect(204);
    assert!(started.elapsed() < Duration::from_millis(300));
    let answer = insert(&stamp, "p", 1).await.expect(204);
    assert!(started.elapsed() >= Duration::from_millis(300));
    assert_eq!(answer.header(MARK), "fault slow");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_that_is_moved_is_away_and_comes_back() {
    // 100 entities a second at most; load for 0.1 s; away for half a second.
    let rules = "speed = 10\n[limits]\npartition_entities_per_second = 100\n\
                 [balancing]\nload = 0.5\nbegins_after_s = 1\naway_min_s = 5\naway_max_s = 5\naveraged_s = 1";
    let (stamp, _) = simulating(rules).await;
    let (mut answers, mut served_after) = (std::collections::BTreeMap::new(), 0);
    for step in 0..150u32 {
        stamp.clock.set_monotonic(Duration::from_secs(1) + Duration::from_millis(10) * step);
        let answer = stamp.send("GET", "/Tasks(PartitionKey='p',RowKey='r')", &[], "").await;
        let found = (answer.status.as_u16(), answer.header("x-ms-error-code").to_owned());
        if found.0 != 404 {
            assert_eq!(answer.header(MARK), "balancing");
        } else if !answers.is_empty() {
            served_after += 1;
            continue;
        } else {
            continue;
        }
        *answers.entry(found).or_insert(0) += 1;
    }
    let count = |status, code: &str| answers.get(&(status, code.to_owned())).copied().unwrap_or(0);
    let (timed_out, busy) = (count(500, "OperationTimedOut"), count(503, "ServerBusy"));
    assert!((48..=52).contains(&(timed_out + busy)), "half a second: {answers:?}");
    assert!(timed_out > 5 && busy > 5, "{answers:?}");
    assert!(served_after > 50, "{served_after}");
}

/// A page blob may be requested 500 times a second, and the server learns only from the answer that it is
/// one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_blobs_have_limits_of_their_own() {
    let rules = "[limits]\nblock_blob_requests_per_second = 12\npage_blob_requests_per_second = 4\n\
                 page_blob_bytes_per_second = 1024";
    let (stamp, _) = simulating(rules).await;
    let stamp = &stamp;
    let send = |row: Row| async move { row.send(stamp, Service::Blob).await.status.as_u16() };
    assert_eq!(send(Row::of("PUT", "/box?restype=container")).await, 201);
    let page = Row::of("PUT", "/box/page")
        .header("x-ms-blob-type", "PageBlob")
        .header("x-ms-blob-content-length", "512");
    assert_eq!(send(page).await, 201);
    let block = Row::of("PUT", "/box/block").header("x-ms-blob-type", "BlockBlob").body(vec![7; 512]);
    assert_eq!(send(block).await, 201);
    let admitted = |path: &'static str| async move {
        let mut count = 0;
        while send(Row::of("HEAD", path)).await == 200 {
            count += 1;
        }
        count
    };
    assert_eq!(admitted("/box/block").await, 11);
    assert_eq!(admitted("/box/page").await, 3);
    stamp.clock.set_monotonic(Duration::from_secs(10));
    // 512 bytes, twice, are a second's.
    assert_eq!(send(Row::of("GET", "/box/page")).await, 200);
    assert_eq!(send(Row::of("GET", "/box/page")).await, 200);
    assert_eq!(send(Row::of("GET", "/box/page")).await, 503);
}
