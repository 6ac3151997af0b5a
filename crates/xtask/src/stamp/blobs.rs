//! Blobs that are written once: those of the start stay, those of a round are deleted in later ones, and
//! readers check them all.
//!
//! What always holds: a blob's bytes follow from its number, and a number is used once. An upload of unknown
//! outcome is sent again, since it can only put the same bytes; once acknowledged, each read finds it whole.
//! Such a blob is never deleted: an earlier try may arrive late, and would bring it back.

use super::ledger::{Findings, Problem};
use super::router::{Request, Router, Sent};
use super::tables::Shared;
use crate::Outcome;
use crate::client::content::content;
use base::random::splitmix64;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(super) const CONTAINER: &str = "trial";
const SIZE_BYTES_MAX: u64 = 48 << 10;
/// One blob of so many is large.
const LARGE_ONE_IN: usize = 100;
const LARGE_SIZE_BYTES: usize = 4 << 20;
/// Of so many steps of an uploader one is an upload and one a deletion, the others are reads.
const STEPS: u64 = 6;
/// Blobs beyond those of the start, in multiples of these; then each upload waits for a deletion.
const EXTRA_TIMES_MAX: usize = 3;
/// Reads go, too, to so many of those that were deleted last.
const DELETED_READ: usize = 50;

/// What is known of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its upload began, and has no outcome yet.
    Perhaps,
    There,
    /// Its deletion began, and has no outcome yet.
    Leaving,
    /// Its deletion was acknowledged.
    Deleted,
    /// The same, and it was read back since then, or was reported.
    Settled,
}

/// All blobs, by number.
struct Known {
    states: Vec<State>,
    /// A try of its upload has an unknown outcome.
    may_come_late: Vec<bool>,
    /// Those from here on were begun in this round.
    round_from: usize,
    /// Those before it, but for the start's, are deleted, or stay.
    next_to_delete: usize,
    /// Their deletion was given up without an outcome.
    to_delete_again: Vec<usize>,
    /// Beyond those of the start, and not known to be gone.
    extra: usize,
}

/// The blobs, and what became of them.
pub(super) struct Blobs {
    known: Mutex<Known>,
    /// So many, the first, are of the start.
    start_count: usize,
    uploads: AtomicU64,
    deletions: AtomicU64,
}

