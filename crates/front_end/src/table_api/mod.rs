//! The Table service over HTTP: from a request to a response, without sockets.
//!
//! The steps of every request: bound it, find the account, authenticate, find the operation, authorise, read the body,
//! execute, answer. One file for each family of operations. What always holds: no body is read before the request is
//! authenticated, every step is inside the request's time limit, and every failure is one row of the error table.

mod batch_api;
mod cors;
mod entity_read;
mod entity_write;
mod errors;
mod policies;
mod request;
mod response;
mod route;
mod service_settings;
mod statistics;
mod tables;

use crate::accounts::{Account, Accounts};
use crate::addressing::{Address, AddressStyle};
use crate::auth::bearer::{self, BearerAuthority, BearerRequest, verify_bearer};
use crate::auth::grant::Grant;
use crate::auth::{
    Credentials, SasRequest, SharedKeyRequest, addressed_account, credentials, verify_sas, verify_shared_key,
};
use crate::compression::compress;
pub(crate) use crate::entity_path::TableResource;
use crate::error::ApiError;
use crate::error_code::ErrorCode;
use crate::in_flight::InFlight;
use crate::limits::{Limits, SMALL_BODY_SIZE_BYTES_MAX};
use crate::negotiation::{MetadataLevel, metadata_level};
use crate::query_string::QueryParameters;
use crate::reply::Reply;
use crate::request_id::RequestId;
use base::{Clock, Random, Ticks};
use bytes::Bytes;
use cors::CorsRules;
use entity_write::{Preference, WriteHeaders};
use futures_util::future::{Either, select};
use http_body_util::Full;
use hyper::body::Body;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, IF_NONE_MATCH, WWW_AUTHENTICATE};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use response::{DateHeader, ErrorShape, VersionLog};
use route::{Route, Verb};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use table::{TableError, TableService};
use tokio::sync::Semaphore;

/// The service's label in host names.
pub(crate) const SERVICE_LABEL: &str = "table";

/// What is known of the connection that a request came on.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionInfo {
    /// The client's address.
    pub peer: Option<IpAddr>,
    /// Whether the connection is encrypted.
    pub encrypted: bool,
}

/// The Table service's HTTP side.
pub(crate) struct TableApi {
    accounts: Accounts,
    bearer: Option<Arc<dyn BearerAuthority>>,
    limits: Limits,
    service: Arc<TableService>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    requests: InFlight,
    /// Permits are KiB.
    large_bodies: Semaphore,
    cors: CorsRules,
    versions: VersionLog,
    date: DateHeader,
}

/// What the operations of one request need.
#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    /// The Table service.
    pub(crate) service: &'a TableService,
    /// For boundaries of batch replies.
    pub(crate) random: &'a dyn Random,
    /// The account.
    pub(crate) account: &'a str,
    /// The `Host` header.
    pub(crate) host: &'a str,
    /// Scheme, host and, in path style, the account.
    pub(crate) base: &'a str,
    /// What the request may do.
    pub(crate) grant: &'a Grant,
    /// The request's id.
    pub(crate) request_id: &'a str,
    /// When the request came.
    pub(crate) now: Ticks,
    /// Whether the client asks what its query costs.
    pub(crate) statistics: bool,
}

