//! The rows of a shard that is a storage account.
//!
//! An account has no schema: a table that is there is taken as it was declared, and a row that is otherwise
//! is found when it is read. What always holds: the account's key signs reads and claims only; each write is
//! signed for its table until T after the read that let it pass (`rights.rs`), so the service itself refuses
//! what comes later; requests of a batch that are under way at once are bounded.

use super::claims::{Claims, failed};
use super::entity::{EntityError, EntityKey, entity_of_row, kinds_of_properties, row_key_of, row_of_entity};
use super::filters::filters;
use super::groups::{Change, SizedChange, groups};
use super::rights::Rights;
use super::submit::{GroupError, submit};
use crate::backend::backend::{Backend, check_count};
use crate::backend::batch::{Batch, BatchBounds, BatchFill};
use crate::backend::error::BackendError;
use crate::backend::fence::{FenceHold, check_shardlet, shard_key};
use crate::backend::shardlet::Shardlet;
use crate::capability::capabilities::Capabilities;
use crate::limits::SIGNED_FOR_MAX;
use crate::schema::drift::{ActualColumn, ActualSchema, ActualTable};
use crate::schema::schema::Schema;
use crate::schema::table::TableSchema;
use crate::value::row::{Row, RowKey};
use base::BoxFuture;
use futures_util::stream::{StreamExt, iter};
use shard_map::Epoch;
use shard_store::{LocalStore, StoreError, TableLocal};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use storage_client::{
    AccountAddress, AccountKey, Credentials, Entity, Error, Query, Service, Settings, StorageAccount,
    Surroundings, TableClient, TableSas,
};

/// Groups of a batch that are under way at once.
const GROUPS_AT_ONCE_MAX: usize = 16;
/// Entities of a page, which is what a service gives.
const PAGE_MAX: usize = 1000;
/// Pages of the list of tables, at most.
const TABLE_PAGES_MAX: usize = 1000;
/// What a signature of a write allows.
const PERMISSIONS: &str = "raud";

/// Where an account's tables are, and what opens them.
pub struct TablePlace {
    /// The account's name.
    pub account: String,
    /// The address of its tables.
    pub endpoint: String,
    /// Its key.
    pub key: AccountKey,
    /// The table of the shard's copy and of claims; made with the first of them.
    pub copies: String,
}

/// An account's rows.
pub struct TableBackend {
    place: String,
    at: TablePlace,
    /// Opened by the key: for reads and claims.
    account: StorageAccount,
    schema: Arc<Schema>,
    local: Arc<TableLocal>,
    claims: Claims,
    rights: Rights,
    surroundings: Surroundings,
    signed_for: Duration,
}

impl TableBackend {
    /// The rows of an account whose tables are those of a schema; the error says why the address can't be
    /// used. Signatures end T ([`SIGNED_FOR_MAX`]) after the claim was read.
    pub fn new(
        at: TablePlace,
        schema: Arc<Schema>,
        settings: Settings,
        surroundings: Surroundings,
    ) -> Result<Self, String> {
        let place = format!("{} ({})", at.endpoint, at.account);
        let address = AccountAddress::of(&at.account, Credentials::Key(at.key.clone()));
        let address =
            address.with_endpoint(Service::Table, &at.endpoint).map_err(|why| format!("{place}: {why}"))?;
        // A secondary may lag behind what was written, for longer than a move.
        let settings = Settings { reads_secondary: false, ..settings };
        let account = StorageAccount::new(address, settings, surroundings.clone());
        let (clock, random) = (surroundings.clock.clone(), surroundings.random.clone());
        let local = Arc::new(TableLocal::new(&at.account, account.table(&at.copies), clock, random));
        let claims = Claims::new(account.table(&at.copies), &place);
        let (rights, signed_for) = (Rights::default(), SIGNED_FOR_MAX);
        Ok(TableBackend { place, at, account, schema, local, claims, rights, surroundings, signed_for })
    }

    /// The same with a shorter T; movers and clients must wait for the longest of all.
    pub fn signed_for(mut self, signed_for: Duration) -> Self {
        self.signed_for = signed_for.min(SIGNED_FOR_MAX);
        self
    }

    /// The shard's copy of the map, in the same account.
    pub fn local(&self) -> Arc<dyn LocalStore> {
        self.local.clone()
    }

    /// Makes the tables of the schema that are not there.
    pub async fn create_tables(&self) -> Result<(), BackendError> {
        for table in self.schema.tables() {
            let made = self.account.table(table.name()).create_if_absent().await;
            made.map_err(|error| self.failed(&error))?;
        }
        Ok(())
    }

    fn failed(&self, error: &Error) -> BackendError {
        failed(&self.place, error).into()
    }

    fn entity_error(&self, error: EntityError) -> BackendError {
        let place = self.place.clone();
        match error {
            EntityError::Row(error) => BackendError::Row { place, error },
            EntityError::Value { table, column, what } => BackendError::Value { place, table, column, what },
        }
    }

