//! Operations on the entities of one table.

use super::filler::Filler;
use super::table_access::TableAccess;
use crate::measure::errors::unless_done_before;
use crate::measure::recorder::{Failure, Outcome, Recorder};
use crate::workload::chance::Chance;
use crate::workload::key_space::KeySpace;
use crate::workload::keys::Key;
use crate::workload::mix::Sizes;
use crate::workload::operation::OperationKind;
use std::sync::Arc;
use storage_client::{Entity, Query, TextEntity};

/// Bytes of an entity's JSON beside its data:
/// `{"PartitionKey":"p500000000","RowKey":"1000000000042-0000001f", "Data":""}`.
pub(crate) const ENTITY_FRAME_BYTES: u64 = 73;

/// The property that they have beside their keys.
const DATA: &str = "Data";

/// Rows that a service gives in one page, at most.
const PAGE_ROWS_MAX: u64 = 1000;

/// A client of a table.
pub(crate) struct TableCaller {
    pub(crate) table: TableAccess,
    pub(crate) keys: Arc<KeySpace>,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) sizes: Sizes,
    pub(crate) filler: Filler,
    pub(crate) chance: Chance,
    /// Texts of the key at hand.
    pub(crate) partition: String,
    pub(crate) row: String,
}

/// The entity of a key; the number chooses its size.
pub(crate) fn entity(key: &Key, sizes: &Sizes, filler: &Filler) -> Entity {
    let (mut partition, mut row) = (String::new(), String::new());
    key.write_partition(&mut partition);
    key.write_row(&mut row);
    Entity::new(partition, row).with(DATA, data(key, sizes, filler))
}

/// Its data.
fn data<'a>(key: &Key, sizes: &Sizes, filler: &'a Filler) -> &'a str {
    let size = sizes.of_item(key.suffix.unwrap_or(key.row));
    filler.text(size.saturating_sub(ENTITY_FRAME_BYTES))
}

impl TableCaller {
    pub(crate) async fn call(&mut self, kind: OperationKind) -> Outcome {
        let (items, place, result) = match kind {
            OperationKind::Insert => self.insert(1).await,
            OperationKind::Batch => self.insert(self.sizes.batch_entities).await,
            OperationKind::Update => self.update().await,
            OperationKind::Query => self.query().await,
            _ => self.get().await,
        };
        Outcome { kind, items, bytes: 0, place, failure: result.err() }
    }

    fn write(&mut self, key: &Key) {
        key.write_partition(&mut self.partition);
        key.write_row(&mut self.row);
    }

    async fn get(&mut self) -> (u64, Option<usize>, Result<(), Failure>) {
        let key = self.keys.loaded(self.keys.draw(&mut self.chance));
        self.write(&key);
        let result = match self.table.get(&self.partition, &self.row).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::Wrong("the entity has another key than the one that was asked for")),
            Err(error) => Err(error.into()),
        };
        (1, self.keys.heat_index(&key), result)
    }

    async fn update(&mut self) -> (u64, Option<usize>, Result<(), Failure>) {
        let key = self.keys.loaded(self.keys.draw(&mut self.chance));
        self.write(&key);
        let properties = [(DATA, data(&key, &self.sizes, &self.filler))];
        let (partition_key, row_key) = (&*self.partition, &*self.row);
        let entity = TextEntity { partition_key, row_key, properties: &properties };
        let result = self.table.insert_or_replace(&entity).await;
        (1, self.keys.heat_index(&key), result.map_err(Failure::from))
    }

    /// One entity alone, several in a group.
    async fn insert(&mut self, count: u64) -> (u64, Option<usize>, Result<(), Failure>) {
        let keys = self.keys.clone();
        let (mut place, mut result) = (None, Ok(()));
        if count > 1 {
            self.table.begin_group();
        }
        for (index, key) in keys.new_rows(count, &mut self.chance).enumerate() {
            self.write(&key);
            if index == 0 {
                place = keys.heat_index(&key);
                self.recorder.inserts(&self.partition, &self.row, count);
            }
            let properties = [(DATA, data(&key, &self.sizes, &self.filler))];
            let (partition_key, row_key) = (&*self.partition, &*self.row);
            let entity = TextEntity { partition_key, row_key, properties: &properties };
            if count > 1 {
                self.table.add_insert(&entity);
            } else {
                result = self.table.insert(&entity).await;
            }
        }
        if count > 1 {
            result = self.table.submit().await;
        }
        (count, place, result.or_else(unless_done_before).map_err(Failure::from))
    }

    async fn query(&mut self) -> (u64, Option<usize>, Result<(), Failure>) {
        let key = self.keys.loaded(self.keys.draw(&mut self.chance));
        self.write(&key);
        let mut end = String::new();
        Key { row: key.row + self.sizes.query_rows, ..key }.write_row(&mut end);
        let (partition, row) = (&self.partition, &self.row);
        let filter = format!("PartitionKey eq '{partition}' and RowKey ge '{row}' and RowKey lt '{end}'");
        let page_size_max = Some(self.sizes.query_rows.min(PAGE_ROWS_MAX) as u32);
        let query = Query { page_size_max, ..Query::matching(filter) };
        let place = self.keys.heat_index(&key);
        let (rows, read) = self.table.rows(query, self.sizes.query_rows).await;
        if let Err(error) = read {
            return (rows, place, Err(error.into()));
        }
        let is_right = rows > 0;
        let wrong = Failure::Wrong("a range of keys is empty though its first row was loaded");
        (rows, place, if is_right { Ok(()) } else { Err(wrong) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::keys::{FIRST_PARTITION, FIRST_ROW};
    use storage_client::{Service, Value};

    #[test]
    fn an_entity_has_the_size_that_is_wanted() {
        let sizes = Sizes { item_size_bytes: vec![1024], ..Sizes::usual(Service::Table) };
        let key = Key { partition: FIRST_PARTITION, row: FIRST_ROW, suffix: Some(1) };
        let entity = entity(&key, &sizes, &Filler::new(1024));
        let Some(Value::String(data)) = entity.value("Data") else { panic!("{entity:?}") };
        let json = format!(
            "{{\"PartitionKey\":\"{}\",\"RowKey\":\"{}\",\"Data\":\"{data}\"}}",
            entity.partition_key, entity.row_key
        );
        assert_eq!(json.len(), 1024);
    }
}
