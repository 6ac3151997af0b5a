//! The front end on real sockets: keep-alive, bounds in time, and a graceful stop.
#![allow(clippy::disallowed_methods)] // Tests open the sockets that production code is handed.

mod stamp;

use front_end::Limits;
use stamp::ROOT;
use stamp::listening::{Running, Service, ends, read_answer};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn start(limits: Limits) -> Running {
    Running::start(limits, Service::Table).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_connection_serves_many_requests_and_a_stop_closes_it() {
    let running = start(Limits::default()).await;
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    for _ in 0..3 {
        stream.write_all(running.request("GET", "/Tables", "").as_bytes()).await.expect("sent");
        let answer = read_answer(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert_eq!(answer.matches("\r\ndate: ").count(), 1, "{answer}");
    }
    let mut idle = TcpStream::connect(running.address).await.expect("a connection");
    running.stop.send(()).expect("running");
    assert!(ends(&mut stream).await && ends(&mut idle).await);
    running.served.await.expect("stopped");
    assert!(TcpStream::connect(running.address).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_under_way_is_finished_after_a_stop() {
    let running = start(Limits::default()).await;
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    let request = running.request("POST", "/Tables", r#"{"TableName":"People"}"#);
    let (most, rest) = request.as_bytes().split_at(request.len() - 5);
    stream.write_all(most).await.expect("sent");
    tokio::time::sleep(Duration::from_millis(100)).await;
    running.stop.send(()).expect("running");
    tokio::time::sleep(Duration::from_millis(100)).await;
    stream.write_all(rest).await.expect("sent");
    let answer = read_answer(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 201 Created"), "{answer}");
    running.served.await.expect("stopped");
}

/// Its first request was still on the way when the server stopped, and it was reset.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_just_connected_is_answered_after_a_stop() {
    let running = start(Limits::default()).await;
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    let mut silent = TcpStream::connect(running.address).await.expect("a connection");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let request = running.request("GET", "/Tables", "");
    running.stop.send(()).expect("running");
    tokio::time::sleep(Duration::from_millis(20)).await;
    stream.write_all(request.as_bytes()).await.expect("sent");
    let answer = read_answer(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(ends(&mut stream).await && ends(&mut silent).await);
    // Long before the time for what is under way.
    let stopped = tokio::time::timeout(Duration::from_secs(5), running.served);
    stopped.await.expect("in time").expect("stopped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_is_bounded() {
    let limits = Limits { drain_for_max: Duration::from_millis(200), ..Limits::default() };
    let running = start(limits).await;
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    let request = running.request("POST", "/Tables", r#"{"TableName":"People"}"#);
    stream.write_all(&request.as_bytes()[..request.len() - 5]).await.expect("sent");
    tokio::time::sleep(Duration::from_millis(100)).await;
    running.stop.send(()).expect("running");
    tokio::time::timeout(Duration::from_secs(5), running.served).await.expect("in time").expect("stopped");
    assert!(ends(&mut stream).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_send_nothing_or_half_are_dropped() {
    let limits = Limits { header_read_for_max: Duration::from_millis(200), ..Limits::default() };
    let running = start(limits).await;
    for start in ["", "P", "PRI * HTTP/2.0\r\n", "GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: x\r\n"] {
        let mut stream = TcpStream::connect(running.address).await.expect("a connection");
        stream.write_all(start.as_bytes()).await.expect("sent");
        assert!(ends(&mut stream).await, "{start:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_and_large_bodies_are_refused() {
    let limits = Limits { request_for_max: Duration::from_millis(300), ..Limits::default() };
    let running = start(limits).await;
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    let request = running.request("POST", "/Tables", r#"{"TableName":"People"}"#);
    stream.write_all(&request.as_bytes()[..request.len() - 5]).await.expect("sent");
    let answer = read_answer(&mut stream).await;
    assert!(answer.contains("OperationTimedOut"), "{answer}");
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    let request =
        running.request("POST", "/Tables", "").replace("content-length: 0", "content-length: 5000000");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let answer = read_answer(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

/// What is on the wire and in no list of headers: older .NET clients close a connection on a 204 without a
/// length, and tell of errors only what stands in the first line. The Table service's are HTTP's own words,
/// as in Azure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_lines_and_empty_answers_are_as_azures() {
    let running = Running::start(Limits::default(), Service::Blob).await;
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    let mut request = format!("HEAD {ROOT}/box/none HTTP/1.1\r\n");
    for (name, value) in running.blob_headers("HEAD", "/box/none", &[]) {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{request}\r\n").as_bytes()).await.expect("sent");
    let answer = read_answer(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 404 The specified container does not exist.\r\n"), "{answer}");
    let running = start(Limits::default()).await;
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    for (method, path, body, first) in [
        ("POST", "/Tables", r#"{"TableName":"People"}"#, "HTTP/1.1 201 Created\r\n"),
        ("GET", "/People(PartitionKey='a',RowKey='b')", "", "HTTP/1.1 404 Not Found\r\n"),
        ("PUT", "/People(PartitionKey='a',RowKey='b')", "{}", "HTTP/1.1 204 No Content\r\n"),
    ] {
        stream.write_all(running.request(method, path, body).as_bytes()).await.expect("sent");
        let answer = read_answer(&mut stream).await;
        assert!(answer.starts_with(first), "{answer}");
        assert!(!first.contains("204") || answer.contains("\r\ncontent-length: 0\r\n"), "{answer}");
    }
}

/// HTTP takes a body for empty if nothing gives its length: a blob whose length was lost on the way was
/// stored as empty.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_without_a_length_is_refused() {
    let running = Running::start(Limits::default(), Service::Blob).await;
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    for (length, expected) in [
        ("", "HTTP/1.1 411 Content-Length HTTP header is missing."),
        ("content-length: 0\r\n", "HTTP/1.1 201"),
    ] {
        let mut request = format!("PUT {ROOT}/box?restype=container HTTP/1.1\r\n{length}");
        for (name, value) in running.blob_headers("PUT", "/box?restype=container", &[]) {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let answer = read_answer(&mut stream).await;
        assert!(answer.starts_with(expected), "{answer}");
    }
}

/// Clients look metadata up by the name that they gave it, capitals included.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_names_keep_their_case() {
    let running = Running::start(Limits::default(), Service::Blob).await;
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    let metadata = [("x-ms-meta-doctype", "1"), ("x-ms-meta-plain", "2")];
    for (method, headers) in [("PUT", &metadata[..]), ("GET", &[])] {
        let mut request = format!("{method} {ROOT}/box?restype=container HTTP/1.1\r\ncontent-length: 0\r\n");
        for (name, value) in running.blob_headers(method, "/box?restype=container", headers) {
            request.push_str(&format!(
                "{}: {value}\r\n",
                name.replace("x-ms-meta-doctype", "X-Ms-Meta-docType")
            ));
        }
        stream.write_all(format!("{request}\r\n").as_bytes()).await.expect("sent");
        let answer = read_answer(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
        for line in ["x-ms-meta-docType: 1", "x-ms-meta-plain: 2"] {
            assert_eq!(answer.lines().any(|one| one == line), method == "GET", "{line} in {answer}");
        }
    }
}

/// The connection was closed on clients that send all before they look for an answer, which they lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_body_is_taken_in() {
    let running = start(Limits::default()).await;
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    let size = 24 * 1024 * 1024;
    let request = running
        .request("POST", "/Tables", "")
        .replace("content-length: 0", &format!("content-length: {size}"));
    stream.write_all(request.as_bytes()).await.expect("sent");
    stream.write_all(&vec![b'x'; size]).await.expect("taken in");
    assert!(read_answer(&mut stream).await.starts_with("HTTP/1.1 413"));
    stream.write_all(running.request("GET", "/Tables", "").as_bytes()).await.expect("sent");
    assert!(read_answer(&mut stream).await.starts_with("HTTP/1.1 200"));
}

/// Only bodies that were too large were taken in: a client that sent a large blob to a container that is not
/// there, or with a wrong signature, found the connection closed, and no answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_body_of_any_refused_request_is_taken_in() {
    let running = Running::start(Limits::default(), Service::Blob).await;
    let size = 24 * 1024 * 1024;
    let length = size.to_string();
    let missing = "/missing/b";
    let headers = [("content-length", length.as_str()), ("x-ms-blob-type", "BlockBlob")];
    let as_wanted = running.blob_request("PUT", missing, &headers);
    let unsigned: String =
        as_wanted.split_inclusive("\r\n").filter(|line| !line.starts_with("authorization")).collect();
    let table = [
        (as_wanted.clone(), "404", "ContainerNotFound"),
        (as_wanted.replace(missing, "/missing/c"), "403", "AuthenticationFailed"),
        (unsigned, "401", "NoAuthenticationInformation"),
        (
            running.blob_request("PUT", "/missing/b?comp=nothing", &headers),
            "400",
            "InvalidQueryParameterValue",
        ),
        (running.blob_request("PUT", missing, &headers[..1]), "400", "MissingRequiredHeader"),
    ];
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    for (request, status, code) in table {
        stream.write_all(request.as_bytes()).await.expect("sent");
        stream.write_all(&vec![b'x'; size]).await.unwrap_or_else(|error| panic!("{code}: {error}"));
        let answer = read_answer(&mut stream).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(code),
            "{code}: {answer}"
        );
    }
    // Who waits for leave to send gets the answer, and no leave.
    let request = as_wanted.replacen("\r\n", "\r\nexpect: 100-continue\r\n", 1);
    stream.write_all(request.as_bytes()).await.expect("sent");
    let answer = read_answer(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_bounded() {
    let limits = Limits { connections_max: 1, ..Limits::default() };
    let running = start(limits).await;
    let mut first = TcpStream::connect(running.address).await.expect("a connection");
    first.write_all(running.request("GET", "/Tables", "").as_bytes()).await.expect("sent");
    read_answer(&mut first).await;
    let mut second = TcpStream::connect(running.address).await.expect("the backlog");
    second.write_all(running.request("GET", "/Tables", "").as_bytes()).await.expect("sent");
    let waits = tokio::time::timeout(Duration::from_millis(200), second.read(&mut [0; 1])).await;
    assert!(waits.is_err(), "it waits for the first to go");
    drop(first);
    assert!(read_answer(&mut second).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_with_prior_knowledge_is_spoken() {
    // This client never acknowledges the stop, so the drain time has to end it.
    let running = start(Limits { drain_for_max: Duration::from_millis(200), ..Limits::default() }).await;
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    let empty_settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("sent");
    stream.write_all(&empty_settings).await.expect("sent");
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.expect("a frame");
    assert_eq!(frame[3], 4, "the server's settings come first");
    running.stop.send(()).expect("running");
    tokio::time::timeout(Duration::from_secs(5), running.served).await.expect("in time").expect("stopped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_are_bounded() {
    let running = start(Limits { header_size_bytes_max: 10_000, ..Limits::default() }).await;
    for (size, status) in [(5_000, "HTTP/1.1 200"), (12_000, "HTTP/1.1 431")] {
        let mut stream = TcpStream::connect(running.address).await.expect("a connection");
        let request = running.request("GET", "/Tables", "");
        let request = request.replacen("\r\n", &format!("\r\nx-large: {}\r\n", "a".repeat(size)), 1);
        stream.write_all(request.as_bytes()).await.expect("sent");
        assert!(read_answer(&mut stream).await.starts_with(status), "{size}");
    }
}

/// A get with a body of 60 KB, which no operation needs, closed its connection without an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_not_needed_costs_no_connection_or_the_answer_says_so() {
    let running = start(Limits::default()).await;
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    let body = "x".repeat(300_000);
    for method in ["GET", "DELETE", "OPTIONS", "GET"] {
        stream.write_all(running.request(method, "/Tables", &body).as_bytes()).await.expect("sent");
        let answer = read_answer(&mut stream).await;
        assert!(!answer.contains("\r\nconnection: close"), "{method}: {answer}");
    }
    // What is announced and does not come is not waited for.
    let request =
        running.request("GET", "/Tables", "").replace("content-length: 0", "content-length: 100000");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let answer = read_answer(&mut stream).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 OK") && answer.contains("\r\nconnection: close\r\n"),
        "{answer}"
    );
    assert!(ends(&mut stream).await);
}

/// All answers had the date of the moment in which the clock was set back, until it had caught up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_have_the_date_of_a_clock_that_was_set_back() {
    let running = start(Limits::default()).await;
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    stream.write_all(running.request("GET", "/Tables", "").as_bytes()).await.expect("sent");
    read_answer(&mut stream).await;
    running.stamp.clock.set(service::parse_date_time("2026-11-21T08:00:00Z").expect("a time"));
    stream.write_all(running.request("GET", "/Tables", "").as_bytes()).await.expect("sent");
    let answer = read_answer(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("\r\ndate: Sat, 21 Nov 2026 08:00:00 GMT\r\n"), "{answer}");
    assert_eq!(answer.matches("\r\ndate: ").count(), 1, "{answer}");
}
