//! The source of a copy: which blob an address names, and whether the request may read it.
//!
//! What always holds: a request that may not read a source learns nothing of it, not even whether its
//! container is there.

use crate::accounts::Account;
use crate::auth::bearer::{BearerRequest, verify_bearer};
use crate::auth::delegation::BoundRequest;
use crate::auth::grant::Grant;
use crate::auth::sas::SasToken;
use crate::auth::{SasRequest, verify_sas};
use crate::blob_api::BlobApi;
use crate::blob_api::blob_request::{BlobRequest, parse_revision};
use crate::blob_api::errors::from_blob;
use crate::blob_api::headers::reply_headers::without_signature;
use crate::blob_api::headers::request_headers::{invalid, required, source_conditions, text};
use crate::blob_api::need::BlobNeed;
use crate::blob_api::target::{FormerNameUse, Target};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::pipeline::{ApiRequest, ServiceApi};
use crate::request::addressing::{Address, AddressStyle};
use crate::request::query_string::QueryParameters;
use blob::{BlobAt, BlobError, ContainerRow, CopySource, PublicAccess};
use hyper::header::HeaderMap;

/// Bytes of a source's address at most.
const SOURCE_URL_SIZE_BYTES_MAX: usize = 2048;

/// How a source may be reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceRule {
    /// The request's own account key will do.
    OwnAccount,
    /// As any other client, unless the request bears a token: then its bearer reads the source, too, if it is
    /// of the same account (recorded for the official Rust client).
    Bearer,
    /// As any other client: by its address, because it is public, or with the token in a header of its own.
    Foreign,
}

/// A source that was found.
pub(crate) struct Source {
    pub(crate) at: BlobAt,
    pub(crate) wanted: CopySource,
    pub(crate) url: String,
    /// Whether its tags may be read, too.
    may_read_tags: bool,
    /// Whether it is in another account than the copy.
    pub(crate) is_of_other: bool,
    /// Whether it is read because the request's own token is good for it.
    is_read_by_bearer: bool,
}

impl Source {
    /// Refuses tags that the request may not read, or not set.
    pub(crate) fn check_tags(&self, context: &BlobRequest<'_>) -> Result<(), ApiError> {
        match self.may_read_tags && context.request.grant.holds('t') {
            true => Ok(()),
            false => Err(ErrorCode::AuthorizationPermissionMismatch.into()),
        }
    }

    /// The error of a source that can't be read.
    pub(crate) fn refused(&self, error: BlobError) -> ApiError {
        match error {
            BlobError::BlobNotFound => self.missing(&from_blob(error)),
            BlobError::BlobArchived | BlobError::BlobBeingRehydrated if self.is_of_other => {
                ApiError::of_source(&from_blob(error))
            }
            other => from_blob(other),
        }
    }

    /// The error of a source that is missing.
    fn missing(&self, error: &ApiError) -> ApiError {
        missing_source(error, self.is_read_by_bearer)
    }

    /// The same for an operation that reads it into a part of a blob.
    pub(crate) fn unread(&self, error: BlobError) -> ApiError {
        match error {
            BlobError::SourceConditionNotMet => ApiError::of_source(&ErrorCode::ConditionNotMet.into()),
            BlobError::SourceNotModified => ApiError::of_source(&ErrorCode::NotModified.into()),
            // What the source's own answer would have been.
            BlobError::EncryptionKeyMissing
            | BlobError::EncryptionKeyMismatch
            | BlobError::EncryptionKeyUnknown
            | BlobError::BlobArchived
            | BlobError::BlobBeingRehydrated
            | BlobError::InvalidRange { .. } => ApiError::of_source(&from_blob(error)),
            other => self.refused(other),
        }
    }

    /// The same for a blob that is put from a URL, whose error names the source's condition on an ETag
    /// itself.
    pub(crate) fn unput(&self, error: BlobError) -> ApiError {
        match error {
            BlobError::SourceConditionNotMet if self.wanted.conditions.if_match.is_some() => from_blob(error),
            other => self.unread(other),
        }
    }
}

/// The error of a source that is missing. A request that bears a token for it as well gets the error in full
/// (recorded).
fn missing_source(error: &ApiError, is_read_by_bearer: bool) -> ApiError {
    let mut answer = ApiError::of_source(error);
    if is_read_by_bearer {
        answer.code = error.code;
    }
    answer
}

