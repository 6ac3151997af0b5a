//! Progress of moves and checks on standard error: one line that is written over, on a terminal; else a line
//! now and then.

use crate::output::progress::Progress;
use parking_lot::Mutex;
use shard_command::progress_text;
use shard_mover::CheckProgress;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Between two lines on a terminal, and elsewhere.
const EVERY_ON_TERMINAL: Duration = Duration::from_millis(200);
const EVERY: Duration = Duration::from_secs(5);

pub(super) struct ProgressLines {
    is_terminal: bool,
    shown: Mutex<Shown>,
}

struct Shown {
    line: Progress,
    at: Option<Instant>,
}

impl ProgressLines {
    pub(super) fn new() -> Self {
        let shown = Mutex::new(Shown { line: Progress::new(), at: None });
        ProgressLines { is_terminal: std::io::stderr().is_terminal(), shown }
    }

    pub(super) fn of_move(&self, of: &shard_mover::Progress) {
        self.show(|| progress_text(of));
    }

    pub(super) fn of_check(&self, of: &CheckProgress) {
        self.show(|| format!("checking {}: {} rows read", of.at, of.rows));
    }

    pub(super) fn clear(&self) {
        self.shown.lock().line.clear();
    }

    fn show(&self, text: impl FnOnce() -> String) {
        let mut shown = self.shown.lock();
        let every = if self.is_terminal { EVERY_ON_TERMINAL } else { EVERY };
        if shown.at.is_some_and(|at| at.elapsed() < every) {
            return;
        }
        shown.at = Some(Instant::now());
        match self.is_terminal {
            true => shown.line.line(&text()),
            // What can't be shown is no reason to stop.
            false => drop(writeln!(std::io::stderr(), "{}", text())),
        }
    }
}
