//! Rows between two shards: reading, comparing, copying, deleting. Nothing here knows of states.

pub(crate) mod clear;
pub(crate) mod copy;
pub(crate) mod delete;
pub(crate) mod reader;
pub(crate) mod report;
pub(crate) mod side;
pub(crate) mod verify;
