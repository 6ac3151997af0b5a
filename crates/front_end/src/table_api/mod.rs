//! The Table service over HTTP: what it does with a request once the pipeline has authenticated it.
//!
//! The steps: find the operation, authorise, choose the form of the answer, read the body, execute. One file
//! for each family of operations.

mod admit;
mod batch_api;
mod count;
mod entity_path;
mod entity_read;
mod entity_write;
mod errors;
mod extensions;
mod need;
mod page_snapshot;
mod request_context;
mod route;
mod statistics;
mod tables;

use crate::auth::SignedResource;
use crate::auth::sas::SasService;
use crate::auth::shared_key::SignedService;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::pipeline::{ApiRequest, IncomingBody, RequestBody, ServiceApi, WholeBody};
use crate::reply::Reply;
use crate::reply::error_shape::ErrorShape;
use crate::reply::negotiation::{MetadataLevel, metadata_level, prefers_xml};
use crate::request::addressing::Address;
use crate::request::query_string::QueryParameters;
use crate::shared_operations::{policies, service_settings};
pub(crate) use crate::table_api::entity_path::TableResource;
use bytes::Bytes;
use entity_write::{Preference, WriteHeaders};
use errors::from_table;
use extensions::Extensions;
use hyper::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, X_CONTENT_TYPE_OPTIONS,
};
use request_context::RequestContext;
use route::{Route, Verb};
use service::{ServiceProperties, ServicePropertiesUpdate, StoredPolicy};
use std::borrow::Cow;
use std::sync::Arc;
use table::TableService;

#[cfg(test)]
pub(crate) use need::TableNeed;

/// The Table service's HTTP side.
pub(crate) struct TableApi {
    service: Arc<TableService>,
}

/// How the content types of batches start.
const MULTIPART: &[u8] = b"multipart/";

impl ServiceApi for TableApi {
    const LABEL: &'static str = "table";
    const CONNECTION_NAME: &'static str = "table connection";
    const SIGNED: SignedService = SignedService::Table;
    const SERVER: &'static str = concat!("Larimar-Table/", env!("CARGO_PKG_VERSION"));
    // The one that all current table clients send.
    const DEFAULT_VERSION: &'static str = "2019-02-02";
    const POLICY_PERMISSIONS: &'static str = "raud";
    const COMPRESSES: bool = true;
    const KEEPS_METADATA: bool = false;
    const SHARES_UNASKED: bool = false;
    // As recorded of 2020-12-06, and of 2019-07-07 that it is not so.
    const ANONYMOUS_AS_BAD_TOKEN_SINCE: Option<&'static str> = Some("2020-12-06");
    const LOGS_IN_VERSION_2: bool = false;

    fn put_headers(headers: &mut HeaderMap) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }

    fn guess_shape(headers: &HeaderMap) -> ErrorShape {
        if prefers_xml(headers) {
            ErrorShape::MetadataXml
        } else {
            ErrorShape::Json(metadata_level(headers, None).unwrap_or_default())
        }
    }

    fn signed_resource<'a>(address: &Address<'a>, query: &'a QueryParameters<'_>) -> SignedResource<'a> {
        // The name is signed, so a token that does not spell it out can only be for the table that is
        // addressed.
        let table: Cow<'a, str> = match query.find("tn") {
            Some(table) => table.into(),
            None => TableResource::parse(address.resource)
                .ok()
                .and_then(TableResource::table)
                .unwrap_or_default()
                .into(),
        };
        SignedResource { service: SasService::Table, name: table.clone(), container: table, snapshot: "" }
    }

    async fn answer<B: RequestBody>(
        &self,
        request: &ApiRequest<'_>,
        body: IncomingBody<'_, B>,
        shape: &mut Option<ErrorShape>,
    ) -> Result<Reply, ApiError> {
        let headers = request.headers();
        let verb = Verb::of_request(&request.parts.method, headers)?;
        let resource = TableResource::parse(request.resource())?;
        let route = Route::find(verb, resource, request.query)?;
        if route.is_xml() {
            *shape = Some(ErrorShape::MetadataXml);
        }
        let conditional = headers.contains_key(hyper::header::IF_MATCH);
        request.environment.operation.note(route.name(conditional));
        request.grant.check(route.need(conditional), route.table())?;
        let is_policies = route.need(conditional) == need::TableNeed::Policies;
        if is_policies && !policies::are_open_to(request) {
            return Err(ErrorCode::AuthorizationFailure.into());
        }
        // A batch may be a lone get.
        request.check_secondary(route.is_read() || route == Route::Batch)?;
        // A batch's form is that of its parts, and settings are XML.
        let level = if route.is_xml() || route == Route::Batch {
            MetadataLevel::Minimal
        } else {
            metadata_level(headers, request.query.find("$format"))?
        };
        shape.get_or_insert(ErrorShape::Json(level));

        let WholeBody { bytes: body, memory: _memory } =
            if route.has_body() { body.read_whole().await? } else { WholeBody::empty() };
        let base = request.base_address();
        let context = RequestContext {
            service: &self.service,
            environment: request.environment,
            account: request.account,
            host: request.host,
            base: &base,
            grant: request.grant,
            secondary: request.address.secondary,
            request_id: request.request_id,
            now: request.now,
            statistics: statistics::are_requested(headers),
            extensions: Extensions::of_request(headers)?,
        };
        self.execute(request, &context, route, level, body).await
    }

    async fn policies(&self, account: &str, table: &str) -> Result<Vec<StoredPolicy>, ApiError> {
        self.service.table_policies(account, table).await.map_err(from_table)
    }

    async fn set_policies(
        &self,
        account: &str,
        table: &str,
        policies: Vec<StoredPolicy>,
    ) -> Result<(), ApiError> {
        self.service.set_table_policies(account, table, policies).await.map_err(from_table)
    }

    fn missing_space_bytes(&self) -> u64 {
        self.service.missing_space_bytes()
    }

    async fn properties(&self, account: &str) -> Result<ServiceProperties, ApiError> {
        self.service.service_properties(account).await.map_err(from_table)
    }

    async fn set_properties(&self, account: &str, update: ServicePropertiesUpdate) -> Result<(), ApiError> {
        self.service.set_service_properties(account, update).await.map_err(from_table)
    }
}