    /// When the read began that lets a write pass: now, or one before it.
    async fn read_at(&self, shardlet: &Shardlet, hold: FenceHold) -> Result<base::Ticks, BackendError> {
        let now = self.surroundings.clock.now();
        // Rows of no mapping have no fence.
        let Some((map, mapping)) = shardlet.mapping() else { return Ok(now) };
        let map = map.name();
        if let Some(read_at) = self.rights.read_at(map, mapping, hold, (now, self.signed_for)) {
            return Ok(read_at);
        }
        let stored = self.local.read().await?;
        let here = stored.as_ref().and_then(|stored| stored.copy.mapping(map.as_str(), mapping));
        let claim = match hold {
            FenceHold::Closed(_) => self.claims.read(map, mapping).await?,
            FenceHold::Open(_) => None,
        };
        hold.check(&self.place, map, mapping, here, claim)?;
        self.rights.remember(map, mapping, hold, now);
        Ok(now)
    }

    /// The table, opened for a write until T after the read that lets it pass.
    async fn signed(
        &self,
        table: &TableSchema,
        shardlet: &Shardlet,
        hold: FenceHold,
    ) -> Result<TableClient, BackendError> {
        let ends_at = self.read_at(shardlet, hold).await?.plus(self.signed_for);
        let (account, permissions) = (self.at.account.as_str(), PERMISSIONS);
        let sas = TableSas { account, table: table.name(), permissions, partition_key: None, ends_at };
        if sas.ends_at_second() <= self.surroundings.clock.now() {
            let what = "reading the claim took longer than a signature by it lasts";
            return Err(StoreError::refused(&self.place, what).into());
        }
        Ok(self.account.with_credentials(sas.sign(&self.at.key)).table(table.name()))
    }

    /// Makes changes, all of which were checked.
    async fn change(
        &self,
        table: &TableSchema,
        shardlet: &Shardlet,
        hold: FenceHold,
        changes: Vec<SizedChange>,
    ) -> Result<(), BackendError> {
        let groups = groups(changes);
        // A write that may not pass does so before anything was done.
        self.signed(table, shardlet, hold).await?;
        let is_whole = groups.len() <= 1;
        let done = iter(groups).map(|group| async move {
            let signed = self.signed(table, shardlet, hold).await?;
            let done = submit(&signed, &group).await;
            done.map_err(|GroupError { error, is_partly_done }| {
                if let (Some(403), Some((map, mapping))) = (error.status(), shardlet.mapping()) {
                    self.rights.forget(map.name(), mapping);
                }
                let error = failed(&self.place, &error);
                BackendError::from(StoreError { may_be_done: error.may_be_done || is_partly_done, ..error })
            })
        });
        let done: Vec<Result<(), BackendError>> = done.buffer_unordered(GROUPS_AT_ONCE_MAX).collect().await;
        match done.into_iter().find_map(Result::err) {
            None => Ok(()),
            Some(error) if is_whole => Err(error),
            // Other groups were done.
            Some(BackendError::Store(error)) => Err(StoreError { may_be_done: true, ..error }.into()),
            Some(error) => Err(StoreError::uncertain(&self.place, error).into()),
        }
    }

    async fn scan_batch(
        &self,
        table: &TableSchema,
        shardlet: &Shardlet,
        after: Option<&RowKey>,
        bounds: BatchBounds,
    ) -> Result<Batch, BackendError> {
        let (client, mut fill) = (self.account.table(table.name()), BatchFill::new(bounds));
        let filters = filters(table, shardlet, after).map_err(|error| self.entity_error(error))?;
        for filter in filters {
            let mut query = query_of(filter);
            query.page_size_max = u32::try_from(bounds.rows_max.clamp(1, PAGE_MAX)).ok();
            let mut pages = client.query(query);
            while let Some(page) = pages.next_page().await.map_err(|error| self.failed(&error))? {
                for entity in &page.entities {
                    if fill.is_full() {
                        return Ok(fill.finish(false));
                    }
                    let key = row_key_of(table, entity).map_err(|error| self.entity_error(error))?;
                    if !shardlet.holds(shard_key(table, &key)) {
                        fill.pass(key);
                        continue;
                    }
                    let (key, row) =
                        row_of_entity(table, entity).map_err(|error| self.entity_error(error))?;
                    if !fill.take(key, row) {
                        return Ok(fill.finish(false));
                    }
                }
                // The next page is the next batch's.
                if fill.is_full() {
                    return Ok(fill.finish(false));
                }
            }
        }
        Ok(fill.finish(true))
    }

