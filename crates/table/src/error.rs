//! Errors of the Table service: one kind for each error code a client can get.
//!
//! The front end turns each kind into a status, a code and a message; the texts here are for logs. Where a
//! message needs a value (which key, which property), the kind carries it.

use base::codec::DecodeError;
use partition::PartitionError;
use service::{PolicyError, ServicePropertiesError};

/// One of the two key properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyColumn {
    /// The PartitionKey.
    PartitionKey,
    /// The RowKey.
    RowKey,
}

impl KeyColumn {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            KeyColumn::PartitionKey => "PartitionKey",
            KeyColumn::RowKey => "RowKey",
        }
    }
}

/// Why an operation of the Table service was refused or failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TableError {
    /// An entity or policy operation on a table that does not exist.
    #[error("the table does not exist")]
    TableNotFound,
    /// The name is taken, in whatever case.
    #[error("the table exists already")]
    TableAlreadyExists,
    /// The entity, or the table to be returned or deleted, does not exist.
    #[error("the resource does not exist")]
    ResourceNotFound,
    /// An insert of an entity that exists.
    #[error("the entity exists already")]
    EntityAlreadyExists,
    /// The entity has another version than the condition demands.
    #[error("the entity's version is not the one that the condition demands")]
    UpdateConditionNotSatisfied,
    /// A table name with wrong characters.
    #[error("the table name {0:?} contains invalid characters")]
    TableNameCharacters(String),
    /// A table name that is too short or too long.
    #[error("the table name {0:?} must have 3 to 63 characters")]
    TableNameLength(String),
    /// The table name `tables`.
    #[error("the table name {0:?} is reserved")]
    TableNameReserved(String),
    /// A key with a character that keys may not have.
    #[error("the {} {value:?} has a character that keys may not have", .key.name())]
    KeyCharacters {
        /// Which key.
        key: KeyColumn,
        /// Its value.
        value: String,
    },
    /// A key of more than [`crate::limits::KEY_UNITS_MAX`] UTF-16 units.
    #[error("the {} is too long", .0.name())]
    KeyTooLong(KeyColumn),
    /// A property name that is no identifier.
    #[error("the property name {0:?} is invalid")]
    PropertyNameInvalid(String),
    /// A property name of more than 255 characters.
    #[error("a property name is too long")]
    PropertyNameTooLong,
    /// A value of more than 64 KiB.
    #[error("the value of property {0:?} is too large")]
    PropertyValueTooLarge(String),
    /// A date outside 1601 to 9999.
    #[error("the value of property {0:?} is out of range")]
    PropertyValueOutOfRange(String),
    /// The same property twice in one entity.
    #[error("the property {0:?} was given twice")]
    DuplicateProperties(String),
    /// More than 252 own properties.
    #[error("the entity has too many properties")]
    TooManyProperties,
    /// More than 1 MiB in all.
    #[error("the entity is too large")]
    EntityTooLarge,
    /// More than 100 operations in a group.
    #[error("the group has more than 100 operations")]
    TooManyOperations,
    /// A group of nothing.
    #[error("the group has no operations")]
    EmptyGroup,
    /// Two operations of a group on one entity.
    #[error("the group changes one entity twice")]
    InvalidDuplicateRow,
    /// Operations of a group on different PartitionKeys.
    #[error("the group spans partitions")]
    CommandsInBatchActOnDifferentPartitions,
    /// Stored access policies that break a limit.
    #[error("stored access policies: {0}")]
    Policies(#[from] PolicyError),
    /// Service properties that break a limit.
    #[error("service properties: {0}")]
    ServiceProperties(#[from] ServicePropertiesError),
    /// The partition layer could not answer.
    #[error(transparent)]
    Partition(#[from] PartitionError),
}

impl From<DecodeError> for TableError {
    /// A stored row that can't be decoded is damage, which is never reported as "not found".
    fn from(error: DecodeError) -> Self {
        TableError::Partition(PartitionError::Storage(format!("stored row: {error}")))
    }
}

/// Why a group was refused, and which operation is the cause. Nothing of the group was applied.
#[derive(Clone, Debug, thiserror::Error)]
#[error("operation {index}: {error}")]
pub struct GroupError {
    /// The operation, counted from 0.
    pub index: usize,
    /// What is wrong with it.
    pub error: TableError,
}

impl TableError {
    /// This error as caused by one operation of a group.
    pub fn at(self, index: usize) -> GroupError {
        GroupError { index, error: self }
    }
}
