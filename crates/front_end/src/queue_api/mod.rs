//! The Queue service over HTTP: what it does with a request once the pipeline has authenticated it.
//!
//! The steps: find the operation, authorise, read the body, execute. One file for each family of operations.
//! Everything is XML, errors included.

mod admit;
mod errors;
mod message_text;
mod messages;
mod metadata;
mod need;
mod parameters;
mod queue_path;
mod queues;
mod route;

use crate::auth::SignedResource;
use crate::auth::sas::SasService;
use crate::auth::shared_key::SignedService;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::pipeline::{ApiRequest, IncomingBody, RequestBody, ServiceApi, WholeBody};
use crate::reply::Reply;
use crate::reply::error_shape::ErrorShape;
use crate::request::addressing::Address;
use crate::request::query_string::QueryParameters;
use crate::shared_operations::user_delegation_key::{find_principal, issue_user_delegation_key};
use crate::shared_operations::{policies, service_settings};
use bytes::Bytes;
use errors::from_queue;
use hyper::Method;
use hyper::header::{CACHE_CONTROL, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use message_text::BODY_SIZE_BYTES_MAX;
use queue::QueueService;
use queue_path::QueueResource;
use route::Route;
use service::{ServiceProperties, ServicePropertiesUpdate, StoredPolicy};
use std::sync::Arc;

/// Bytes of settings and access policies at most.
const DOCUMENT_SIZE_BYTES_MAX: usize = 512 * 1024;

/// The Queue service's HTTP side.
pub(crate) struct QueueApi {
    service: Arc<QueueService>,
}

impl ServiceApi for QueueApi {
    const LABEL: &'static str = "queue";
    const CONNECTION_NAME: &'static str = "queue connection";
    const SIGNED: SignedService = SignedService::BlobOrQueue;
    const SERVER: &'static str = concat!("Larimar-Queue/", env!("CARGO_PKG_VERSION"));
    // The newest whose description is a plain file.
    const DEFAULT_VERSION: &'static str = "2018-03-28";
    const POLICY_PERMISSIONS: &'static str = "raup";
    const COMPRESSES: bool = false;
    const KEEPS_METADATA: bool = true;

    fn put_headers(headers: &mut HeaderMap) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }

    fn guess_shape(_: &HeaderMap) -> ErrorShape {
        ErrorShape::Xml
    }

    /// Taking messages is a `GET`, too, and makes them invisible; only it and peeking have no `comp`.
    fn only_reads(parts: &Parts) -> bool {
        let mut parameters = parts.uri.query().unwrap_or_default().split('&');
        parts.method == Method::GET && parameters.any(|parameter| parameter.starts_with("comp="))
    }

    fn signed_resource<'a>(address: &Address<'a>, _: &'a QueryParameters<'_>) -> SignedResource<'a> {
        let queue = queue_path::queue_of(address.resource);
        SignedResource { service: SasService::Queue, name: queue.clone(), container: queue, snapshot: "" }
    }

    async fn answer<B: RequestBody>(
        &self,
        request: &ApiRequest<'_>,
        body: IncomingBody<'_, B>,
        shape: &mut Option<ErrorShape>,
    ) -> Result<Reply, ApiError> {
        *shape = Some(ErrorShape::Xml);
        let resource = QueueResource::parse(request.resource())?;
        let route = Route::find(&request.parts.method, resource, request.query)?;
        request.environment.operation.note(route.name());
        if route == Route::GetUserDelegationKey {
            find_principal(request)?;
        }
        request.grant.check(route.need(), None)?;
        if matches!(route, Route::ReadPolicies(_) | Route::WritePolicies(_))
            && !policies::are_open_to(request)
        {
            return Err(ErrorCode::ResourceNotFound.into());
        }
        request.check_secondary(route.is_read())?;
        let body = match &route {
            Route::PutMessage(_) | Route::UpdateMessage(..) => body.read_up_to(BODY_SIZE_BYTES_MAX).await?,
            other if other.has_body() => body.read_up_to(DOCUMENT_SIZE_BYTES_MAX).await?,
            _ => WholeBody::empty(),
        };
        if let Some(simulated) = request.environment.simulated {
            Box::pin(admit::admit_route(simulated, &route)).await?;
        }
        self.execute(request, route, &body.bytes).await
    }

    async fn policies(&self, account: &str, queue: &str) -> Result<Vec<StoredPolicy>, ApiError> {
        self.service.queue_policies(account, queue).await.map_err(from_queue)
    }

    async fn set_policies(
        &self,
        account: &str,
        queue: &str,
        policies: Vec<StoredPolicy>,
    ) -> Result<(), ApiError> {
        self.service.set_queue_policies(account, queue, policies).await.map_err(from_queue)
    }

    fn missing_space_bytes(&self) -> u64 {
        self.service.missing_space_bytes()
    }

    async fn properties(&self, account: &str) -> Result<ServiceProperties, ApiError> {
        self.service.service_properties(account).await.map_err(from_queue)
    }

    async fn set_properties(&self, account: &str, update: ServicePropertiesUpdate) -> Result<(), ApiError> {
        self.service.set_service_properties(account, update).await.map_err(from_queue)
    }
}

