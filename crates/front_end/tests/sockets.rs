//! The front end on real sockets: keep-alive, bounds in time, and a graceful stop.
#![allow(clippy::disallowed_methods)] // Tests open the sockets that production code is handed.

mod stamp;

use front_end::Limits;
use front_end::auth::shared_key::SignedService;
use stamp::{ROOT, Stamp};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

struct Running {
    stamp: Stamp,
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    served: tokio::task::JoinHandle<()>,
}

/// The service that listens.
#[derive(Clone, Copy)]
enum Service {
    Table,
    Blob,
}

async fn start(limits: Limits) -> Running {
    start_service(limits, Service::Table).await
}

async fn start_service(limits: Limits, service: Service) -> Running {
    let stamp = Stamp::with_limits(limits).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel::<()>();
    let front_end = stamp.front_end.clone();
    let served = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        match service {
            Service::Table => front_end.serve_table(listener, stopped).await,
            Service::Blob => front_end.serve_blob(listener, stopped).await,
        }
    });
    Running { stamp, address, stop, served }
}

impl Running {
    fn request(&self, method: &str, path: &str, body: &str) -> String {
        let target = format!("{ROOT}{path}");
        let mut text = format!("{method} {target} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in &self.stamp.signed_headers(method, &target, &[]) {
            text.push_str(&format!("{name}: {}\r\n", value.to_str().expect("text")));
        }
        format!("{text}\r\n{body}")
    }
}

/// Reads one answer with a known length.
async fn read_answer(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        assert_eq!(stream.read(&mut byte).await.expect("an answer"), 1, "{}", String::from_utf8_lossy(&text));
        text.push(byte[0]);
    }
    let head = String::from_utf8(text).expect("text");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |size| size.parse().expect("size"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.expect("a body");
    head + &String::from_utf8(body).expect("text")
}

async fn ends(stream: &mut TcpStream) -> bool {
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read(&mut [0; 64])).await;
    matches!(read, Ok(Ok(0) | Err(_)))
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

const MIB: usize = 1 << 20;
const BLOB_SIZE_BYTES: usize = 16 * MIB;

/// The Blob service with a blob that no kernel keeps whole for a client that reads nothing.
async fn start_with_blob(limits: Limits) -> Running {
    let running = start_service(limits, Service::Blob).await;
    let mut stream = TcpStream::connect(running.address).await.expect("a connection");
    for (path, kind, size) in
        [("/box?restype=container", "", 0), ("/box/large", "BlockBlob", BLOB_SIZE_BYTES)]
    {
        let headers = [("content-length", size.to_string()), ("x-ms-blob-type", kind.to_owned())];
        let mut request = format!("PUT {ROOT}{path} HTTP/1.1\r\n");
        for (name, value) in running.blob_headers("PUT", path, &headers) {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{request}\r\n").as_bytes()).await.expect("sent");
        stream.write_all(&vec![7; size]).await.expect("sent");
        let answer = read_answer(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }
    running
}

impl Running {
    fn blob_headers(&self, method: &str, path: &str, more: &[(&str, String)]) -> Vec<(String, String)> {
        let target = format!("{ROOT}{path}");
        let mut headers = vec![("x-ms-version", "2026-10-06")];
        headers.extend(
            more.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (*name, value.as_str())),
        );
        let signed = self.stamp.headers_signed_for(SignedService::BlobOrQueue, method, &target, &headers);
        let text = |value: &hyper::header::HeaderValue| value.to_str().expect("text").to_owned();
        signed.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
    }

    /// Asks for the blob; nothing is read yet.
    async fn ask_for_blob(&self) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        let mut request = format!("GET {ROOT}/box/large HTTP/1.1\r\n");
        for (name, value) in self.blob_headers("GET", "/box/large", &[]) {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{request}\r\n").as_bytes()).await.expect("sent");
        stream
    }

    /// The same by HTTP/2, whose window is never opened further.
    async fn ask_for_blob_by_http2(&self) -> TcpStream {
        let mut fields = Vec::new();
        let path = format!("{ROOT}/box/large");
        let mut all = vec![(":method", "GET"), (":scheme", "http"), (":path", path.as_str())];
        let signed = self.blob_headers("GET", "/box/large", &[]);
        all.extend(signed.iter().map(|(name, value)| match name.as_str() {
            "host" => (":authority", value.as_str()),
            name => (name, value.as_str()),
        }));
        all.sort_by_key(|(name, _)| !name.starts_with(':'));
        for (name, value) in all {
            // A literal that is not indexed, with lengths of seven bits and what is beyond.
            fields.push(0);
            for text in [name, value] {
                match text.len() {
                    size @ ..127 => fields.push(size as u8),
                    size @ 127..255 => fields.extend([127, (size - 127) as u8]),
                    size => panic!("{size} bytes"),
                }
                fields.extend_from_slice(text.as_bytes());
            }
        }
        let mut request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        request.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
        request.extend_from_slice(&(fields.len() as u32).to_be_bytes()[1..]);
        request.extend_from_slice(&[1, 5, 0, 0, 0, 1]);
        request.extend_from_slice(&fields);
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        stream.write_all(&request).await.expect("sent");
        stream
    }
}

/// Reads so many bytes, or until the connection ends; says how many there were.
async fn read_up_to(stream: &mut TcpStream, size_max: usize) -> usize {
    let mut size = 0;
    let mut buffer = vec![0; 64 << 10];
    while size < size_max {
        match tokio::time::timeout(Duration::from_secs(10), stream.read(&mut buffer)).await {
            Ok(Ok(0) | Err(_)) => break,
            Ok(Ok(read)) => size += read,
            Err(_) => panic!("the connection stays, after {size} bytes"),
        }
    }
    size
}

/// Whoever asked for a blob and read nothing once kept its connection, of which there are only so many, and the blob's
/// bytes on disk, for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_take_nothing_of_an_answer_are_dropped() {
    let limits = Limits { reply_taken_for_max: Duration::from_millis(400), ..Limits::default() };
    let running = start_with_blob(limits).await;
    for http2 in [false, true] {
        let mut stream =
            if http2 { running.ask_for_blob_by_http2().await } else { running.ask_for_blob().await };
        tokio::time::sleep(Duration::from_secs(1)).await;
        let size = read_up_to(&mut stream, usize::MAX).await;
        assert!(size > 60_000 && size < BLOB_SIZE_BYTES, "{size} bytes; HTTP/2: {http2}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_take_an_answer_slowly_get_all_of_it() {
    let limits = Limits { reply_taken_for_max: Duration::from_millis(1500), ..Limits::default() };
    let running = start_with_blob(limits).await;
    let mut stream = running.ask_for_blob().await;
    let began = std::time::Instant::now();
    let mut size = 0;
    while size < BLOB_SIZE_BYTES {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let read = read_up_to(&mut stream, MIB.min(BLOB_SIZE_BYTES - size)).await;
        assert!(read > 0, "it ends after {size} bytes");
        size += read;
    }
    assert!(began.elapsed() > Duration::from_millis(2500), "it was not slow");
}
