//! The Blob service over HTTP: what it does with a request that has gone through the pipeline's first steps.
//!
//! One file for each family of operations. What always holds: no body is used before the request is
//! authorised, bodies and blobs are streamed in constant memory, and bytes that fail their check are never
//! visible.

mod admit;
mod batch;
mod blob_request;
mod blob_write;
mod containers;
mod content;
mod copy;
mod errors;
mod headers;
mod leases;
mod lists;
mod need;
mod route;
mod service_settings;
mod tags;
mod target;

use crate::auth::SignedResource;
use crate::auth::grant::Grant;
use crate::auth::sas::{SasService, SasToken};
use crate::auth::shared_key::SignedService;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::pipeline::{ApiRequest, IncomingBody, RequestBody, ServiceApi, requested_time_limit};
use crate::reply::Reply;
use crate::reply::error_shape::ErrorShape;
use crate::request::addressing::Address;
use crate::request::query_string::QueryParameters;
use crate::shared_operations::user_delegation_key::{
    KEY_INFO_SIZE_BYTES_MAX, find_principal, issue_user_delegation_key,
};
use crate::shared_operations::{policies, service_settings as shared_settings};
use blob::{BlobService, PublicAccess};
use blob_request::BlobRequest;
use content::{blob_read, structured, uploads};
use headers::{Headers, reply_headers, request_headers};
use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use route::Route;
use service::{ServiceProperties, ServicePropertiesUpdate, StoredPolicy};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use target::Target;

/// The protocol allows ten minutes for each MiB that is written.
const WRITE_FOR_MAX_PER_MIB: Duration = Duration::from_secs(600);

/// How long a batch has to tell that its time is over.
const BATCH_ENDS_FOR_MAX: Duration = Duration::from_secs(5);

/// The Blob service's HTTP side.
pub(crate) struct BlobApi {
    service: Arc<BlobService>,
    takes_customer_keys: bool,
}

impl BlobApi {
    /// Over this service. Customers' keys and encryption scopes encrypt nothing here: unless they are taken
    /// all the same, requests that name some are refused.
    pub(crate) fn new(service: Arc<BlobService>, takes_customer_keys: bool) -> Self {
        BlobApi { service, takes_customer_keys }
    }
}

impl ServiceApi for BlobApi {
    const LABEL: &'static str = "blob";
    const CONNECTION_NAME: &'static str = "blob connection";
    const SIGNED: SignedService = SignedService::BlobOrQueue;
    const SERVER: &'static str = concat!("Larimar-Blob/", env!("CARGO_PKG_VERSION"));
    const DEFAULT_VERSION: &'static str = "2024-08-04";
    const POLICY_PERMISSIONS: &'static str = "racwdxyltmefiop";
    const COMPRESSES: bool = false;
    const KEEPS_METADATA: bool = true;
    const TAKES_ANONYMOUS: bool = true;

    fn time_limit(parts: &Parts, longest: Duration) -> Duration {
        if parts.method == Method::POST && parts.uri.query().is_some_and(|query| query.contains("comp=batch"))
        {
            // It ends by itself, with an answer for each of its parts.
            return batch::time_limit(parts) + BATCH_ENDS_FOR_MAX;
        }
        // Copies and block lists take their time in the server.
        if parts.method != Method::PUT {
            return requested_time_limit(parts, longest);
        }
        let length = parts.headers.get(hyper::header::CONTENT_LENGTH);
        let length: Option<u64> = length.and_then(|value| value.to_str().ok()?.parse().ok());
        let mib = u32::try_from(length.unwrap_or(0) >> 20).unwrap_or(u32::MAX);
        requested_time_limit(parts, WRITE_FOR_MAX_PER_MIB.saturating_mul(mib.max(1)).max(longest))
    }

    fn put_headers(_headers: &mut HeaderMap) {}

    fn guess_shape(_headers: &HeaderMap) -> ErrorShape {
        ErrorShape::Xml
    }

