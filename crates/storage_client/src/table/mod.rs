//! Tables: entities and their values, single operations, entity groups, queries.

pub(crate) mod count;
pub(crate) mod entity;
pub(crate) mod group;
pub(crate) mod group_answer;
pub(crate) mod json;
pub(crate) mod list;
pub(crate) mod query;
pub(crate) mod raw;
pub(crate) mod snapshot;
pub(crate) mod snapshot_token;
pub(crate) mod statistics;
pub(crate) mod table_client;
pub(crate) mod table_connection;
