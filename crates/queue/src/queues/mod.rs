//! Queues: the operations that create and change one, and the list of an account's queues.

pub(crate) mod change_queue;
pub(crate) mod create_queue;
pub(crate) mod queue_list;
