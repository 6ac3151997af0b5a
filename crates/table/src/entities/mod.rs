//! Entities: their stored form, how it is written, merged and read, and the operation that changes a group of
//! them.

pub(crate) mod encode;
pub(crate) mod entity;
pub(crate) mod entity_group;
pub(crate) mod merge;
