//! Queues and their messages.

pub(crate) mod list;
pub(crate) mod message;
pub(crate) mod queue_client;
