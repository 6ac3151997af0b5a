//! What each operation of the Table service needs of a signature.

use crate::auth::grant::Need;

/// What an operation of the Table service needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableNeed {
    /// Get service properties or stats.
    ReadService,
    /// Set service properties.
    WriteService,
    /// List tables, or get one.
    ListTables,
    /// Create a table.
    CreateTable,
    /// Delete a table.
    DeleteTable,
    /// Get or query entities.
    ReadEntities,
    /// Insert an entity.
    InsertEntity,
    /// Insert an entity, or replace or merge it.
    UpsertEntity,
    /// Replace or merge an entity.
    UpdateEntity,
    /// Delete an entity.
    DeleteEntity,
    /// Send a batch; its operations have needs of their own.
    Batch,
    /// Get or set stored access policies: never by signature.
    Policies,
}

impl Need for TableNeed {
    const SERVICE: char = 't';

    fn resource_types(self) -> &'static [char] {
        match self {
            TableNeed::ReadService | TableNeed::WriteService => &['s'],
            // Listing as well, unlike that of queues and blob containers.
            TableNeed::ListTables | TableNeed::CreateTable | TableNeed::DeleteTable => &['c'],
            TableNeed::Policies => &[],
            _ => &['o'],
        }
    }

    fn account_permissions(self) -> &'static [&'static str] {
        match self {
            TableNeed::ReadService | TableNeed::ReadEntities => &["r"],
            TableNeed::WriteService => &["w"],
            TableNeed::ListTables => &["l"],
            TableNeed::CreateTable => &["c", "w"],
            TableNeed::DeleteTable | TableNeed::DeleteEntity => &["d"],
            TableNeed::InsertEntity => &["a"],
            TableNeed::UpsertEntity => &["au"],
            TableNeed::UpdateEntity => &["u"],
            TableNeed::Batch => &[""],
            TableNeed::Policies => &[],
        }
    }

    fn service_permissions(self) -> Option<&'static [&'static str]> {
        let is_on_entities = matches!(
            self,
            TableNeed::ReadEntities
                | TableNeed::InsertEntity
                | TableNeed::UpsertEntity
                | TableNeed::UpdateEntity
                | TableNeed::DeleteEntity
                | TableNeed::Batch
        );
        is_on_entities.then(|| self.account_permissions())
    }
}
