//! The map over HTTP, for clients in other languages: read-only, and small.

pub(crate) mod answer;
pub(crate) mod listener;
pub(crate) mod map_json;
pub(crate) mod request;
