//! Changes to what a blob says of itself, snapshots, deletion.

use super::blob_request::BlobRequest;
use super::content::uploads::{canonical, page_blob_size, tier};
use super::errors::from_blob;
use super::headers::Headers;
use super::headers::reply_headers::{
    put, put_static, put_version, put_written, put_written_encrypted, snapshot_text,
};
use super::headers::request_headers::{
    blob_properties, invalid, metadata, missing, number, required, sequence_number, text, tier_conditions,
    write_conditions,
};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::reply::Reply;
use blob::{BlobError, DeleteSnapshots, HIGH_PRIORITY, PAGE_TIERS, STANDARD_PRIORITY, SequenceAction};
use hyper::StatusCode;

/// What happens to a page blob's sequence number.
fn sequence_action(headers: Headers<'_>) -> Result<Option<SequenceAction>, ApiError> {
    const ACTION: &str = "x-ms-sequence-number-action";
    const NUMBER: &str = "x-ms-blob-sequence-number";
    let number = sequence_number(headers)?;
    let Some(action) = text(headers, ACTION) else {
        // A number alone does not say what becomes of it.
        return if number.is_some() { Err(missing(ACTION)) } else { Ok(None) };
    };
    match (action.to_ascii_lowercase().as_str(), number) {
        ("max", Some(number)) => Ok(Some(SequenceAction::Max(number))),
        ("update", Some(number)) => Ok(Some(SequenceAction::Update(number))),
        ("increment", None) => Ok(Some(SequenceAction::Increment)),
        ("max" | "update", None) => Err(missing(NUMBER)),
        ("increment", Some(number)) => Err(invalid(NUMBER, &number.to_string())),
        _ => Err(invalid(ACTION, action)),
    }
}

pub(crate) async fn set_properties(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    context.refuse_snapshot()?;
    let headers = context.headers();
    let properties = blob_properties(headers)?;
    let size = page_blob_size(headers)?;
    let sequence = sequence_action(headers)?;
    // A request that only changes a page blob's size or number leaves the rest alone.
    let is_empty = properties == blob::ContentProperties::default();
    let keeps = is_empty && (size.is_some() || sequence.is_some());
    let at = context.blob().await?;
    let set = context.service.set_properties(
        &at,
        (!keeps).then_some(properties),
        size,
        sequence,
        write_conditions(headers)?,
    );
    let (written, sequence_number) = set.await.map_err(from_blob)?;
    let mut reply = Reply::new(StatusCode::OK);
    put_version(&mut reply, written.etag, written.modified_at);
    if let Some(number) = sequence_number {
        put(&mut reply, "x-ms-blob-sequence-number", &number.to_string());
    }
    Ok(reply)
}

pub(crate) async fn set_metadata(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    context.refuse_snapshot()?;
    let headers = context.headers();
    let at = context.blob().await?;
    let set = context.service.set_metadata(&at, metadata(headers)?, context.write_conditions(&at)?).await;
    let mut reply = Reply::new(StatusCode::OK);
    put_written_encrypted(&mut reply, &set.map_err(from_blob)?);
    Ok(reply)
}

pub(crate) async fn set_tier(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let headers = context.headers();
    let sent = required(headers, "x-ms-access-tier")?;
    let tier = tier(context)?.unwrap_or_else(|| sent.to_owned());
    let priority = match text(headers, "x-ms-rehydrate-priority") {
        None => None,
        Some(sent) => {
            let priority = canonical(sent, &[STANDARD_PRIORITY, HIGH_PRIORITY]);
            Some(priority.ok_or_else(|| invalid("x-ms-rehydrate-priority", sent))?.to_owned())
        }
    };
    let at = context.blob().await?;
    let set = context
        .service
        .set_tier(&at, context.revision()?, tier.clone(), priority, write_conditions(headers)?)
        .await;
    let later = set.map_err(|error| match error {
        // Of a tier of page blobs on another the header is wrong (recorded).
        BlobError::AccessTierNotSupportedForBlobType if PAGE_TIERS.contains(&tier.as_str()) => {
            invalid("x-ms-access-tier", sent)
        }
        other => from_blob(other),
    })?;
    Ok(Reply::new(if later { StatusCode::ACCEPTED } else { StatusCode::OK }))
}

pub(crate) async fn snapshot(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    context.refuse_snapshot()?;
    let headers = context.headers();
    let metadata = metadata(headers)?;
    let at = context.blob().await?;
    let gives_metadata = !metadata.is_empty();
    let metadata = gives_metadata.then_some(metadata);
    let taken = context.service.snapshot(&at, metadata, context.write_conditions(&at)?).await;
    let (time, written) = taken.map_err(from_blob)?;
    let mut reply = Reply::new(StatusCode::CREATED);
    put(&mut reply, "x-ms-snapshot", &snapshot_text(time));
    put_written(&mut reply, &written);
    // Only metadata under a key of the client's is something to encrypt.
    let encrypts = gives_metadata && headers.contains_key("x-ms-encryption-key");
    put_static(&mut reply, "x-ms-request-server-encrypted", if encrypts { "true" } else { "false" });
    Ok(reply)
}

pub(crate) async fn delete(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let headers = context.headers();
    const NAME: &str = "x-ms-delete-snapshots";
    let snapshots = match text(headers, NAME) {
        None => DeleteSnapshots::Refuse,
        Some(which) if which.eq_ignore_ascii_case("include") => DeleteSnapshots::Include,
        Some(which) if which.eq_ignore_ascii_case("only") => DeleteSnapshots::Only,
        Some(other) => return Err(invalid(NAME, other)),
    };
    match context.query("deletetype") {
        None => {}
        // It would end what soft delete keeps: done softly, it would not be the requested deletion.
        Some(kind) if kind.eq_ignore_ascii_case("permanent") => return Err(ErrorCode::NotImplemented.into()),
        Some(kind) => {
            return Err(ApiError::invalid_parameter("deletetype", kind, "It is no kind of deletion."));
        }
    }
    let revision = context.revision()?;
    if snapshots != DeleteSnapshots::Refuse {
        context.refuse_snapshot()?;
    }
    let at = context.blob().await?;
    let deleted = {
        let tier = tier_conditions(headers)?;
        context.service.delete(&at, revision, snapshots, tier, write_conditions(headers)?).await
    };
    let is_permanent = deleted.map_err(from_blob)?;
    let mut reply = Reply::new(StatusCode::ACCEPTED);
    put(&mut reply, "x-ms-delete-type-permanent", if is_permanent { "true" } else { "false" });
    Ok(reply)
}

pub(crate) async fn undelete(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let at = context.blob().await?;
    context.service.undelete(&at).await.map_err(from_blob)?;
    Ok(Reply::new(StatusCode::OK))
}

pub(crate) async fn seal(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let headers = context.headers();
    let at = context.blob().await?;
    let position = number(headers, "x-ms-blob-condition-appendpos")?;
    let written = context.service.seal(&at, position, write_conditions(headers)?).await.map_err(from_blob)?;
    let mut reply = Reply::new(StatusCode::OK);
    put_version(&mut reply, written.etag, written.modified_at);
    put(&mut reply, "x-ms-blob-sealed", "true");
    Ok(reply)
}
