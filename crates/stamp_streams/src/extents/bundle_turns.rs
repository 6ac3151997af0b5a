//! When a process may send or read a bundle: pure but for the locks. Those that are sent share a line with
//! the parts that writers wait for, so few are under way at a time; after one that did not arrive none is
//! sent for a while that doubles. What always holds: a turn ends with its task, whatever comes of it.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Bundles of a process that are read at a time: a slow line gives all of them within one try.
const READ_MAX: usize = 16;
/// Bundles of a process that are under way to the store at a time.
const UNDER_WAY_MAX: usize = 2;
/// For how long none is sent after one that did not arrive: at first, and at most.
const HELD_OFF_FOR_MIN: Duration = Duration::from_secs(1);
const HELD_OFF_FOR_MAX: Duration = Duration::from_secs(60);

/// Turns to read a bundle.
pub(crate) struct BundleReads {
    pub(crate) turns: Semaphore,
}

impl Default for BundleReads {
    fn default() -> Self {
        BundleReads { turns: Semaphore::new(READ_MAX) }
    }
}

/// What a process knows of the bundles that it sends.
#[derive(Default)]
pub(crate) struct BundleTurns {
    under_way: usize,
    /// By the monotonic clock.
    not_before: Duration,
    /// How long none is sent after the next one that does not arrive.
    next_hold_off: Duration,
}

/// A bundle under way.
pub(crate) struct BundleTurn(Arc<Mutex<BundleTurns>>);

impl BundleTurns {
    /// A turn, if there is one now.
    pub(crate) fn begin(turns: &Arc<Mutex<BundleTurns>>, now: Duration) -> Option<BundleTurn> {
        let mut of_all = turns.lock();
        if of_all.under_way >= UNDER_WAY_MAX || now < of_all.not_before {
            return None;
        }
        of_all.under_way += 1;
        Some(BundleTurn(turns.clone()))
    }
}

impl BundleTurn {
    /// It has arrived, or not.
    pub(crate) fn end(self, now: Duration, is_there: bool) {
        let mut of_all = self.0.lock();
        if is_there {
            of_all.next_hold_off = Duration::ZERO;
        } else {
            let hold_off = of_all.next_hold_off.clamp(HELD_OFF_FOR_MIN, HELD_OFF_FOR_MAX);
            (of_all.not_before, of_all.next_hold_off) = (now + hold_off, hold_off * 2);
        }
    }
}

impl Drop for BundleTurn {
    fn drop(&mut self) {
        self.0.lock().under_way -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_under_way_and_none_for_a_while_after_one_that_did_not_arrive() {
        let (turns, seconds) = (Arc::new(Mutex::new(BundleTurns::default())), Duration::from_secs);
        let begin = |at| BundleTurns::begin(&turns, seconds(at));
        let (first, second) = (begin(0).expect("a turn"), begin(0).expect("a turn"));
        assert!(begin(0).is_none(), "two are under way");
        first.end(seconds(10), true);
        begin(10).expect("a turn").end(seconds(20), false);
        assert!(begin(20).is_none(), "one did not arrive");
        begin(21).expect("a turn").end(seconds(30), false);
        assert!(begin(31).is_none(), "nor the next one");
        begin(32).expect("a turn").end(seconds(40), true);
        begin(40).expect("a turn").end(seconds(50), false);
        assert!(begin(51).is_some(), "it begins anew");
        // A task that is dropped ends its turn.
        drop(second);
        assert_eq!(turns.lock().under_way, 0);
    }
}
