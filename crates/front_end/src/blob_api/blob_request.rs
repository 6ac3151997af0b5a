//! What the operations of one request to the Blob service need: what the request names, and its conditions.
//!
//! What always holds: a signature for one blob reaches no other, and names the encryption scope of all
//! that is written with it.

use super::errors;
use super::headers::{Headers, reply_headers, request_headers};
use super::route::Route;
use super::target::{FormerNameUse, Target};
use crate::auth::grant::Grant;
use crate::auth::sas::SasToken;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::pipeline::ApiRequest;
use blob::{BlobAt, BlobService, ContainerRow, Revision};
use hyper::Method;
use service::DateTimeError;
use std::sync::Arc;

/// What the operations of one request need.
#[derive(Clone, Copy)]
pub(crate) struct BlobRequest<'a> {
    pub(crate) service: &'a BlobService,
    pub(crate) request: &'a ApiRequest<'a>,
    pub(crate) route: Route,
    pub(crate) target: &'a Target,
    pub(crate) headers: Headers<'a>,
}

impl<'a> BlobRequest<'a> {
    pub(crate) fn headers(&self) -> Headers<'a> {
        self.headers
    }

    pub(crate) fn query(&self, name: &str) -> Option<&'a str> {
        self.request.query.find(name).filter(|value| !value.is_empty())
    }

    pub(crate) fn is_head(&self) -> bool {
        self.request.parts.method == Method::HEAD
    }

    /// Whether it is a signature with a user delegation key that grants what the request may do.
    pub(crate) fn is_delegated(&self) -> bool {
        matches!(self.request.grant, Grant::Service { .. })
            && SasToken::find(self.request.query).is_some_and(|token| token.is_delegated())
    }

    /// Whether the credentials allow to create, not to overwrite.
    pub(crate) fn is_create_only(&self) -> bool {
        !self.request.grant.holds('w')
    }

    /// The container that the request names.
    pub(crate) fn container_name(&self) -> Result<&'a str, ApiError> {
        self.target.container().ok_or_else(|| ErrorCode::InvalidUri.into())
    }

    pub(crate) async fn container(&self) -> Result<Arc<ContainerRow>, ApiError> {
        let name = self.container_name()?;
        self.service.container(self.request.account, name).await.map_err(errors::from_container)
    }

    /// The blob that the request names, in its container.
    pub(crate) async fn blob(&self) -> Result<BlobAt, ApiError> {
        let Target::Blob { blob, .. } = self.target else { return Err(ErrorCode::InvalidUri.into()) };
        let container = self.container().await?;
        // Whoever has a signature for one blob, or for a folder, must reach no other.
        let former = match self.request.grant.reaches_container() {
            false => FormerNameUse::Ignored,
            true if self.route.serves_former_names() => FormerNameUse::Served,
            true => FormerNameUse::InTheWay,
        };
        blob.find(self.service, self.request.account, &container, former).await
    }

    /// The encryption scope that the request's signature names.
    pub(crate) fn signed_scope(&self) -> Option<&str> {
        self.query("sig").and_then(|_| self.query("ses"))
    }

    /// The encryption that the request, or its signature, names for what it writes.
    pub(crate) fn encryption(&self) -> Result<blob::Encryption, ApiError> {
        let mut encryption = request_headers::encryption(self.headers())?;
        if let Some(signed) = self.signed_scope() {
            match &encryption.scope {
                Some(scope) if scope != signed => return Err(ErrorCode::AuthorizationFailure.into()),
                _ => encryption.scope = Some(signed.to_owned()),
            }
        }
        Ok(encryption)
    }

    /// Conditions of a write to a blob, with what the container says of encryption.
    pub(crate) fn write_conditions(&self, at: &BlobAt) -> Result<blob::Conditions, ApiError> {
        let encryption = at.encryption.of_new_blob(self.encryption()?).map_err(errors::from_blob)?;
        Ok(blob::Conditions { encryption, ..request_headers::write_conditions(self.headers())? })
    }

    /// Which of the blobs of its name the request is about.
    pub(crate) fn revision(&self) -> Result<Revision, ApiError> {
        if let Some(snapshot) = self.query("snapshot")
            && request_headers::text(self.headers(), "x-ms-lease-id").is_some()
        {
            let reason = "Leases are not allowed with snapshots.";
            return Err(ApiError::invalid_parameter("snapshot", snapshot, reason));
        }
        parse_revision(self.query("snapshot"), self.query("versionid"))
    }

    /// Refuses what can't be done to a snapshot.
    pub(crate) fn refuse_snapshot(&self) -> Result<(), ApiError> {
        // As recorded of versions.
        for (name, reason) in [
            ("snapshot", "This operation is only allowed on the root blob. Snapshot should not be provided."),
            (
                "versionid",
                "This operation is only allowed on the root blob. Version id should not be provided.",
            ),
        ] {
            if let Some(value) = self.query(name) {
                return Err(ApiError::invalid_parameter(name, value, reason));
            }
        }
        Ok(())
    }
}

/// A snapshot or version in parameters.
pub(crate) fn parse_revision(snapshot: Option<&str>, version: Option<&str>) -> Result<Revision, ApiError> {
    Ok(match (parse_snapshot("snapshot", snapshot)?, parse_snapshot("versionid", version)?) {
        (None, None) => Revision::Current,
        (Some(snapshot), None) => Revision::Snapshot(snapshot),
        (None, Some(version)) => Revision::Version(version),
        (Some(_), Some(_)) => {
            let reason = "A request is about a snapshot or about a version.";
            return Err(ApiError::invalid_parameter("versionid", version.unwrap_or_default(), reason));
        }
    })
}

/// A snapshot's or version's time in the parameter `name`. One that is a time, but none that the service has,
/// is out of range (observed of the first year there is, which Go programs send for "none").
pub(crate) fn parse_snapshot(name: &str, text: Option<&str>) -> Result<Option<u64>, ApiError> {
    let malformed =
        |text: &str| ApiError::invalid_parameter(name, text, "It is not a time as the service tells it.");
    let parse = |text: &str| match service::parse_date_time(text) {
        // Only in the form in which it was returned (observed of one with a digit less).
        Ok(at) if reply_headers::snapshot_text(at.0) == text => Ok(at.0),
        Ok(_) | Err(DateTimeError::Malformed) => Err(malformed(text)),
        Err(DateTimeError::TooEarly | DateTimeError::TooLate) => Err(ErrorCode::OutOfRangeInput.into()),
    };
    text.map(parse).transpose()
}