    async fn count_rows(&self, table: &TableSchema, shardlet: &Shardlet) -> Result<u64, BackendError> {
        let (client, mut count) = (self.account.table(table.name()), 0);
        for filter in filters(table, shardlet, None).map_err(|error| self.entity_error(error))? {
            let mut query = query_of(filter);
            query.select = vec!["PartitionKey".to_owned(), "RowKey".to_owned()];
            let mut pages = client.query(query);
            while let Some(page) = pages.next_page().await.map_err(|error| self.failed(&error))? {
                for entity in &page.entities {
                    let key = row_key_of(table, entity).map_err(|error| self.entity_error(error))?;
                    count += u64::from(shardlet.holds(shard_key(table, &key)));
                }
            }
        }
        Ok(count)
    }

    async fn table_names(&self) -> Result<Vec<String>, BackendError> {
        let (mut names, mut from) = (Vec::new(), None);
        for _ in 0..TABLE_PAGES_MAX {
            let page = self.account.table_page(None, from.as_deref()).await;
            let page = page.map_err(|error| self.failed(&error))?;
            names.extend(page.names);
            match page.continuation {
                Some(next) => from = Some(next),
                None => return Ok(names),
            }
        }
        Err(StoreError::refused(&self.place, format!("its tables are more than {TABLE_PAGES_MAX} pages"))
            .into())
    }
}

fn query_of(filter: String) -> Query {
    if filter.is_empty() { Query::all() } else { Query::matching(filter) }
}

/// A table as it is taken: with what was declared.
fn actual_table(table: &TableSchema) -> ActualTable {
    let columns = table.columns().iter().map(|column| {
        let (type_text, kinds) = (column.kind.to_string(), kinds_of_properties());
        let is_nullable = column.is_nullable;
        (column.name.clone(), ActualColumn { type_text, kinds, is_nullable, collation: None })
    });
    let name = |index: &usize| table.columns().get(*index).map(|column| column.name.clone());
    ActualTable {
        columns: columns.collect(),
        primary_key: table.primary_key().iter().filter_map(name).collect(),
    }
}

impl Backend for TableBackend {
    fn place(&self) -> &str {
        &self.place
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::STORAGE_TABLES
    }

    fn actual_schema(&self) -> BoxFuture<'_, Result<ActualSchema, BackendError>> {
        Box::pin(async move {
            let names = self.table_names().await?;
            // The service does not tell cases apart.
            let is_there =
                |table: &&TableSchema| names.iter().any(|name| name.eq_ignore_ascii_case(table.name()));
            let tables: BTreeMap<String, ActualTable> = self
                .schema
                .tables()
                .filter(is_there)
                .map(|table| (table.name().to_owned(), actual_table(table)))
                .collect();
            Ok(ActualSchema { tables })
        })
    }

    fn claim<'a>(&'a self, shardlet: &'a Shardlet, claim: Epoch) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async move {
            let Some((map, mapping)) = shardlet.mapping() else { return Ok(()) };
            self.rights.forget(map.name(), mapping);
            self.claims.claim(map.name(), mapping, claim).await
        })
    }

    /// Without a lock: writes that were signed before it may come until T after it.
    fn release<'a>(
        &'a self,
        shardlet: &'a Shardlet,
        claim: Epoch,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async move {
            let Some((map, mapping)) = shardlet.mapping() else { return Ok(()) };
            self.rights.forget(map.name(), mapping);
            self.claims.release(map.name(), mapping, claim).await
        })
    }

    fn scan<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        after: Option<&'a RowKey>,
        bounds: BatchBounds,
    ) -> BoxFuture<'a, Result<Batch, BackendError>> {
        Box::pin(self.scan_batch(table, shardlet, after, bounds))
    }

    /// Not at one instant: while clients write, those that come and go meanwhile may count or not.
    fn count<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
    ) -> BoxFuture<'a, Result<u64, BackendError>> {
        Box::pin(self.count_rows(table, shardlet))
    }

    fn write<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        hold: FenceHold,
        rows: &'a [Row],
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async move {
            check_count(&self.place, rows.len())?;
            let mut changes = Vec::with_capacity(rows.len());
            for row in rows {
                let entity: Entity = entity_of_row(table, row).map_err(|error| self.entity_error(error))?;
                let key = row_key_of(table, &entity).map_err(|error| self.entity_error(error))?;
                check_shardlet(&self.place, table, shardlet, &key)?;
                let key = (entity.partition_key.clone(), entity.row_key.clone());
                changes.push((key, Change::Put(entity), row.size_bytes()));
            }
            self.change(table, shardlet, hold, changes).await
        })
    }

    fn delete<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        hold: FenceHold,
        keys: &'a [RowKey],
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async move {
            check_count(&self.place, keys.len())?;
            let mut changes = Vec::with_capacity(keys.len());
            for key in keys {
                check_shardlet(&self.place, table, shardlet, key)?;
                let key = EntityKey::of(table, key).map_err(|error| self.entity_error(error))?;
                changes.push(((key.partition_key, key.row_key), Change::Delete, 0));
            }
            self.change(table, shardlet, hold, changes).await
        })
    }
}
