//! Large appends to one extent that are under way together: while one is synced and its length is journaled,
//! the next is encoded and written behind it.
//!
//! What always holds: a run has the extent's tail to itself, from before its first append has a place until
//! nothing of it is under way any more. Places follow one another without a gap, and an append becomes
//! durable only after the one before it; if that one fails, all behind it have no place any more and take
//! another, in a later run.

use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::{OwnedRwLockWriteGuard, oneshot};

/// Appends of one run at most: small appends wait for its end.
const APPEND_COUNT_MAX: u32 = 16;

/// A run of large appends; ends when nothing refers to it.
pub(crate) struct LargeRun {
    _tail: OwnedRwLockWriteGuard<()>,
    next: Mutex<Next>,
}

struct Next {
    offset: u64,
    /// Places that were given out.
    count: u32,
    /// Of the last one: whether its bytes became durable. `None` once no further place follows it.
    last: Option<oneshot::Receiver<()>>,
    is_broken: bool,
}

/// The bytes of an extent that one append writes.
pub(super) struct Place {
    pub(super) offset: u64,
    run: Arc<LargeRun>,
    before: Option<oneshot::Receiver<()>>,
    is_durable: Option<oneshot::Sender<()>>,
}

impl LargeRun {
    /// Begins a run at the extent's length.
    pub(super) fn begin(tail: OwnedRwLockWriteGuard<()>, length: u64) -> Arc<Self> {
        let next = Next { offset: length, count: 0, last: None, is_broken: false };
        Arc::new(LargeRun { _tail: tail, next: Mutex::new(next) })
    }

    /// The place behind all others; `None`: the run takes no more.
    pub(super) fn place(self: &Arc<Self>, size_bytes: u64) -> Option<Place> {
        let mut next = self.next.lock();
        if next.is_broken || next.count == APPEND_COUNT_MAX {
            return None;
        }
        let offset = next.offset;
        next.offset = offset.checked_add(size_bytes)?;
        next.count += 1;
        let (is_durable, durable) = oneshot::channel();
        let before = next.last.replace(durable);
        Some(Place { offset, run: self.clone(), before, is_durable: Some(is_durable) })
    }
}

impl Place {
    /// The run, which keeps the extent's tail.
    pub(super) fn run(&self) -> Arc<LargeRun> {
        self.run.clone()
    }

    /// Waits until all before it is durable; false: it never will be.
    pub(super) async fn turn(&mut self) -> bool {
        match self.before.take() {
            Some(before) => before.await.is_ok(),
            None => true,
        }
    }

    /// Its bytes are durable, and the next one's turn comes.
    pub(super) fn end_durable(mut self) {
        if let Some(is_durable) = self.is_durable.take() {
            // None may have come behind it.
            let _ = is_durable.send(());
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_durable.is_some() {
            self.run.next.lock().is_broken = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use tokio::sync::RwLock;

    fn run() -> (Arc<RwLock<()>>, Arc<LargeRun>) {
        let lock = Arc::new(RwLock::new(()));
        let tail = lock.clone().try_write_owned().unwrap();
        (lock, LargeRun::begin(tail, 100))
    }

    #[test]
    fn places_follow_one_another_and_turns_come_in_their_order() {
        let (lock, run) = run();
        let mut places: Vec<Place> = [10, 20, 30].map(|size| run.place(size).unwrap()).into();
        assert_eq!(places.iter().map(|place| place.offset).collect::<Vec<_>>(), [100, 110, 130]);
        let (mut third, mut second, mut first) =
            (places.pop().unwrap(), places.pop().unwrap(), places.pop().unwrap());
        assert_eq!(first.turn().now_or_never(), Some(true));
        first.end_durable();
        {
            let third_turn = third.turn();
            tokio::pin!(third_turn);
            assert_eq!(third_turn.as_mut().now_or_never(), None);
            assert_eq!(second.turn().now_or_never(), Some(true));
            second.end_durable();
            assert_eq!(third_turn.now_or_never(), Some(true));
        }
        drop(run);
        assert!(lock.try_read().is_err(), "one is under way");
        third.end_durable();
        assert!(lock.try_read().is_ok());
    }

    #[test]
    fn what_fails_takes_all_behind_it_with_it_and_ends_the_run() {
        let (_lock, run) = run();
        let (first, mut second) = (run.place(10).unwrap(), run.place(20).unwrap());
        drop(first);
        assert!(run.place(1).is_none());
        assert_eq!(second.turn().now_or_never(), Some(false));
    }

    #[test]
    fn a_run_has_a_bound_and_no_place_beyond_the_last_offset() {
        let (_lock, run) = run();
        assert!(run.place(u64::MAX).is_none());
        for _ in 0..APPEND_COUNT_MAX {
            run.place(1).unwrap().end_durable();
        }
        assert!(run.place(1).is_none());
    }
}
