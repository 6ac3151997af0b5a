//! Rows in memory: the model that real backends are compared with, and the backend of simulations.
//!
//! What always holds: the same as of every backend that can do what it was made with. With faults an
//! operation may fail before it is done, or be done and fail; of a batch that is not one transaction a part
//! may be done.

use super::backend::{Backend, check_count};
use super::batch::{Batch, BatchBounds, BatchFill};
use super::claim::{Claimed, StoredClaim, release};
use super::error::BackendError;
use super::fence::{FenceHold, check_shardlet, shard_key};
use super::shardlet::Shardlet;
use crate::capability::capabilities::{Capabilities, Fence, Transactions};
use crate::schema::drift::{ActualColumn, ActualSchema, ActualTable};
use crate::schema::schema::Schema;
use crate::schema::table::TableSchema;
use crate::value::row::{Row, RowError, RowKey};
use base::{BoxFuture, Random};
use parking_lot::Mutex;
use shard_map::{Bound, EncodedKey, Epoch, MappingId, Name};
use shard_store::{MemoryFaults, MemoryLocal, StoreError};
use std::collections::BTreeMap;
use std::ops;
use std::sync::Arc;

/// Rows of a table under the encodings of their keys.
type Rows = BTreeMap<Vec<u8>, (RowKey, Row)>;

/// Rows in memory.
pub struct MemoryBackend {
    place: String,
    capabilities: Capabilities,
    /// The shard's copy, whose fence writers pass.
    local: Arc<MemoryLocal>,
    state: Mutex<State>,
    random: Arc<dyn Random>,
}

#[derive(Default)]
struct State {
    tables: BTreeMap<String, Rows>,
    claims: BTreeMap<(Name, MappingId), StoredClaim>,
    actual: ActualSchema,
    faults: MemoryFaults,
    is_down: bool,
}

/// A change of one row.
enum RowChange {
    Put(EncodedKey, RowKey, Row),
    Remove(EncodedKey),
}

impl MemoryBackend {
    /// No tables yet. Chance decides which operations fail, once faults are set.
    pub fn new(
        place: &str,
        capabilities: Capabilities,
        local: Arc<MemoryLocal>,
        random: Arc<dyn Random>,
    ) -> Self {
        MemoryBackend { place: place.to_owned(), capabilities, local, state: Mutex::default(), random }
    }

    /// Makes the tables of a schema that are not there.
    pub fn create_tables(&self, schema: &Schema) {
        let mut state = self.state.lock();
        for table in schema.tables() {
            state.tables.entry(table.name().to_owned()).or_default();
            let name = |index: &usize| table.columns()[*index].name.clone();
            let column = |column: &crate::schema::table::Column| {
                let (type_text, kinds) = (column.kind.to_string(), vec![column.kind]);
                let is_nullable = column.is_nullable;
                (column.name.clone(), ActualColumn { type_text, kinds, is_nullable, collation: None })
            };
            let actual = ActualTable {
                columns: table.columns().iter().map(column).collect(),
                primary_key: table.primary_key().iter().map(name).collect(),
            };
            state.actual.tables.entry(table.name().to_owned()).or_insert(actual);
        }
    }

    /// From now on operations fail so often.
    pub fn set_faults(&self, faults: MemoryFaults) {
        self.state.lock().faults = faults;
    }

    /// From now on no operation reaches it, or all do again.
    pub fn set_down(&self, is_down: bool) {
        self.state.lock().is_down = is_down;
    }

    /// All rows of a table in the order of their keys, as they are now, faults or not.
    pub fn contents(&self, table: &str) -> Vec<Row> {
        let state = self.state.lock();
        let rows = state.tables.get(table).into_iter().flat_map(BTreeMap::values);
        rows.map(|(_, row)| row.clone()).collect()
    }

    fn is_one_in(&self, one_in: u64) -> bool {
        one_in != 0 && self.random.next_u64().is_multiple_of(one_in)
    }

    /// Refuses, if it is out of reach, or fails before anything is done.
    fn begin(&self, state: &State) -> Result<(), BackendError> {
        if state.is_down {
            return Err(StoreError::refused(&self.place, "it can't be reached, on purpose").into());
        }
        if self.is_one_in(state.faults.not_done_one_in) {
            let what = "it failed on purpose, before it was done";
            return Err(StoreError::uncertain(&self.place, what).into());
        }
        Ok(())
    }

    fn end(&self, fails: bool) -> Result<(), BackendError> {
        let what = "it failed on purpose, after it was done";
        if fails { Err(StoreError::uncertain(&self.place, what).into()) } else { Ok(()) }
    }

    fn no_table(&self, table: &str) -> BackendError {
        StoreError::refused(&self.place, format!("there is no table `{table}`")).into()
    }

    fn row_error(&self, error: RowError) -> BackendError {
        BackendError::Row { place: self.place.clone(), error }
    }

