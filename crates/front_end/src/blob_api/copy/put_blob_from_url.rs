//! Put Blob From URL: a block blob whose bytes are read from a source.

use super::copy_request::{copies_source_tags, copy_state, inherit, refuse_body};
use super::source::Source;
use super::upload_source::upload_source;
use crate::blob_api::blob_request::BlobRequest;
use crate::blob_api::content::uploads::{encrypt, new_blob};
use crate::blob_api::errors::from_blob;
use crate::blob_api::headers::reply_headers::{crc64_text, put, put_written_encrypted};
use crate::blob_api::headers::request_headers::{blob_properties, has_foreign_etag, invalid, required, text};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::pipeline::{IncomingBody, RequestBody};
use crate::reply::Reply;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blob::limits::PUT_BLOB_SIZE_BYTES_MAX;
use blob::{BlobError, BlobType, CopyState};
use hyper::StatusCode;

/// The error of a write whose source has been read. Azure names the destination's condition only if its
/// `If-Match` is no ETag of the service (recorded in tests of the Java and Python clients; for other ETags in
/// those of the Go client).
fn from_put_target(context: &BlobRequest<'_>, error: BlobError) -> ApiError {
    match error {
        BlobError::ConditionNotMet if has_foreign_etag(context.headers(), "if-match") => {
            ErrorCode::TargetConditionNotMet.into()
        }
        other => from_blob(other),
    }
}

pub(crate) async fn put_blob_from_url<B: RequestBody>(
    context: &BlobRequest<'_>,
    body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    refuse_body(body).await?;
    let headers = context.headers();
    match required(headers, "x-ms-blob-type")? {
        "BlockBlob" => {}
        other => return Err(invalid("x-ms-blob-type", other)),
    }
    let copies_tags = copies_source_tags(headers)?;
    let at = context.blob().await?;
    let uploaded = upload_source(context, &at, true, PUT_BLOB_SIZE_BYTES_MAX, Source::unput).await;
    let (source, found, uploaded) = uploaded?;
    let (mut new, demands) = new_blob(context)?;
    encrypt(&at, &mut new)?;
    let copies_properties = text(headers, "x-ms-copy-source-blob-properties")
        .is_none_or(|text| !text.eq_ignore_ascii_case("false"));
    let own = blob_properties(headers)?;
    if copies_properties {
        let gives_metadata = !new.metadata.is_empty();
        new = inherit(new, &found, gives_metadata);
    } else {
        new.properties = own.clone();
    }
    let theirs = std::mem::take(&mut new.properties);
    new.properties = blob::ContentProperties {
        content_type: own.content_type.or(theirs.content_type),
        content_encoding: own.content_encoding.or(theirs.content_encoding),
        content_language: own.content_language.or(theirs.content_language),
        content_disposition: own.content_disposition.or(theirs.content_disposition),
        cache_control: own.cache_control.or(theirs.cache_control),
        content_md5: uploaded.md5.map(|md5| STANDARD.encode(md5)),
    };
    if new.properties.content_type.is_none() {
        new.properties.content_type = Some("application/octet-stream".to_owned());
    }
    if copies_tags {
        source.check_tags(context)?;
        new.tags = found.record.tags.clone();
    }
    let size = uploaded.size;
    let completed_at = Some(context.service.now());
    let state = copy_state(context, &source.url);
    new.copy =
        Some(CopyState { status: "success".to_owned(), done: size, total: size, completed_at, ..state });
    let crc64 = uploaded.crc64;
    let mut reply = Reply::new(StatusCode::CREATED);
    let written = context
        .service
        .put_blob(&at, BlobType::Block, uploaded, new, demands)
        .await
        .map_err(|error| from_put_target(context, error))?;
    put_written_encrypted(&mut reply, &written);
    put(&mut reply, "x-ms-content-crc64", &crc64_text(crc64));
    Ok(reply)
}