impl TableApi {
    /// Over this service.
    pub(crate) fn new(
        accounts: Accounts,
        bearer: Option<Arc<dyn BearerAuthority>>,
        limits: Limits,
        service: Arc<TableService>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Self {
        // There is always room for one body of the largest size, or it would wait for ever.
        let bodies_size = limits.bodies_size_bytes_max.max(limits.body_size_bytes_max);
        TableApi {
            requests: InFlight::new(limits.requests_in_flight_max),
            large_bodies: Semaphore::new(bodies_size.div_ceil(1024)),
            accounts,
            bearer,
            limits,
            service,
            clock,
            random,
            cors: CorsRules::default(),
            versions: VersionLog::default(),
            date: DateHeader::default(),
        }
    }

    /// Answers one request.
    pub(crate) async fn handle<B>(
        &self,
        connection: ConnectionInfo,
        request: Request<B>,
    ) -> Response<Full<Bytes>>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let now = self.clock.now();
        let request_id = RequestId::new(&*self.random);
        // Known once the operation is; until then the headers are asked, if there is an error to tell.
        let mut shape = None;
        let result = match self.requests.admit() {
            None => Err(ErrorCode::ServerBusy.into()),
            Some(_permit) => {
                let work = pin!(self.answer(connection, &parts, body, request_id.as_str(), now, &mut shape));
                let time_is_up = self.clock.sleep(request::time_limit(&parts, self.limits.request_for_max));
                match select(work, time_is_up).await {
                    Either::Left((result, _)) => result,
                    Either::Right(_) => Err(ErrorCode::OperationTimedOut.into()),
                }
            }
        };
        let reply = result.unwrap_or_else(|error| {
            tracing::debug!(
                request_id = request_id.as_str(),
                code = error.code.as_str(),
                detail = error.detail(),
                "{} {} failed",
                parts.method,
                parts.uri.path(),
            );
            let shape = shape.unwrap_or_else(|| ErrorShape::guess(&parts.headers));
            shape.reply(&error, request_id.as_str(), now)
        });
        let reply = compress(reply, &parts.headers);
        let mut response = response::finish(reply, &parts.headers, &request_id, self.date.at(now));
        if response.status() == StatusCode::UNAUTHORIZED && self.bearer.is_some() {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(bearer::CHALLENGE));
        }
        self.add_cors(&parts, response.headers_mut()).await;
        response
    }

    async fn answer<B>(
        &self,
        connection: ConnectionInfo,
        parts: &Parts,
        body: B,
        request_id: &str,
        now: Ticks,
        shape: &mut Option<ErrorShape>,
    ) -> Result<Reply, ApiError>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let host = request::host(parts).ok_or_else(|| ApiError::new(ErrorCode::HostInformationNotPresent))?;
        self.versions.check(&parts.headers)?;
        let address = Address::parse(host, parts.uri.path(), SERVICE_LABEL);
        let query =
            QueryParameters::parse(parts.uri.query()).map_err(|_| ApiError::new(ErrorCode::InvalidUri))?;
        if parts.method == Method::OPTIONS {
            let account = addressed_account(&self.accounts, &address)
                .map_err(|_| ApiError::new(ErrorCode::CorsPreflightFailure))?;
            let rules = self.cors.of(account.name(), &self.service, &*self.clock).await;
            return cors::preflight(&rules, &parts.headers);
        }
        let found = credentials(&parts.headers, &query)?;
        let account = addressed_account(&self.accounts, &address)?;
        let signed = SharedKeyRequest {
            address: &address,
            method: parts.method.as_str(),
            query: &query,
            headers: &parts.headers,
        };
        let grant = self.authenticate(connection, &signed, account, found, now).await?;

        let verb = Verb::of_request(&parts.method, &parts.headers)?;
        let resource = TableResource::parse(without_doubled_account(&address, &query))?;
        let route = Route::find(verb, resource, &query)?;
        if route.is_xml() {
            *shape = Some(ErrorShape::Xml);
        }
        let conditional = parts.headers.contains_key(hyper::header::IF_MATCH);
        grant.check(route.need(conditional), route.table())?;
        if address.secondary && !route.is_read() {
            return Err(ErrorCode::InsufficientAccountPermissions.into());
        }
        // A batch's form is that of its parts, and settings are XML.
        let level = if route.is_xml() || route == Route::Batch {
            MetadataLevel::Minimal
        } else {
            metadata_level(&parts.headers, query.find("$format"))?
        };
        shape.get_or_insert(ErrorShape::Json(level));

        let (body, _room) =
            if route.has_body() { self.read_body(parts, body).await? } else { (Bytes::new(), None) };
        let base = base_address(connection, host, &address);
        let context = RequestContext {
            service: &self.service,
            random: &*self.random,
            account: account.name(),
            host,
            base: &base,
            grant: &grant,
            request_id,
            now,
            statistics: statistics::are_asked_for(&parts.headers),
        };
        self.execute(&context, route, &parts.headers, &query, level, body).await
    }

    async fn authenticate(
        &self,
        connection: ConnectionInfo,
        signed: &SharedKeyRequest<'_>,
        account: &Account,
        credentials: Credentials<'_>,
        now: Ticks,
    ) -> Result<Grant, ApiError> {
        match credentials {
            Credentials::SharedKey { scheme, account: claimed_account, signature } => {
                verify_shared_key(account, signed, scheme, claimed_account, signature, now)?;
                Ok(Grant::Everything)
            }
            Credentials::Bearer(token) => {
                let request = BearerRequest { account: account.name(), service: SERVICE_LABEL, now };
                let version = signed.headers.get("x-ms-version").map(|version| version.as_bytes());
                verify_bearer(self.bearer.as_deref(), token, connection.encrypted, version, &request)
            }
            Credentials::Sas(token) => {
                let request =
                    SasRequest { token, peer: connection.peer, encrypted: connection.encrypted, now };
                let policies = match request.policy_id() {
                    None => Vec::new(),
                    Some((table, _)) => match self.service.table_policies(account.name(), table).await {
                        Ok(policies) => policies,
                        Err(error @ TableError::Partition(_)) => return Err(errors::from_table(error)),
                        // No table, no policy: the verification says so, once it has seen the signature.
                        Err(_) => Vec::new(),
                    },
                };
                verify_sas(account, &request, &policies)
            }
        }
    }

    /// Reads a request's body, after making room for it if it is large.
    async fn read_body<B>(
        &self,
        parts: &Parts,
        body: B,
    ) -> Result<(Bytes, Option<tokio::sync::SemaphorePermit<'_>>), ApiError>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let size_max = self.limits.body_size_bytes_max;
        let announced = request::announced_body_size(parts, &body);
        if announced.is_some_and(|size| size > size_max as u64) {
            return Err(ErrorCode::RequestBodyTooLarge.into());
        }
        let size = announced.map_or(size_max, |size| size as usize);
        let room = if size > SMALL_BODY_SIZE_BYTES_MAX {
            let permits = u32::try_from(size.div_ceil(1024)).unwrap_or(u32::MAX);
            let room = self.large_bodies.acquire_many(permits).await;
            Some(room.map_err(|_| ApiError::new(ErrorCode::ServerBusy))?)
        } else {
            None
        };
        Ok((request::collect_body(body, size_max).await?, room))
    }

    async fn execute(
        &self,
        context: &RequestContext<'_>,
        route: Route,
        headers: &HeaderMap,
        query: &QueryParameters<'_>,
        level: MetadataLevel,
        body: Bytes,
    ) -> Result<Reply, ApiError> {
        match route {
            Route::ReadEntity(address) => entity_read::read_entity(context, address, query, level).await,
            Route::QueryEntities(table) => entity_read::query_entities(context, table, query, level).await,
            Route::InsertEntity(_)
            | Route::ReplaceEntity(_)
            | Route::MergeEntity(_)
            | Route::DeleteEntity(_) => {
                let write = write_headers(headers, level)?;
                entity_write::write_entity(context, route, &write, body).await
            }
            Route::Batch => {
                let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
                batch_api::execute_batch(context, content_type, body).await
            }
            Route::ListTables => tables::list_tables(context, query, level).await,
            Route::ReadTable(name) => tables::read_table(context, &name, level).await,
            Route::CreateTable => tables::create_table(context, body, preference(headers), level).await,
            Route::DeleteTable(name) => tables::delete_table(context, &name).await,
            Route::ReadPolicies(table) => policies::read_policies(context, &table).await,
            Route::WritePolicies(table) => policies::write_policies(context, &table, &body).await,
            Route::ReadServiceProperties => service_settings::read_properties(context).await,
            Route::WriteServiceProperties => {
                let result = service_settings::write_properties(context, &body).await;
                self.cors.forget(context.account);
                result
            }
            Route::ReadServiceStats => Ok(service_settings::read_stats(context.now)),
        }
    }

    async fn add_cors(&self, parts: &Parts, response: &mut HeaderMap) {
        if parts.method == Method::OPTIONS {
            return;
        }
        let Some(host) = request::host(parts) else {
            return;
        };
        let address = Address::parse(host, parts.uri.path(), SERVICE_LABEL);
        let crosses = parts.headers.contains_key(hyper::header::ORIGIN);
        if !crosses && parts.method != Method::GET {
            return;
        }
        if let Some(account) = self.accounts.find(address.account) {
            let rules = self.cors.of(account.name(), &self.service, &*self.clock).await;
            cors::add_headers(&rules, parts.method.as_str(), &parts.headers, response);
        }
    }
}

