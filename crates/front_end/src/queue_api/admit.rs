//! How the simulation sees requests to the Queue service. Called only where there is a simulation.

use super::route::Route;
use crate::error::ApiError;
use crate::simulate::{Operation, SimulatedRequest, Target};

/// Returns when the operation may begin. What is about messages counts against its queue.
pub(super) async fn admit_route(simulated: &SimulatedRequest<'_>, route: &Route) -> Result<(), ApiError> {
    let (key, target): (&[&str], Target) = match route {
        Route::ReadServiceProperties
        | Route::WriteServiceProperties
        | Route::ReadServiceStats
        | Route::GetUserDelegationKey
        | Route::ListQueues => (&[], Target::Account),
        Route::CreateQueue(queue)
        | Route::DeleteQueue(queue)
        | Route::ReadMetadata(queue)
        | Route::WriteMetadata(queue)
        | Route::ReadPolicies(queue)
        | Route::WritePolicies(queue) => (&[queue], Target::Account),
        Route::PutMessage(queue)
        | Route::GetMessages(queue)
        | Route::PeekMessages(queue)
        | Route::ClearMessages(queue) => (&[queue], Target::Queue),
        Route::UpdateMessage(queue, id) | Route::DeleteMessage(queue, id) => (&[queue, id], Target::Queue),
    };
    simulated.admit(Operation { name: route.name(), key, target, cost: 1 }).await
}
