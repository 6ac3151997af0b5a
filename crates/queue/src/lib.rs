//! The Queue service: messages, their rules, operations as pure decisions.
//!
//! Vocabulary: a *queue* is a row of the Container object table that gives a name an id for its messages; a
//! *message* is a row of the Message object table, whose key starts with the instant from which it is
//! visible; its *position* is that instant and the version of its insertion. *Taking* messages moves them to
//! a later position; a *pop receipt* names a position and a random number that only the client of the
//! message's last change receives. The *low water* of a queue is an instant before which no message can
//! become visible any more: reads of the front start there, because only tombstones lie before it.
//!
//! What always holds: all rows of a queue's messages lie in one partition name, so each operation is atomic;
//! a message that was put is there until it is deleted, cleared or expires; no other client takes it while it
//! is invisible; taking costs the same whatever the queue's length; nothing here knows HTTP, XML or headers.

mod error;
mod expiry;
pub mod limits;
mod messages;
mod queue_service;
mod queues;
mod recount;
mod rows;

pub use error::QueueError;
pub use expiry::sweep::SWEEP_EVERY;
pub use messages::message::{Message, UpdatedMessage};
pub use messages::message_id::{MessageId, PopReceipt};
pub use queue_service::{CreatedQueue, QueueProperties, QueueService};
pub use queues::queue_list::{QueueListPage, QueueListQuery, QueueSummary};
pub use recount::{RecountReport, SettledMessage, recount_messages};
pub use rows::queue_row::Metadata;
pub use rows::row_names::{MessageName, message_name_of, queue_name_of};