    fn signed_resource<'a>(address: &Address<'a>, query: &'a QueryParameters<'_>) -> SignedResource<'a> {
        let target = Target::parse(address.resource, query).unwrap_or(Target::Account);
        let container = target.container().unwrap_or_default().to_owned();
        let name = match (&target, query.find("sr")) {
            (Target::Blob { .. }, Some("c")) => container.clone(),
            (Target::Blob { blob, .. }, Some("d")) => {
                let depth = query.find("sdd").and_then(|depth| depth.parse().ok()).unwrap_or(0);
                let folder: Vec<&str> = blob.as_str().split('/').take(depth).collect();
                format!("{container}/{}", folder.join("/"))
            }
            (Target::Blob { blob, .. }, _) => format!("{container}/{}", blob.as_str()),
            _ => container.clone(),
        };
        let snapshot = match query.find("sr") {
            Some("bs") => query.find("snapshot"),
            Some("bv") => query.find("versionid"),
            _ => None,
        };
        SignedResource {
            service: SasService::Blob,
            name: Cow::Owned(name),
            container: Cow::Owned(container),
            snapshot: snapshot.unwrap_or_default(),
        }
    }

    async fn answer<B: RequestBody>(
        &self,
        request: &ApiRequest<'_>,
        body: IncomingBody<'_, B>,
        shape: &mut Option<ErrorShape>,
    ) -> Result<Reply, ApiError> {
        *shape = Some(ErrorShape::Xml);
        let target = Target::parse(request.resource(), request.query)?;
        let parts = request.parts;
        let headers = Headers::of_request(parts);
        let route = Route::find(&parts.method, &target, request.query, headers)?;
        request.environment.operation.note(route.name());
        let context = BlobRequest { service: &self.service, request, route, target: &target, headers };
        if matches!(target, Target::Blob { .. }) && !route.takes_snapshot() {
            // A signature for a snapshot or version must not reach what is not one.
            context.refuse_snapshot()?;
        }
        self.authorise(&context, route).await?;
        request.check_secondary(route.is_read())?;
        // An operation that is not served is refused as such, whatever headers it has.
        if route != Route::NotServed {
            refuse_what_is_not_kept(headers, route, self.takes_customer_keys)?;
            if !self.takes_customer_keys && !route.is_read() && context.signed_scope().is_some() {
                let scope = context.signed_scope().unwrap_or_default();
                return Err(ApiError::invalid_parameter(
                    "ses",
                    scope,
                    "Encryption scopes are not supported.",
                ));
            }
        }
        if let Some(simulated) = request.environment.simulated {
            Box::pin(admit::admit_route(simulated, &context)).await?;
        }
        let mut reply = self.execute(&context, route, body).await?;
        if !context.is_head() && reply.status == StatusCode::NOT_MODIFIED {
            reply.body.clear();
        }
        override_headers(&mut reply, request, route);
        Ok(reply)
    }

    async fn policies(&self, account: &str, container: &str) -> Result<Vec<StoredPolicy>, ApiError> {
        let container = self.service.container(account, container).await;
        container.map(|container| container.policies.clone()).map_err(errors::from_container)
    }

    async fn set_policies(
        &self,
        account: &str,
        container: &str,
        policies: Vec<StoredPolicy>,
    ) -> Result<(), ApiError> {
        let conditions = blob::Conditions::default();
        let set =
            self.service.set_container_policies(account, container, policies, PublicAccess::None, conditions);
        set.await.map(|_| ()).map_err(errors::from_container)
    }

    fn missing_space_bytes(&self) -> u64 {
        self.service.missing_space_bytes()
    }

    async fn properties(&self, account: &str) -> Result<ServiceProperties, ApiError> {
        self.service.service_properties(account).await.map_err(errors::from_blob)
    }

    async fn set_properties(&self, account: &str, update: ServicePropertiesUpdate) -> Result<(), ApiError> {
        let own = blob::BlobSettingsUpdate::default();
        self.service.set_settings(account, update, own).await.map_err(errors::from_blob)
    }
}

impl BlobApi {
    /// Whether the credentials, or a public container, allow the operation, and whether they allow its
    /// conditions: a request that may not read tags must not learn them by conditions.
    async fn authorise(&self, context: &BlobRequest<'_>, route: Route) -> Result<(), ApiError> {
        self.authorise_operation(context, route).await?;
        let grant = context.request.grant;
        let is_anonymous = *grant == Grant::Anonymous;
        let lists_hidden = is_anonymous && route == Route::ListBlobs && lists::includes_hidden(context);
        let lacks_tags = needs_tags(context, route) && !grant.holds('t');
        match is_anonymous {
            _ if !lacks_tags && !lists_hidden => Ok(()),
            true => Err(ErrorCode::NoAuthenticationInformation.into()),
            false => Err(ErrorCode::AuthorizationPermissionMismatch.into()),
        }
    }

