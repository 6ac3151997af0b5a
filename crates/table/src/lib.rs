//! The Table service: entities, their rules, operations as pure decisions, queries.
//!
//! Vocabulary: a *table* is a row of the Container object table that gives a name an id; an *entity* is a row
//! of the Entity object table, found by (account, table id, PartitionKey, RowKey); its row version is its
//! Timestamp and ETag. Every write is a [`partition::Operation`] whose decision is a pure function; every
//! query is a scan whose filter and projection work on the stored bytes.
//!
//! What always holds: nothing is stored that breaks a limit or a name rule; an entity group is applied whole
//! or not at all; nothing here knows HTTP, JSON or headers.

pub mod edm;
mod entities;
mod error;
mod filter;
pub mod limits;
#[cfg(test)]
mod memory_rows;
mod name;
mod queries;
mod row_names;
mod table_service;
mod tables;

pub use edm::{EdmType, EdmValue, EdmValueRef};
pub use entities::entity::{Entity, EntityRef, Properties, PropertyIterator};
pub use entities::entity_group::{EntityOperation, EntityVerb};
pub use error::{GroupError, KeyColumn, TableError};
pub use filter::{
    FILTER_BYTES_MAX, FILTER_COMPARISONS_MAX, FILTER_DEPTH_MAX, Filter, FilterError, FilterPlan, KeyBounds,
    PlanClass, PlannedComparison, PlannedRange,
};
pub use name::{check_property_name, check_table_name};
pub use partition::{PartitionError, SnapshotId, SnapshotOf};
pub use queries::entity_count::EntityCount;
pub use queries::entity_page::{EntityPage, EntityToken};
pub use queries::entity_query::EntityQuery;
pub use queries::page_walk::Reading;
pub use queries::projection::Projection;
pub use queries::query_class::QueryClass;
pub use queries::table_list::{TableListPage, TableListQuery};
pub use row_names::{EntityName, entity_name_of, table_name_of};
pub use table_service::{EntityOutcome, TableService};
