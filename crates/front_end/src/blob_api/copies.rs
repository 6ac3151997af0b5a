//! Copies: of whole blobs, and of parts of a blob into blocks, appends and pages. The source is a blob of this
//! server, which `copy_source.rs` finds.

use super::BlobRequest;
use super::copy_source::{Source, SourceRule, source};
use super::errors::from_blob;
use super::headers::Headers;
use super::reply_headers::{
    crc64_text, put, put_encryption, put_some, put_written, put_written_encrypted, without_signature,
};
use super::request_headers::{
    blob_properties, flag, has_foreign_etag, invalid, lease_id, metadata, parse_crc64, parse_range, required,
    text,
};
use super::uploads::{append, block_id, compare_crc64, encrypt, new_blob, page_range, tier, write_pages};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::pipeline::{IncomingBody, RequestBody};
use crate::reply::Reply;
use crate::request::content_md5::{compare_md5, parse_md5};
use crate::request::request_id::RequestId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blob::limits::{
    APPEND_SIZE_BYTES_MAX, BLOCK_SIZE_BYTES_MAX, PAGES_SIZE_BYTES_MAX, PUT_BLOB_SIZE_BYTES_MAX,
    SYNC_COPY_SIZE_BYTES_MAX,
};
use blob::{
    BlobAt, BlobError, BlobType, Copied, CopyState, ETags, FoundRecord, NewBlob, Revision, Uploaded,
    etag_text,
};
use hyper::StatusCode;
use md5::{Digest, Md5};

/// Which bytes of a source are taken.
const SOURCE_RANGE: &str = "x-ms-source-range";

/// The MD5 of those bytes.
const SOURCE_MD5: &str = "x-ms-source-content-md5";

/// The error of a blob that is put from a URL once its source is read: only of an `If-Match` that is no ETag of
/// the service is it said that it is the destination's (tests of the Java and Python clients; of other ETags those
/// of the Go client).
fn from_put_target(context: &BlobRequest<'_>, error: BlobError) -> ApiError {
    match error {
        BlobError::ConditionNotMet if has_foreign_etag(context.headers(), "if-match") => {
            ErrorCode::TargetConditionNotMet.into()
        }
        other => from_blob(other),
    }
}

