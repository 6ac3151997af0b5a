//! Bounds of the connections to one endpoint.

use std::time::Duration;

/// Bounds of the connections to one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// Connections, at most.
    pub connections_max: usize,
    /// How long a connection is kept without a request.
    pub idle_for: Duration,
    /// The longest wait for a connection, with TLS and a proxy's answer.
    pub connect_for: Duration,
    /// The longest wait for a free connection.
    pub permit_for: Duration,
    /// The longest wait for a further part of an answer.
    pub part_for: Duration,
}
