//! Clients that are slow, and clients that stand still: those that make progress get their whole answer, the
//! others are not waited for, and no other request suffers for them.
#![allow(clippy::disallowed_methods)] // Tests open the sockets that production code is handed.

mod stamp;

use front_end::Limits;
use stamp::ROOT;
use stamp::listening::{Running, Service, ends, read_answer};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

const MIB: usize = 1 << 20;

/// As long as the largest answer that is whole in memory.
const BLOB_SIZE_BYTES: usize = 4 * MIB;

/// The blob read bit by bit as it is sent, and whole in memory, as its hash is requested.
const STREAMED: &[(&str, &str)] = &[];
const IN_MEMORY: &[(&str, &str)] =
    &[("x-ms-range", "bytes=0-4194303"), ("x-ms-range-get-content-md5", "true")];
/// As much as a stream's window of HTTP/2, and a byte.
const ONE_BYTE_TOO_LONG: &[(&str, &str)] =
    &[("x-ms-range", "bytes=0-65535"), ("x-ms-range-get-content-md5", "true")];

/// A client is silent, or has stalled, after so long, and after half as long again at the latest.
const SILENT_AFTER: Duration = Duration::from_millis(400);
const STALLED_AFTER: Duration = Duration::from_millis(2400);

/// A slow client does something this often, or pauses for this long: longer than it may be silent.
const STEP: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_millis(900);

/// Whoever took so long was slow.
const SLOW_FROM: Duration = Duration::from_millis(3600);

/// The Blob service with a large and a small blob.
async fn start() -> Running {
    start_with(|_| {}).await
}

async fn start_with(change: impl FnOnce(&mut Limits)) -> Running {
    let mut limits =
        Limits { header_read_for_max: SILENT_AFTER, reply_taken_for_max: STALLED_AFTER, ..Limits::default() };
    change(&mut limits);
    let running = Running::start(limits, Service::Blob).await;
    let mut stream = connect(&running).await;
    for (path, size) in [("/box?restype=container", 0), ("/box/large", BLOB_SIZE_BYTES), ("/box/small", 10)] {
        let length = size.to_string();
        let headers = [("content-length", length.as_str()), ("x-ms-blob-type", "BlockBlob")];
        let headers = if size == 0 { &headers[..1] } else { &headers[..] };
        stream.write_all(running.blob_request("PUT", path, headers).as_bytes()).await.expect("sent");
        stream.write_all(&vec![7; size]).await.expect("sent");
        let answer = read_answer(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }
    running
}

/// A connection whose client's kernel takes little by itself.
async fn connect(running: &Running) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(64 << 10).expect("a buffer");
    socket.connect(running.address).await.expect("a connection")
}

/// Reads so many bytes, or until the connection ends; says how many there were.
async fn read_up_to(stream: &mut TcpStream, size_max: usize) -> usize {
    let mut size = 0;
    let mut buffer = vec![0; 64 << 10];
    while size < size_max {
        let part = buffer.len().min(size_max - size);
        match tokio::time::timeout(Duration::from_secs(10), stream.read(&mut buffer[..part])).await {
            Ok(Ok(0) | Err(_)) => break,
            Ok(Ok(read)) => size += read,
            Err(_) => panic!("the connection stays, after {size} bytes"),
        }
    }
    size
}

/// A client that requested a blob and read nothing once kept its connection, of which there are only so many,
/// and the blob's bytes on disk, for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_take_nothing_of_an_answer_are_dropped() {
    let running = start().await;
    let mut streams = Vec::new();
    for kind in [STREAMED, IN_MEMORY] {
        let mut stream = connect(&running).await;
        stream.write_all(running.blob_request("GET", "/box/large", kind).as_bytes()).await.expect("sent");
        streams.push((kind, stream));
    }
    tokio::time::sleep(SLOW_FROM + PAUSE).await;
    for (kind, mut stream) in streams {
        let size = read_up_to(&mut stream, usize::MAX).await;
        assert!(size > 10_000 && size < BLOB_SIZE_BYTES / 2, "{size} bytes; {kind:?}");
    }
}

/// Answers that were whole in memory counted as sent once they were made: the connection of a client that
/// took longer for one than it may be silent was closed on it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_take_an_answer_slowly_get_all_of_it() {
    let running = start().await;
    for kind in [STREAMED, IN_MEMORY] {
        let mut stream = connect(&running).await;
        stream.write_all(running.blob_request("GET", "/box/large", kind).as_bytes()).await.expect("sent");
        let (began, mut size) = (Instant::now(), 0);
        while size < BLOB_SIZE_BYTES {
            tokio::time::sleep(PAUSE).await;
            let read = read_up_to(&mut stream, (MIB * 3 / 4).min(BLOB_SIZE_BYTES - size)).await;
            assert!(read > 0, "it ends after {size} bytes; {kind:?}");
            size += read;
        }
        assert!(began.elapsed() > SLOW_FROM, "it was not slow");
    }
}

