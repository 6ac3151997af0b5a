//! Containers: create, read, metadata, access policies, delete.

use super::blob_request::BlobRequest;
use super::errors::from_container;
use super::headers::reply_headers::{put, put_lease, put_version};
use super::headers::request_headers::{flag, invalid, metadata, text, write_conditions};
use crate::error::ApiError;
use crate::pipeline::{IncomingBody, RequestBody, ServiceApi};
use crate::reply::Reply;
use crate::shared_operations::policies;
use blob::{Conditions, ContainerEncryption, ContainerRow, PublicAccess};
use hyper::StatusCode;

/// Bytes of a document with access policies at most.
const POLICIES_SIZE_BYTES_MAX: usize = 64 << 10;

fn public_access(context: &BlobRequest<'_>) -> Result<PublicAccess, ApiError> {
    const NAME: &str = "x-ms-blob-public-access";
    match text(context.headers(), NAME) {
        None => Ok(PublicAccess::None),
        Some(access) if access.eq_ignore_ascii_case("container") => Ok(PublicAccess::Container),
        Some(access) if access.eq_ignore_ascii_case("blob") => Ok(PublicAccess::Blob),
        Some(other) => Err(invalid(NAME, other)),
    }
}

/// The name of a public access; `None`: nothing is public.
pub(crate) fn public_access_text(access: PublicAccess) -> Option<&'static str> {
    match access {
        PublicAccess::None => None,
        PublicAccess::Blob => Some("blob"),
        PublicAccess::Container => Some("container"),
    }
}

/// Containers know dates and leases, and ETags only in part.
fn container_conditions(context: &BlobRequest<'_>) -> Result<Conditions, ApiError> {
    write_conditions(context.headers())
}

fn version(status: StatusCode, row: &ContainerRow) -> Reply {
    let mut reply = Reply::new(status);
    put_version(&mut reply, row.etag, row.modified_at);
    reply
}

/// What the account's own encryption is called among the scopes.
pub(crate) const ACCOUNT_SCOPE: &str = "$account-encryption-key";

/// The scope of blobs that name none.
pub(crate) fn default_scope(encryption: &ContainerEncryption) -> &str {
    encryption.default_scope.as_deref().unwrap_or(ACCOUNT_SCOPE)
}

pub(crate) async fn create(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let (account, name) = (context.request.account, context.container_name()?);
    let metadata = metadata(context.headers())?;
    let headers = context.headers();
    let encryption = ContainerEncryption {
        default_scope: text(headers, "x-ms-default-encryption-scope").map(str::to_owned),
        denies_override: flag(headers, "x-ms-deny-encryption-scope-override")?,
    };
    let access = public_access(context)?;
    let created = context.service.create_container(account, name, metadata, access, encryption).await;
    Ok(version(StatusCode::CREATED, &created.map_err(from_container)?))
}

pub(crate) async fn read(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let row = context.container().await?;
    let now = context.service.container_now(context.request.account, &row.name).map_err(from_container)?;
    let lease = super::headers::request_headers::lease_id(context.headers())?;
    row.lease.check_read(lease.as_deref(), now).map_err(|error| from_container(error.into()))?;
    let mut reply = version(StatusCode::OK, &row);
    reply.metadata(&row.metadata);
    if context.query("comp") != Some("metadata") {
        put_lease(&mut reply, &row.lease, now);
        if let Some(access) = public_access_text(row.public_access) {
            put(&mut reply, "x-ms-blob-public-access", access);
        }
        put(&mut reply, "x-ms-has-immutability-policy", "false");
        put(&mut reply, "x-ms-has-legal-hold", "false");
        put(&mut reply, "x-ms-immutable-storage-with-versioning-enabled", "false");
        put(&mut reply, "x-ms-default-encryption-scope", default_scope(&row.encryption));
        let denies = if row.encryption.denies_override { "true" } else { "false" };
        put(&mut reply, "x-ms-deny-encryption-scope-override", denies);
    }
    Ok(reply)
}

pub(crate) async fn set_metadata(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let (account, name) = (context.request.account, context.container_name()?);
    let metadata = metadata(context.headers())?;
    let set =
        context.service.set_container_metadata(account, name, metadata, container_conditions(context)?).await;
    Ok(version(StatusCode::OK, &set.map_err(from_container)?))
}

pub(crate) async fn read_policies(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let row = context.container().await?;
    let lease = super::headers::request_headers::lease_id(context.headers())?;
    let now = context.service.container_now(context.request.account, &row.name).map_err(from_container)?;
    row.lease.check_read(lease.as_deref(), now).map_err(|error| from_container(error.into()))?;
    let mut reply = Reply::xml(StatusCode::OK, policies::write(&row.policies));
    put_version(&mut reply, row.etag, row.modified_at);
    if let Some(access) = public_access_text(row.public_access) {
        put(&mut reply, "x-ms-blob-public-access", access);
    }
    Ok(reply)
}

pub(crate) async fn write_policies<B: RequestBody>(
    context: &BlobRequest<'_>,
    body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    let (account, name) = (context.request.account, context.container_name()?);
    let whole = body.read_up_to(POLICIES_SIZE_BYTES_MAX).await?;
    let policies = policies::read(&whole.bytes, super::BlobApi::POLICY_PERMISSIONS)?;
    let access = public_access(context)?;
    let conditions = container_conditions(context)?;
    let set = context.service.set_container_policies(account, name, policies, access, conditions).await;
    Ok(version(StatusCode::OK, &set.map_err(from_container)?))
}

pub(crate) async fn delete(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let (account, name) = (context.request.account, context.container_name()?);
    let conditions = container_conditions(context)?;
    if conditions.if_none_match.is_some() {
        let value = text(context.headers(), "if-none-match").unwrap_or_default();
        return Err(invalid("If-None-Match", value));
    }
    context.service.delete_container(account, name, conditions).await.map_err(from_container)?;
    Ok(Reply::new(StatusCode::ACCEPTED))
}
