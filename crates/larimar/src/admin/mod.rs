//! The admin side: a port of its own on which operators and their monitoring learn whether the server lives
//! and serves, which version it is, and its metrics.
//!
//! What always holds: it listens on this machine only, answers what is read and changes nothing; it is
//! bounded in connections and time; whatever comes of it, the services go on.

mod answers;
mod exposition;
mod listener;
mod process;
mod readiness;
mod route;
mod sampled;

pub(crate) use answers::Admin;
pub(crate) use listener::AdminListener;
pub(crate) use readiness::{Layers, Readiness};