/// One client asks the secondary for the service as `/ACCOUNT-secondary/ACCOUNT?restype=service`.
fn without_doubled_account<'a>(address: &Address<'a>, query: &QueryParameters<'_>) -> &'a str {
    let is_doubled = address.secondary
        && address.resource.strip_prefix('/') == Some(address.account)
        && query.find("restype").is_some();
    if is_doubled { "" } else { address.resource }
}

fn base_address(connection: ConnectionInfo, host: &str, address: &Address<'_>) -> String {
    let scheme = if connection.encrypted { "https://" } else { "http://" };
    let mut base = String::with_capacity(scheme.len() + host.len() + address.account.len() + 1);
    base.push_str(scheme);
    base.push_str(host);
    if address.style == AddressStyle::Path {
        base.push('/');
        base.push_str(address.account);
    }
    base
}

fn preference(headers: &HeaderMap) -> Option<Preference> {
    headers.get("prefer").and_then(|value| value.to_str().ok()).and_then(Preference::parse)
}

fn write_headers(headers: &HeaderMap, level: MetadataLevel) -> Result<WriteHeaders<'_>, ApiError> {
    let if_match = match headers.get(hyper::header::IF_MATCH) {
        None => None,
        Some(value) => Some(value.to_str().map_err(|_| ApiError::new(ErrorCode::InvalidInput))?),
    };
    Ok(WriteHeaders {
        if_match,
        has_if_none_match: headers.contains_key(IF_NONE_MATCH),
        preference: preference(headers),
        level,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_addresses_of_both_styles() {
        let base = |encrypted, host: &str, path: &str| {
            let connection = ConnectionInfo { peer: None, encrypted };
            base_address(connection, host, &Address::parse(host, path, SERVICE_LABEL))
        };
        assert_eq!(base(false, "127.0.0.1:1", "/acct/T"), "http://127.0.0.1:1/acct");
        assert_eq!(base(true, "acct.table.example.org", "/T"), "https://acct.table.example.org");
    }

    #[test]
    fn the_error_shape_follows_the_client() {
        let mut headers = HeaderMap::new();
        assert!(matches!(ErrorShape::guess(&headers), ErrorShape::Json(MetadataLevel::Minimal)));
        headers.insert(hyper::header::ACCEPT, hyper::header::HeaderValue::from_static("application/xml"));
        assert!(matches!(ErrorShape::guess(&headers), ErrorShape::Xml));
    }
}
