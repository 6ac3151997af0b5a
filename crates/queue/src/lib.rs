//! The Queue service: messages, their rules, operations as pure decisions.
//!
//! Vocabulary: a *queue* is a row of the Container object table that gives a name an id for its messages; a *message* is
//! a row of the Message object table, whose key starts with the instant from which it is visible; its *position* is that
//! instant and the version of its insertion. *Taking* messages moves them to a later position; a *pop receipt* names a
//! position and a number of chance that whoever put the message there was told. The *low water* of a queue is an instant before which no message
//! can be any more: reads of the front start there, because before it there are only traces of removed rows.
//!
//! What always holds: all rows of a queue's messages lie in one partition name, so each operation is atomic; a message
//! that was put is there until it is deleted, cleared or expires; nobody else takes it while it is invisible; taking
//! costs the same whatever the queue's length; nothing here knows HTTP, XML or headers.

mod change_queue;
mod create_queue;
#[cfg(test)]
mod decision_tests;
mod delete_message;
mod error;
mod fronts;
mod head_row;
pub mod limits;
mod message;
mod message_changes;
mod message_id;
mod message_row;
mod message_store;
mod peek_messages;
mod put_message;
mod queue_list;
mod queue_row;
mod queue_service;
mod recount;
mod remove_expired;
mod row_names;
mod sweep;
mod take_messages;
mod update_message;

pub use error::QueueError;
pub use message::{Message, UpdatedMessage};
pub use message_id::{MessageId, PopReceipt};
pub use queue_list::{QueueListPage, QueueListQuery, QueueSummary};
pub use queue_row::Metadata;
pub use queue_service::{CreatedQueue, QueueProperties, QueueService};
pub use recount::{Recounted, SettledMessage, recount_messages};
pub use row_names::{MessageName, message_name_of, queue_name_of};
pub use sweep::SWEEP_EVERY;
