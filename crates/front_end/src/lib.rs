//! The front end: the only crate that knows HTTP, XML, OData/JSON, multipart and signatures.
//!
//! A request comes in through [`FrontEnd::serve_table`] or [`FrontEnd::serve_queue`] (or, without a socket, through
//! [`FrontEnd::handle_table`] or [`FrontEnd::handle_queue`]); it is
//! bounded, authenticated, turned into an operation of a service, and the outcome into a response. Vocabulary: a *route*
//! is the operation a request asks for; a *grant* is what its credentials allow; a *reply* is a response before it has
//! the headers that all responses have, or a part of a batch's response.
//!
//! What always holds: nothing that a client sends can panic; no body is used before its request is authenticated; every
//! error a client sees is a row of [`ErrorCode`]; signatures are compared in constant time and keys are never printed.

pub mod accounts;
mod addressing;
mod answer_room;
pub mod auth;
mod batch;
mod blob_api;
mod compression;
mod content_md5;
mod continuation;
mod entity_path;
mod error;
mod error_code;
mod front_end;
mod header_case;
mod in_flight;
mod json;
mod limits;
mod negotiation;
mod peer_shares;
mod pipeline;
mod query_string;
mod queue_api;
mod reply;
mod reply_body;
mod request_id;
mod server;
mod table_api;
mod xml;

pub use accounts::{Account, AccountError, Accounts};
pub use addressing::SignedPath;
pub use auth::bearer::{BearerAuthority, UnverifiedTokens};
pub use auth::make_sas::{SasError, SasResourceType, SasScope, SasTerms, make_sas};
pub use auth::sas::SasService;
pub use auth::sas_permissions::SasPermission;
pub use error_code::ErrorCode;
pub use front_end::{FrontEnd, FrontEndSettings, Services};
pub use limits::Limits;
pub use pipeline::ConnectionInfo;
pub use query_string::{MalformedQuery, QueryParameters};
pub use reply_body::ResponseBody;
pub use server::{TlsError, TlsIdentity};
