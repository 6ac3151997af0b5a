//! Producers and consumers of a queue, and what must hold of each message.
//!
//! What always holds: an acknowledged message is delivered; no message is delivered to two within its
//! visibility timeout, nor after its deletion was acknowledged. A message that is put again after an unknown
//! outcome would be another one, so it is put once.

use super::ledger::{Findings, Problem};
use super::router::{PAUSE_MIN, Request, Router, Sent, wait};
use super::tables::Shared;
use crate::Outcome;
use crate::bench::queues::element;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const TAKEN_TOGETHER: &str = "16";
/// How long a message is invisible once it is taken.
const INVISIBLE_SECONDS: &str = "15";
const INVISIBLE_FOR: Duration = Duration::from_secs(15);
/// Messages that are put and not yet deleted, beyond which a producer waits.
const BACKLOG_MAX: usize = 2000;
/// Messages of a queue in a whole run, each with some bytes of memory here.
const MESSAGES_MAX: usize = 4_000_000;
/// Between two messages of a producer.
const PUT_PAUSE: Duration = Duration::from_millis(5);
const DRAINED_WITHIN: Duration = Duration::from_secs(600);
/// Clients that drain a queue side by side.
pub(super) const DRAINER_COUNT: usize = 16;
/// So many empty answers in a row, a pause apart, are the end of a queue.
const EMPTY_ANSWERS: u32 = 3;

/// What happened to a message.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    is_put: bool,
    /// When its last delivery was requested, and when it came.
    taken: Option<(Instant, Instant)>,
    deleted_at: Option<Instant>,
    perhaps_deleted: bool,
}

impl Fate {
    /// Notes a delivery; what is wrong with it, if anything.
    fn deliver(&mut self, asked_at: Instant, answered_at: Instant) -> Option<&'static str> {
        let overlaps = self.taken.is_some_and(|(before_asked_at, before_answered_at)| {
            // Neither may have begun before the other one's time was over.
            answered_at < before_asked_at + INVISIBLE_FOR && before_answered_at < asked_at + INVISIBLE_FOR
        });
        let is_after_deletion = self.deleted_at.is_some_and(|deleted_at| asked_at > deleted_at);
        if self.taken.is_none_or(|(before, _)| before < asked_at) {
            self.taken = Some((asked_at, answered_at));
        }
        match (overlaps, is_after_deletion) {
            (_, true) => Some("is delivered after it was deleted"),
            (true, _) => Some("is delivered to two within its visibility timeout"),
            _ => None,
        }
    }
}

/// A queue and all its messages.
pub(super) struct Queue {
    name: &'static str,
    fates: Mutex<Vec<Fate>>,
    deleted: AtomicUsize,
}

impl Queue {
    /// Nothing is put yet.
    pub(super) fn new(name: &'static str) -> Self {
        Queue { name, fates: Mutex::new(Vec::new()), deleted: AtomicUsize::new(0) }
    }