/// What distinguishes servers in a host: its name without the account, and its port. A source on another
/// server must not be mistaken for a blob of this one, which may have an account of the same name.
fn server(host: &str, style: AddressStyle) -> (String, &str) {
    let host = match style {
        AddressStyle::Host => host.split_once('.').map_or(host, |(_, rest)| rest),
        AddressStyle::Path => host,
    };
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (name, port) = host.rsplit_once(':').filter(|(_, port)| is_port(port)).unwrap_or((host, ""));
    // Of either scheme: what ends TLS in front of the server makes one of the other (source: RFC 9110
    // §4.2.3).
    let port = if matches!(port, "80" | "443") { "" } else { port };
    match name.to_ascii_lowercase().as_str() {
        "127.0.0.1" | "[::1]" => ("localhost".to_owned(), port),
        name => (name.to_owned(), port),
    }
}

/// What Azure's public hosts of blobs are called, without the account.
const PUBLIC_HOST: &str = "blob.core.windows.net";

/// Whether a host is this server, as the request was sent to it, or as Azure calls its own: clients that are
/// configured with this server's address still make addresses of sources for Azure (`az storage blob copy
/// start --source-container`). There an account of another owner may have the same name, but that one's blobs
/// could not be read from here in any case.
fn is_here(request: &ApiRequest<'_>, host: &str, style: AddressStyle) -> bool {
    let here = request.address.style;
    let is_same = style == here && server(host, here) == server(request.host, here);
    is_same || style == AddressStyle::Host && server(host, style) == (PUBLIC_HOST.to_owned(), "")
}

/// The blob that `x-ms-copy-source` names.
pub(crate) async fn source(context: &BlobRequest<'_>, rule: SourceRule) -> Result<Source, ApiError> {
    let headers = context.headers();
    let url = required(headers, "x-ms-copy-source")?;
    let foreign = || ApiError::new(ErrorCode::CannotVerifyCopySource);
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    // A signature is not returned.
    let malformed = || invalid("x-ms-copy-source", &without_signature(url));
    let rest = rest.filter(|_| url.len() <= SOURCE_URL_SIZE_BYTES_MAX).ok_or_else(malformed)?;
    let (host, path) = rest.find('/').map(|at| rest.split_at(at)).ok_or_else(foreign)?;
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let host = host.to_ascii_lowercase();
    let host = host.as_str();
    let address = Address::parse(host, path, "blob");
    let owner = context.request.environment.accounts.find(address.account);
    let owner = owner.ok_or_else(|| {
        let accounts = [
            ("SourceAccountName", address.account.to_owned()),
            ("DestinationAccountName", context.request.account.to_owned()),
        ];
        ApiError::with_facts(ErrorCode::CopyAcrossAccountsNotSupported, accounts)
    })?;
    if !is_here(context.request, host, address.style) {
        return Err(ApiError::with_message(
            ErrorCode::CannotVerifyCopySource,
            format!(
                "The source is not on this server, which copies only what it holds: its host is {host:?}."
            ),
        ));
    }
    let query = QueryParameters::parse(query).map_err(|_| malformed())?;
    let Target::Blob { container, blob } = Target::parse(address.resource, &query)? else {
        return Err(malformed());
    };
    let revision =
        parse_revision(query.find("snapshot"), query.find("versionid")).map_err(|_| malformed())?;
    let found = match context.service.container(owner.name(), &container).await {
        Ok(found) => Some(found),
        Err(BlobError::ContainerNotFound) => None,
        Err(error) => return Err(from_blob(error)),
    };
    let name = blob;
    let (address, query, container, blob) = (&address, &query, container.as_str(), name.as_str());
    let reach = Reach { owner, rule, address, query, container, found: found.as_deref(), blob };
    let Access { may_read_tags, by_bearer, reaches_container } = reach.authorise(context)?;
    if !may_read_tags && text(headers, "x-ms-source-if-tags").is_some() {
        return Err(ErrorCode::AuthorizationPermissionMismatch.into());
    }
    let found = found.ok_or_else(|| missing_source(&ErrorCode::ContainerNotFound.into(), by_bearer))?;
    let former = if reaches_container { FormerNameUse::Served } else { FormerNameUse::Ignored };
    let at = name.find(context.service, owner.name(), &found, former).await?;
    let wanted = CopySource { revision, conditions: source_conditions(headers)?, may_be_archived: false };
    let is_of_other = owner.name() != context.request.account;
    Ok(Source { at, wanted, url: url.to_owned(), may_read_tags, is_of_other, is_read_by_bearer: by_bearer })
}

/// How a source may be read.
struct Access {
    /// Its tags, too.
    may_read_tags: bool,
    /// Only because the request's own token is good for it.
    by_bearer: bool,
    /// Whether what opens it is good for more than one blob or folder.
    reaches_container: bool,
}

