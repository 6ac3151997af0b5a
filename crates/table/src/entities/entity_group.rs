//! The operation on entities: one or more changes in one partition of one table, all or none.
//!
//! A single request is a group of one. Everything that can be checked without the present rows is checked in
//! [`EntityGroup::prepare`]; the decision compares the present rows with what each change demands.
//! What always holds: the group touches each entity once, so no change depends on another of the group.

use crate::entities::encode::encode_entity;
use crate::entities::entity::Properties;
use crate::entities::merge::merge_entities;
use crate::error::{GroupError, KeyColumn, TableError};
use crate::limits::GROUP_OPERATIONS_MAX;
use crate::name::check_key;
use bytes::Bytes;
use partition::{Decision, ObjectTable, Operation, Read, Row, RowChange, RowKey, RowVersion, Rows};
use service::Condition;
use std::collections::BTreeSet;

/// The kind of an entity operation, and what it demands of the present entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntityVerb {
    /// Must not exist.
    Insert,
    /// Must exist; properties that are not sent are dropped.
    Replace,
    /// Must exist; properties that are not sent stay.
    Merge,
    /// May exist; as Replace.
    InsertOrReplace,
    /// May exist; as Merge.
    InsertOrMerge,
    /// Must exist; is deleted.
    Delete,
}

/// One entity operation; a single request is a group of one.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityOperation {
    /// The kind of change.
    pub verb: EntityVerb,
    /// The PartitionKey.
    pub partition_key: String,
    /// The RowKey.
    pub row_key: String,
    /// Own properties; empty for Delete.
    pub properties: Properties,
    /// On the present version; [`Condition::None`] for Insert and upserts.
    pub condition: Condition,
}

/// Checked changes to entities of one partition.
#[derive(Clone, Debug)]
pub(crate) struct EntityGroup {
    changes: Vec<EntityChange>,
}

#[derive(Clone, Debug)]
struct EntityChange {
    verb: EntityVerb,
    key: RowKey,
    /// UTF-16 units of both keys.
    key_units: usize,
    /// The stored form of what was sent.
    value: Bytes,
    condition: Condition,
}

impl EntityGroup {
    /// Checks of `operations` everything that does not depend on the present rows.
    pub(crate) fn prepare(
        account: &str,
        container_id: u64,
        operations: &[EntityOperation],
    ) -> Result<EntityGroup, GroupError> {
        let Some(first) = operations.first() else {
            return Err(TableError::EmptyGroup.at(0));
        };
        if operations.len() > GROUP_OPERATIONS_MAX {
            return Err(TableError::TooManyOperations.at(GROUP_OPERATIONS_MAX - 1));
        }
        let mut row_keys = BTreeSet::new();
        let mut changes = Vec::with_capacity(operations.len());
        for (index, operation) in operations.iter().enumerate() {
            if operation.partition_key != first.partition_key {
                return Err(TableError::CommandsInBatchActOnDifferentPartitions.at(index));
            }
            if operations.len() > 1 && !row_keys.insert(operation.row_key.as_str()) {
                return Err(TableError::InvalidDuplicateRow.at(index));
            }
            let change = EntityChange::prepare(account, container_id, operation);
            changes.push(change.map_err(|error| error.at(index))?);
        }
        Ok(EntityGroup { changes })
    }
}

impl EntityChange {
    fn prepare(
        account: &str,
        container_id: u64,
        operation: &EntityOperation,
    ) -> Result<EntityChange, TableError> {
        let key_units = check_key(KeyColumn::PartitionKey, &operation.partition_key)?
            + check_key(KeyColumn::RowKey, &operation.row_key)?;
        let value = match operation.verb {
            EntityVerb::Delete => Bytes::new(),
            _ => encode_entity(&operation.properties, key_units)?,
        };
        Ok(EntityChange {
            verb: operation.verb,
            key: RowKey::new(account, container_id, &operation.partition_key, &operation.row_key),
            key_units,
            value,
            condition: operation.condition,
        })
    }

    /// The change of the row, given the present row.
    fn decide(&self, present: Option<&Row>) -> Result<RowChange, TableError> {
        match (self.verb, present) {
            (EntityVerb::Insert, Some(_)) => return Err(TableError::EntityAlreadyExists),
            (EntityVerb::Replace | EntityVerb::Merge | EntityVerb::Delete, None) => {
                return Err(TableError::ResourceNotFound);
            }
            (_, None) if self.condition != Condition::None => return Err(TableError::ResourceNotFound),
            (_, Some(row)) if !self.condition.matches(row.version) => {
                return Err(TableError::UpdateConditionNotSatisfied);
            }
            _ => {}
        }
        let key = self.key.clone();
        let value = match (self.verb, present) {
            (EntityVerb::Delete, _) => return Ok(RowChange::Delete { key }),
            (EntityVerb::Merge | EntityVerb::InsertOrMerge, Some(row)) => {
                merge_entities(&row.value, &self.value, self.key_units)?
            }
            _ => self.value.clone(),
        };
        Ok(RowChange::Put { key, value })
    }
}

impl Operation for EntityGroup {
    /// The version of all changes.
    type Reply = Result<RowVersion, GroupError>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Entity
    }

    fn reads(&self) -> Vec<Read> {
        (self.changes.iter()).map(|change| Read::Point(change.key.clone())).collect()
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply> {
        let mut changes = Vec::with_capacity(self.changes.len());
        for (index, change) in self.changes.iter().enumerate() {
            match change.decide(rows.point(index)) {
                Ok(row_change) => changes.push(row_change),
                Err(error) => return Decision::unchanged(Err(error.at(index))),
            }
        }
        Decision { changes, reply: Ok(version) }
    }
}

#[cfg(test)]
mod tests;