    /// Reads rows within the shardlet's bounds, from a key on.
    fn read<T>(
        &self,
        table: &TableSchema,
        shardlet: &Shardlet,
        after: Option<&RowKey>,
        read: impl FnOnce(&mut dyn Iterator<Item = &(RowKey, Row)>) -> T,
    ) -> Result<T, BackendError> {
        let state = self.state.lock();
        self.begin(&state)?;
        let rows = state.tables.get(table.name()).ok_or_else(|| self.no_table(table.name()))?;
        let bound = |values: &[_]| {
            let bound = table.row_key_type().bound(values);
            bound.map_err(|error| self.row_error(RowError::Key { table: table.name().to_owned(), error }))
        };
        let low = bound(shardlet.low())?.as_bytes().to_vec();
        let high: Option<Bound> = shardlet.high().map(bound).transpose()?;
        let after = after.map(|key| table.encode_key(key)).transpose();
        let from = match after.map_err(|error| self.row_error(error))? {
            Some(after) if after.as_bytes() >= low.as_slice() => {
                ops::Bound::Excluded(after.as_bytes().to_vec())
            }
            _ => ops::Bound::Included(low),
        };
        let is_before_high = |key: &[u8]| high.as_ref().is_none_or(|high| key < high.as_bytes());
        let found = rows.range::<Vec<u8>, _>((from, ops::Bound::Unbounded));
        let mut found = found.take_while(|(key, _)| is_before_high(key)).map(|(_, row)| row);
        let outcome = read(&mut found);
        self.end(self.is_one_in(state.faults.done_one_in))?;
        Ok(outcome)
    }

    /// Makes changes, all of which were checked, with the fence held.
    fn change(
        &self,
        table: &TableSchema,
        shardlet: &Shardlet,
        hold: FenceHold,
        changes: Vec<RowChange>,
    ) -> Result<(), BackendError> {
        self.local.hold(|copy| {
            let mut state = self.state.lock();
            self.begin(&state)?;
            if let Some((map, mapping)) = shardlet.mapping()
                && self.capabilities.fence == Fence::HeldUntilCommit
            {
                let here = copy.and_then(|copy| copy.mapping(map.name().as_str(), mapping));
                let claim = state.claims.get(&(map.name().clone(), mapping.clone())).copied();
                hold.check(&self.place, map.name(), mapping, here, claim)?;
            }
            let fails = self.is_one_in(state.faults.done_one_in);
            let is_whole = !fails || self.capabilities.transactions == Transactions::Shard;
            let done = if is_whole { changes.len() } else { self.random_part(changes.len()) };
            let rows = state.tables.get_mut(table.name()).ok_or_else(|| self.no_table(table.name()))?;
            for change in changes.into_iter().take(done) {
                match change {
                    RowChange::Put(encoded, key, row) => {
                        drop(rows.insert(encoded.as_bytes().to_vec(), (key, row)))
                    }
                    RowChange::Remove(encoded) => drop(rows.remove(encoded.as_bytes())),
                }
            }
            self.end(fails)
        })
    }

    /// Stores what `change` makes of the stored claim, if anything.
    fn change_claim(
        &self,
        shardlet: &Shardlet,
        change: impl FnOnce(Claimed<'_>, Option<StoredClaim>) -> Result<Option<StoredClaim>, BackendError>,
    ) -> Result<(), BackendError> {
        let mut state = self.state.lock();
        self.begin(&state)?;
        if let Some((map, mapping)) = shardlet.mapping() {
            let key = (map.name().clone(), mapping.clone());
            let claimed = Claimed { place: &self.place, map: map.name(), mapping };
            if let Some(claim) = change(claimed, state.claims.get(&key).copied())? {
                state.claims.insert(key, claim);
            }
        }
        self.end(self.is_one_in(state.faults.done_one_in))
    }

    /// How many of the changes of a batch are done that fails.
    fn random_part(&self, count: usize) -> usize {
        // Below a count of at most `BATCH_ROWS_MAX`, plus one.
        (self.random.next_u64() % (count as u64 + 1)) as usize
    }
}

impl Backend for MemoryBackend {
    fn place(&self) -> &str {
        &self.place
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn actual_schema(&self) -> BoxFuture<'_, Result<ActualSchema, BackendError>> {
        Box::pin(async move {
            let state = self.state.lock();
            self.begin(&state)?;
            Ok(state.actual.clone())
        })
    }

    fn claim<'a>(&'a self, shardlet: &'a Shardlet, claim: Epoch) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async move { self.change_claim(shardlet, |claimed, there| claimed.claim(there, claim)) })
    }

    fn release<'a>(
        &'a self,
        shardlet: &'a Shardlet,
        claim: Epoch,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async move { self.change_claim(shardlet, |_, there| Ok(release(there, claim))) })
    }

    fn scan<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
        after: Option<&'a RowKey>,
        bounds: BatchBounds,
    ) -> BoxFuture<'a, Result<Batch, BackendError>> {
        Box::pin(async move {
            self.read(table, shardlet, after, |rows| {
                let mut fill = BatchFill::new(bounds);
                for (key, row) in rows {
                    if fill.is_full() {
                        return fill.finish(false);
                    }
                    if !shardlet.holds(shard_key(table, key)) {
                        fill.pass(key.clone());
                    } else if !fill.take(key.clone(), row.clone()) {
                        return fill.finish(false);
                    }
                }
                fill.finish(true)
            })
        })
    }

    fn count<'a>(
        &'a self,
        table: &'a TableSchema,
        shardlet: &'a Shardlet,
    ) -> BoxFuture<'a, Result<u64, BackendError>> {
        Box::pin(async move {
            self.read(table, shardlet, None, |rows| {
                rows.filter(|(key, _)| shardlet.holds(shard_key(table, key))).count() as u64
            })
        })
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
                let (key, encoded) = table.check_row(row).map_err(|error| self.row_error(error))?;
                check_shardlet(&self.place, table, shardlet, &key)?;
                changes.push(RowChange::Put(encoded, key, row.clone()));
            }
            self.change(table, shardlet, hold, changes)
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
                let encoded = table.encode_key(key).map_err(|error| self.row_error(error))?;
                changes.push(RowChange::Remove(encoded));
            }
            self.change(table, shardlet, hold, changes)
        })
    }
}

#[cfg(test)]
mod tests;
