//! A client of several processes: it stays with one while that serves, and tries the next one when it does
//! not.
//!
//! What always holds: a request is sent again only where it is certain that it was not done (503
//! `ServerBusy`, no connection); a broken connection, a time-out and other errors of the server are an
//! unknown outcome, which the caller decides on.

use crate::client::http_client::{Answer, HttpClient};
use crate::client::service_client::{Pairs, ServiceClient};
use crate::client::shared_key::Signer;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Each part of a request or an answer may take so long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Between tries, so that processes that refuse are not flooded: as with any client, each pause is twice as
/// long as the one before, up to the longest.
pub(super) const PAUSE_MIN: Duration = Duration::from_millis(20);
/// How soon it serves again is known to this.
const PAUSE_MAX: Duration = Duration::from_millis(160);

/// A process that did not answer in time is left out until it answers a plain request in this time.
const PROBE_TIMEOUT: Duration = Duration::from_millis(300);
/// A request is tried so long, then its last outcome counts.
const TRIED_FOR_MAX: Duration = Duration::from_secs(300);

/// Which service of the processes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    Table,
    Blob,
    Queue,
}

/// What is sent.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) verb: &'a str,
    pub(super) path: &'a str,
    /// In the order of their names; not for tables, whose path has them.
    pub(super) parameters: Pairs<'a>,
    pub(super) headers: Pairs<'a>,
    pub(super) body: &'a [u8],
}

/// What became of it.
pub(super) enum Sent {
    Answer(Answer),
    /// It is certain that nothing was done.
    NotDone(String),
    Unknown(String),
}

enum Connection {
    Table(Box<HttpClient>),
    Other(Box<ServiceClient>),
}

/// A client of one service at a list of addresses.
pub(super) struct Router {
    service: Service,
    addresses: Vec<SocketAddr>,
    /// Those that did not answer in time.
    hung: Vec<bool>,
    current: usize,
    connection: Option<Connection>,
    table_content_type: &'static str,
}

impl Router {
    /// It begins with the address of that number.
    pub(super) fn new(service: Service, addresses: &[SocketAddr], first: usize) -> Self {
        Router {
            service,
            addresses: addresses.to_vec(),
            hung: vec![false; addresses.len()],
            current: first % addresses.len(),
            connection: None,
            table_content_type: "application/json",
        }
    }

    /// For group transactions of tables.
    pub(super) fn with_table_content_type(mut self, content_type: &'static str) -> Self {
        self.table_content_type = content_type;
        self
    }

    /// Sends once to the current address; another one is the current one after anything but an answer.
    pub(super) fn send_once(&mut self, request: Request<'_>) -> Sent {
        let address = self.addresses[self.current];
        if self.hung[self.current] {
            self.hung[self.current] = !answers(address);
        }
        let connection = match self.connection.take() {
            Some(connection) => Ok(connection),
            None if self.hung[self.current] => Err(ErrorKind::TimedOut.into()),
            None => connect(self.service, address),
        };
        let sent = match connection {
            Err(error) => {
                self.note_hang(&error);
                Sent::NotDone(format!("{address}: {error}"))
            }
            Ok(mut connection) => match exchange(&mut connection, self.table_content_type, request) {
                Ok(answer) => {
                    self.connection = Some(connection);
                    classify(answer)
                }
                Err(error) => {
                    self.note_hang(&error);
                    Sent::Unknown(format!("{address}: {error}"))
                }
            },
        };
        if !matches!(sent, Sent::Answer(_)) {
            self.connection = None;
            self.current = (self.current + 1) % self.addresses.len();
        }
        sent
    }

    fn note_hang(&mut self, error: &std::io::Error) {
        self.hung[self.current] = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    }

    /// Sends until something is done or may be done, or until it shall stop.
    pub(super) fn send(&mut self, request: Request<'_>, stop: &AtomicBool) -> Sent {
        let since = Instant::now();
        let shall_stop = || stop.load(Ordering::SeqCst) || since.elapsed() > TRIED_FOR_MAX;
        let mut pause = PAUSE_MIN;
        loop {
            match self.send_once(request) {
                Sent::NotDone(_) if !shall_stop() => wait(&mut pause),
                sent => return sent,
            }
        }
    }

