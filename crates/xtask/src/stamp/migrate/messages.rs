//! Messages of two queues: of one all were taken once, of the other none. What always holds: each message is
//! changed with the pop receipt that is known of it, and then taken and compared with its id, text, times and
//! count of deliveries.

use super::clients::{CLIENT_COUNT, client, side_by_side};
use super::served::Served;
use crate::Outcome;
use crate::bench::queues::element;
use crate::stamp::router::{Request, Router, Service};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

const TAKEN: &str = "moved-taken";
/// The queue of which none was taken.
pub(super) const WAITING: &str = "moved-waiting";
const TAKEN_TOGETHER: &str = "32";
/// Longer than any trial: 7 days.
const INVISIBLE_SECONDS: &str = "604800";

/// What is known of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Message {
    text: String,
    inserted: String,
    expires: String,
    deliveries: u32,
    receipt: String,
}

impl Message {
    fn of(xml: &str) -> (String, Self) {
        let part = |name| element(xml.as_bytes(), name).to_owned();
        let message = Message {
            text: part("MessageText"),
            inserted: part("InsertionTime"),
            expires: part("ExpirationTime"),
            deliveries: part("DequeueCount").parse().unwrap_or(0),
            receipt: part("PopReceipt"),
        };
        (part("MessageId"), message)
    }

    /// Whether this one, taken now, is that one.
    fn follows(&self, before: &Message) -> bool {
        let deliveries = before.deliveries + 1;
        let receipt = self.receipt.clone();
        *self == Message { deliveries, receipt, ..before.clone() }
    }
}

/// By id.
type Known = BTreeMap<String, Message>;

pub(super) struct Messages {
    queues: [(&'static str, Known); 2],
}

impl Messages {
    /// Puts them, and takes half of them.
    pub(super) fn fill(server: &Served, count: usize) -> Outcome<Self> {
        let waiting = put_all(server, WAITING, count / 2)?;
        let mut taken = put_all(server, TAKEN, count - count / 2)?;
        let differences = take_all(server, TAKEN, &mut taken)?;
        match differences.first() {
            None => Ok(Messages { queues: [(WAITING, waiting), (TAKEN, taken)] }),
            Some(first) => Err(format!("{} messages differ at once: {first}", differences.len()).into()),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.queues.iter().map(|(_, known)| known.len()).sum()
    }

    /// Makes each visible by its receipt, takes all, and answers what differs.
    pub(super) fn compare(&mut self, server: &Served) -> Outcome<Vec<String>> {
        let mut differences = Vec::new();
        for (queue, known) in &mut self.queues {
            differences.extend(show_all(server, queue, known)?);
            differences.extend(take_all(server, queue, known)?);
        }
        Ok(differences)
    }
}

fn put_all(server: &Served, queue: &str, count: usize) -> Outcome<Known> {
    let never = AtomicBool::new(false);
    let request = Request { verb: "PUT", path: queue, parameters: &[], headers: &[], body: b"" };
    let answer = client(Service::Queue, server).ask(request, &never)?;
    if answer.status >= 300 {
        return Err(format!("PUT {queue}: {} {}", answer.status, answer.text()).into());
    }
    let parts = side_by_side(|thread| {
        let mut router = client(Service::Queue, server);
        let mut known = Vec::new();
        for number in (thread..count).step_by(CLIENT_COUNT) {
            let text = format!("message {number} of {queue}");
            let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
            let (path, body) = (format!("{queue}/messages"), body.as_bytes());
            let request = Request { verb: "POST", path: &path, parameters: &[], headers: &[], body };
            let answer = router.ask(request, &AtomicBool::new(false))?;
            if answer.status != 201 {
                return Err(format!("POST {path}: {} {}", answer.status, answer.text()).into());
            }
            let (id, message) = Message::of(&answer.text());
            known.push((id, Message { text, ..message }));
        }
        Ok(known)
    })?;
    Ok(parts.into_iter().flatten().collect())
}

/// Makes all visible, each by its receipt; those whose receipt is refused differ.
fn show_all(server: &Served, queue: &str, known: &Known) -> Outcome<Vec<String>> {
    let all: Vec<_> = known.iter().collect();
    let differences = side_by_side(|thread| {
        let mut router = client(Service::Queue, server);
        let mut differences = Vec::new();
        for (id, message) in all.iter().skip(thread).step_by(CLIENT_COUNT) {
            let path = format!("{queue}/messages/{id}");
            let parameters = [("popreceipt", message.receipt.as_str()), ("visibilitytimeout", "0")];
            let request =
                Request { verb: "PUT", path: &path, parameters: &parameters, headers: &[], body: b"" };
            let answer = router.ask(request, &AtomicBool::new(false))?;
            if answer.status != 204 {
                differences.push(format!("the receipt of {message:?}: {} {}", answer.status, answer.text()));
            }
        }
        Ok(differences)
    })?;
    Ok(differences.concat())
}

/// Takes all that are visible, and notes their new receipts; what is not as it was before differs.
fn take_all(server: &Served, queue: &str, known: &mut Known) -> Outcome<Vec<String>> {
    let found = Mutex::new(Vec::new());
    side_by_side(|_| {
        let mut router = client(Service::Queue, server);
        loop {
            let messages = take(&mut router, queue)?;
            if messages.is_empty() {
                return Ok(());
            }
            found.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(messages);
        }
    })?;
    let mut differences = Vec::new();
    let mut missing: BTreeMap<String, Message> = known.clone();
    for (id, message) in found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        match missing.remove(&id) {
            Some(before) if message.follows(&before) => {}
            Some(before) => {
                differences.push(format!("message {id} of {queue} is {message:?}, after {before:?}"))
            }
            None => differences
                .push(format!("message {id} of {queue} is {message:?}, and was not there or twice")),
        }
        known.insert(id, message);
    }
    differences
        .extend(missing.iter().map(|(id, message)| format!("message {id} of {queue} is gone: {message:?}")));
    Ok(differences)
}

fn take(router: &mut Router, queue: &str) -> Outcome<Vec<(String, Message)>> {
    let path = format!("{queue}/messages");
    let parameters = [("numofmessages", TAKEN_TOGETHER), ("visibilitytimeout", INVISIBLE_SECONDS)];
    let request = Request { verb: "GET", path: &path, parameters: &parameters, headers: &[], body: b"" };
    let answer = router.ask(request, &AtomicBool::new(false))?;
    match answer.status {
        200 => Ok(answer.text().split("<QueueMessage>").skip(1).map(Message::of).collect()),
        status => Err(format!("GET {path}: {status} {}", answer.text()).into()),
    }
}
