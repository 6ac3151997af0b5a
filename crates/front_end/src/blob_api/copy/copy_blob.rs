//! Copy Blob, asynchronous and synchronous, and Abort Copy Blob.

use super::copy_request::{SOURCE_MD5, copies_source_tags, copy_state, inherit, refuse_body};
use super::source::{Source, SourceRule, source};
use crate::blob_api::blob_request::BlobRequest;
use crate::blob_api::content::uploads::{encrypt, new_blob, tier};
use crate::blob_api::errors::from_blob;
use crate::blob_api::headers::reply_headers::{
    crc64_text, put, put_some, put_written, put_written_encrypted,
};
use crate::blob_api::headers::request_headers::{flag, invalid, lease_id, metadata, required, text};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::pipeline::{IncomingBody, RequestBody};
use crate::reply::Reply;
use crate::request::content_md5::{compare_md5, parse_md5};
use blob::limits::SYNC_COPY_SIZE_BYTES_MAX;
use blob::{
    BlobAt, BlobError, BlobType, Copied, ETags, FoundRecord, NewBlob, ReplaceConditions, Revision, etag_text,
};
use hyper::StatusCode;
use md5::{Digest, Md5};

/// Checks what the client expects of a whole source's bytes.
async fn check_whole(context: &BlobRequest<'_>, source: &Source, expected: &str) -> Result<(), ApiError> {
    let expected = parse_md5(SOURCE_MD5, expected)?;
    let wanted = &source.wanted;
    let opened = context.service.read(&source.at, wanted.revision, &wanted.conditions, None).await;
    let (_, _, mut reader) = opened.map_err(|error| match error {
        BlobError::ConditionNotMet => source.unread(BlobError::SourceConditionNotMet),
        other => source.refused(other),
    })?;
    let mut md5 = Md5::new();
    while let Some(bytes) = reader.next().await.map_err(from_blob)? {
        md5.update(&bytes);
    }
    compare_md5(expected, Some(md5.finalize().into()))
}

/// Refuses sources that a synchronous copy does not take.
fn check_sync_source(found: &FoundRecord) -> Result<(), ApiError> {
    if found.record.blob_type != BlobType::Block {
        return Err(ErrorCode::InvalidBlobType.into());
    }
    if found.record.size > SYNC_COPY_SIZE_BYTES_MAX {
        return Err(ErrorCode::RequestBodyTooLarge.into());
    }
    Ok(())
}

/// The destination as the request's headers describe it, and what they demand of the blob that is there.
fn destination(
    context: &BlobRequest<'_>,
    at: &BlobAt,
    found: &FoundRecord,
) -> Result<(NewBlob, ReplaceConditions), ApiError> {
    let headers = context.headers();
    let (mut new, demands) = new_blob(context)?;
    encrypt(at, &mut new)?;
    new.sealed = found.record.blob_type == BlobType::Append
        && match text(headers, "x-ms-seal-blob") {
            Some(_) => flag(headers, "x-ms-seal-blob")?,
            None => found.record.by_type.sealed,
        };
    Ok((new, ReplaceConditions { keeps_type: true, ..demands }))
}

/// The response; a synchronous copy's has one hash: the MD5 if the client has sent it (recorded).
fn copy_reply(copied: &Copied, is_sync: bool, expected_md5: Option<&str>) -> Reply {
    let mut reply = Reply::new(StatusCode::ACCEPTED);
    match is_sync {
        true => put_written_encrypted(&mut reply, &copied.written),
        false => put_written(&mut reply, &copied.written),
    }
    put(&mut reply, "x-ms-copy-id", &copied.state.id);
    put(&mut reply, "x-ms-copy-status", &copied.state.status);
    put_some(&mut reply, "content-md5", expected_md5);
    let crc64 = copied.crc64.filter(|_| is_sync && expected_md5.is_none()).map(crc64_text);
    put_some(&mut reply, "x-ms-content-crc64", crc64.as_deref());
    reply
}

pub(crate) async fn copy_blob<B: RequestBody>(
    context: &BlobRequest<'_>,
    body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    refuse_body(body).await?;
    context.refuse_snapshot()?;
    let headers = context.headers();
    let copies_tags = copies_source_tags(headers)?;
    let at = context.blob().await?;
    let is_sync = flag(headers, "x-ms-requires-sync")?;
    let rule = if is_sync { SourceRule::Foreign } else { SourceRule::OwnAccount };
    let mut source = source(context, rule).await?;
    // An asynchronous copy to an online tier may read an archived source.
    source.wanted.may_be_archived =
        !is_sync && !source.is_of_other && tier(context)?.is_some_and(|tier| tier != "Archive");
    let found = context.service.find_source(&source.at, &source.wanted).await;
    let refused = if is_sync { Source::unread } else { Source::refused };
    let found = found.map_err(|error| refused(&source, error))?;
    if is_sync {
        check_sync_source(&found)?;
    }
    let expected_md5 = text(headers, SOURCE_MD5).filter(|_| is_sync);
    if let Some(md5) = expected_md5 {
        // The ETag fences the copy: a source that is replaced after the check is not copied.
        source.wanted.conditions.if_match = Some(ETags::List(vec![etag_text(found.record.version.etag)]));
        check_whole(context, &source, md5).await?;
    }
    let gives_metadata = !metadata(headers)?.is_empty();
    let (mut new, demands) = destination(context, &at, &found)?;
    if copies_tags {
        source.check_tags(context)?;
        new.tags = found.record.tags.clone();
    }
    let state = copy_state(context, &source.url);
    let prepare = |found: &FoundRecord| inherit(new, found, gives_metadata);
    let copied = context.service.copy(&at, &source.at, &source.wanted, state, demands, prepare);
    let copied = copied.await.map_err(|error| match error {
        BlobError::SourceConditionNotMet | BlobError::SourceNotModified => refused(&source, error),
        // Azure names the header of a tier that the source's type never has.
        BlobError::AccessTierNotSupportedForBlobType => {
            invalid("x-ms-access-tier", text(headers, "x-ms-access-tier").unwrap_or_default())
        }
        // The destination's conditions fail as any write's (recorded for the Go client since 2024).
        other => from_blob(other),
    })?;
    Ok(copy_reply(&copied, is_sync, expected_md5))
}

pub(crate) async fn abort_copy(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let headers = context.headers();
    let id = context.query("copyid").ok_or_else(|| ApiError::missing_parameter("copyid"))?;
    if blob::parse_lease_id(id).is_none() {
        return Err(ApiError::invalid_parameter("copyid", id, "copyid needs to be valid Guid."));
    }
    let action = required(headers, "x-ms-copy-action")?;
    if !action.eq_ignore_ascii_case("abort") {
        return Err(invalid("x-ms-copy-action", action));
    }
    let at = context.blob().await?;
    let conditions = blob::Conditions { lease_id: lease_id(headers)?, ..blob::Conditions::default() };
    context.service.find(&at, Revision::Current, &conditions).await.map_err(from_blob)?;
    // Copies inside the server are done when they are answered: none is ever pending.
    Err(ErrorCode::NoPendingCopyOperation.into())
}
