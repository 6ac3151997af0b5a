//! Pooled connections to shards.

pub(crate) mod connector;
pub(crate) mod credentials;
pub(crate) mod lease;
#[allow(clippy::module_inception)] // The file of the pool is named as the pool is.
pub(crate) mod pool;
pub(crate) mod pools;
pub(crate) mod settings;
#[cfg(test)]
mod tests;
