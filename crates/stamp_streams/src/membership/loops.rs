//! The loops of a process's ranges, which show that they go round.
//!
//! Why: a process with a loop that hangs serves nobody of its range, and would keep that from all others for
//! as long as it beats. What always holds: a beat is sent only if each loop has gone round since the beat
//! before it; a loop that was dropped without an end counts as one that hangs, until its range stops.

use base::BoxFuture;
use parking_lot::Mutex;
use stamp::RangeId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// The loops of a life.
#[derive(Default)]
pub(crate) struct Loops {
    /// Rises with each beat.
    round: AtomicU64,
    next_id: AtomicU64,
    signs: Mutex<BTreeMap<u64, Arc<Sign>>>,
}

struct Sign {
    range: RangeId,
    name: String,
    /// The last round in which it went round.
    answered: AtomicU64,
    asked: Notify,
}

/// What one loop has to show that it goes round.
pub struct LoopSign {
    loops: Arc<Loops>,
    id: u64,
    sign: Arc<Sign>,
}

impl Loops {
    /// Asks all loops to go round once more; or says which has not since it was asked the last time.
    pub(crate) fn ask(&self) -> Result<(), String> {
        let signs = self.signs.lock();
        let round = self.round.load(Ordering::Acquire);
        if let Some(hung) = signs.values().find(|sign| sign.answered.load(Ordering::Acquire) < round) {
            return Err(hung.name.clone());
        }
        self.round.store(round + 1, Ordering::Release);
        signs.values().for_each(|sign| sign.asked.notify_one());
        Ok(())
    }

    /// The loops of a range that has stopped are nobody's concern any more.
    pub(crate) fn forget(&self, range: RangeId) {
        self.signs.lock().retain(|_, sign| sign.range != range);
    }

    fn add(&self, range: RangeId, name: &str) -> (u64, Arc<Sign>) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut signs = self.signs.lock();
        let answered = AtomicU64::new(self.round.load(Ordering::Acquire));
        let sign = Arc::new(Sign { range, name: name.to_owned(), answered, asked: Notify::new() });
        signs.insert(id, sign.clone());
        (id, sign)
    }
}

impl LoopSign {
    /// Of a loop that begins.
    pub(crate) fn new(loops: &Arc<Loops>, range: RangeId, name: &str) -> Self {
        let (id, sign) = loops.add(range, name);
        LoopSign { loops: loops.clone(), id, sign }
    }

    /// Nobody minds any more whether it goes round.
    pub(crate) fn forget(&self) {
        self.loops.signs.lock().remove(&self.id);
    }
}

impl base::LoopSign for LoopSign {
    fn turned(&self) {
        let round = self.loops.round.load(Ordering::Acquire);
        if self.sign.answered.load(Ordering::Relaxed) != round {
            self.sign.answered.store(round, Ordering::Release);
        }
    }

    fn asked(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            while self.sign.answered.load(Ordering::Relaxed) == self.loops.round.load(Ordering::Acquire) {
                self.sign.asked.notified().await;
            }
        })
    }

    fn end(self: Box<Self>) {
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stamp::{Incarnation, UniqueName};

    #[test]
    fn a_beat_waits_for_every_loop() {
        let range = |counter| RangeId(UniqueName { incarnation: Incarnation(1), counter });
        let loops = Loops::default();
        let turned =
            |sign: &Sign| sign.answered.store(loops.round.load(Ordering::Relaxed), Ordering::Relaxed);
        assert_eq!(loops.ask(), Ok(()), "there is none");
        let (_, first) = loops.add(range(1), "first");
        let (_, second) = loops.add(range(2), "second");
        assert_eq!(loops.ask(), Ok(()), "they have just begun");
        turned(&first);
        assert_eq!(loops.ask(), Err("second".to_owned()));
        assert_eq!(loops.ask(), Err("second".to_owned()), "and goes on to hang");
        turned(&second);
        assert_eq!(loops.ask(), Ok(()));
        turned(&first);
        loops.forget(range(2));
        assert_eq!(loops.ask(), Ok(()), "its range has stopped");
        assert_eq!(loops.ask(), Err("first".to_owned()));
    }
}
