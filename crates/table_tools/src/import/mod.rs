//! `larimar table import`: a file into a table, in entity groups.
//!
//! The file is read in portions; each is planned into batches of one partition ([`batch`]), which workers
//! send in any order ([`writer`]). Between two lines with the same key the order is kept: a portion ends
//! before a key that comes again, and waits until the earlier one is written.
//!
//! What always holds: all lines up to the state's place are written; those behind it up to `issued_to` may
//! be, so that a run that goes on does not take its own entities for someone else's ([`writer`] reads and
//! compares them); memory is bounded by [`PORTIONS_MAX`] windows of the file.

pub(crate) mod batch;
mod compared;
pub(crate) mod run;
pub(crate) mod worker;
pub(crate) mod writer;

/// Portions of the file that are under way, at most.
pub(crate) const PORTIONS_MAX: usize = 8;
