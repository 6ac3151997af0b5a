//! Stored rows of queues and messages: their keys, their bytes, and their names for the offline check and
//! repair.

pub(crate) mod head_row;
pub(crate) mod message_row;
pub(crate) mod message_store;
pub(crate) mod queue_row;
pub(crate) mod row_names;
