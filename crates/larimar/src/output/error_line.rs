//! The one line on standard error that a failed command ends with.
//!
//! It is apart from the report of a start, which needs a configuration: a command line that can't be read has
//! none.

use std::io::Write;

/// Prints the line.
pub(crate) fn print_error(text: &str) {
    // There is no other place to report it if standard error is closed.
    let _ = writeln!(std::io::stderr(), "larimar: {text}");
}
