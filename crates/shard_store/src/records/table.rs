//! Records in a table of a storage account: the live service, Larimar, or another that speaks the protocol.
//!
//! A record is an entity: the partition key is the home's name in the table, the row key the record's key,
//! and `Value` its text. A put is an insert, which the service refuses if the entity is there.

use super::records::{Put, Record, Records};
use crate::error::StoreError;
use base::BoxFuture;
use storage_client::{Entity, Error, IfMatch, Query, TableClient, Value};

/// The property that holds a record's text.
const VALUE: &str = "Value";

/// Records in a partition of a table.
pub struct TableRecords {
    table: TableClient,
    partition: String,
    place: String,
}

impl TableRecords {
    /// The records under a partition key of a table; `account` is for messages. The table is made at the
    /// first put, if it is missing.
    pub fn new(account: &str, table: TableClient, partition: &str) -> Self {
        let place = format!("table {} of {account}, partition {partition}", table.name());
        TableRecords { table, partition: partition.to_owned(), place }
    }

    fn failed(&self, error: &Error) -> StoreError {
        let remedy = error.remedy().map(|remedy| format!("; {remedy}")).unwrap_or_default();
        let what = format!("{error}{remedy}");
        match error.may_be_done() {
            true => StoreError::uncertain(&self.place, what),
            false => StoreError::refused(&self.place, what),
        }
    }

    fn value(&self, entity: &Entity) -> Result<String, StoreError> {
        match entity.value(VALUE) {
            Some(Value::String(text)) => Ok(text.clone()),
            _ => Err(StoreError::refused(&self.place, format!("the entity {} is no record", entity.row_key))),
        }
    }

    async fn insert(&self, entity: &Entity) -> Result<Put, Error> {
        match self.table.insert(entity).await {
            Ok(_) => Ok(Put::Done),
            Err(error) if error.code() == "EntityAlreadyExists" => Ok(Put::Taken),
            Err(error) => Err(error),
        }
    }
}

/// Without a table there are no records.
fn is_no_table(error: &Error) -> bool {
    error.code() == "TableNotFound"
}

impl Records for TableRecords {
    fn place(&self) -> &str {
        &self.place
    }

    fn put<'a>(&'a self, key: &'a str, value: &'a str) -> BoxFuture<'a, Result<Put, StoreError>> {
        Box::pin(async move {
            let entity = Entity::new(self.partition.as_str(), key).with(VALUE, value);
            let put = match self.insert(&entity).await {
                Err(error) if is_no_table(&error) => {
                    self.table.create_if_absent().await.map_err(|error| self.failed(&error))?;
                    self.insert(&entity).await
                }
                put => put,
            };
            put.map_err(|error| self.failed(&error))
        })
    }

    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(async move {
            match self.table.get_if_present(&self.partition, key).await {
                Ok(entity) => entity.map(|entity| self.value(&entity)).transpose(),
                Err(error) if is_no_table(&error) => Ok(None),
                Err(error) => Err(self.failed(&error)),
            }
        })
    }

    fn list<'a>(
        &'a self,
        from: &'a str,
        to: &'a str,
        count_max: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        Box::pin(async move {
            let [partition, from, to] =
                [self.partition.as_str(), from, to].map(|text| Value::from(text).literal());
            let mut query = Query::matching(format!(
                "PartitionKey eq {partition} and RowKey ge {from} and RowKey lt {to}"
            ));
            query.page_size_max = u32::try_from(count_max.min(1000)).ok();
            let entities = match self.table.query(query).entities().take(count_max).await {
                Ok(entities) => entities,
                Err(error) if is_no_table(&error) => Vec::new(),
                Err(error) => return Err(self.failed(&error)),
            };
            let record = |entity: Entity| Ok(Record { value: self.value(&entity)?, key: entity.row_key });
            entities.into_iter().map(record).collect()
        })
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            match self.table.delete_entity(&self.partition, key, &IfMatch::Any).await {
                Ok(()) => Ok(()),
                Err(error) if error.is_not_found() => Ok(()),
                Err(error) => Err(self.failed(&error)),
            }
        })
    }
}