/// Who reads a source, and from where.
struct Reach<'a> {
    owner: &'a Account,
    rule: SourceRule,
    address: &'a Address<'a>,
    query: &'a QueryParameters<'a>,
    container: &'a str,
    /// The container, if it is there.
    found: Option<&'a ContainerRow>,
    blob: &'a str,
}

impl Reach<'_> {
    /// Refuses what may not be read, and returns whether tags may be: by a signature in its own address,
    /// because its container is public, by a token for it, or by what the request's credentials allow. A
    /// signature for one container or blob allows no other blob than the one it is used on.
    fn authorise(&self, context: &BlobRequest<'_>) -> Result<Access, ApiError> {
        let request = context.request;
        let access = |may_read_tags, reaches_container| {
            Ok(Access { may_read_tags, by_bearer: false, reaches_container })
        };
        let refused = |error: ApiError| ApiError::of_source(&error);
        let policies = self.found.map_or(&[][..], |found| &found.policies);
        if let Some(token) = SasToken::find(self.query) {
            let signed = SasRequest {
                token,
                resource: BlobApi::signed_resource(self.address, self.query),
                // The server itself reads the source: there are no headers to bind.
                bound: BoundRequest { headers: &HeaderMap::new(), query: self.query },
                peer: request.connection.peer,
                encrypted: request.connection.encrypted,
                now: request.now,
            };
            let grant = verify_sas(self.owner, &signed, policies).map_err(refused)?;
            grant.check(BlobNeed::ReadBlob, None).map_err(refused)?;
            return access(grant.holds('t'), grant.reaches_container());
        }
        if let Some(value) = text(context.headers(), "x-ms-copy-source-authorization") {
            let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
            if !scheme.eq_ignore_ascii_case("Bearer") {
                return Err(refused(ErrorCode::InvalidAuthenticationInfo.into()));
            }
            let for_source =
                BearerRequest { account: self.owner.name(), service: BlobApi::LABEL, now: request.now };
            let version = context.headers().get("x-ms-version").map(|version| version.as_bytes());
            let (token, encrypted) = (token.trim(), request.connection.encrypted);
            verify_bearer(request.environment.bearer, token, encrypted, version, &for_source)
                .map_err(refused)?;
            return access(true, true);
        }
        if self.found.is_some_and(|found| found.public_access != PublicAccess::None) {
            let may_read_tags = *request.grant == Grant::Everything && self.owner.name() == request.account;
            return access(may_read_tags, true);
        }
        let bears_token = request.principal.is_some() && *request.grant == Grant::Everything;
        let may_read_own = match self.rule {
            SourceRule::OwnAccount => true,
            SourceRule::Bearer => bears_token,
            SourceRule::Foreign => false,
        };
        if self.owner.name() != request.account || !may_read_own {
            return Err(refused(ErrorCode::NoAuthenticationInformation.into()));
        }
        let is_itself = matches!(
            context.target,
            Target::Blob { container: own, blob: name }
                if own == self.container && name.as_str() == self.blob
        );
        match request.grant {
            Grant::Everything => Ok(Access {
                may_read_tags: true,
                by_bearer: self.rule == SourceRule::Bearer,
                reaches_container: true,
            }),
            Grant::Service { .. } if !is_itself => {
                Err(refused(ErrorCode::AuthorizationPermissionMismatch.into()))
            }
            grant => {
                grant.check(BlobNeed::ReadBlob, None).map_err(refused)?;
                access(grant.holds('t'), grant.reaches_container())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers() {
        use AddressStyle::{Host, Path};
        let table = [
            ("127.0.0.1:10000", "localhost:10000", Path, true),
            ("[::1]:10000", "LOCALHOST:10000", Path, true),
            ("127.0.0.1:10000", "127.0.0.1:20000", Path, false),
            ("127.0.0.1:10000", "elsewhere:10000", Path, false),
            ("[::1]", "[::1]", Path, true),
            ("127.0.0.1", "127.0.0.1:80", Path, true),
            ("one.blob.example.org:443", "one.blob.example.org", Host, true),
            ("127.0.0.1", "127.0.0.1:8080", Path, false),
            ("one.blob.example.org", "two.blob.example.org", Host, true),
            ("one.blob.example.org", "one.blob.example.com", Host, false),
        ];
        for (one, other, style, is_same) in table {
            assert_eq!(server(one, style) == server(other, style), is_same, "{one} {other}");
        }
    }
}
