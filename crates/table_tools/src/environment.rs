//! What a tool touches outside itself, handed in; how it is stopped, and how it shows its progress.

use crate::error::ToolError;
use base::{Disk, FileLock};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use storage_client::Surroundings;

/// Clock, chance, tasks, sockets and files.
pub struct ToolEnvironment<'a> {
    /// Of connections and workers.
    pub surroundings: Surroundings,
    /// Where the files are.
    pub disk: Arc<dyn Disk>,
    /// The locks of these files.
    pub locks: Arc<dyn Locks>,
    /// Ends the work early.
    pub stop: Stop,
    /// Learns about every second how far the work is.
    pub watcher: &'a mut (dyn FnMut(&Progress) + Send),
}

/// Locks between processes, by the paths of files.
pub trait Locks: Send + Sync + 'static {
    /// The lock of a file that stays.
    fn of_file(&self, path: &str) -> Box<dyn FileLock>;
    /// The lock whose file is only there for it, and is removed by its holder.
    fn passing(&self, path: &str) -> Box<dyn FileLock>;
}

/// Holds a lock until it is dropped.
pub(crate) type Held = Box<dyn Send + Sync>;

/// Takes the lock at `path`, which guards the file `what`.
pub(crate) fn hold(lock: &dyn FileLock, path: &str, what: &str) -> Result<Held, ToolError> {
    let held = lock.try_lock().map_err(|error| ToolError::file(path, error))?;
    held.ok_or_else(|| ToolError::Refused(format!("{what} is being written by another process")))
}

/// Ends the work of tools before its time. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the work: what is under way is finished, and what was done is kept.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How far the work is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// What is done: `exporting`.
    pub verb: &'static str,
    /// Entities, messages or blobs so far; those of an earlier run, too.
    pub done: u64,
    /// How many a second since the last time.
    pub rate: f64,
    /// What is left.
    pub rest: Rest,
}

/// What is left of the work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rest {
    /// Nothing is known of it but how many ranges of keys are open.
    Ranges(usize),
    /// So many entities, roughly.
    About(u64),
    /// This share of the whole is done, from 0 to 1.
    Share(f64),
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Progress { verb, done, rate, rest } = self;
        write!(f, "{verb}: {done} so far, {rate:.0}/s, ")?;
        let seconds = |left: f64| match left / rate.max(1.0) {
            left if left < 60.0 => format!("{left:.0} s"),
            left => format!("{:.0} min", (left / 60.0).min(1e6)),
        };
        match rest {
            Rest::Ranges(1) => f.write_str("one range is left"),
            Rest::Ranges(count) => write!(f, "{count} ranges are left"),
            Rest::About(rows) => write!(f, "about {rows} left, {}", seconds(*rows as f64)),
            Rest::Share(share) => {
                let left = *done as f64 * (1.0 / share.max(1e-6) - 1.0);
                write!(f, "{:.0} % done, {} left", share * 100.0, seconds(left))
            }
        }
    }
}

/// Measures the rate between two looks.
pub(crate) struct Rate {
    at: Duration,
    done: u64,
}

impl Rate {
    pub(crate) fn new(now: Duration, done: u64) -> Self {
        Rate { at: now, done }
    }

    /// The rate since the last look.
    pub(crate) fn look(&mut self, now: Duration, done: u64) -> f64 {
        let seconds = now.saturating_sub(self.at).as_secs_f64().max(1e-3);
        let rate = done.saturating_sub(self.done) as f64 / seconds;
        *self = Rate { at: now, done };
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_rate_and_rest() {
        let text = |rest| Progress { verb: "exporting", done: 1000, rate: 100.0, rest }.to_string();
        assert_eq!(text(Rest::Ranges(3)), "exporting: 1000 so far, 100/s, 3 ranges are left");
        assert_eq!(text(Rest::About(500)), "exporting: 1000 so far, 100/s, about 500 left, 5 s");
        assert_eq!(text(Rest::Share(0.5)), "exporting: 1000 so far, 100/s, 50 % done, 10 s left");
        assert_eq!(text(Rest::About(60_000)), "exporting: 1000 so far, 100/s, about 60000 left, 10 min");
        let mut rate = Rate::new(Duration::from_secs(1), 100);
        assert_eq!(rate.look(Duration::from_secs(3), 300), 100.0);
        assert_eq!(rate.look(Duration::from_secs(4), 300), 0.0);
    }
}
