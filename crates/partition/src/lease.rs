//! How long this process may answer for its ranges: handed in, and asked twice for each answer.
//!
//! A range asks it just before it reads or decides, and again before what it found leaves: between the two
//! the process may have been paused, and another one may have taken the range and changed it. What always
//! holds: a lease that has ended has ended for ever; after that a range answers `NotMine`, and acknowledges
//! nothing.
//!
//! On one node nobody else can take a range, and the lease never ends.

use crate::error::PartitionError;
use base::LoopSign;
use futures_util::future::{Either, select};
use std::pin::pin;

/// The lease of the process that serves ranges.
pub trait Lease: Send + Sync + 'static {
    /// Whether the process may answer now. Once it may not, it never may again. Cheap: it is asked twice for
    /// each request.
    fn holds(&self) -> bool;

    /// A sign for a loop of a range, if the lease goes on only while all loops do.
    fn watch_loop(&self, name: &str) -> Option<Box<dyn LoopSign>> {
        let _ = name;
        None
    }
}

/// Waits for `work`, and shows meanwhile that the loop goes round.
pub(crate) async fn going_round<T>(sign: Option<&dyn LoopSign>, work: impl Future<Output = T>) -> T {
    let Some(sign) = sign else { return work.await };
    let mut work = pin!(work);
    loop {
        sign.turned();
        if let Either::Left((done, _)) = select(work.as_mut(), sign.asked()).await {
            return done;
        }
    }
}

/// One that never ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndlessLease;

impl Lease for EndlessLease {
    fn holds(&self) -> bool {
        true
    }
}

/// What is said of an operation that was decided, if the lease ended before the answer left. `is_logged`: its
/// changes may be in the log, and whoever takes the range finds them there, or does not.
pub(crate) fn choose_late_answer(is_logged: bool) -> PartitionError {
    match is_logged {
        false => PartitionError::NotMine,
        true => PartitionError::OutcomeUnknown(
            "the lease of the range's owner ended before the outcome of a write was known".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_in_the_log_was_certainly_not_done() {
        assert!(choose_late_answer(false).changed_nothing());
        assert!(!choose_late_answer(true).changed_nothing());
    }
}
