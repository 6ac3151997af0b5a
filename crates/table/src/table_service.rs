//! The facade of the Table service: each method checks what it is given, finds the table, and runs one
//! operation or scan.

use crate::entities::entity::Entity;
use crate::entities::entity_group::{EntityGroup, EntityOperation};
use crate::error::{GroupError, KeyColumn, TableError};
use crate::name::{check_key, check_table_name};
use crate::queries::entity_count::EntityCount;
use crate::queries::entity_page::EntityPage;
use crate::queries::entity_query::{EntityQuery, count_entity_page, read_entity_page};
use crate::queries::table_list::{TableListPage, TableListQuery, read_table_page};
use crate::tables::create_table::CreateTable;
use crate::tables::set_table_policies::SetTablePolicies;
use crate::tables::table_row::TableRow;
use base::{Clock, Spawner};
use partition::{KeyRange, ObjectTable, Partitions, Row, RowKey, RowVersion, SnapshotId, SnapshotOf};
use service::container::{container_key, settings_key};
use service::policy::check_policies;
use service::{
    ContainerKind, DeleteContainer, RowMemo, SERVICE_TABLE, ServiceProperties, ServicePropertiesUpdate,
    SetServiceProperties, StoredPolicy, read_service_properties,
};
use std::sync::Arc;

/// The object tables of tables and their entities.
const TABLES: ContainerKind = ContainerKind {
    service: SERVICE_TABLE,
    objects: ObjectTable::Entity,
    read_id: |row| Ok(TableRow::open(row)?.container_id),
};

/// The outcome of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityOutcome {
    /// The Timestamp and the ETag; without meaning after a Delete.
    pub version: RowVersion,
}

/// The facade of the Table service. Account names are trusted; everything else is checked here.
pub struct TableService {
    partitions: Arc<Partitions>,
    clock: Arc<dyn Clock>,
    /// Ids of tables.
    container_ids: RowMemo<u64>,
}

impl TableService {
    /// The service over these partitions; the clock bounds the time a page of a query takes.
    pub fn new(partitions: Arc<Partitions>, clock: Arc<dyn Clock>) -> Self {
        TableService { partitions, clock, container_ids: RowMemo::default() }
    }

    /// Creates a table. A taken name is `TableAlreadyExists`.
    pub async fn create_table(&self, account: &str, name: &str) -> Result<(), TableError> {
        check_table_name(name)?;
        let create = CreateTable { key: container_key(account, SERVICE_TABLE, name), name: name.to_owned() };
        self.partitions.execute(create).await?
    }

    /// Deletes a table; its entities become unreachable. A missing one is `ResourceNotFound`.
    pub async fn delete_table(&self, account: &str, name: &str) -> Result<(), TableError> {
        check_table_name(name)?;
        let key = container_key(account, SERVICE_TABLE, name);
        let row = self.partitions.execute(DeleteContainer { key }).await?;
        // The table is deleted even if this fails.
        TABLES.retire(&self.partitions, account, &row.ok_or(TableError::ResourceNotFound)?).await;
        Ok(())
    }

    /// Bytes of disk space that have to become free before writes are admitted again; 0: they are admitted.
    pub fn missing_space_bytes(&self) -> u64 {
        self.partitions.missing_space_bytes()
    }

    /// Starts a task that retires orphaned entities of deleted tables now and then, until the partitions are
    /// dropped.
    pub fn start_retiring(&self, spawner: &dyn Spawner) {
        let retiring = TABLES.keep_retiring_lost(Arc::downgrade(&self.partitions), self.clock.clone());
        spawner.spawn("table retire-lost", Box::pin(retiring));
    }

    /// Retires orphaned entities: those of tables that were deleted but not retired, because the process
    /// ended or the request was dropped in between. Returns the number of such tables.
    pub async fn retire_lost_tables(&self) -> Result<u64, TableError> {
        Ok(TABLES.retire_lost(&self.partitions).await?)
    }

    /// The table's name as created. A missing one is `ResourceNotFound`.
    pub async fn table(&self, account: &str, name: &str) -> Result<String, TableError> {
        let row = self.table_row(account, name).await?;
        let row = row.ok_or(TableError::ResourceNotFound)?;
        Ok(TableRow::open(&row.value)?.name.to_owned())
    }

    /// A page of the account's tables.
    pub async fn list_tables(
        &self,
        account: &str,
        query: &TableListQuery,
    ) -> Result<TableListPage, TableError> {
        read_table_page(&*self.partitions, &self.clock, account, query).await
    }

    /// Applies one entity operation.
    pub async fn execute(
        &self,
        account: &str,
        table: &str,
        operation: EntityOperation,
    ) -> Result<EntityOutcome, TableError> {
        let version = self
            .execute_checked(account, table, std::slice::from_ref(&operation))
            .await
            .map_err(|refused| refused.error)?;
        Ok(EntityOutcome { version })
    }

    /// Applies all operations, or none.
    pub async fn execute_group(
        &self,
        account: &str,
        table: &str,
        operations: Vec<EntityOperation>,
    ) -> Result<Vec<EntityOutcome>, GroupError> {
        let version = self.execute_checked(account, table, &operations).await?;
        Ok(vec![EntityOutcome { version }; operations.len()])
    }

