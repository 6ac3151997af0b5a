//! A service that answers as it is made to, behind a connector that is handed in, in virtual time.
#![allow(clippy::disallowed_methods)] // The clock of tests is tokio's paused one.

use base::random::splitmix64;
use base::system::TokioSpawner;
use base::{BoxFuture, Clock, Connector, Random, Socket, Ticks};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use storage_client::Surroundings;
use stress::{Seats, Work};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};

/// Sat, 21 Nov 2026 09:00:00 GMT
const STARTED_UNIX_S: u64 = 1_795_251_600;

/// An answer, and how long it takes; none is never answered.
pub(crate) type Answer = Option<(Duration, String)>;

/// What the service does with a request: its number, its line, and when it came.
pub(crate) type Behaviour = Box<dyn Fn(usize, &str, Duration) -> Answer + Send + Sync>;

/// The service's side.
pub(crate) struct Service {
    behaviour: Behaviour,
    /// Lines of the requests.
    pub(crate) requests: Mutex<Vec<String>>,
    started: tokio::time::Instant,
}

impl Service {
    pub(crate) fn new(
        behaviour: impl Fn(usize, &str, Duration) -> Answer + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (behaviour, requests) = (Box::new(behaviour), Mutex::default());
        Arc::new(Service { behaviour, requests, started: tokio::time::Instant::now() })
    }

    /// How many requests have a line that begins so.
    pub(crate) fn count(&self, beginning: &str) -> usize {
        self.requests.lock().iter().filter(|line| line.starts_with(beginning)).count()
    }

    async fn serve(self: Arc<Self>, socket: DuplexStream) {
        let mut socket = BufReader::new(socket);
        while let Some(line) = read_request(&mut socket).await {
            let number = {
                let mut requests = self.requests.lock();
                requests.push(line.clone());
                requests.len() - 1
            };
            match (self.behaviour)(number, &line, self.started.elapsed()) {
                Some((takes, text)) => {
                    tokio::time::sleep(takes).await;
                    if socket.write_all(text.as_bytes()).await.is_err() {
                        return;
                    }
                }
                None => std::future::pending().await,
            }
        }
    }
}

/// Reads a request, and gives its line with the number of the operations in its body.
async fn read_request(socket: &mut BufReader<DuplexStream>) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let count = socket.read_until(b'\n', &mut bytes).await.ok()?;
        if count == 0 {
            return None;
        }
    }
    let head = String::from_utf8(bytes).expect("text");
    let size = head.lines().filter_map(|line| line.strip_prefix("content-length: ")).next();
    let mut body = vec![0; size.map_or(0, |size| size.parse().expect("a number"))];
    socket.read_exact(&mut body).await.ok()?;
    let operations = String::from_utf8_lossy(&body).matches("Content-ID:").count();
    Some(format!("{} {operations}", head.lines().next().unwrap_or_default()))
}

/// An answer with a body.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} x\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

/// What a healthy service answers to an operation on tables.
pub(crate) fn healthy(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    match (words[0], words[1]) {
        ("POST", path) if path.ends_with("/$batch") => {
            let part =
                "--c\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 204 No Content\r\nETag: e\r\n\r\n\r\n";
            let parts = part.repeat(words[3].parse().expect("a number"));
            let body =
                format!("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{parts}--c--\r\n--b--\r\n");
            answer(202, "content-type: multipart/mixed; boundary=b\r\n", &body)
        }
        ("GET", path) => {
            let keys: Vec<&str> = path.split("%27").flat_map(|part| part.split('\'')).collect();
            let (partition, row) = (keys.get(1).unwrap_or(&""), keys.get(3).unwrap_or(&""));
            answer(200, "", &format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\"}}"))
        }
        _ => answer(204, "etag: e\r\n", ""),
    }
}

/// An error of the service.
pub(crate) fn refusal(status: u16, code: &str) -> String {
    answer(status, &format!("x-ms-error-code: {code}\r\n"), "")
}

struct Connections(Arc<Service>);

impl Connector for Connections {
    fn connect<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, io::Result<Box<dyn Socket>>> {
        Box::pin(async move {
            let (ours, theirs) = tokio::io::duplex(64 << 10);
            tokio::spawn(self.0.clone().serve(theirs));
            Ok(Box::new(ours) as Box<dyn Socket>)
        })
    }
}

struct NoConnections;

impl Connector for NoConnections {
    fn connect<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, io::Result<Box<dyn Socket>>> {
        Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) })
    }
}

struct VirtualClock(tokio::time::Instant);

impl Clock for VirtualClock {
    fn now(&self) -> Ticks {
        Ticks::from_unix(Duration::from_secs(STARTED_UNIX_S) + self.0.elapsed())
    }
    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
    fn sleep(&self, sleep_for: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(sleep_for))
    }
}

/// Seeded, so that a run repeats.
struct SeededRandom(Mutex<u64>);

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        splitmix64(&mut self.0.lock())
    }
}

/// Surroundings that connect to the service; without one, to nothing.
pub(crate) fn surroundings(service: Option<&Arc<Service>>) -> Surroundings {
    let connector: Arc<dyn Connector> = match service {
        Some(service) => Arc::new(Connections(service.clone())),
        None => Arc::new(NoConnections),
    };
    Surroundings {
        clock: Arc::new(VirtualClock(tokio::time::Instant::now())),
        random: Arc::new(SeededRandom(Mutex::new(5))),
        spawner: Arc::new(TokioSpawner::current()),
        connector,
    }
}

/// All workers on the test's own thread.
pub(crate) struct OneThread(pub(crate) Surroundings);

impl Seats for OneThread {
    fn start(&self, work: Work) -> io::Result<()> {
        tokio::spawn(work(self.0.clone()));
        Ok(())
    }
}
