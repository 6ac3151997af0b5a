//! Whether the server serves, and if not, why.
//!
//! What always holds: on a data folder it is ready only while requests of every kind are admitted. A full
//! disk, on which reads and deletions go on, is a reason; so is a start that has not ended, and a stop that
//! has begun. A stamp whose document is full stays ready: only one process serves it, so that a balancer
//! which looks elsewhere would keep away the deletions that help.

use super::sampled_stamp::StampSource;
use crate::stamp::stand_by::Waiting;
use base::Disk;
use parking_lot::Mutex;
use partition::Partitions;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use stream::Streams;

/// Where the process is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The data folder is being read.
    Starting,
    /// Another process of the stamp serves, or nobody yet.
    StandingBy,
    /// Requests are answered.
    Serving,
    /// A stop has begun: requests under way are finished, no others are taken.
    Draining,
}

/// The layers that metrics come from.
#[derive(Clone)]
pub(crate) struct Layers {
    pub(crate) streams: Arc<Streams>,
    pub(crate) partitions: Arc<Partitions>,
    pub(crate) disk: Arc<dyn Disk>,
}

/// What is known of the server.
pub(crate) struct Readiness {
    now: Mutex<(Phase, Option<Layers>)>,
    /// Why a process of a stamp does not serve.
    waiting: Mutex<Option<Arc<Waiting>>>,
    /// What a process of a stamp shows of it.
    stamp: Mutex<Option<Arc<StampSource>>>,
    /// Whether an operator wants balancers to look elsewhere.
    is_held_out: AtomicBool,
}

/// What keeps the server from serving all requests.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Trouble {
    phase: Phase,
    is_held_out: bool,
    stopped: Option<String>,
    missing_bytes: u64,
    damaged_ranges: u64,
    is_of_stamp: bool,
}

impl Readiness {
    /// Of a server that has just been started.
    pub(crate) fn starting() -> Arc<Self> {
        let now = Mutex::new((Phase::Starting, None));
        let (waiting, stamp, is_held_out) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
        Arc::new(Readiness { now, waiting, stamp, is_held_out })
    }

    /// The process is one of a stamp.
    pub(crate) fn note_stamp(&self, source: Arc<StampSource>) {
        *self.stamp.lock() = Some(source);
    }

    /// Where metrics of a stamp come from, if the process is one of a stamp.
    pub(crate) fn stamp(&self) -> Option<Arc<StampSource>> {
        self.stamp.lock().clone()
    }

    /// This process of a stamp does not serve now; `waiting` says why.
    pub(crate) fn note_standing_by(&self, waiting: Arc<Waiting>) {
        *self.waiting.lock() = Some(waiting);
        *self.now.lock() = (Phase::StandingBy, None);
    }

    /// The layers are open, and requests are answered.
    pub(crate) fn note_serving(&self, layers: Layers) {
        *self.now.lock() = (Phase::Serving, Some(layers));
    }

    /// A stop has begun.
    pub(crate) fn note_draining(&self) {
        self.now.lock().0 = Phase::Draining;
    }

    /// The layers are about to be closed.
    pub(crate) fn note_closing(&self) {
        *self.now.lock() = (Phase::Draining, None);
    }

    /// From now on it is not ready, or ready again; requests are served as before.
    pub(super) fn hold_out(&self, is_held_out: bool) {
        self.is_held_out.store(is_held_out, Ordering::Relaxed);
    }

    /// Whether an operator wants balancers to look elsewhere.
    pub(super) fn is_held_out(&self) -> bool {
        self.is_held_out.load(Ordering::Relaxed)
    }

    pub(super) fn phase(&self) -> Phase {
        self.now.lock().0
    }

    /// The layers, once they are open.
    pub(super) fn layers(&self) -> Option<Layers> {
        self.now.lock().1.clone()
    }

    /// Why it does not serve; `None`: it does.
    pub(super) fn reason(&self) -> Option<String> {
        if self.phase() == Phase::StandingBy
            && let Some(waiting) = &*self.waiting.lock()
        {
            return Some(waiting.reason());
        }
        self.trouble().reason()
    }

    /// What it refuses although it is ready; `None`: nothing.
    pub(super) fn limit(&self) -> Option<String> {
        self.trouble().limit()
    }