impl Blobs {
    /// So many will be there before the first fault.
    pub(super) fn new(start_count: usize) -> Self {
        let known = Known {
            states: Vec::new(),
            may_come_late: Vec::new(),
            round_from: 0,
            next_to_delete: start_count,
            to_delete_again: Vec::new(),
            extra: 0,
        };
        let (uploads, deletions) = (AtomicU64::new(0), AtomicU64::new(0));
        Blobs { known: Mutex::new(known), start_count, uploads, deletions }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Known) -> T) -> T {
        change(&mut self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// How many are acknowledged, and not deleted.
    pub(super) fn count(&self) -> usize {
        self.with(|known| known.states.iter().filter(|state| **state == State::There).count())
    }

    /// Uploads and deletions that were acknowledged so far.
    pub(super) fn done(&self) -> (u64, u64) {
        (self.uploads.load(Ordering::SeqCst), self.deletions.load(Ordering::SeqCst))
    }

    /// From now on what is there is of an earlier round.
    pub(super) fn begin_round(&self) {
        self.with(|known| known.round_from = known.states.len());
    }

    /// Uploads those of the start.
    pub(super) fn load(&self, router: &mut Router, shared: &Shared<'_>) {
        while let Some(number) = self.begin(|known| known.states.len() < self.start_count) {
            self.upload(router, number, shared);
        }
    }

    /// Uploads, deletes and reads until it shall stop.
    pub(super) fn work(&self, router: &mut Router, seed: u64, shared: &Shared<'_>) {
        let mut random = seed;
        while !shared.stop.load(Ordering::SeqCst) {
            let step = splitmix64(&mut random) % STEPS;
            if step == 0 {
                let extra_max = self.start_count * EXTRA_TIMES_MAX;
                if let Some(number) = self.begin(|known| known.extra < extra_max) {
                    self.upload(router, number, shared);
                    continue;
                }
            }
            if step <= 1
                && let Some((number, is_again)) = self.with(|known| known.leave(self.start_count))
            {
                self.delete(router, number, is_again, shared);
                continue;
            }
            if let Some(number) = self.with(|known| known.choose(self.start_count, splitmix64(&mut random))) {
                self.check(router, number, shared);
            }
        }
    }

    /// The number of the next upload, if there may be one.
    fn begin(&self, may: impl FnOnce(&Known) -> bool) -> Option<usize> {
        self.with(|known| {
            if !may(known) {
                return None;
            }
            known.states.push(State::Perhaps);
            known.may_come_late.push(false);
            let number = known.states.len() - 1;
            known.extra += usize::from(number >= self.start_count);
            Some(number)
        })
    }

    fn upload(&self, router: &mut Router, number: usize, shared: &Shared<'_>) {
        let (path, body) = (path(number), bytes(number));
        let headers = [("x-ms-blob-type", "BlockBlob")];
        let request = Request { verb: "PUT", path: &path, parameters: &[], headers: &headers, body: &body };
        loop {
            match router.send(request, shared.stop) {
                Sent::Answer(answer) if answer.status == 201 => {
                    self.with(|known| known.states[number] = State::There);
                    self.uploads.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                Sent::Answer(answer) => {
                    let text = || format!("PUT {path}: {} {}", answer.status, answer.text());
                    shared.findings.add(Problem::Wrong, text);
                    return;
                }
                Sent::NotDone(_) => {}
                Sent::Unknown(_) => self.with(|known| known.may_come_late[number] = true),
            }
            if shared.stop.load(Ordering::SeqCst) {
                return;
            }
        }
    }

    fn delete(&self, router: &mut Router, number: usize, mut is_again: bool, shared: &Shared<'_>) {
        let path = path(number);
        let request = Request { verb: "DELETE", path: &path, parameters: &[], headers: &[], body: b"" };
        loop {
            match router.send(request, shared.stop) {
                Sent::Answer(answer) if answer.status == 202 || answer.status == 404 && is_again => {
                    self.deletions.fetch_add(1, Ordering::SeqCst);
                    return self.with(|known| known.settle(number, State::Deleted));
                }
                Sent::Answer(answer) if answer.status == 404 => {
                    shared
                        .findings
                        .add(Problem::Lost, || format!("blob {path} was gone before its deletion"));
                    return self.with(|known| known.settle(number, State::Settled));
                }
                Sent::Answer(answer) => {
                    let text = || format!("DELETE {path}: {} {}", answer.status, answer.text());
                    shared.findings.add(Problem::Wrong, text);
                    return self.with(|known| known.to_delete_again.push(number));
                }
                Sent::NotDone(_) => {}
                Sent::Unknown(_) => is_again = true,
            }
            if shared.stop.load(Ordering::SeqCst) {
                return self.with(|known| known.to_delete_again.push(number));
            }
        }
    }

    fn check(&self, router: &mut Router, number: usize, shared: &Shared<'_>) {
        let before = self.with(|known| known.states[number]);
        let path = path(number);
        let request = Request { verb: "GET", path: &path, parameters: &[], headers: &[], body: b"" };
        let Sent::Answer(answer) = router.send(request, shared.stop) else { return };
        let after = self.with(|known| known.states[number]);
        let found = match answer.status {
            200 if answer.body == bytes(number) => Some(true),
            404 => Some(false),
            _ => None,
        };
        if !is_explained(before, after, found) {
            shared.findings.add(Problem::Stale, || {
                let size = answer.body.len();
                format!("blob {path} is {before:?}, and reads {} with {size} bytes", answer.status)
            });
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
        let states = self.with(|known| known.states.clone());
        let mut count = 0;
        for (number, state) in states.into_iter().enumerate().skip(thread).step_by(threads) {
            if state == State::Settled {
                continue;
            }
            let path = path(number);
            let request = Request { verb: "GET", path: &path, parameters: &[], headers: &[], body: b"" };
            let answer = router.ask(request, &never)?;
            let is_whole = answer.status == 200 && answer.body == bytes(number);
            count += usize::from(is_whole);
            let (now, problem) = match (state, answer.status) {
                (State::Perhaps | State::There, 200) if is_whole => (State::There, None),
                (State::Leaving, 200) if is_whole => (state, None),
                (State::Perhaps | State::Leaving, 404) => (state, None),
                (State::Deleted, 404) => (State::Settled, None),
                (State::Deleted, 200) => (State::Settled, Some(Problem::Stale)),
                _ => (State::Settled, Some(Problem::Lost)),
            };
            self.with(|known| known.states[number] = now);
            if let Some(problem) = problem {
                let (status, size) = (answer.status, answer.body.len());
                findings.add(problem, || format!("blob {path} is {state:?}: {status}, {size} bytes"));
            }
        }
        Ok(count)
    }
}

impl Known {
    /// The blob that is deleted next, if there is one that may be: of an earlier round, or of this one once
    /// there are too many. True: its deletion was tried before.
    fn leave(&mut self, start_count: usize) -> Option<(usize, bool)> {
        if let Some(number) = self.to_delete_again.pop() {
            return Some((number, true));
        }
        while let Some(state) = self.states.get(self.next_to_delete) {
            let number = self.next_to_delete;
            let is_of_this_round = number >= self.round_from;
            if is_of_this_round && (self.extra < start_count * EXTRA_TIMES_MAX || *state == State::Perhaps) {
                return None;
            }
            self.next_to_delete += 1;
            if *state == State::There && !self.may_come_late[number] {
                self.states[number] = State::Leaving;
                return Some((number, false));
            }
        }
        None
    }

    fn settle(&mut self, number: usize, state: State) {
        self.states[number] = state;
        self.extra = self.extra.saturating_sub(1);
    }

    /// A blob to read: of the start, or one that was not deleted long ago.
    fn choose(&self, start_count: usize, random: u64) -> Option<usize> {
        let start = start_count.min(self.states.len());
        let from = self.next_to_delete.saturating_sub(DELETED_READ).max(start).min(self.states.len());
        let count = start + self.states.len() - from;
        let chosen = (random % count.max(1) as u64) as usize;
        (count > 0).then_some(if chosen < start { chosen } else { from + chosen - start })
    }
}

/// Whether a read explains itself by what was known before and after it; `found`: whole, absent, or neither.
fn is_explained(before: State, after: State, found: Option<bool>) -> bool {
    match found {
        Some(true) => !matches!(before, State::Deleted | State::Settled),
        Some(false) => {
            before == State::Perhaps || matches!(after, State::Leaving | State::Deleted | State::Settled)
        }
        None => false,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_held_against_what_was_known_before_and_after_it() {
        use State::{Deleted, Leaving, Perhaps, There};
        // Before, after, found, explained.
        let cases = [
            (There, There, Some(true), true),
            (There, There, Some(false), false),
            (There, There, None, false),
            (There, Leaving, Some(false), true),
            (There, Deleted, Some(false), true),
            (Perhaps, Perhaps, Some(false), true),
            (Perhaps, There, Some(false), true),
            (Leaving, Leaving, Some(true), true),
            (Deleted, Deleted, Some(true), false),
            (Deleted, Deleted, Some(false), true),
        ];
        for (before, after, found, wanted) in cases {
            assert_eq!(is_explained(before, after, found), wanted, "{before:?} {after:?} {found:?}");
        }
    }

    #[test]
    fn blobs_of_earlier_rounds_leave_and_those_of_the_start_stay() {
        let blobs = Blobs::new(2);
        let begin = || blobs.begin(|_| true).expect("it may");
        for _ in 0..4 {
            let number = begin();
            blobs.with(|known| known.states[number] = State::There);
        }
        assert_eq!(blobs.with(|known| known.leave(2)), None, "nothing is of an earlier round");
        blobs.with(|known| known.may_come_late[2] = true);
        blobs.begin_round();
        assert_eq!(blobs.with(|known| known.leave(2)), Some((3, false)), "2 may come late, and stays");
        assert_eq!(blobs.with(|known| known.leave(2)), None);
        blobs.with(|known| known.to_delete_again.push(3));
        assert_eq!(blobs.with(|known| known.leave(2)), Some((3, true)));
        blobs.with(|known| known.settle(3, State::Deleted));
        // Of this round only once there are too many.
        for _ in 0..5 {
            let number = begin();
            blobs.with(|known| known.states[number] = State::There);
        }
        assert_eq!(blobs.with(|known| (known.extra, known.leave(2))), (6, Some((4, false))));
        blobs.with(|known| known.settle(4, State::Deleted));
        assert_eq!(blobs.with(|known| (known.extra, known.leave(2))), (5, None));
    }
}
