//! A server that follows a script, behind a connector that is handed in, in virtual time.
#![allow(clippy::disallowed_methods)] // The clock of tests is tokio's paused one.

use base::system::{SystemRandom, TokioSpawner};
use base::{BoxFuture, Clock, Connector, Socket, Ticks};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use storage_client::{AccountAddress, Proxies, Settings, StorageAccount, Surroundings};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// Sat, 21 Nov 2026 09:00:00 GMT
const STARTED_UNIX_S: u64 = 1_795_251_600;

/// What a connection does with a request.
pub(crate) enum Step {
    /// Answers with this text.
    Answer(String),
    /// Answers with this text and closes.
    Cut(String),
    /// Closes without an answer.
    Close,
    /// Never answers.
    Silence,
}

/// What becomes of an attempt to connect.
pub(crate) enum Connection {
    Refused,
    Open(Vec<Step>),
}

/// The server's side: what it does, and what it got.
#[derive(Default)]
pub(crate) struct Script {
    connections: Mutex<VecDeque<Connection>>,
    hosts: Mutex<Vec<String>>,
    requests: Mutex<Vec<String>>,
}

impl Script {
    pub(crate) fn of(connections: impl IntoIterator<Item = Connection>) -> Arc<Script> {
        let script = Script::default();
        script.connections.lock().extend(connections);
        Arc::new(script)
    }

    /// `host:port` of each connection.
    pub(crate) fn hosts(&self) -> Vec<String> {
        self.hosts.lock().clone()
    }

    /// Each request as text.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }

    async fn serve(self: Arc<Self>, mut socket: DuplexStream, steps: Vec<Step>) {
        for step in steps {
            let Some(request) = read_request(&mut socket).await else { return };
            self.requests.lock().push(request);
            match step {
                Step::Answer(text) => socket.write_all(text.as_bytes()).await.expect("a reader"),
                Step::Cut(text) => {
                    socket.write_all(text.as_bytes()).await.expect("a reader");
                    return;
                }
                Step::Close => return,
                Step::Silence => {
                    let _ = socket.read_u8().await;
                    return;
                }
            }
        }
    }
}

async fn read_request(socket: &mut DuplexStream) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(socket.read_u8().await.ok()?);
    }
    let head = String::from_utf8(bytes).expect("text");
    let size = header(&head, "content-length").parse().unwrap_or(0);
    let mut body = vec![0; size];
    socket.read_exact(&mut body).await.ok()?;
    Some(head + &String::from_utf8_lossy(&body))
}

/// That attempts of one request share its id, and have dates and signatures of their own.
pub(crate) fn assert_attempts_of_one_request(requests: &[String]) {
    let values = |name: &str| -> Vec<String> {
        let mut values: Vec<String> = requests.iter().map(|one| header(one, name).to_owned()).collect();
        values.dedup();
        values
    };
    assert_eq!(values("x-ms-client-request-id").len(), 1);
    assert!(values("x-ms-date").len() > 1, "{:?}", values("x-ms-date"));
    assert_eq!(values("authorization").len(), values("x-ms-date").len());
}

/// A header of a request.
pub(crate) fn header<'a>(request: &'a str, name: &str) -> &'a str {
    let lines = request.lines().filter_map(|line| line.split_once(": "));
    let mut values = lines.filter(|(one, _)| one.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    values.next().unwrap_or("")
}

/// An answer with a body.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Step {
    Step::Answer(format!("HTTP/1.1 {status} x\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()))
}

/// An error of the service.
pub(crate) fn refusal(status: u16, code: &str) -> Step {
    answer(status, &format!("x-ms-error-code: {code}\r\nx-ms-request-id: its-id\r\n"), "")
}

struct Scripted(Arc<Script>);

impl Connector for Scripted {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Socket>>> {
        Box::pin(async move {
            self.0.hosts.lock().push(format!("{host}:{port}"));
            let connection = self.0.connections.lock().pop_front();
            match connection {
                None | Some(Connection::Refused) => Err(io::ErrorKind::ConnectionRefused.into()),
                Some(Connection::Open(steps)) => {
                    let (ours, theirs) = tokio::io::duplex(64 << 10);
                    tokio::spawn(self.0.clone().serve(theirs, steps));
                    Ok(Box::new(ours) as Box<dyn Socket>)
                }
            }
        })
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

/// The development account over the script, without proxies.
pub(crate) fn account(script: &Arc<Script>) -> StorageAccount {
    account_with(script, "UseDevelopmentStorage=true", |_| {})
}

pub(crate) fn account_with(
    script: &Arc<Script>,
    connection_string: &str,
    change: impl FnOnce(&mut Settings),
) -> StorageAccount {
    let mut settings = Settings { proxies: Proxies::none(), ..Settings::default() };
    change(&mut settings);
    let surroundings = Surroundings {
        clock: Arc::new(VirtualClock(tokio::time::Instant::now())),
        random: Arc::new(SystemRandom::new()),
        spawner: Arc::new(TokioSpawner::current()),
        connector: Arc::new(Scripted(script.clone())),
    };
    let address = AccountAddress::parse(connection_string).expect("a connection string");
    StorageAccount::new(address, settings, surroundings)
}