    fn trouble(&self) -> Trouble {
        let (phase, layers) = self.now.lock().clone();
        let is_held_out = self.is_held_out();
        let mut trouble = Trouble {
            phase,
            is_held_out,
            stopped: None,
            missing_bytes: 0,
            damaged_ranges: 0,
            is_of_stamp: self.stamp.lock().is_some(),
        };
        if let Some(layers) = layers {
            trouble.stopped = layers.streams.check_writes().err().map(|error| error.to_string());
            trouble.missing_bytes = layers.partitions.missing_space_bytes();
            trouble.damaged_ranges = layers.partitions.statistics().damaged_ranges;
        }
        trouble
    }
}

impl Trouble {
    fn reason(&self) -> Option<String> {
        match self.phase {
            Phase::Starting => Some("starting: the data folder is being read".to_owned()),
            Phase::StandingBy => Some("standing by: another process serves the stamp".to_owned()),
            Phase::Draining => Some("draining: the server is stopping".to_owned()),
            Phase::Serving => match &self.stopped {
                Some(error) => Some(format!("nothing is written any more, restart the server: {error}")),
                None if self.is_held_out => {
                    Some("draining: an operator wants it; requests are served on".to_owned())
                }
                None if self.missing_bytes > 0 && !self.is_of_stamp => Some(format!(
                    "the disk is full: {} bytes must become free before writes are taken",
                    self.missing_bytes
                )),
                None if self.damaged_ranges > 0 && !self.is_of_stamp => Some(format!(
                    "{} ranges are damaged: stop the server and run larimar check",
                    self.damaged_ranges
                )),
                None => None,
            },
        }
    }

    /// Of a process of a stamp, which is the only one that serves: without it nothing would be served.
    fn limit(&self) -> Option<String> {
        if self.phase != Phase::Serving || !self.is_of_stamp {
            return None;
        }
        match (self.missing_bytes, self.damaged_ranges) {
            (0, 0) => None,
            (0, damaged) => Some(format!(
                "{damaged} ranges are damaged: their keys answer with an error, all others are served; run larimar \
                 check --stamp"
            )),
            (missing, _) => Some(format!(
                "the document of the stamp is full: {missing} bytes must go from it before writes are taken again, so \
                 delete what is not needed"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_that_holds_is_given() {
        let well = Trouble {
            phase: Phase::Serving,
            is_held_out: false,
            stopped: None,
            missing_bytes: 0,
            damaged_ranges: 0,
            is_of_stamp: false,
        };
        assert_eq!(well.reason(), None);
        for (trouble, reason) in [
            (Trouble { phase: Phase::Starting, missing_bytes: 1, ..well.clone() }, "starting"),
            (Trouble { phase: Phase::Draining, ..well.clone() }, "draining"),
            (
                Trouble { stopped: Some("journal".into()), missing_bytes: 1, ..well.clone() },
                "nothing is written",
            ),
            (
                Trouble { is_held_out: true, missing_bytes: 1, ..well.clone() },
                "draining: an operator wants it",
            ),
            (Trouble { missing_bytes: 7, damaged_ranges: 1, ..well.clone() }, "the disk is full: 7 bytes"),
            (Trouble { damaged_ranges: 2, ..well.clone() }, "2 ranges are damaged"),
        ] {
            let given = trouble.reason().unwrap();
            assert!(given.starts_with(reason), "{given}");
        }
        assert_eq!(Trouble { missing_bytes: 7, ..well }.limit(), None);
    }

    /// A balancer took the only process that serves the stamp out, and with it the deletions that help, or
    /// all ranges but the damaged one.
    #[test]
    fn a_stamp_that_is_full_or_damaged_is_ready_and_says_so() {
        let full = Trouble {
            phase: Phase::Serving,
            is_held_out: false,
            stopped: None,
            missing_bytes: 7,
            damaged_ranges: 0,
            is_of_stamp: true,
        };
        assert_eq!(full.reason(), None);
        let limit = full.limit().unwrap();
        assert!(limit.starts_with("the document of the stamp is full: 7 bytes must go"), "{limit}");
        assert_eq!(Trouble { missing_bytes: 0, ..full.clone() }.limit(), None);
        let damaged = Trouble { missing_bytes: 0, damaged_ranges: 2, ..full.clone() };
        assert_eq!(damaged.reason(), None);
        let limit = damaged.limit().unwrap();
        assert!(limit.starts_with("2 ranges are damaged: their keys answer with an error"), "{limit}");
        assert!(Trouble { damaged_ranges: 2, ..full.clone() }.limit().unwrap().starts_with("the document"));
        assert!(Trouble { is_of_stamp: false, ..damaged }.reason().is_some());
        assert_eq!(Trouble { phase: Phase::Draining, ..full }.limit(), None);
    }
}
