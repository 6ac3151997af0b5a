//! What is measured: latencies, counts, errors by code, where new keys fall.

pub(crate) mod errors;
pub(crate) mod heat;
pub(crate) mod key_pattern;
pub(crate) mod latency;
pub(crate) mod recorder;
pub(crate) mod tally;