/// An upload that stood still was waited for ten minutes for each MiB that it had announced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_that_stand_still_are_dropped_and_slow_ones_are_not() {
    let running = start().await;
    let length = BLOB_SIZE_BYTES.to_string();
    let headers = [("content-length", length.as_str()), ("x-ms-blob-type", "BlockBlob")];
    let request = running.blob_request("PUT", "/box/put", &headers);
    let mut stands_still = connect(&running).await;
    stands_still.write_all(request.as_bytes()).await.expect("sent");
    stands_still.write_all(&[7; 1000]).await.expect("sent");
    let mut slow = connect(&running).await;
    slow.write_all(request.as_bytes()).await.expect("sent");
    let began = Instant::now();
    for _ in 0..32 {
        tokio::time::sleep(STEP).await;
        slow.write_all(&vec![7; BLOB_SIZE_BYTES / 32]).await.expect("taken");
    }
    assert!(read_answer(&mut slow).await.starts_with("HTTP/1.1 201"));
    assert!(began.elapsed() > SLOW_FROM, "it was not slow");
    assert!(ends(&mut stands_still).await);
}

/// Nothing bounded how many bytes waited for clients that take none: over HTTP/2 some connections were enough
/// for more memory than there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_wait_for_their_clients_have_a_bound() {
    let running = start_with(|limits| limits.answers_size_bytes_max = BLOB_SIZE_BYTES * 3 / 2).await;
    let request = running.blob_request("GET", "/box/large", IN_MEMORY);
    let mut first = connect(&running).await;
    first.write_all(request.as_bytes()).await.expect("sent");
    tokio::time::sleep(STEP).await;
    let mut second = connect(&running).await;
    second.write_all(request.as_bytes()).await.expect("sent");
    let answer = read_answer(&mut second).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("ServerBusy"), "{answer}");
    let small = running.blob_request("GET", "/box/small", &[]);
    second.write_all(small.as_bytes()).await.expect("sent");
    assert!(read_answer(&mut second).await.starts_with("HTTP/1.1 200"), "small ones need no room");
    let mut head = vec![0; BLOB_SIZE_BYTES];
    first.read_exact(&mut head).await.expect("the first answer");
    tokio::time::sleep(STEP).await;
    second.write_all(request.as_bytes()).await.expect("sent");
    let mut status = [0; 12];
    second.read_exact(&mut status).await.expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 206", "what was taken has given its room back");
}

// Types, flags and codes of RFC 9113.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACKNOWLEDGED: u8 = 1;
const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// The window of a stream that the server may count on before an update.
const FIRST_WINDOW_SIZE_BYTES: usize = 65_535;

/// A client of HTTP/2 that only follows the test's commands.
struct Http2 {
    stream: TcpStream,
}

struct Frame {
    kind: u8,
    flags: u8,
    id: u32,
    payload: Vec<u8>,
}

impl Http2 {
    /// Connects; the connection's window is large, as long as those of its streams are.
    async fn connect(running: &Running) -> Self {
        let mut stream = TcpStream::connect(running.address).await.expect("a connection");
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("sent");
        let mut client = Http2 { stream };
        client.send(SETTINGS, 0, 0, &[]).await;
        client.make_room(0, 1 << 30).await;
        client
    }

    async fn send(&mut self, kind: u8, flags: u8, id: u32, payload: &[u8]) {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(id.to_be_bytes());
        frame.extend_from_slice(payload);
        self.stream.write_all(&frame).await.expect("sent");
    }

    async fn make_room(&mut self, id: u32, size: u32) {
        self.send(WINDOW_UPDATE, 0, id, &size.to_be_bytes()).await;
    }

    /// Sends the headers of a request to the Blob service.
    async fn ask(
        &mut self,
        running: &Running,
        id: u32,
        (method, path, headers): (&str, &str, &[(&str, &str)]),
        flags: u8,
    ) {
        let target = format!("{ROOT}{path}");
        let mut all = vec![(":method", method), (":scheme", "http"), (":path", target.as_str())];
        let signed = running.blob_headers(method, path, headers);
        all.extend(signed.iter().map(|(name, value)| match name.as_str() {
            "host" => (":authority", value.as_str()),
            name => (name, value.as_str()),
        }));
        all.sort_by_key(|(name, _)| !name.starts_with(':'));
        let mut fields = Vec::new();
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
        self.send(HEADERS, END_HEADERS | flags, id, &fields).await;
    }

    /// The next frame; `None`: the connection has ended.
    async fn next(&mut self) -> Option<Frame> {
        let read = async {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).await.ok()?;
            let size = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; size as usize];
            self.stream.read_exact(&mut payload).await.ok()?;
            let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            Some(Frame { kind: head[3], flags: head[4], id, payload })
        };
        tokio::time::timeout(Duration::from_secs(10), read).await.expect("a frame, or the end")
    }
}

