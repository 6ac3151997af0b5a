//! An operation on its way through a range, whatever its type.
//!
//! Operations have types of their own, and replies. The serial section needs neither: it takes the changes of
//! a decision and leaves the reply with the operation. So it is compiled once, in this crate. What always
//! holds: a reply is that of the last decision, and it is given out only after the range has said that the
//! operation is done.

use crate::error::PartitionError;
use crate::operation::{Operation, Read, RowChange, RowVersion, Rows};

/// What the serial section requires of an operation.
pub(crate) trait Decider: Send {
    /// Decides and keeps the reply. Returns the changes.
    fn decide(&mut self, rows: &Rows, version: RowVersion) -> Result<Vec<RowChange>, PartitionError>;

    /// See [`Operation::gives_back`].
    fn gives_back(&self) -> bool;

    /// Whether it frees space: it declares that, or what was decided last deletes and puts nothing. `None`:
    /// nothing was decided.
    fn reclaims(&self) -> Option<bool>;

    /// See [`Operation::is_collection`].
    fn is_collection(&self) -> bool;

    /// What it must see, as long as it is there.
    fn reads(&self) -> Option<Vec<Read>>;

    /// Frees the operation once it is decided for good; its reply stays.
    fn drop_operation(&mut self);
}

/// An operation and, once it is decided, its reply.
pub(crate) struct UnderWay<O: Operation> {
    operation: Option<O>,
    reply: Option<O::Reply>,
    /// Of what was decided last.
    only_deletes: Option<bool>,
}

impl<O: Operation> UnderWay<O> {
    /// Not decided yet.
    pub(crate) fn new(operation: O) -> Self {
        UnderWay { operation: Some(operation), reply: None, only_deletes: None }
    }

    /// What was decided last.
    pub(crate) fn into_reply(self) -> Result<O::Reply, PartitionError> {
        self.reply.ok_or(PartitionError::Operation("it was not decided"))
    }
}

impl<O: Operation> Decider for UnderWay<O> {
    fn decide(&mut self, rows: &Rows, version: RowVersion) -> Result<Vec<RowChange>, PartitionError> {
        let operation = self.operation.as_ref().ok_or(PartitionError::Operation("it was decided already"))?;
        let decision = operation.decide(rows, version);
        self.reply = Some(decision.reply);
        let is_deletion = |change: &RowChange| matches!(change, RowChange::Delete { .. });
        self.only_deletes = Some(!decision.changes.is_empty() && decision.changes.iter().all(is_deletion));
        Ok(decision.changes)
    }

    fn gives_back(&self) -> bool {
        self.operation.as_ref().is_some_and(Operation::gives_back)
    }

    fn reclaims(&self) -> Option<bool> {
        if self.gives_back() { Some(true) } else { self.only_deletes }
    }

    fn is_collection(&self) -> bool {
        self.operation.as_ref().is_some_and(Operation::is_collection)
    }

    fn reads(&self) -> Option<Vec<Read>> {
        self.operation.as_ref().map(Operation::reads)
    }

    fn drop_operation(&mut self) {
        self.operation = None;
    }
}
