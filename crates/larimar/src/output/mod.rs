//! What the program says: its log, the report of a start, errors of a command line, progress of long work.

pub(crate) mod error_line;
pub(crate) mod log;
pub(crate) mod progress;
mod repeated_lines;
pub(crate) mod report;