    async fn execute_checked(
        &self,
        account: &str,
        table: &str,
        operations: &[EntityOperation],
    ) -> Result<RowVersion, GroupError> {
        let container_id = self.container_id(account, table).await;
        let container_id = container_id.map_err(|error| error.at(0))?;
        let group = EntityGroup::prepare(account, container_id, operations)?;
        let reply = self.partitions.execute(group).await;
        reply.map_err(|error| TableError::from(error).at(0))?
    }

    /// One entity by its keys. A missing one is `ResourceNotFound`.
    pub async fn get_entity(
        &self,
        account: &str,
        table: &str,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Entity, TableError> {
        let container_id = self.container_id(account, table).await?;
        let not_found = |_| TableError::ResourceNotFound;
        // No entity has a key that can't be stored.
        check_key(KeyColumn::PartitionKey, partition_key).map_err(not_found)?;
        check_key(KeyColumn::RowKey, row_key).map_err(not_found)?;
        let key = RowKey::new(account, container_id, partition_key, row_key);
        let row = self.partitions.get(ObjectTable::Entity, &key).await?;
        let row = row.ok_or(TableError::ResourceNotFound)?;
        Ok(Entity::new(partition_key, row_key, row.version, row.value))
    }

    /// A page of entities.
    pub async fn query(
        &self,
        account: &str,
        table: &str,
        query: &EntityQuery,
    ) -> Result<EntityPage, TableError> {
        let container_id = self.container_id(account, table).await?;
        read_entity_page(&*self.partitions, &self.clock, account, container_id, query).await
    }

    /// Counts a page of entities: all that the page examines and that match, however many they are.
    pub async fn count(
        &self,
        account: &str,
        table: &str,
        query: &EntityQuery,
    ) -> Result<EntityCount, TableError> {
        let container_id = self.container_id(account, table).await?;
        count_entity_page(&*self.partitions, &self.clock, account, container_id, query).await
    }

    /// Pins a snapshot of the table's entities: queries that name it read this moment. It ends with
    /// [`Self::unpin_snapshot`], some time after its last use, or when there is no room for it.
    pub async fn pin_snapshot(&self, account: &str, table: &str) -> Result<SnapshotOf, TableError> {
        let container_id = self.container_id(account, table).await?;
        let (table, keys) = (ObjectTable::Entity, KeyRange::container(account, container_id));
        let id = self.partitions.pin_snapshot(table, keys.clone()).await?;
        Ok(SnapshotOf { id, table, keys })
    }

    /// Ends a pinned snapshot; nothing happens if it is gone.
    pub fn unpin_snapshot(&self, snapshot: &SnapshotOf) {
        self.partitions.unpin_snapshot(snapshot);
    }

    /// Ends the snapshot with this id; nothing happens if it is gone, or is of another table.
    pub async fn end_snapshot(&self, account: &str, table: &str, id: SnapshotId) -> Result<(), TableError> {
        let container_id = self.container_id(account, table).await?;
        let keys = KeyRange::container(account, container_id);
        self.unpin_snapshot(&SnapshotOf { id, table: ObjectTable::Entity, keys });
        Ok(())
    }

    /// The table's stored access policies.
    pub async fn table_policies(&self, account: &str, table: &str) -> Result<Vec<StoredPolicy>, TableError> {
        let row = self.table_row(account, table).await?;
        let row = row.ok_or(TableError::TableNotFound)?;
        Ok(TableRow::open(&row.value)?.policies()?)
    }

    /// Replaces the table's stored access policies.
    pub async fn set_table_policies(
        &self,
        account: &str,
        table: &str,
        policies: Vec<StoredPolicy>,
    ) -> Result<(), TableError> {
        check_table_name(table)?;
        check_policies(&policies)?;
        let key = container_key(account, SERVICE_TABLE, table);
        self.partitions.execute(SetTablePolicies { key, policies }).await?
    }

    /// The service's settings; defaults if they were never set.
    pub async fn service_properties(&self, account: &str) -> Result<ServiceProperties, TableError> {
        let key = settings_key(account, SERVICE_TABLE);
        let row = self.partitions.get(ObjectTable::Container, &key).await?;
        Ok(read_service_properties(row.as_ref())?)
    }

    /// Changes the roots that are given.
    pub async fn set_service_properties(
        &self,
        account: &str,
        update: ServicePropertiesUpdate,
    ) -> Result<(), TableError> {
        update.check()?;
        let key = settings_key(account, SERVICE_TABLE);
        Ok(self.partitions.execute(SetServiceProperties { key, update }).await??)
    }

    async fn table_row(&self, account: &str, name: &str) -> Result<Option<Row>, TableError> {
        check_table_name(name)?;
        let key = container_key(account, SERVICE_TABLE, name);
        Ok(self.partitions.get(ObjectTable::Container, &key).await?)
    }

    async fn container_id(&self, account: &str, table: &str) -> Result<u64, TableError> {
        let key = || {
            check_table_name(table)?;
            Ok(container_key(account, SERVICE_TABLE, table))
        };
        let read = |row: Option<&Row>| {
            let row = row.ok_or(TableError::TableNotFound)?;
            Ok(TableRow::open(&row.value)?.container_id)
        };
        self.container_ids.find(&self.partitions, (account, table), key, read).await
    }
}

#[cfg(test)]
mod tests;