    /// Sends until it is answered, for what does no harm twice.
    pub(super) fn ask(&mut self, request: Request<'_>, stop: &AtomicBool) -> Result<Answer, String> {
        let since = Instant::now();
        let shall_stop = || stop.load(Ordering::SeqCst) || since.elapsed() > TRIED_FOR_MAX;
        let mut pause = PAUSE_MIN;
        loop {
            match self.send_once(request) {
                Sent::Answer(answer) => return Ok(answer),
                Sent::NotDone(why) | Sent::Unknown(why) if shall_stop() => return Err(why),
                _ => wait(&mut pause),
            }
        }
    }
}

/// Waits before another try, and makes the next pause longer.
pub(super) fn wait(pause: &mut Duration) {
    std::thread::sleep(*pause);
    *pause = (*pause * 2).min(PAUSE_MAX);
}

/// Whether a process answers anything at once.
fn answers(address: SocketAddr) -> bool {
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let client = HttpClient::connect_within(address, Signer::new(), PROBE_TIMEOUT);
    client.and_then(|mut client| client.exchange(request.as_bytes())).is_ok()
}

fn connect(service: Service, address: SocketAddr) -> std::io::Result<Connection> {
    let other = |content_type| {
        let client = ServiceClient::connect_within(address, content_type, ANSWER_TIMEOUT)?;
        Ok(Connection::Other(Box::new(client)))
    };
    match service {
        Service::Table => {
            let client = HttpClient::connect_within(address, Signer::new(), ANSWER_TIMEOUT)?;
            Ok(Connection::Table(Box::new(client)))
        }
        Service::Blob => other("application/octet-stream"),
        Service::Queue => other("application/xml"),
    }
}

fn exchange(
    connection: &mut Connection,
    table_content_type: &str,
    request: Request<'_>,
) -> std::io::Result<Answer> {
    let Request { verb, path, parameters, headers, body } = request;
    match connection {
        Connection::Table(client) => client.send_as(table_content_type, verb, path, headers, body),
        Connection::Other(client) => client.send(verb, path, parameters, headers, body),
    }
}

/// What an answer says of the request.
fn classify(answer: Answer) -> Sent {
    let text = || format!("{} {}", answer.status, answer.text());
    match answer.status {
        503 if memchr::memmem::find(&answer.body, b"ServerBusy").is_some() => Sent::NotDone(text()),
        500.. => Sent::Unknown(text()),
        _ => Sent::Answer(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    #[test]
    fn only_a_busy_server_has_certainly_done_nothing() {
        let cases = [
            (200, "", "answer"),
            (412, "", "answer"),
            (503, "<Code>ServerBusy</Code>", "not done"),
            (503, "<Code>Other</Code>", "unknown"),
            (500, "<Code>OperationTimedOut</Code>", "unknown"),
        ];
        for (status, body, wanted) in cases {
            let answer = Answer { status, headers: Vec::new(), body: body.into() };
            let found = match classify(answer) {
                Sent::Answer(_) => "answer",
                Sent::NotDone(_) => "not done",
                Sent::Unknown(_) => "unknown",
            };
            assert_eq!(found, wanted, "{status} {body}");
        }
    }

    #[test]
    fn a_process_that_hangs_is_left_out_until_it_answers() {
        // The kernel takes connections, and nobody answers.
        let hung = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = hung.local_addr().expect("an address");
        let mut router = Router::new(Service::Queue, &[address], 0);
        router.hung[0] = true;
        let request = Request { verb: "GET", path: "q", parameters: &[], headers: &[], body: b"" };
        let started_at = Instant::now();
        assert!(matches!(router.send_once(request), Sent::NotDone(_)));
        assert!(started_at.elapsed() < ANSWER_TIMEOUT / 2 && router.hung[0]);
        std::thread::spawn(move || {
            for mut connection in hung.incoming().flatten() {
                let _ = connection.read(&mut [0; 4096]);
                let _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            }
        });
        assert!(matches!(router.send(request, &AtomicBool::new(false)), Sent::Answer(_)));
        assert!(!router.hung[0]);
    }

    #[test]
    fn no_connection_moves_on_to_the_next_address() {
        let refused = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let mut router = Router::new(Service::Queue, &[refused(1), refused(2)], 1);
        let request = Request { verb: "GET", path: "q", parameters: &[], headers: &[], body: b"" };
        assert!(matches!(router.send_once(request), Sent::NotDone(_)));
        assert_eq!(router.current, 0);
        assert!(router.ask(request, &AtomicBool::new(true)).is_err());
        assert_eq!(router.current, 1);
    }
}
