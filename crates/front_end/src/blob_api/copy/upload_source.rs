//! Reads the source of a copy, checks its hashes and stores its bytes as an upload.

use super::copy_request::SOURCE_MD5;
use super::source::{Source, SourceRule, source};
use crate::blob_api::blob_request::BlobRequest;
use crate::blob_api::content::uploads::compare_crc64;
use crate::blob_api::headers::request_headers::{invalid, parse_crc64, parse_range, text};
use crate::error::ApiError;
use crate::request::content_md5::{compare_md5, parse_md5};
use blob::{BlobAt, BlobError, FoundRecord, Uploaded};

/// Which bytes of a source are taken.
pub(super) const SOURCE_RANGE: &str = "x-ms-source-range";

/// Checks what the client expects of the source's bytes.
fn check_source(context: &BlobRequest<'_>, uploaded: &Uploaded) -> Result<(), ApiError> {
    let headers = context.headers();
    if let Some(md5) = text(headers, SOURCE_MD5) {
        compare_md5(parse_md5(SOURCE_MD5, md5)?, uploaded.md5)?;
    }
    const CRC64: &str = "x-ms-source-content-crc64";
    let crc64 = text(headers, CRC64).map(|text| parse_crc64(CRC64, text)).transpose()?;
    compare_crc64(crc64, uploaded.crc64)
}

pub(super) async fn upload_source(
    context: &BlobRequest<'_>,
    at: &BlobAt,
    may_be_inline: bool,
    size_max: u64,
    refused: fn(&Source, BlobError) -> ApiError,
) -> Result<(Source, FoundRecord, Uploaded), ApiError> {
    let source = source(context, SourceRule::Bearer).await?;
    let range = match text(context.headers(), SOURCE_RANGE) {
        None => None,
        Some(text) => Some(parse_range(text).ok_or_else(|| invalid(SOURCE_RANGE, text))?),
    };
    let uploaded =
        context.service.upload_from(at, &source.at, &source.wanted, range, may_be_inline, size_max).await;
    let (found, uploaded) = uploaded.map_err(|error| refused(&source, error))?;
    check_source(context, &uploaded)?;
    Ok((source, found, uploaded))
}
