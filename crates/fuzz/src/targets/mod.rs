//! One file for each target: how bytes become requests, and what must hold of the answers.

pub(crate) mod batch;
pub(crate) mod bodies;
pub(crate) mod filter;
pub(crate) mod headers;
pub(crate) mod sas;
