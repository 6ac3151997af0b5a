//! What a run is doing, for whoever watches it.

use crate::plan::Pace;
use crate::run::step::Second;
use std::fmt;
use std::time::Duration;

/// What a run is doing now.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// It makes its table, queue or container.
    Creating {
        /// Which.
        place: &'a str,
    },
    /// It loads what is to be there.
    Loading {
        /// Rows, messages or blobs so far.
        loaded: u64,
        /// All there are.
        all: u64,
    },
    /// A second of a step is over.
    Running {
        /// How requests begin.
        pace: Pace,
        /// What was measured in it.
        second: &'a Second,
        /// What is left of the step.
        left: Duration,
    },
    /// It drops what it has made.
    CleaningUp {
        /// What.
        place: &'a str,
    },
    /// There is nothing more to do.
    Ended,
}

/// Watches a run.
pub trait Watcher {
    /// Is called at each change, and each second.
    fn progress(&mut self, progress: &Progress<'_>);
}

impl fmt::Display for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Creating { place } => write!(f, "making {place}"),
            Progress::Loading { loaded, all } => write!(f, "loading: {loaded} of {all}"),
            Progress::Running { pace, second, left } => {
                let percentiles = second.percentiles;
                write!(f, "{:.0}/s", second.done_per_s)?;
                if let Pace::Open(rate) = pace {
                    write!(f, " of {rate:.0}/s")?;
                }
                let (p50, p99) = (percentiles.p50_us as f64 / 1000.0, percentiles.p99_us as f64 / 1000.0);
                write!(f, ", p50 {p50:.2} ms, p99 {p99:.2} ms")?;
                if second.failed_per_s > 0.0 {
                    write!(f, ", {:.0} failed/s", second.failed_per_s)?;
                }
                if second.repeated_per_s > 0.0 {
                    write!(f, ", {:.0} sent again/s", second.repeated_per_s)?;
                }
                write!(f, ", {} s left", left.as_secs_f64().round())
            }
            Progress::CleaningUp { place } => write!(f, "deleting {place}"),
            Progress::Ended => Ok(()),
        }
    }
}
