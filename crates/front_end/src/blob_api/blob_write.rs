//! Changes to what a blob says of itself, snapshots, deletion.

use super::BlobRequest;
use super::errors::from_blob;
use super::reply_headers::{put, put_static, put_version, put_written, put_written_encrypted, snapshot_text};
use super::request_headers::{
    blob_properties, conditions, invalid, metadata, number, required, sequence_number, text, tier_conditions,
};
use super::uploads::{canonical, tier};
use crate::error::ApiError;
use crate::error_code::ErrorCode;
use crate::reply::Reply;
use blob::{DeleteSnapshots, Revision, SequenceAction};
use hyper::StatusCode;

pub(crate) async fn set_properties(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    context.refuse_snapshot()?;
    let headers = context.headers();
    let properties = blob_properties(headers)?;
    let size = number(headers, "x-ms-blob-content-length")?;
    if size.is_some_and(|size| !size.is_multiple_of(512)) {
        return Err(invalid("x-ms-blob-content-length", "not a multiple of 512"));
    }
    let sequence_number = sequence_number(headers)?;
    let sequence = match text(headers, "x-ms-sequence-number-action") {
        None => None,
        Some(action) => Some(match (action.to_ascii_lowercase().as_str(), sequence_number) {
            ("max", Some(number)) => SequenceAction::Max(number),
            ("update", Some(number)) => SequenceAction::Update(number),
            ("increment", None) => SequenceAction::Increment,
            _ => return Err(invalid("x-ms-sequence-number-action", action)),
        }),
    };
    // A request that only changes a page blob's size or number leaves the rest alone.
    let is_empty = properties == blob::ContentProperties::default();
    let keeps = is_empty && (size.is_some() || sequence.is_some());
    let at = context.blob().await?;
    let set = context.service.set_properties(
        &at,
        (!keeps).then_some(properties),
        size,
        sequence,
        conditions(headers)?,
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
            let priority = canonical(sent, &["Standard", "High"]);
            Some(priority.ok_or_else(|| invalid("x-ms-rehydrate-priority", sent))?.to_owned())
        }
    };
    let at = context.blob().await?;
    let set = context.service.set_tier(&at, context.revision()?, tier, priority, conditions(headers)?).await;
    let later = set.map_err(from_blob)?;
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
        Some("include") => DeleteSnapshots::Include,
        Some("only") => DeleteSnapshots::Only,
        Some(other) => return Err(invalid(NAME, other)),
    };
    match context.query("deletetype") {
        None => {}
        // It would end what soft delete keeps: done softly, it would not be what was asked for.
        Some(kind) if kind.eq_ignore_ascii_case("permanent") => return Err(ErrorCode::NotImplemented.into()),
        Some(_) => return Err(ErrorCode::InvalidQueryParameterValue.into()),
    }
    let revision = context.revision()?;
    if revision != Revision::Current && snapshots != DeleteSnapshots::Refuse {
        return Err(ErrorCode::InvalidQueryParameterValue.into());
    }
    let at = context.blob().await?;
    let deleted = {
        let tier = tier_conditions(headers)?;
        context.service.delete(&at, revision, snapshots, tier, conditions(headers)?).await
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
    let written = context.service.seal(&at, position, conditions(headers)?).await.map_err(from_blob)?;
    let mut reply = Reply::new(StatusCode::OK);
    put_version(&mut reply, written.etag, written.modified_at);
    put(&mut reply, "x-ms-blob-sealed", "true");
    Ok(reply)
}
