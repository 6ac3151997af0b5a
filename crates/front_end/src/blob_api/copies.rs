//! Copies: of whole blobs, and of parts of a blob into blocks, appends and pages. The source is a blob of this server.
//!
//! What always holds: who may not read a source learns nothing of it, not even whether its container is there.

use super::errors::from_blob;
use super::headers::Headers;
use super::need::BlobNeed;
use super::parse_revision;
use super::reply_headers::{
    crc64_text, put, put_encryption, put_some, put_written, put_written_encrypted, without_signature,
};
use super::request_headers::{
    blob_properties, flag, has_foreign_etag, invalid, lease_id, metadata, parse_crc64, parse_range, required,
    source_conditions, text,
};
use super::target::Target;
use super::uploads::{append, block_id, compare_crc64, encrypt, new_blob, page_range, tier, write_pages};
use super::{BlobApi, BlobRequest};
use crate::accounts::Account;
use crate::addressing::{Address, AddressStyle};
use crate::auth::bearer::{BearerRequest, verify_bearer};
use crate::auth::delegation::BoundRequest;
use crate::auth::grant::Grant;
use crate::auth::sas::SasToken;
use crate::auth::{SasRequest, verify_sas};
use crate::content_md5::{compare_md5, parse_md5};
use crate::error::ApiError;
use crate::error_code::ErrorCode;
use crate::pipeline::{ApiRequest, IncomingBody, RequestBody, ServiceApi};
use crate::query_string::QueryParameters;
use crate::reply::Reply;
use crate::request_id::RequestId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blob::limits::{
    APPEND_SIZE_BYTES_MAX, BLOCK_SIZE_BYTES_MAX, PAGES_SIZE_BYTES_MAX, PUT_BLOB_SIZE_BYTES_MAX,
    SYNC_COPY_SIZE_BYTES_MAX,
};
use blob::{
    BlobAt, BlobError, BlobType, ContainerRow, Copied, CopySource, CopyState, ETags, FoundRecord, NewBlob,
    PublicAccess, Revision, Uploaded, etag_text,
};
use hyper::StatusCode;
use hyper::header::HeaderMap;
use md5::{Digest, Md5};

/// Which bytes of a source are taken.
const SOURCE_RANGE: &str = "x-ms-source-range";

/// Bytes of a source's address at most.
const SOURCE_URL_SIZE_BYTES_MAX: usize = 2048;

/// The MD5 of those bytes.
const SOURCE_MD5: &str = "x-ms-source-content-md5";

/// How a source may be reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SourceRule {
    /// The request's own account key will do.
    OwnAccount,
    /// As somebody else would, unless the request bears a token: then whoever bears it reads the source, too, if it is of
    /// the same account (recorded for the official Rust client).
    Bearer,
    /// As somebody else would: by its address, because it is public, or with the token in a header of its own.
    Foreign,
}

/// A source that was found.
struct Source {
    at: BlobAt,
    wanted: CopySource,
    url: String,
    /// Whether its tags may be read, too.
    may_read_tags: bool,
    /// Whether it is in another account than the copy.
    is_of_other: bool,
    /// Whether it is read because the request's own token is good for it.
    is_read_by_bearer: bool,
}

impl Source {
    /// Refuses tags that the request may not read, or not set.
    fn check_tags(&self, context: &BlobRequest<'_>) -> Result<(), ApiError> {
        match self.may_read_tags && context.request.grant.holds('t') {
            true => Ok(()),
            false => Err(ErrorCode::AuthorizationPermissionMismatch.into()),
        }
    }

