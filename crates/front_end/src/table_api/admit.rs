//! How the simulation sees requests to the Table service: the names of operations, and the keys that
//! they are about. Called only where there is a simulation.

use super::route::Route;
use crate::error::ApiError;
use crate::simulate::{Operation, SimulatedRequest, Target};
use table::{EntityOperation, EntityVerb};

/// Returns when an operation may begin whose address says what it is about. Writes of entities, which are
/// admitted once their keys are known, are passed over.
pub(super) async fn admit_route(simulated: &SimulatedRequest<'_>, route: &Route) -> Result<(), ApiError> {
    let name = match route {
        Route::ReadEntity(address) => {
            let key = [address.table.as_str(), &address.partition_key, &address.row_key];
            let target = Target::Partition;
            return simulated.admit(Operation { name: "GetEntity", key: &key, target, cost: 1 }).await;
        }
        Route::InsertEntity(_)
        | Route::ReplaceEntity(_)
        | Route::MergeEntity(_)
        | Route::DeleteEntity(_)
        | Route::Batch
        | Route::BelowTable { .. } => return Ok(()),
        other => other.name(false),
    };
    let table = route.table();
    simulated.admit(Operation { name, key: table.as_slice(), target: Target::Account, cost: 1 }).await
}

/// Returns when a write may begin.
pub(super) async fn admit_write(
    simulated: &SimulatedRequest<'_>,
    table: &str,
    operation: &EntityOperation,
) -> Result<(), ApiError> {
    let name = match operation.verb {
        EntityVerb::Insert => "InsertEntity",
        EntityVerb::Replace => "UpdateEntity",
        EntityVerb::Merge => "MergeEntity",
        EntityVerb::InsertOrReplace => "InsertOrReplaceEntity",
        EntityVerb::InsertOrMerge => "InsertOrMergeEntity",
        EntityVerb::Delete => "DeleteEntity",
    };
    let key = [table, &operation.partition_key, &operation.row_key];
    simulated.admit(Operation { name, key: &key, target: Target::Partition, cost: 1 }).await
}

/// Returns when a change set of so many entities may begin, of which this is the first.
pub(super) async fn admit_change_set(
    simulated: &SimulatedRequest<'_>,
    table: &str,
    first: &EntityOperation,
    entity_count: usize,
) -> Result<(), ApiError> {
    let (name, key) = ("EntityGroupTransaction", [table, &first.partition_key]);
    let cost = entity_count as u64;
    simulated.admit(Operation { name, key: &key, target: Target::Partition, cost }).await
}
