//! Reads a whole table in parallel: ranges of keys, found by probing, each read page by page by one worker.
//!
//! A scan begins with one range. A worker without one takes the upper part of another's: it looks for a key
//! about in the middle of what is left, by queries for the first key behind a text ([`probe`]). So ranges
//! need no statistics, and become as many as there are workers wherever the rows are; the rows of one large
//! partition are divided likewise.
//!
//! What always holds ([`ledger`]): each row belongs to one range, whatever is divided when; a page's rows are
//! claimed before they are worked on, and no range is divided below what is claimed; what is kept of a range
//! for a later run is where its last finished page ended; rows come in the order of keys, or the scan fails
//! ([`order`]). Memory is bounded: a page for each worker.

pub(crate) mod key;
pub(crate) mod ledger;
pub(crate) mod midpoint;
pub(crate) mod order;
pub(crate) mod probe;
pub(crate) mod range;
pub(crate) mod run;
pub(crate) mod worker;
