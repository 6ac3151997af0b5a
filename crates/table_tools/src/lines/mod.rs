//! Entities as lines of JSON, and as they stand in a service's page: read without a tree of their values.

pub(crate) mod json;
pub(crate) mod row;
pub(crate) mod same;
pub(crate) mod token;