    async fn authorise_operation(&self, context: &BlobRequest<'_>, route: Route) -> Result<(), ApiError> {
        let grant = context.request.grant;
        let need = match route.need() {
            need::BlobNeed::DeleteBlob if context.query("versionid").is_some() => {
                need::BlobNeed::DeleteVersion
            }
            need::BlobNeed::WriteBlob if route.makes_of_blocks() && context.is_delegated() => {
                need::BlobNeed::CreateBlob
            }
            need => need,
        };
        if route == Route::UserDelegationKey {
            find_principal(context.request)?;
        }
        let Err(refused) = grant.check(need, None) else {
            let sets_tags = context.headers().contains_key("x-ms-tags");
            if sets_tags && !grant.holds('t') && route.need() != need::BlobNeed::Tags {
                return Err(ErrorCode::AuthorizationPermissionMismatch.into());
            }
            // The right to delete breaks leases, and does nothing else with them.
            let leases = matches!(route.need(), need::BlobNeed::LeaseBlob | need::BlobNeed::LeaseContainer);
            let action = context.headers().get("x-ms-lease-action");
            let breaks = action.is_some_and(|action| action.as_bytes().eq_ignore_ascii_case(b"break"));
            if leases && !breaks && !grant.holds('w') {
                return Err(ErrorCode::AuthorizationPermissionMismatch.into());
            }
            let is_policies = matches!(route, Route::ReadPolicies | Route::WritePolicies);
            if is_policies && !policies::are_open_to(context.request) {
                return Err(ErrorCode::ResourceNotFound.into());
            }
            return Ok(());
        };
        if *grant != Grant::Anonymous {
            return Err(refused);
        }
        let (of_blob, of_container) = route.is_public();
        if !of_container {
            return Err(refused);
        }
        // No client learns from here whether a private container exists. Clients of versions with tokens are
        // asked for one.
        let version = request_headers::text(context.headers(), "x-ms-version");
        let hidden = match version >= Some(CHALLENGES_SINCE) {
            true => ErrorCode::NoAuthenticationInformation,
            false => ErrorCode::ResourceNotFound,
        };
        match context.container().await {
            Ok(container) => match container.public_access {
                PublicAccess::Container => Ok(()),
                PublicAccess::Blob if of_blob => Ok(()),
                _ => Err(hidden.into()),
            },
            Err(error) if error.code == ErrorCode::ContainerNotFound => Err(hidden.into()),
            Err(error) => Err(error),
        }
    }

    async fn execute<B: RequestBody>(
        &self,
        context: &BlobRequest<'_>,
        route: Route,
        body: IncomingBody<'_, B>,
    ) -> Result<Reply, ApiError> {
        // Every request's future is as large as the largest of these: those that are large and not the most
        // frequent are boxed.
        match route {
            Route::ReadServiceProperties => service_settings::read_properties(context).await,
            Route::WriteServiceProperties => {
                Box::pin(service_settings::write_properties(context, body)).await
            }
            Route::ReadServiceStats => shared_settings::read_stats(context.request),
            Route::AccountInformation => Ok(service_settings::account_information()),
            Route::ListContainers => Box::pin(lists::list_containers(context)).await,
            Route::FindBlobs => Box::pin(tags::find_blobs(context)).await,
            Route::Batch => Box::pin(batch::run(self, context, body)).await,
            Route::CreateContainer => containers::create(context).await,
            Route::ReadContainer => containers::read(context).await,
            Route::SetContainerMetadata => containers::set_metadata(context).await,
            Route::ReadPolicies => containers::read_policies(context).await,
            Route::WritePolicies => Box::pin(containers::write_policies(context, body)).await,
            Route::LeaseContainer => leases::lease_container(context).await,
            Route::DeleteContainer => containers::delete(context).await,
            Route::ListBlobs => Box::pin(lists::list_blobs(context)).await,
            Route::ReadBlob => blob_read::read(context).await,
            Route::ReadBlobMetadata => blob_read::read_metadata(context).await,
            Route::ReadBlockList => Box::pin(blob_read::read_block_list(context)).await,
            Route::ReadPageRanges => Box::pin(blob_read::read_page_ranges(context)).await,
            Route::PutBlob => uploads::put_blob(context, body).await,
            Route::PutBlock => uploads::put_block(context, body).await,
            Route::PutBlockList => uploads::put_block_list(context, body).await,
            Route::AppendBlock => uploads::append_block(context, body).await,
            Route::PutPages => uploads::put_pages(context, body).await,
            Route::PutBlobFromUrl => Box::pin(copy::put_blob_from_url(context, body)).await,
            Route::PutBlockFromUrl => Box::pin(copy::put_block_from_url(context, body)).await,
            Route::AppendBlockFromUrl => Box::pin(copy::append_block_from_url(context, body)).await,
            Route::PutPagesFromUrl => Box::pin(copy::put_pages_from_url(context, body)).await,
            Route::CopyBlob => Box::pin(copy::copy_blob(context, body)).await,
            Route::AbortCopy => Box::pin(copy::abort_copy(context)).await,
            Route::SealBlob => blob_write::seal(context).await,
            Route::SetBlobProperties => blob_write::set_properties(context).await,
            Route::SetBlobMetadata => blob_write::set_metadata(context).await,
            Route::ReadTags => tags::read_tags(context).await,
            Route::WriteTags => tags::write_tags(context, body).await,
            Route::SetTier => blob_write::set_tier(context).await,
            Route::LeaseBlob => leases::lease_blob(context).await,
            Route::SnapshotBlob => blob_write::snapshot(context).await,
            Route::DeleteBlob => blob_write::delete(context).await,
            Route::UndeleteBlob => blob_write::undelete(context).await,
            Route::UserDelegationKey => {
                let body = body.read_up_to(KEY_INFO_SIZE_BYTES_MAX).await?;
                issue_user_delegation_key(context.request, SasService::Blob, &body.bytes)
            }
            Route::NotServed => Err(ErrorCode::NotImplemented.into()),
        }
    }
}

