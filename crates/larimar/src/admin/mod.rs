//! The admin side: a port of its own on which operators and their monitoring learn whether the server lives
//! and serves, which version it is, and its metrics, and on which operators look at its ranges and change how
//! it runs (`api`).
//!
//! What always holds: it listens on this machine only, unless another host was given, and then it encrypts;
//! what changes something needs a token, and so does everything beyond this machine; it is bounded in
//! connections, bytes and time; whatever comes of it, the services go on.

mod answers;
mod api;
mod aside;
mod audit;
mod exposition;
mod listener;
mod process;
mod readiness;
mod route;
mod sampled;
mod sampled_stamp;
mod start;
mod token_store;
mod tokens;
mod tries;

pub(crate) use api::Handles;
pub(crate) use readiness::{Layers, Readiness};
pub(crate) use sampled_stamp::StampSource;
pub(crate) use start::{AdminError, AdminSide};
pub(crate) use token_store::{TOKEN_FILE_NAME, TOKEN_FILE_SIZE_BYTES_MAX};
pub(crate) use tokens::{Role, Tokens};