    /// The error of a source that can't be read.
    fn refused(&self, error: BlobError) -> ApiError {
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
    fn unread(&self, error: BlobError) -> ApiError {
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

    /// The same for a blob that is put from a URL, whose client is told of the source's condition on an ETag itself.
    fn unput(&self, error: BlobError) -> ApiError {
        match error {
            BlobError::SourceConditionNotMet if self.wanted.conditions.if_match.is_some() => from_blob(error),
            other => self.unread(other),
        }
    }
}

/// The error of a source that is missing. Whoever bears a token for it as well is told so in as many words (recorded).
fn missing_source(error: &ApiError, is_read_by_bearer: bool) -> ApiError {
    let mut told = ApiError::of_source(error);
    if is_read_by_bearer {
        told.code = error.code;
    }
    told
}

/// The error of a blob that is put from a URL once its source is read: only of an `If-Match` that is no ETag of the service
/// is it said that it is the destination's (tests of the Java and Python clients, and of the Go client of others).
fn from_put_target(context: &BlobRequest<'_>, error: BlobError) -> ApiError {
    match error {
        BlobError::ConditionNotMet if has_foreign_etag(context.headers(), "if-match") => {
            ErrorCode::TargetConditionNotMet.into()
        }
        other => from_blob(other),
    }
}

/// What tells one server from another in a host: its name without the account, and its port. A source on another server
/// must not be mistaken for a blob of this one, which may have an account of the same name.
fn server(host: &str, style: AddressStyle) -> (String, &str) {
    let host = match style {
        AddressStyle::Host => host.split_once('.').map_or(host, |(_, rest)| rest),
        AddressStyle::Path => host,
    };
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (name, port) = host.rsplit_once(':').filter(|(_, port)| is_port(port)).unwrap_or((host, ""));
    // Of either scheme: what ends TLS in front of the server makes one of the other (source: RFC 9110 §4.2.3).
    let port = if matches!(port, "80" | "443") { "" } else { port };
    match name.to_ascii_lowercase().as_str() {
        "127.0.0.1" | "[::1]" => ("localhost".to_owned(), port),
        name => (name.to_owned(), port),
    }
}

/// What Azure's public hosts of blobs are called, without the account.
const PUBLIC_HOST: &str = "blob.core.windows.net";

/// Whether a host is this server, as the request was sent to it, or as Azure calls its own: clients that are told where
/// this server is still make addresses of sources for Azure (`az storage blob copy start --source-container`). There an
/// account of another owner may have the same name, but that one's blobs could not be read from here in any case.
fn is_here(request: &ApiRequest<'_>, host: &str, style: AddressStyle) -> bool {
    let here = request.address.style;
    let is_same = style == here && server(host, here) == server(request.host, here);
    is_same || style == AddressStyle::Host && server(host, style) == (PUBLIC_HOST.to_owned(), "")
}

/// The blob that `x-ms-copy-source` names.
async fn source(context: &BlobRequest<'_>, rule: SourceRule) -> Result<Source, ApiError> {
    let headers = context.headers();
    let url = required(headers, "x-ms-copy-source")?;
    let foreign = || ApiError::new(ErrorCode::CannotVerifyCopySource);
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    // A signature is not told again.
    let malformed = || invalid("x-ms-copy-source", &without_signature(url));
    let rest = rest.filter(|_| url.len() <= SOURCE_URL_SIZE_BYTES_MAX).ok_or_else(malformed)?;
    let (host, path) = rest.find('/').map(|at| rest.split_at(at)).ok_or_else(foreign)?;
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let host = host.to_ascii_lowercase();
    let host = host.as_str();
    let address = Address::parse(host, path, "blob");
    let owner = context.request.accounts.find(address.account);
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
    let Access { may_read_tags, by_bearer } = reach.authorise(context)?;
    if !may_read_tags && text(headers, "x-ms-source-if-tags").is_some() {
        return Err(ErrorCode::AuthorizationPermissionMismatch.into());
    }
    let found = found.ok_or_else(|| missing_source(&ErrorCode::ContainerNotFound.into(), by_bearer))?;
    let is_of_container = !matches!(query.find("sr"), Some("b" | "bs" | "bv" | "d"));
    let at = name.find(context.service, owner.name(), &found, is_of_container).await?;
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
    /// Refuses what may not be read, and tells whether tags may be: by a signature in its own address, because its
    /// container is public, by a token for it, or by what the request's credentials allow. A signature for one
    /// container or blob allows no other blob than the one it is used on.
    fn authorise(&self, context: &BlobRequest<'_>) -> Result<Access, ApiError> {
        let request = context.request;
        let access = |may_read_tags| Ok(Access { may_read_tags, by_bearer: false });
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
            return access(grant.holds('t'));
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
            verify_bearer(request.bearer, token, encrypted, version, &for_source).map_err(refused)?;
            return access(true);
        }
        if self.found.is_some_and(|found| found.public_access != PublicAccess::None) {
            return access(*request.grant == Grant::Everything && self.owner.name() == request.account);
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
            Grant::Everything => {
                Ok(Access { may_read_tags: true, by_bearer: self.rule == SourceRule::Bearer })
            }
            Grant::Service { .. } if !is_itself => {
                Err(refused(ErrorCode::AuthorizationPermissionMismatch.into()))
            }
            grant => {
                grant.check(BlobNeed::ReadBlob, None).map_err(refused)?;
                access(grant.holds('t'))
            }
        }
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