impl QueueApi {
    /// Over this service.
    pub(crate) fn new(service: Arc<QueueService>) -> Self {
        QueueApi { service }
    }

    async fn execute(&self, request: &ApiRequest<'_>, route: Route, body: &Bytes) -> Result<Reply, ApiError> {
        let service = &*self.service;
        // Every request's future is as large as the largest of these: those that are large and not the most
        // frequent are boxed.
        match route {
            Route::PutMessage(queue) => messages::put(service, request, &queue, body).await,
            Route::GetMessages(queue) => messages::get(service, request, &queue).await,
            Route::PeekMessages(queue) => messages::peek(service, request, &queue).await,
            Route::ClearMessages(queue) => messages::clear(service, request, &queue).await,
            Route::UpdateMessage(queue, id) => messages::update(service, request, &queue, &id, body).await,
            Route::DeleteMessage(queue, id) => messages::delete(service, request, &queue, &id).await,
            Route::ListQueues => Box::pin(queues::list(service, request)).await,
            Route::CreateQueue(queue) => queues::create(service, request, &queue).await,
            Route::DeleteQueue(queue) => Box::pin(queues::delete(service, request, &queue)).await,
            Route::ReadMetadata(queue) => queues::read_metadata_of(service, request, &queue).await,
            Route::WriteMetadata(queue) => queues::write_metadata(service, request, &queue).await,
            Route::ReadPolicies(queue) => policies::read_policies(self, request, &queue).await,
            Route::WritePolicies(queue) => {
                Box::pin(policies::write_policies(self, request, &queue, body)).await
            }
            Route::ReadServiceProperties => service_settings::read_properties(self, request).await,
            Route::WriteServiceProperties => {
                Box::pin(service_settings::write_properties(self, request, body)).await
            }
            Route::GetUserDelegationKey => issue_user_delegation_key(request, SasService::Queue, body),
            Route::ReadServiceStats => service_settings::read_stats(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of getting messages once could be withheld: they were invisible, and no client had them.
    #[test]
    fn getting_messages_is_more_than_reading() {
        for (method, path, expected) in [
            ("GET", "/a/q/messages", false),
            ("GET", "/a/q/messages?numofmessages=32&visibilitytimeout=9", false),
            ("GET", "/a/q/messages?peekonly=true", false),
            ("GET", "/a/?comp=list", true),
            ("GET", "/a/q?timeout=5&comp=metadata", true),
            ("POST", "/a/q?comp=metadata", false),
        ] {
            let request = hyper::Request::builder().method(method).uri(path).body(()).unwrap();
            let (parts, ()) = request.into_parts();
            assert_eq!(QueueApi::only_reads(&parts), expected, "{method} {path}");
        }
    }
}
