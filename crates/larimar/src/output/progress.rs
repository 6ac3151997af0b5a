//! What is being done, on standard error if that is a terminal.

use std::io::{IsTerminal, Write};

/// Columns of a bar.
const BAR_WIDTH: u64 = 40;
/// Characters of a line that are shown.
const LINE_LEN_MAX: usize = 100;

/// One line that is written over again and again.
pub(crate) struct Progress {
    is_terminal: bool,
    /// Columns of the bar that are filled; `None`: no bar is shown.
    filled: Option<u64>,
    is_shown: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Progress { is_terminal: std::io::stderr().is_terminal(), filled: None, is_shown: false }
    }

    /// Bytes that were read, and all there are.
    pub(crate) fn bar(&mut self, read: u64, all: u64) {
        let filled = (read * BAR_WIDTH).checked_div(all).unwrap_or(BAR_WIDTH).min(BAR_WIDTH);
        if self.filled == Some(filled) {
            return;
        }
        let (done, left) = ("#".repeat(filled as usize), ".".repeat((BAR_WIDTH - filled) as usize));
        self.line(&format!("[{done}{left}] {} of {} MiB", read >> 20, all >> 20));
        self.filled = Some(filled);
    }

    /// What is being done.
    pub(crate) fn line(&mut self, text: &str) {
        self.clear();
        if self.is_terminal {
            let shown: String = text.chars().take(LINE_LEN_MAX).collect();
            // What can't be shown is no reason to stop.
            let _ = write!(std::io::stderr(), "{shown}");
            self.is_shown = true;
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        self.filled = None;
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
