//! Uploads of blobs that are written once, and readers that check them.
//!
//! What always holds: a blob's bytes follow from its number; an upload of unknown outcome is sent again,
//! since it can only put the same bytes; once acknowledged, each read finds it whole.

use super::ledger::{Findings, Problem};
use super::router::{Request, Router, Sent};
use super::tables::Shared;
use crate::Outcome;
use crate::client::content::content;
use base::random::splitmix64;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

pub(super) const CONTAINER: &str = "trial";
const SIZE_BYTES_MAX: u64 = 48 << 10;
/// One blob of so many is large.
const LARGE_ONE_IN: usize = 100;
const LARGE_SIZE_BYTES: usize = 4 << 20;
/// One step of so many of an uploader is an upload, the others are reads.
const UPLOAD_ONE_IN: u64 = 3;

const NOTHING: u8 = 0;
const PERHAPS: u8 = 1;
const THERE: u8 = 2;

/// All blobs, by number.
pub(super) struct Blobs {
    states: Vec<AtomicU8>,
    next: AtomicUsize,
}

impl Blobs {
    /// At most so many in all.
    pub(super) fn new(count_max: usize) -> Self {
        let states = std::iter::repeat_with(|| AtomicU8::new(NOTHING)).take(count_max).collect();
        Blobs { states, next: AtomicUsize::new(0) }
    }

    /// How many are acknowledged.
    pub(super) fn count(&self) -> usize {
        self.states.iter().filter(|state| state.load(Ordering::SeqCst) == THERE).count()
    }

    /// Uploads until so many were begun.
    pub(super) fn load(&self, router: &mut Router, count: usize, shared: &Shared<'_>) {
        while self.next.load(Ordering::SeqCst) < count && self.upload(router, shared) {}
    }

    /// Uploads and reads until it shall stop.
    pub(super) fn work(&self, router: &mut Router, seed: u64, shared: &Shared<'_>) {
        let mut random = seed;
        while !shared.stop.load(Ordering::SeqCst) {
            let uploads = splitmix64(&mut random).is_multiple_of(UPLOAD_ONE_IN);
            if uploads && self.upload(router, shared) {
                continue;
            }
            let begun = self.next.load(Ordering::SeqCst).min(self.states.len());
            if begun > 0 {
                self.check(router, (splitmix64(&mut random) % begun as u64) as usize, shared);
            }
        }
    }

    /// False: there are as many as there may be.
    fn upload(&self, router: &mut Router, shared: &Shared<'_>) -> bool {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        let Some(state) = self.states.get(number) else {
            self.next.store(self.states.len(), Ordering::SeqCst);
            return false;
        };
        let (path, body) = (path(number), bytes(number));
        let headers = [("x-ms-blob-type", "BlockBlob")];
        let request = Request { verb: "PUT", path: &path, parameters: &[], headers: &headers, body: &body };
        loop {
            state.store(PERHAPS, Ordering::SeqCst);
            match router.send(request, shared.stop) {
                Sent::Answer(answer) if answer.status == 201 => {
                    state.store(THERE, Ordering::SeqCst);
                    return true;
                }
                Sent::Answer(answer) => {
                    let text = || format!("PUT {path}: {} {}", answer.status, answer.text());
                    shared.findings.add(Problem::Wrong, text);
                    return true;
                }
                Sent::NotDone(_) | Sent::Unknown(_) if shared.stop.load(Ordering::SeqCst) => return true,
                Sent::NotDone(_) | Sent::Unknown(_) => {}
            }
        }
    }

    fn check(&self, router: &mut Router, number: usize, shared: &Shared<'_>) {
        let is_there = self.states[number].load(Ordering::SeqCst) == THERE;
        let path = path(number);
        let request = Request { verb: "GET", path: &path, parameters: &[], headers: &[], body: b"" };
        let Sent::Answer(answer) = router.send(request, shared.stop) else { return };
        match answer.status {
            200 if answer.body == bytes(number) => {}
            404 if !is_there => {}
            status => shared.findings.add(Problem::Stale, || {
                format!("blob {path} is there, and reads {status} with {} bytes", answer.body.len())
            }),
        }
    }

    /// Reads the blobs of one of several threads back, and answers how many are there.
    pub(super) fn verify(
        &self,
        router: &mut Router,
        (thread, threads): (usize, usize),
        findings: &Findings,
    ) -> Outcome<usize> {
        let never = AtomicBool::new(false);
        let mut count = 0;
        for number in (thread..self.states.len()).step_by(threads) {
            let state = self.states[number].load(Ordering::SeqCst);
            if state == NOTHING {
                continue;
            }
            let path = path(number);
            let request = Request { verb: "GET", path: &path, parameters: &[], headers: &[], body: b"" };
            let answer = router.ask(request, &never)?;
            match answer.status {
                200 if answer.body == bytes(number) => {
                    self.states[number].store(THERE, Ordering::SeqCst);
                    count += 1;
                }
                404 if state == PERHAPS => {}
                status => {
                    self.states[number].store(NOTHING, Ordering::SeqCst);
                    let size = answer.body.len();
                    findings.add(Problem::Lost, || format!("blob {path}: {status}, {size} bytes"));
                }
            }
        }
        Ok(count)
    }
}

/// Path of a blob.
pub(super) fn path(number: usize) -> String {
    format!("{CONTAINER}/b{number:08}")
}

fn bytes(number: usize) -> Vec<u8> {
    let mut state = number as u64;
    let size = match number % LARGE_ONE_IN {
        0 => LARGE_SIZE_BYTES,
        _ => (splitmix64(&mut state) % SIZE_BYTES_MAX) as usize + 1,
    };
    content(number as u64, size)
}
