//! The trait that a service implements to stand behind the pipeline.

use super::api_request::ApiRequest;
use super::body::{IncomingBody, RequestBody};
use crate::auth::SignedResource;
use crate::auth::shared_key::SignedService;
use crate::error::ApiError;
use crate::reply::Reply;
use crate::reply::error_shape::ErrorShape;
use crate::request::addressing::Address;
use crate::request::query_string::QueryParameters;
use hyper::Method;
use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use service::{ServiceProperties, ServicePropertiesUpdate, StoredPolicy};
use std::time::Duration;

/// One service's side of HTTP: what it does with a request that is authenticated.
pub(crate) trait ServiceApi: Send + Sync + 'static {
    /// The service's label in host names, such as `table`.
    const LABEL: &'static str;
    /// The name of its connections' tasks.
    const CONNECTION_NAME: &'static str;
    /// The rules of signing that apply.
    const SIGNED: SignedService;
    /// The `Server` header.
    const SERVER: &'static str;
    /// The version of requests that name none.
    const DEFAULT_VERSION: &'static str;
    /// Letters that a stored access policy may hold.
    const POLICY_PERMISSIONS: &'static str;
    /// Whether logs may be of version 2.0.
    const LOGS_IN_VERSION_2: bool = true;
    /// Whether large answers are compressed for clients that accept it.
    const COMPRESSES: bool;
    /// Whether requests bring metadata in headers.
    const KEEPS_METADATA: bool;

    /// Adds the headers that all answers of the service have, besides those that all services' have.
    fn put_headers(headers: &mut HeaderMap);

    /// Whether a request without credentials may read what is public.
    const TAKES_ANONYMOUS: bool = false;

    /// Whether answers to reads that name no origin say that any origin may have them.
    const SHARES_UNASKED: bool = true;

    /// From this version on a request without credentials gets the error of a bad token; `None`: never.
    const ANONYMOUS_AS_BAD_TOKEN_SINCE: Option<&'static str> = None;

    /// Whether a request for certain only reads, so that its answer may be withheld.
    fn only_reads(parts: &Parts) -> bool {
        parts.method == Method::GET
    }

    /// How long a request may take; `longest` is the server's bound for ordinary ones.
    fn time_limit(parts: &Parts, longest: Duration) -> Duration {
        super::request::time_limit(parts, longest)
    }

    /// The form of errors before the operation is known.
    fn guess_shape(headers: &HeaderMap) -> ErrorShape;

    /// What a service signature on this request signs.
    fn signed_resource<'a>(address: &Address<'a>, query: &'a QueryParameters<'_>) -> SignedResource<'a>;

    /// Answers an authenticated request. `shape` is set once the operation is known, which decides the form
    /// of errors.
    fn answer<B: RequestBody>(
        &self,
        request: &ApiRequest<'_>,
        body: IncomingBody<'_, B>,
        shape: &mut Option<ErrorShape>,
    ) -> impl Future<Output = Result<Reply, ApiError>> + Send;

    /// The stored access policies of a container.
    fn policies(
        &self,
        account: &str,
        container: &str,
    ) -> impl Future<Output = Result<Vec<StoredPolicy>, ApiError>> + Send;

    /// Replaces the stored access policies of a container.
    fn set_policies(
        &self,
        account: &str,
        container: &str,
        policies: Vec<StoredPolicy>,
    ) -> impl Future<Output = Result<(), ApiError>> + Send;

    /// Bytes that have to become free before writes are admitted again; 0 if they are.
    fn missing_space_bytes(&self) -> u64;

    /// The service's settings.
    fn properties(&self, account: &str) -> impl Future<Output = Result<ServiceProperties, ApiError>> + Send;

    /// Changes the roots that are given.
    fn set_properties(
        &self,
        account: &str,
        update: ServicePropertiesUpdate,
    ) -> impl Future<Output = Result<(), ApiError>> + Send;
}
