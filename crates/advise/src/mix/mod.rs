//! What is done with a table: queries and writes, with their frequency and how fast they must be.

mod access_log;
mod classes;
mod file;

pub use access_log::{AccessLogError, mix_of_access_log};
pub use classes::{Mix, Query, Write};
pub use file::parse_mix;
