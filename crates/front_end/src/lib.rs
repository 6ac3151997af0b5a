//! The front end: the only crate that knows HTTP, XML, OData/JSON, multipart and signatures.
//!
//! A request comes in through [`FrontEnd::serve_table`] or [`FrontEnd::serve_queue`] (or, without a socket,
//! through [`FrontEnd::handle_table`] or [`FrontEnd::handle_queue`]); it is bounded, authenticated, turned
//! into an operation of a service, and the outcome into a response. Vocabulary: a *route* is the operation of
//! a request; a *grant* is what its credentials allow; a *reply* is a response before it has the headers that
//! all responses have, or a part of a batch's response.
//!
//! What always holds: nothing that a client sends can panic; no body is used before its request is
//! authenticated; every error a client sees is a row of [`ErrorCode`]; signatures are compared in constant
//! time and keys are never printed.

mod access;
pub mod accounts;
pub mod auth;
mod batch;
mod blob_api;
mod bounds;
mod error;
mod fairness;
mod front_end;
mod json;
mod pipeline;
mod queue_api;
mod reply;
mod request;
mod server;
mod shared_operations;
mod simulate;
mod table_api;
mod xml;

pub use access::{
    Access, AccessLog, AccessOutcome, AccessTarget, AccessedRequest, AccessedRows, Phases, TraceContext,
};
pub use accounts::{Account, AccountError, Accounts};
pub use auth::bearer::{BearerAuthority, UnverifiedTokens};
pub use auth::make_sas::{SasError, SasResourceType, SasScope, SasTerms, make_sas};
pub use auth::sas::SasService;
pub use auth::sas_permissions::SasPermission;
pub use bounds::limits::Limits;
pub use error::error_code::ErrorCode;
pub use front_end::{FrontEnd, FrontEndSettings, Services, StandByFrontEnd};
pub use reply::body::ResponseBody;
pub use request::addressing::SignedPath;
pub use request::connection_info::ConnectionInfo;
pub use request::query_string::{MalformedQuery, QueryParameters};
pub use server::{TlsError, TlsIdentity};
pub use simulate::{PROFILES, Simulation, SimulationSettings, parse_rule_file};
