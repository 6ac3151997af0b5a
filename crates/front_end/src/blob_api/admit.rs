//! How the simulation sees requests to the Blob service. Called only where there is a simulation.

use super::blob_request::BlobRequest;
use super::route::Route;
use super::target::Target;
use crate::error::ApiError;
use crate::simulate::{self, Operation, SimulatedRequest};

/// Returns when the operation may begin. What is about a blob counts against it.
pub(super) async fn admit_route(
    simulated: &SimulatedRequest<'_>,
    context: &BlobRequest<'_>,
) -> Result<(), ApiError> {
    let route = context.route;
    if route == Route::NotServed {
        return Ok(());
    }
    let is_page = match route {
        Route::PutPages | Route::PutPagesFromUrl | Route::ReadPageRanges => true,
        Route::PutBlob => context.headers.get("x-ms-blob-type").is_some_and(|kind| kind == "PageBlob"),
        _ => false,
    };
    let of_blob = simulate::Target::Blob { is_page };
    let name = route.name();
    let operation = |key, target| Operation { name, key, target, cost: 1 };
    match context.target {
        Target::Account => simulated.admit(operation(&[], simulate::Target::Account)).await,
        Target::Container(container) => {
            simulated.admit(operation(&[container.as_str()], simulate::Target::Account)).await
        }
        Target::Blob { container, blob } => {
            simulated.admit(operation(&[container.as_str(), blob.as_str()], of_blob)).await
        }
    }
}