/// From this `x-ms-version` on, a read of what is not public is refused because credentials are missing
/// (tests of the Go client), before it that there is no such thing (tests of the PHP client).
const CHALLENGES_SINCE: &str = "2019-12-12";

/// Whether the answer, or whether there is one, depends on tags.
fn needs_tags(context: &BlobRequest<'_>, route: Route) -> bool {
    let lists = route == Route::ListBlobs && lists::includes(context, "tags");
    lists || request_headers::text(context.headers(), "x-ms-if-tags").is_some()
}

/// Headers that would promise something that is not kept.
fn refuse_what_is_not_kept(
    headers: Headers<'_>,
    route: Route,
    takes_customer_keys: bool,
) -> Result<(), ApiError> {
    let takes_structured = matches!(
        route,
        Route::PutBlob | Route::PutBlock | Route::AppendBlock | Route::PutPages | Route::ReadBlob
    );
    const CUSTOMER_KEYS: [&str; 3] =
        ["x-ms-encryption-key", "x-ms-encryption-scope", "x-ms-source-encryption-key"];
    const DEFAULT_SCOPE: &str = "x-ms-default-encryption-scope";
    let refused = ["x-ms-immutability-policy-until-date", "x-ms-legal-hold"]
        .into_iter()
        .chain((!takes_structured).then_some(structured::STRUCTURED_BODY))
        .chain(CUSTOMER_KEYS.into_iter().filter(|_| !takes_customer_keys));
    let mut refused = refused.filter(|name| headers.contains_key(name));
    let scope = headers.get(DEFAULT_SCOPE).filter(|scope| *scope != containers::ACCOUNT_SCOPE);
    match refused.next().or(scope.filter(|_| !takes_customer_keys).map(|_| DEFAULT_SCOPE)) {
        Some(name) => {
            let error = ApiError::new(ErrorCode::UnsupportedHeader);
            // Nothing of a key is returned.
            let is_key = name.ends_with("encryption-key");
            let value = request_headers::text(headers, name).filter(|_| !is_key).map(str::to_owned);
            let facts = [("HeaderName", Some(name.to_owned())), ("HeaderValue", value)];
            let facts = facts.into_iter().filter_map(|(name, value)| Some((name, value?)));
            Err(error.and_facts(facts.collect::<Vec<_>>()))
        }
        None => Ok(()),
    }
}

/// A signature for a blob or its container may say how the blob's content is described. One for the account
/// signs nothing of the kind.
fn override_headers(reply: &mut Reply, request: &ApiRequest<'_>, route: Route) {
    let is_of_service = matches!(request.grant, Grant::Service { .. });
    let token = SasToken::find(request.query).filter(|_| is_of_service && route == Route::ReadBlob);
    if !token.is_some_and(|token| token.signs_response_headers()) {
        return;
    }
    let names = [
        ("rscc", "cache-control"),
        ("rscd", "content-disposition"),
        ("rsce", "content-encoding"),
        ("rscl", "content-language"),
        ("rsct", "content-type"),
    ];
    for (parameter, name) in names {
        if let Some(value) = request.query.find(parameter) {
            reply_headers::put(reply, name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    /// The requested `timeout` was ignored.
    #[test]
    fn time_limits() {
        let longest = Duration::from_secs(30);
        let table = [
            (Method::GET, "/box/a", 0, 30),
            (Method::GET, "/box/a?timeout=5", 0, 5),
            (Method::GET, "/box/a?timeout=50", 0, 30),
            (Method::POST, "/box?restype=container&comp=batch&timeout=7", 0, 12),
            (Method::POST, "/?comp=batch", 0, 125),
            (Method::PUT, "/box/a", 0, 600),
            (Method::PUT, "/box/a?timeout=5", 0, 5),
            (Method::PUT, "/box/a?timeout=900", 0, 600),
            (Method::PUT, "/box/a?timeout=900", 2 << 20, 900),
        ];
        for (method, uri, length, expected) in table {
            let request =
                Request::builder().method(&method).uri(uri).header("content-length", length).body(());
            let (parts, ()) = request.expect("a request").into_parts();
            let found = BlobApi::time_limit(&parts, longest);
            assert_eq!(found, Duration::from_secs(expected), "{method} {uri} {length}");
        }
    }
}
