//! Messages: their ids, the operations that put, take, peek, update and delete them, and the low water of
//! each queue.

#[cfg(test)]
mod decision_tests;
pub(crate) mod delete_message;
pub(crate) mod front;
pub(crate) mod low_waters;
pub(crate) mod message;
pub(crate) mod message_changes;
pub(crate) mod message_handle;
pub(crate) mod message_id;
pub(crate) mod peek_messages;
pub(crate) mod put_message;
pub(crate) mod take_messages;
pub(crate) mod update_message;
