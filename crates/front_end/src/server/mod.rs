//! Sockets: accepting connections and serving HTTP on them, bounded and stoppable.

mod activity;
mod connection;
mod connection_metrics;
mod listener;
mod opening;
mod phase;
mod plain_http;
mod preface;
mod tls;
mod watched_socket;

pub(crate) use connection_metrics::ConnectionMetrics;
pub(crate) use listener::serve;
pub use tls::{TlsError, TlsIdentity};
