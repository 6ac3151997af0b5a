//! Put Block, Append Block and Put Page From URL: parts of a blob whose bytes are read from a source.

use super::copy_request::{SOURCE_MD5, refuse_body};
use super::source::Source;
use super::upload_source::{SOURCE_RANGE, upload_source};
use crate::blob_api::blob_request::BlobRequest;
use crate::blob_api::content::uploads::{append, block_id, page_range, write_pages};
use crate::blob_api::errors::from_blob;
use crate::blob_api::headers::reply_headers::{crc64_text, put, put_encryption};
use crate::blob_api::headers::request_headers::{invalid, lease_id, parse_range, required, text};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::pipeline::{IncomingBody, RequestBody};
use crate::reply::Reply;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blob::limits::{APPEND_SIZE_BYTES_MAX, BLOCK_SIZE_BYTES_MAX, PAGES_SIZE_BYTES_MAX};
use hyper::StatusCode;

/// Adds hashes of the source's bytes: both if the client has sent the MD5, the CRC-64 if it has sent that,
/// else `default`.
fn put_source_checksums(
    context: &BlobRequest<'_>,
    reply: &mut Reply,
    md5: Option<[u8; 16]>,
    crc64: u64,
    default: Checksum,
) {
    let gives = |name| text(context.headers(), name).is_some();
    let has_md5 = match (gives(SOURCE_MD5), gives("x-ms-source-content-crc64")) {
        (false, false) => default == Checksum::Md5,
        (gives_md5, gives_crc64) => gives_md5 && !gives_crc64,
    };
    let md5 = md5.filter(|_| has_md5);
    if let Some(md5) = md5 {
        put(reply, "content-md5", &STANDARD.encode(md5));
    }
    if md5.is_none() || gives(SOURCE_MD5) {
        put(reply, "x-ms-content-crc64", &crc64_text(crc64));
    }
}

/// A hash of bytes that were read from a source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checksum {
    Md5,
    Crc64,
}

pub(crate) async fn put_block_from_url<B: RequestBody>(
    context: &BlobRequest<'_>,
    body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    refuse_body(body).await?;
    let id = block_id(context)?;
    let at = context.blob().await?;
    let (_, _, uploaded) = upload_source(context, &at, false, BLOCK_SIZE_BYTES_MAX, Source::unread).await?;
    let (md5, crc64) = (uploaded.md5, uploaded.crc64);
    let lease = lease_id(context.headers())?;
    let encryption = at.encryption.of_new_blob(context.encryption()?).map_err(from_blob)?;
    let create_only = context.is_create_only();
    let staged = context.service.put_block(&at, id, uploaded, lease, encryption.clone(), create_only).await;
    staged.map_err(from_blob)?;
    let mut reply = Reply::new(StatusCode::CREATED);
    put_encryption(&mut reply, &encryption);
    put_source_checksums(context, &mut reply, md5, crc64, Checksum::Crc64);
    put(&mut reply, "x-ms-request-server-encrypted", "true");
    Ok(reply)
}

pub(crate) async fn append_block_from_url<B: RequestBody>(
    context: &BlobRequest<'_>,
    body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    refuse_body(body).await?;
    let at = context.blob().await?;
    let (_, _, uploaded) = upload_source(context, &at, false, APPEND_SIZE_BYTES_MAX, Source::unread).await?;
    let (md5, crc64) = (uploaded.md5, uploaded.crc64);
    let mut reply = append(context, &at, uploaded).await?;
    put_source_checksums(context, &mut reply, md5, crc64, Checksum::Md5);
    Ok(reply)
}

pub(crate) async fn put_pages_from_url<B: RequestBody>(
    context: &BlobRequest<'_>,
    body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    refuse_body(body).await?;
    const ACTION: &str = "x-ms-page-write";
    let action = required(context.headers(), ACTION)?;
    if !action.eq_ignore_ascii_case("update") {
        return Err(invalid(ACTION, action));
    }
    let (start, len) = page_range(context)?;
    if len > PAGES_SIZE_BYTES_MAX {
        return Err(ErrorCode::InvalidPageRange.into());
    }
    let from = required(context.headers(), SOURCE_RANGE)?;
    let is_as_long = |(start, end): (u64, Option<u64>)| end.is_some_and(|end| end - start == len);
    if !parse_range(from).is_some_and(is_as_long) {
        return Err(invalid(SOURCE_RANGE, from));
    }
    let at = context.blob().await?;
    let (_, _, uploaded) = upload_source(context, &at, false, len, Source::unread).await?;
    if uploaded.size != len {
        return Err(invalid(SOURCE_RANGE, from));
    }
    let (md5, crc64) = (uploaded.md5, uploaded.crc64);
    let mut reply = write_pages(context, &at, (start, len), Some(uploaded)).await?;
    put_source_checksums(context, &mut reply, md5, crc64, Checksum::Md5);
    Ok(reply)
}
