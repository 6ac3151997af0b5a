//! How far a migration is, on standard error.

use crate::output::progress::Progress;
use parking_lot::Mutex;
use stamp_streams::MigrationPhase;

/// Shows bars of both phases, one after the other.
pub(super) struct Shown(Mutex<(Progress, Option<MigrationPhase>)>);

impl Shown {
    pub(super) fn new(is_quiet: bool) -> Self {
        Shown(Mutex::new((Progress::with_plain_lines(is_quiet), None)))
    }

    /// So many bytes of all are done.
    pub(super) fn show(&self, phase: MigrationPhase, done: u64, all: u64) {
        let (progress, shown) = &mut *self.0.lock();
        if *shown != Some(phase) {
            *shown = Some(phase);
            // The rate of a phase is its own.
            progress.line(match phase {
                MigrationPhase::Copying => "copying",
                MigrationPhase::Comparing => "comparing what was copied with its source",
            });
        }
        progress.bar(done, all);
    }

    /// Takes the line away.
    pub(super) fn clear(&self) {
        self.0.lock().0.clear();
    }
}