/// A stalled answer once ended its connection, with all other requests on it; one that was whole in memory
/// was kept for ever, with the stream that it was for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_answer_of_http2_ends_its_stream_only() {
    let running = start().await;
    let mut client = Http2::connect(&running).await;
    client.ask(&running, 1, ("GET", "/box/large", STREAMED), END_STREAM).await;
    client.ask(&running, 3, ("GET", "/box/large", IN_MEMORY), END_STREAM).await;
    client.ask(&running, 5, ("GET", "/box/large", ONE_BYTE_TOO_LONG), END_STREAM).await;
    let length = BLOB_SIZE_BYTES.to_string();
    let upload = [("content-length", length.as_str()), ("x-ms-blob-type", "BlockBlob")];
    client.ask(&running, 7, ("PUT", "/box/put", &upload), 0).await;
    client.send(DATA, 0, 7, &[7; 1000]).await;
    let began = Instant::now();
    let mut taken: BTreeMap<u32, usize> = BTreeMap::new();
    let (mut resets, mut answered_count, mut next) = (BTreeMap::new(), 0, 9);
    client.ask(&running, next, ("GET", "/box/small", &[]), END_STREAM).await;
    // Another request is always under way; one more is sent after the last reset.
    while resets.len() < 4 || answered_count < 2 {
        assert!(began.elapsed() < STALLED_AFTER * 10, "only {:?} have ended", resets.keys());
        let frame = client.next().await.expect("the connection goes on");
        match frame.kind {
            DATA => *taken.entry(frame.id).or_default() += frame.payload.len(),
            RESET => {
                resets.insert(frame.id, (frame.payload, began.elapsed()));
                answered_count = 0;
            }
            GO_AWAY => panic!("the connection ends"),
            _ => {}
        }
        if frame.id == next && frame.flags & END_STREAM != 0 && matches!(frame.kind, DATA | HEADERS) {
            assert_eq!(taken[&next], 10);
            (answered_count, next) = (answered_count + 1, next + 2);
            tokio::time::sleep(STEP).await;
            client.ask(&running, next, ("GET", "/box/small", &[]), END_STREAM).await;
        }
    }
    assert_eq!(resets.keys().copied().collect::<Vec<_>>(), [1, 3, 5, 7]);
    for (id, (code, after)) in resets {
        assert_eq!(code, CANCEL, "{id}");
        assert!(after >= STALLED_AFTER, "{id} after {after:?}");
    }
    assert_eq!([taken[&1], taken[&3], taken[&5]], [FIRST_WINDOW_SIZE_BYTES; 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_client_of_http2_gets_all_of_its_answers() {
    let running = start().await;
    let mut client = Http2::connect(&running).await;
    let kinds = BTreeMap::from([(1, STREAMED), (3, IN_MEMORY)]);
    for (id, kind) in &kinds {
        client.ask(&running, *id, ("GET", "/box/large", kind), END_STREAM).await;
    }
    let began = Instant::now();
    let mut left: BTreeMap<u32, usize> = kinds.keys().map(|id| (*id, BLOB_SIZE_BYTES)).collect();
    let mut room: BTreeMap<u32, usize> = kinds.keys().map(|id| (*id, FIRST_WINDOW_SIZE_BYTES)).collect();
    while !left.is_empty() {
        let frame = client.next().await.expect("the connection goes on");
        assert!(!matches!(frame.kind, RESET | GO_AWAY), "{left:?}");
        if frame.kind != DATA {
            continue;
        }
        let bytes_left = left.get_mut(&frame.id).expect("a stream that has not ended");
        *bytes_left -= frame.payload.len();
        if frame.flags & END_STREAM != 0 {
            assert_eq!(left.remove(&frame.id), Some(0));
            continue;
        }
        let room_left = room.get_mut(&frame.id).expect("a stream");
        *room_left -= frame.payload.len();
        if *room_left == 0 {
            tokio::time::sleep(STEP).await;
            // Exactly what is left, in the end: the last byte needs no more window than itself.
            *room_left = (MIB / 4).min(*bytes_left);
            let size = *room_left as u32;
            client.make_room(frame.id, size).await;
        }
    }
    assert!(began.elapsed() > SLOW_FROM, "it was not slow");
}

/// Clients of HTTP/2 were probed by pings: a client that had much unread before the ping was
/// cut off, and one that sent no request but answered pings kept its connection for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_client_of_http2_is_bidden_farewell() {
    let running = start().await;
    for answers in [true, false] {
        let mut client = Http2::connect(&running).await;
        client.ask(&running, 1, ("GET", "/box/small", &[]), END_STREAM).await;
        let mut farewell_after = None;
        let began = Instant::now();
        while let Some(frame) = client.next().await {
            match (frame.kind, frame.flags) {
                (GO_AWAY, _) if farewell_after.is_none() => farewell_after = Some(began.elapsed()),
                (PING, 0) if answers => client.send(PING, ACKNOWLEDGED, 0, &frame.payload).await,
                _ => {}
            }
        }
        let farewell_after = farewell_after.expect("a farewell");
        assert!(farewell_after >= SILENT_AFTER, "after {farewell_after:?}");
        // One that says no more is not waited for, either.
        assert!(answers || began.elapsed() >= SILENT_AFTER * 2);
    }
}