/// Refuses bytes that come with an operation whose bytes are the source's. One whose length is not announced is told as
/// -1, as recorded of uploads.
async fn refuse_body<B: RequestBody>(body: IncomingBody<'_, B>) -> Result<(), ApiError> {
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

/// Whether the source's tags are asked for, which can't be if there are others.
fn asks_for_source_tags(headers: Headers<'_>) -> Result<bool, ApiError> {
    const OPTION: &str = "x-ms-copy-source-tag-option";
    match text(headers, OPTION) {
        None => Ok(false),
        Some(option) if option.eq_ignore_ascii_case("REPLACE") => Ok(false),
        Some(option) if !option.eq_ignore_ascii_case("COPY") => Err(invalid(OPTION, option)),
        Some(_) if text(headers, "x-ms-tags").is_none() => Ok(true),
        Some(_) => Err(ErrorCode::BothUserTagsAndSourceTagsCopyPresentException.into()),
    }
}

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

fn copy_state(context: &BlobRequest<'_>, url: &str) -> CopyState {
    CopyState {
        id: RequestId::new(context.request.random).as_str().to_owned(),
        source: without_signature(url),
        status: "pending".to_owned(),
        description: None,
        done: 0,
        total: 0,
        completed_at: None,
    }
}

/// What the copy gets besides its bytes: its own metadata if any is given, else the source's.
fn inherit(mut new: NewBlob, found: &FoundRecord, gives_metadata: bool) -> NewBlob {
    new.properties = found.record.properties.clone();
    if !gives_metadata {
        new.metadata = found.record.metadata.clone();
    }
    new
}

pub(crate) async fn copy_blob<B: RequestBody>(
    context: &BlobRequest<'_>,
    body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    refuse_body(body).await?;
    context.refuse_snapshot()?;
    let headers = context.headers();
    let copies_tags = asks_for_source_tags(headers)?;
    let at = context.blob().await?;
    let is_sync = flag(headers, "x-ms-requires-sync")?;
    let rule = if is_sync { SourceRule::Foreign } else { SourceRule::OwnAccount };
    let mut source = source(context, rule).await?;
    // A copy is the quick way out of the archive.
    source.wanted.may_be_archived =
        !is_sync && !source.is_of_other && tier(context)?.is_some_and(|tier| tier != "Archive");
    let found = context.service.find_source(&source.at, &source.wanted).await;
    let refused = if is_sync { Source::unread } else { Source::refused };
    let found = found.map_err(|error| refused(&source, error))?;
    if is_sync && found.record.blob_type != BlobType::Block {
        return Err(ErrorCode::InvalidBlobType.into());
    }
    if is_sync && found.record.size > SYNC_COPY_SIZE_BYTES_MAX {
        return Err(ErrorCode::RequestBodyTooLarge.into());
    }
    let expected_md5 = text(headers, SOURCE_MD5).filter(|_| is_sync);
    if let Some(md5) = expected_md5 {
        // What met the conditions is what is checked and copied, and nothing that replaced it since.
        source.wanted.conditions.if_match = Some(ETags::List(vec![etag_text(found.record.etag)]));
        check_whole(context, &source, md5).await?;
    }
    let gives_metadata = !metadata(headers)?.is_empty();
    let mut new = new_blob(context)?;
    encrypt(&at, &mut new)?;
    new.keeps_type = true;
    new.sealed = found.record.blob_type == BlobType::Append
        && match text(headers, "x-ms-seal-blob") {
            Some(_) => flag(headers, "x-ms-seal-blob")?,
            None => found.record.sealed,
        };
    if copies_tags {
        source.check_tags(context)?;
        new.tags = found.record.tags.clone();
    }
    let state = copy_state(context, &source.url);
    let copied = context
        .service
        .copy(&at, &source.at, &source.wanted, state, |found| inherit(new, found, gives_metadata));
    let Copied { state, written, crc64 } = copied.await.map_err(|error| match error {
        BlobError::SourceConditionNotMet | BlobError::SourceNotModified => refused(&source, error),
        // Of a tier that the source's type never has Azure says where it stands.
        BlobError::AccessTierNotSupportedForBlobType => {
            invalid("x-ms-access-tier", text(headers, "x-ms-access-tier").unwrap_or_default())
        }
        // The destination's conditions fail as any write's (recorded for the Go client since 2024).
        other => from_blob(other),
    })?;
    let mut reply = Reply::new(StatusCode::ACCEPTED);
    match is_sync {
        true => put_written_encrypted(&mut reply, &written),
        false => put_written(&mut reply, &written),
    }
    put(&mut reply, "x-ms-copy-id", &state.id);
    put(&mut reply, "x-ms-copy-status", &state.status);
    // One hash of a copy that is waited for: the MD5 if the client has given it (recorded).
    put_some(&mut reply, "content-md5", expected_md5);
    let crc64 = crc64.filter(|_| is_sync && expected_md5.is_none()).map(crc64_text);
    put_some(&mut reply, "x-ms-content-crc64", crc64.as_deref());
    Ok(reply)
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

/// Adds hashes of the source's bytes: both if the client has given the MD5, the CRC-64 if it has given that, else the one of
/// `unasked`.
fn put_source_checksums(
    context: &BlobRequest<'_>,
    reply: &mut Reply,
    md5: Option<[u8; 16]>,
    crc64: u64,
    unasked: Checksum,
) {
    let gives = |name| text(context.headers(), name).is_some();
    let tells_md5 = match (gives(SOURCE_MD5), gives("x-ms-source-content-crc64")) {
        (false, false) => unasked == Checksum::Md5,
        (gives_md5, gives_crc64) => gives_md5 && !gives_crc64,
    };
    let md5 = md5.filter(|_| tells_md5);
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

async fn upload_source(
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
    let copies_tags = asks_for_source_tags(headers)?;
    let at = context.blob().await?;
    let uploaded = upload_source(context, &at, true, PUT_BLOB_SIZE_BYTES_MAX, Source::unput).await;
    let (source, found, uploaded) = uploaded?;
    let mut new = new_blob(context)?;
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
        .put_blob(&at, BlobType::Block, uploaded, new)
        .await
        .map_err(|error| from_put_target(context, error))?;
    put_written_encrypted(&mut reply, &written);
    put(&mut reply, "x-ms-content-crc64", &crc64_text(crc64));
    Ok(reply)
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
