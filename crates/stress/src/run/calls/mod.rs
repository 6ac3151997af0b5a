//! The operations of a client: one call, awaited to its end.
//!
//! What always holds: a client has one call under way at a time, and what it keeps between calls is bounded.

pub(crate) mod blob;
pub(crate) mod filler;
pub(crate) mod queue;
pub(crate) mod table;
pub(crate) mod table_access;

use crate::measure::recorder::Outcome;
use crate::workload::operation::OperationKind;
use blob::BlobCaller;
use queue::QueueCaller;
use table::TableCaller;

/// A client of a service.
pub(crate) enum Caller {
    Table(Box<TableCaller>),
    Queue(Box<QueueCaller>),
    Blob(Box<BlobCaller>),
}

impl Caller {
    pub(crate) async fn call(&mut self, kind: OperationKind) -> Outcome {
        match self {
            Caller::Table(caller) => caller.call(kind).await,
            Caller::Queue(caller) => caller.call(kind).await,
            Caller::Blob(caller) => caller.call(kind).await,
        }
    }
}
