//! What was measured beside what it must be.

use crate::Outcome;

/// Counts what was missed.
#[derive(Default)]
pub(crate) struct Verdicts {
    missed: Vec<&'static str>,
}

impl Verdicts {
    /// Prints a number and whether it is good enough.
    pub(crate) fn judge(&mut self, what: &'static str, found: &str, wanted: &str, good: bool) {
        println!("  {what}: {found} (wanted: {wanted}){}", if good { "" } else { "  MISSED" });
        if !good {
            self.missed.push(what);
        }
    }

    /// Fails if anything was missed.
    pub(crate) fn end(self) -> Outcome<()> {
        if self.missed.is_empty() {
            Ok(())
        } else {
            Err(format!("missed: {}", self.missed.join(", ")).into())
        }
    }
}