    pub(super) fn make(&self, router: &mut Router) -> Outcome<()> {
        let request = Request { verb: "PUT", path: self.name, parameters: &[], headers: &[], body: b"" };
        let answer = router.ask(request, &AtomicBool::new(false))?;
        match answer.status {
            201 | 204 => Ok(()),
            status => Err(format!("queue {}: {status} {}", self.name, answer.text()).into()),
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Vec<Fate>) -> T) -> T {
        change(&mut self.fates.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// How many were acknowledged.
    pub(super) fn count(&self) -> usize {
        self.with(|fates| fates.iter().filter(|fate| fate.is_put).count())
    }

    /// How many were taken and their deletion acknowledged.
    pub(super) fn consumed(&self) -> u64 {
        self.deleted.load(Ordering::SeqCst) as u64
    }

    /// Puts messages until so many were begun.
    pub(super) fn load(&self, router: &mut Router, count: usize, shared: &Shared<'_>) {
        while let Some(number) = self.begin(count) {
            self.put(router, number, shared);
        }
    }

    /// Puts messages until it shall stop, at most so many ahead of the consumers.
    pub(super) fn produce(&self, router: &mut Router, shared: &Shared<'_>) {
        while !shared.stop.load(Ordering::SeqCst) {
            let count_max = (self.deleted.load(Ordering::SeqCst) + BACKLOG_MAX).min(MESSAGES_MAX);
            if let Some(number) = self.begin(count_max) {
                self.put(router, number, shared);
            }
            std::thread::sleep(PUT_PAUSE);
        }
    }

    /// The number of the next message, as long as there are fewer.
    fn begin(&self, count_max: usize) -> Option<usize> {
        self.with(|fates| {
            (fates.len() < count_max).then(|| {
                fates.push(Fate::default());
                fates.len() - 1
            })
        })
    }

    fn put(&self, router: &mut Router, number: usize, shared: &Shared<'_>) {
        let body = format!("<QueueMessage><MessageText>{number}</MessageText></QueueMessage>");
        let path = format!("{}/messages", self.name);
        let parameters = [("messagettl", "-1")];
        let body = body.as_bytes();
        let request = Request { verb: "POST", path: &path, parameters: &parameters, headers: &[], body };
        match router.send(request, shared.stop) {
            Sent::Answer(answer) if answer.status == 201 => self.with(|fates| fates[number].is_put = true),
            Sent::Answer(answer) => shared
                .findings
                .add(Problem::Wrong, || format!("put of a message: {} {}", answer.status, answer.text())),
            Sent::NotDone(_) | Sent::Unknown(_) => {}
        }
    }

    /// Takes and deletes messages until it shall stop.
    pub(super) fn consume(&self, router: &mut Router, shared: &Shared<'_>) {
        let mut pause = PAUSE_MIN;
        while !shared.stop.load(Ordering::SeqCst) {
            match self.take(router, shared) {
                None => wait(&mut pause),
                Some(0) => std::thread::sleep(Duration::from_millis(50)),
                Some(_) => pause = PAUSE_MIN,
            }
        }
    }

    /// Takes some messages and deletes them; how many came, if it is known.
    fn take(&self, router: &mut Router, shared: &Shared<'_>) -> Option<usize> {
        let parameters = [("numofmessages", TAKEN_TOGETHER), ("visibilitytimeout", INVISIBLE_SECONDS)];
        let path = format!("{}/messages", self.name);
        let request = Request { verb: "GET", path: &path, parameters: &parameters, headers: &[], body: b"" };
        let asked_at = Instant::now();
        let answer = match router.send_once(request) {
            Sent::Answer(answer) if answer.status == 200 => answer,
            Sent::Answer(answer) => {
                let text = || format!("get of messages: {} {}", answer.status, answer.text());
                shared.findings.add(Problem::Wrong, text);
                return None;
            }
            Sent::NotDone(_) | Sent::Unknown(_) => return None,
        };
        let answered_at = Instant::now();
        let text = answer.text();
        let messages: Vec<&str> = text.split("<QueueMessage>").skip(1).collect();
        for message in &messages {
            self.note(message, (asked_at, answered_at), shared.findings);
            self.delete(router, message, shared);
        }
        Some(messages.len())
    }

    fn note(&self, message: &str, (asked_at, answered_at): (Instant, Instant), findings: &Findings) {
        let text = element(message.as_bytes(), "MessageText");
        let problem =
            self.with(|fates| match text.parse().ok().and_then(|number: usize| fates.get_mut(number)) {
                Some(fate) => fate.deliver(asked_at, answered_at),
                None => Some("was never put"),
            });
        if let Some(problem) = problem {
            findings.add(Problem::Stale, || format!("message {text} of {} {problem}", self.name));
        }
    }

    fn delete(&self, router: &mut Router, message: &str, shared: &Shared<'_>) {
        let part = |name| element(message.as_bytes(), name);
        let Ok(number) = part("MessageText").parse::<usize>() else { return };
        let path = format!("{}/messages/{}", self.name, part("MessageId"));
        let parameters = [("popreceipt", part("PopReceipt"))];
        let request =
            Request { verb: "DELETE", path: &path, parameters: &parameters, headers: &[], body: b"" };
        let before = self.with(|fates| std::mem::replace(&mut fates[number].perhaps_deleted, true));
        match router.send(request, shared.stop) {
            Sent::Answer(answer) if answer.status == 204 => {
                self.with(|fates| fates[number].deleted_at = Some(Instant::now()));
                self.deleted.fetch_add(1, Ordering::SeqCst);
            }
            // Its time was over, and somebody else has it, or has deleted it.
            Sent::Answer(answer) if [400, 404].contains(&answer.status) => {}
            Sent::Answer(answer) => shared.findings.add(Problem::Wrong, || {
                format!("deletion of message {number}: {} {}", answer.status, answer.text())
            }),
            Sent::NotDone(_) => self.with(|fates| fates[number].perhaps_deleted = before),
            Sent::Unknown(_) => {}
        }
    }

    /// Takes all that is left, by all these clients side by side, and judges the fate of every message;
    /// answers how many were delivered.
    pub(super) fn drain(&self, routers: Vec<Router>, shared: &Shared<'_>) -> Outcome<usize> {
        let taken_at = Mutex::new(Instant::now());
        let outcomes: Vec<Outcome<()>> = std::thread::scope(|scope| {
            let drainers: Vec<_> = routers
                .into_iter()
                .map(|mut router| {
                    let taken_at = &taken_at;
                    scope.spawn(move || self.drain_with(&mut router, taken_at, shared))
                })
                .collect();
            drainers.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        outcomes.into_iter().collect::<Outcome<()>>()?;
        Ok(self.with(|fates| {
            for (number, fate) in fates.iter().enumerate() {
                let is_explained = !fate.is_put || fate.perhaps_deleted && fate.taken.is_some();
                if !is_explained {
                    let text = || format!("message {number} of {} was never delivered", self.name);
                    shared.findings.add(Problem::Lost, text);
                }
            }
            let delivered = fates.iter().filter(|fate| fate.taken.is_some()).count();
            // Reported once.
            fates.iter_mut().for_each(|fate| fate.is_put = false);
            delivered
        }))
    }

    /// One client's part of it. It ends once every message is known to be deleted, or nobody has got one for
    /// longer than one that was taken and not deleted is invisible.
    fn drain_with(&self, router: &mut Router, taken_at: &Mutex<Instant>, shared: &Shared<'_>) -> Outcome<()> {
        let (since, mut empty) = (Instant::now(), 0);
        let last = || *taken_at.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while empty < EMPTY_ANSWERS || last().elapsed() < INVISIBLE_FOR {
            if since.elapsed() > DRAINED_WITHIN {
                return Err(format!("queue {} is not empty after {DRAINED_WITHIN:?}", self.name).into());
            }
            match self.take(router, shared) {
                Some(0) => {
                    empty += 1;
                    std::thread::sleep(Duration::from_millis(200));
                    if self.with(|fates| fates.iter().all(|fate| !fate.is_put || fate.deleted_at.is_some())) {
                        break;
                    }
                }
                None => {
                    empty = 0;
                    std::thread::sleep(PAUSE_MIN);
                    *taken_at.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Instant::now();
                }
                Some(_) => {
                    empty = 0;
                    *taken_at.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Instant::now();
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_with_one_at_a_time_and_gone_once_deleted() {
        let zero = Instant::now();
        let at = |seconds| zero + Duration::from_secs(seconds);
        let mut fate = Fate::default();
        assert_eq!(fate.deliver(at(0), at(1)), None);
        assert!(fate.deliver(at(3), at(4)).is_some_and(|problem| problem.contains("two")));
        assert_eq!(fate.deliver(at(20), at(21)), None);
        fate.deleted_at = Some(at(22));
        assert!(fate.deliver(at(60), at(61)).is_some_and(|problem| problem.contains("deleted")));
    }
}
