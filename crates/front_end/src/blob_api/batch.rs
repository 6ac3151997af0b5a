//! Blob batches: up to 256 deletions or tier changes in one request, each with credentials of its own.
//!
//! ```text
//! --batch_X                             --batchresponse_Y
//! Content-Type: application/http        Content-Type: application/http
//! Content-ID: 0                         Content-ID: 0
//!
//! DELETE /acct/box/a? HTTP/1.1          HTTP/1.1 202 Accepted
//! Authorization: …                      x-ms-error-code: …
//! ```
//!
//! What always holds: parts are independent, none may do what its own credentials do not allow.

use super::{BlobApi, BlobRequest};
use crate::error::ApiError;
use crate::error_code::ErrorCode;
use crate::pipeline::{IncomingBody, RequestBody};
use crate::reply::Reply;

/// Answers a batch.
pub(crate) async fn run<B: RequestBody>(
    _api: &BlobApi,
    _context: &BlobRequest<'_>,
    _body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    Err(ErrorCode::NotImplemented.into())
}