impl TableApi {
    /// Over this service.
    pub(crate) fn new(service: Arc<TableService>) -> Self {
        TableApi { service }
    }

    async fn execute(
        &self,
        request: &ApiRequest<'_>,
        context: &RequestContext<'_>,
        route: Route,
        level: MetadataLevel,
        body: Bytes,
    ) -> Result<Reply, ApiError> {
        let (headers, query) = (request.headers(), request.query);
        if !matches!(route, Route::QueryEntities(_)) {
            context.extensions.check_for_others()?;
        }
        if let Some(simulated) = context.environment.simulated {
            Box::pin(admit::admit_route(simulated, &route)).await?;
        }
        // Every request's future is as large as the largest of these: those that are large and not the most
        // frequent are boxed.
        match route {
            Route::ReadEntity(address) => entity_read::read_entity(context, address, query, level).await,
            Route::QueryEntities(table) if context.extensions.count => {
                Box::pin(count::count_entities(context, table, query, level)).await
            }
            Route::QueryEntities(table) => {
                Box::pin(entity_read::query_entities(context, table, query, level)).await
            }
            Route::InsertEntity(_)
            | Route::ReplaceEntity(_)
            | Route::MergeEntity(_)
            | Route::DeleteEntity(_) => {
                let write = write_headers(headers, level)?;
                entity_write::write_entity(context, route, &write, body).await
            }
            Route::Batch => {
                let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
                Box::pin(batch_api::execute_batch(context, content_type, body)).await
            }
            Route::BelowTable { table, is_insert } => {
                let is_batch = headers
                    .get(CONTENT_TYPE)
                    .and_then(|value| value.as_bytes().get(..MULTIPART.len()))
                    .is_some_and(|start| start.eq_ignore_ascii_case(MULTIPART));
                match is_batch {
                    // A batch sent to a table instead of the account.
                    true => Err(ErrorCode::MediaTypeNotSupported.into()),
                    false => {
                        Err(tables::refuse_below_table(context, &table, is_insert.then_some(&*body)).await)
                    }
                }
            }
            Route::ListTables => Box::pin(tables::list_tables(context, query, level)).await,
            Route::ReadTable(name) => tables::read_table(context, &name, level).await,
            Route::CreateTable => tables::create_table(context, body, preference(headers), level).await,
            Route::DeleteTable(name) => Box::pin(tables::delete_table(context, &name)).await,
            Route::ReadPolicies(table) => policies::read_policies(self, request, &table).await,
            Route::WritePolicies(table) => {
                Box::pin(policies::write_policies(self, request, &table, &body)).await
            }
            Route::ReadServiceProperties => service_settings::read_properties(self, request).await,
            Route::WriteServiceProperties => {
                Box::pin(service_settings::write_properties(self, request, &body)).await
            }
            Route::ReadServiceStats => service_settings::read_stats(request),
        }
    }
}

const PREFER: HeaderName = HeaderName::from_static("prefer");

fn preference(headers: &HeaderMap) -> Option<Preference> {
    headers.get(PREFER).and_then(|value| value.to_str().ok()).and_then(Preference::parse)
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
    fn the_error_shape_follows_the_client() {
        let mut headers = HeaderMap::new();
        assert!(matches!(TableApi::guess_shape(&headers), ErrorShape::Json(MetadataLevel::Minimal)));
        headers.insert(hyper::header::ACCEPT, hyper::header::HeaderValue::from_static("application/xml"));
        assert!(matches!(TableApi::guess_shape(&headers), ErrorShape::MetadataXml));
    }
}
