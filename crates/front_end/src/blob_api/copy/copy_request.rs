//! What a copy takes from its request and its source, whatever is copied.
//!
//! What always holds: a request with a body of its own is refused, and a copy has either tags of its own or
//! its source's.

use crate::blob_api::blob_request::BlobRequest;
use crate::blob_api::headers::Headers;
use crate::blob_api::headers::reply_headers::without_signature;
use crate::blob_api::headers::request_headers::{invalid, text};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::pipeline::{IncomingBody, RequestBody};
use crate::request::request_id::RequestId;
use blob::{CopyState, FoundRecord, NewBlob};

/// The expected MD5 of the bytes that are taken from a source.
pub(super) const SOURCE_MD5: &str = "x-ms-source-content-md5";

/// Refuses a body in an operation whose bytes are the source's. The error names a length that is not
/// announced as -1, as recorded of uploads.
pub(super) async fn refuse_body<B: RequestBody>(body: IncomingBody<'_, B>) -> Result<(), ApiError> {
    let announced = body.announced_size();
    if announced == Some(0) {
        return Ok(());
    }
    if announced.is_none() {
        let mut portions = body.into_portions();
        loop {
            match portions.next().await? {
                None => return Ok(()),
                Some(bytes) if bytes.is_empty() => {}
                Some(_) => break,
            }
        }
    }
    Err(invalid("Content-Length", &announced.map_or("-1".to_owned(), |size| size.to_string())))
}

/// Whether the copy takes the source's tags, which excludes tags of its own.
pub(super) fn copies_source_tags(headers: Headers<'_>) -> Result<bool, ApiError> {
    const OPTION: &str = "x-ms-copy-source-tag-option";
    match text(headers, OPTION) {
        None => Ok(false),
        Some(option) if option.eq_ignore_ascii_case("REPLACE") => Ok(false),
        Some(option) if !option.eq_ignore_ascii_case("COPY") => Err(invalid(OPTION, option)),
        Some(_) if text(headers, "x-ms-tags").is_none() => Ok(true),
        Some(_) => Err(ErrorCode::BothUserTagsAndSourceTagsCopyPresentException.into()),
    }
}

pub(super) fn copy_state(context: &BlobRequest<'_>, url: &str) -> CopyState {
    CopyState {
        id: RequestId::new(context.request.environment.random).as_str().to_owned(),
        source: without_signature(url),
        status: "pending".to_owned(),
        description: None,
        done: 0,
        total: 0,
        completed_at: None,
    }
}

/// Takes the source's properties, and its metadata unless the request has some.
pub(super) fn inherit(mut new: NewBlob, found: &FoundRecord, gives_metadata: bool) -> NewBlob {
    new.properties = found.record.properties.clone();
    if !gives_metadata {
        new.metadata = found.record.metadata.clone();
    }
    new
}
