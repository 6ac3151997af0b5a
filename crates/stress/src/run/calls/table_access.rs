//! A client's way to its table: over a connection of its own if the endpoint is plain HTTP, which costs this
//! program little, else over the pool of its account, which knows TLS and proxies. Both send the same
//! requests and fail alike.

use storage_client::{Entity, Error, GroupOperation, Query, TableClient, TableConnection, TextEntity};

/// A table as a client reaches it.
pub(crate) enum TableAccess {
    Pooled {
        table: TableClient,
        /// What is inserted together, at most a group.
        group: Vec<GroupOperation>,
    },
    Direct(Box<TableConnection>),
}

impl TableAccess {
    pub(crate) fn of(table: TableClient) -> Self {
        match table.connection() {
            Some(connection) => TableAccess::Direct(Box::new(connection)),
            None => TableAccess::Pooled { table, group: Vec::new() },
        }
    }

    /// Reads an entity; whether it has the row key that was asked for.
    pub(crate) async fn get(&mut self, partition: &str, row: &str) -> Result<bool, Error> {
        match self {
            TableAccess::Pooled { table, .. } => Ok(table.get(partition, row).await?.row_key == row),
            TableAccess::Direct(table) => table.get(partition, row).await,
        }
    }

    pub(crate) async fn insert(&mut self, entity: &TextEntity<'_>) -> Result<(), Error> {
        match self {
            TableAccess::Pooled { table, .. } => table.insert(&Entity::from(entity)).await.map(drop),
            TableAccess::Direct(table) => table.insert(entity).await,
        }
    }

    pub(crate) async fn insert_or_replace(&mut self, entity: &TextEntity<'_>) -> Result<(), Error> {
        match self {
            TableAccess::Pooled { table, .. } => {
                table.insert_or_replace(&Entity::from(entity)).await.map(drop)
            }
            TableAccess::Direct(table) => table.insert_or_replace(entity).await,
        }
    }

    /// Begins a group of insertions.
    pub(crate) fn begin_group(&mut self) {
        match self {
            TableAccess::Pooled { group, .. } => group.clear(),
            TableAccess::Direct(table) => table.begin_group(),
        }
    }

    pub(crate) fn add_insert(&mut self, entity: &TextEntity<'_>) {
        match self {
            TableAccess::Pooled { group, .. } => group.push(GroupOperation::Insert(Entity::from(entity))),
            TableAccess::Direct(table) => table.add_insert(entity),
        }
    }

    /// Inserts all of the group or nothing.
    pub(crate) async fn submit(&mut self) -> Result<(), Error> {
        match self {
            TableAccess::Pooled { table, group } => table.submit(group).await.map(drop),
            TableAccess::Direct(table) => table.submit().await,
        }
    }

    /// Reads the pages of a query until there are so many rows or no more: how many there were.
    pub(crate) async fn rows(&mut self, mut query: Query, wanted: u64) -> (u64, Result<(), Error>) {
        let mut rows = 0;
        match self {
            TableAccess::Pooled { table, .. } => {
                let mut pages = table.query(query);
                while rows < wanted {
                    match pages.next_page().await {
                        Ok(Some(page)) => rows += page.entities.len() as u64,
                        Ok(None) => break,
                        Err(error) => return (rows, Err(error)),
                    }
                }
            }
            TableAccess::Direct(table) => {
                while rows < wanted {
                    let page = match table.count_page(&query).await {
                        Ok(page) => page,
                        Err(error) => return (rows, Err(error)),
                    };
                    rows += page.count as u64;
                    query.from = page.continuation;
                    if query.from.is_none() {
                        break;
                    }
                }
            }
        }
        (rows, Ok(()))
    }
}
