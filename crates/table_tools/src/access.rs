//! A worker's way to a table: a connection of its own where the endpoint is plain HTTP, which costs a third
//! of the processor time, else the pool of the account, which knows TLS and proxies.

use storage_client::{Continuation, Error, Query, RawChange, TableClient, TableConnection};

/// A table as a worker reaches it.
pub(crate) enum TableAccess {
    Pooled(TableClient),
    Direct(Box<TableConnection>),
}

impl TableAccess {
    pub(crate) fn of(table: &TableClient) -> Self {
        match table.connection() {
            Some(connection) => TableAccess::Direct(Box::new(connection)),
            None => TableAccess::Pooled(table.clone()),
        }
    }

    /// A page of a query: its JSON replaces what is in `body`.
    pub(crate) async fn page(
        &mut self,
        query: &Query,
        body: &mut Vec<u8>,
    ) -> Result<Option<Continuation>, Error> {
        match self {
            TableAccess::Pooled(table) => {
                let (bytes, continuation) = table.raw_page(query).await?;
                body.clear();
                body.extend_from_slice(&bytes);
                Ok(continuation)
            }
            TableAccess::Direct(table) => table.raw_page(query, body).await,
        }
    }

    /// Does the changes of one partition, all or none; one alone without a group.
    pub(crate) async fn submit(&mut self, changes: &[RawChange<'_>]) -> Result<(), Error> {
        match (self, changes) {
            (TableAccess::Pooled(table), [one]) => table.change(one).await,
            (TableAccess::Direct(table), [one]) => table.change(one).await,
            (TableAccess::Pooled(table), changes) => table.submit_changes(changes).await,
            (TableAccess::Direct(table), changes) => table.submit_changes(changes).await,
        }
    }
}
