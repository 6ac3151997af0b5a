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
/// Between tries, so that processes that refuse are not flooded.
const PAUSE: Duration = Duration::from_millis(20);

/// A process that did not answer in time is left out for so long, as long as there is another one.
const AVOIDED_FOR: Duration = Duration::from_secs(15);
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
    /// When each is tried again, if it is left out.
    avoided_until: Vec<Option<Instant>>,
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
            avoided_until: vec![None; addresses.len()],
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
        let connection = match self.connection.take() {
            Some(connection) => Ok(connection),
            None => connect(self.service, address),
        };
        let sent = match connection {
            Err(error) => {
                self.avoid_if_it_hangs(&error);
                Sent::NotDone(format!("{address}: {error}"))
            }
            Ok(mut connection) => match exchange(&mut connection, self.table_content_type, request) {
                Ok(answer) => {
                    self.connection = Some(connection);
                    classify(answer)
                }
                Err(error) => {
                    self.avoid_if_it_hangs(&error);
                    Sent::Unknown(format!("{address}: {error}"))
                }
            },
        };
        if !matches!(sent, Sent::Answer(_)) {
            self.connection = None;
            self.current = next_address(self.current, &self.avoided_until, Instant::now());
        }
        sent
    }

    fn avoid_if_it_hangs(&mut self, error: &std::io::Error) {
        if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) {
            self.avoided_until[self.current] = Some(Instant::now() + AVOIDED_FOR);
        }
    }

    /// Sends until something is done or may be done, or until it shall stop.
    pub(super) fn send(&mut self, request: Request<'_>, stop: &AtomicBool) -> Sent {
        let since = Instant::now();
        let shall_stop = || stop.load(Ordering::SeqCst) || since.elapsed() > TRIED_FOR_MAX;
        loop {
            match self.send_once(request) {
                Sent::NotDone(_) if !shall_stop() => std::thread::sleep(PAUSE),
                sent => return sent,
            }
        }
    }

    /// Sends until it is answered, for what does no harm twice.
    pub(super) fn ask(&mut self, request: Request<'_>, stop: &AtomicBool) -> Result<Answer, String> {
        let since = Instant::now();
        let shall_stop = || stop.load(Ordering::SeqCst) || since.elapsed() > TRIED_FOR_MAX;
        loop {
            match self.send_once(request) {
                Sent::Answer(answer) => return Ok(answer),
                Sent::NotDone(why) | Sent::Unknown(why) if shall_stop() => return Err(why),
                _ => std::thread::sleep(PAUSE),
            }
        }
    }
}

/// The next one that is not left out, or the next one if all are.
fn next_address(current: usize, avoided_until: &[Option<Instant>], now: Instant) -> usize {
    let count = avoided_until.len();
    let others = (1..=count).map(|step| (current + step) % count);
    let is_free = |index: &usize| avoided_until[*index].is_none_or(|until| until <= now);
    others.clone().find(is_free).unwrap_or((current + 1) % count)
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
    fn a_process_that_hangs_is_left_out_for_a_while() {
        let now = Instant::now();
        let (until, over) = (Some(now + AVOIDED_FOR), Some(now));
        // Current, left out, next.
        let cases = [
            (0, [None, None, None], 1),
            (2, [None, None, None], 0),
            (2, [until, None, None], 1),
            (1, [until, None, until], 1),
            (0, [until, until, until], 1),
            (2, [over, until, None], 0),
        ];
        for (current, avoided, next) in cases {
            assert_eq!(next_address(current, &avoided, now), next, "{current} {avoided:?}");
        }
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
