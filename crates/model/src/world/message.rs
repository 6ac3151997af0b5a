//! What is under way to a store. It may arrive late, twice (by being sent again), or never; its answer may be
//! lost.

use crate::world::names::Write;
use stamp::{PartHeader, PartKind, PartPath, PutAnswer, StreamId, Transaction, TransactionAnswer};
use std::collections::BTreeMap;

/// A request to a store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Message {
    /// Create an object.
    Put { path: PartPath, header: PartHeader },
    /// Commit a transaction.
    Transaction { transaction: Box<Transaction>, effect: Effect },
}

impl Message {
    /// Whether it creates a part, not a seal.
    pub(crate) fn is_part(&self) -> bool {
        matches!(self, Message::Put { header, .. } if header.kind == PartKind::Part)
    }
}

/// What a transaction means to those who judge, once it is committed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Effect {
    None,
    /// The extent of this ordinal is dropped; a checkpoint has these writes.
    Checkpoint {
        stream: StreamId,
        ordinal: u64,
        writes: Vec<Write>,
    },
    /// Each of these streams is inherited by others.
    Inherit(BTreeMap<StreamId, [StreamId; 2]>),
}

/// The answer of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Answer {
    Put(PutAnswer),
    Transaction(TransactionAnswer),
}

/// A message whose sender waits for the answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Awaited {
    pub(crate) range: stamp::RangeId,
    pub(crate) message: Message,
    /// The answer, once the message has arrived; it is on its way back.
    pub(crate) answer: Option<Answer>,
}
