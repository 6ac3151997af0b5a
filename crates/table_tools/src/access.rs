//! A worker's way to a table: a connection of its own where the endpoint is plain HTTP, which costs a third
//! of the processor time, else the pool of the account, which knows TLS and proxies.

use storage_client::{
    Continuation, Error, Query, QueryExtensions, RawChange, SnapshotToken, TableClient, TableConnection,
};

/// A table as a worker reaches it.
pub(crate) struct TableAccess {
    way: Way,
    /// Of all queries.
    extensions: QueryExtensions,
}

enum Way {
    Pooled(TableClient),
    Direct(Box<TableConnection>),
}

impl TableAccess {
    pub(crate) fn of(table: &TableClient) -> Self {
        let way = match table.connection() {
            Some(connection) => Way::Direct(Box::new(connection)),
            None => Way::Pooled(table.clone()),
        };
        TableAccess { way, extensions: QueryExtensions::default() }
    }

    /// The same with queries of this snapshot.
    pub(crate) fn reading(self, snapshot: Option<SnapshotToken>) -> Self {
        TableAccess { extensions: QueryExtensions { snapshot, ..self.extensions }, ..self }
    }

    /// A page of a query: its JSON replaces what is in `body`.
    pub(crate) async fn page(
        &mut self,
        query: &Query,
        body: &mut Vec<u8>,
    ) -> Result<Option<Continuation>, Error> {
        let extended;
        let query = if self.extensions == query.extensions {
            query
        } else {
            extended = Query { extensions: self.extensions.clone(), ..query.clone() };
            &extended
        };
        match &mut self.way {
            Way::Pooled(table) => {
                let (bytes, continuation) = table.raw_page(query).await?;
                body.clear();
                body.extend_from_slice(&bytes);
                Ok(continuation)
            }
            Way::Direct(table) => table.raw_page(query, body).await,
        }
    }

    /// Does the changes of one partition, all or none; one alone without a group.
    pub(crate) async fn submit(&mut self, changes: &[RawChange<'_>]) -> Result<(), Error> {
        match (&mut self.way, changes) {
            (Way::Pooled(table), [one]) => table.change(one).await,
            (Way::Direct(table), [one]) => table.change(one).await,
            (Way::Pooled(table), changes) => table.submit_changes(changes).await,
            (Way::Direct(table), changes) => table.submit_changes(changes).await,
        }
    }
}
