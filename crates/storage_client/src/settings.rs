//! What can be set of a client, each with its default.

use crate::error::Error;
use crate::retry_observer::{RepeatedAttempt, RetryObserver};
use http_client::{ConnectionSettings, Proxies, TlsRoots};
use retry::Policy;
use std::sync::Arc;
use std::time::Duration;

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How requests are retried. [`Policy::retries_not_idempotent`] is about put message, get messages and
    /// append block without a position; see the crate's header.
    pub retry: Policy,
    /// Reads that fail go to the secondary endpoint, too: the account must have one that may be read. Getting
    /// messages is no read.
    pub reads_secondary: bool,
    /// Connections to one endpoint, at most.
    pub connections_max: usize,
    /// How long a connection is kept without a request.
    pub idle_for: Duration,
    /// The longest wait for a connection, with TLS and a proxy's answer.
    pub connect_for: Duration,
    /// The longest wait for the head of an answer, and for a free connection. What is sent adds to it, at
    /// [`UPLOAD_RATE_MIN_BYTES_PER_S`].
    pub attempt_for: Duration,
    /// The longest wait for a further part of an answer.
    pub part_for: Duration,
    /// Certificates that servers are trusted by.
    pub tls_roots: TlsRoots,
    /// Proxies.
    pub proxies: Proxies,
    /// What the `User-Agent` header says.
    pub user_agent: String,
    /// Learns what retries made of operations.
    pub observer: Option<Arc<dyn RetryObserver>>,
}

/// The slowest upload that does not run out of time.
pub const UPLOAD_RATE_MIN_BYTES_PER_S: u64 = 64 << 10;

/// Default of [`Settings::connections_max`].
pub const CONNECTIONS_MAX: usize = 64;

/// Bytes of an answer that is read whole, at most: pages of rows and lists, errors. The service ends a page
/// of entities at about 4 MiB; 5,000 names of blobs with properties may take more.
pub(crate) const ANSWER_SIZE_BYTES_MAX: usize = 64 << 20;

/// How long requests are retried by default.
const RETRY_BUDGET: Duration = Duration::from_secs(300);

impl Settings {
    /// Reports what retries made of an operation, if there were any.
    pub(crate) fn observe(
        &self,
        operation: &'static str,
        repeated: &[RepeatedAttempt],
        end: Result<(), &Error>,
    ) {
        if let Some(observer) = self.observer.as_ref().filter(|_| !repeated.is_empty()) {
            observer.ended(operation, repeated, end);
        }
    }

    /// Bounds of the connections to one endpoint.
    pub(crate) fn connections(&self) -> ConnectionSettings {
        ConnectionSettings {
            connections_max: self.connections_max,
            idle_for: self.idle_for,
            connect_for: self.connect_for,
            permit_for: self.attempt_for,
            part_for: self.part_for,
        }
    }

    /// The longest wait for the head of the answer to a request with so many bytes.
    pub(crate) fn answer_for(&self, body_size_bytes: usize) -> Duration {
        self.attempt_for + Duration::from_secs(body_size_bytes as u64 / UPLOAD_RATE_MIN_BYTES_PER_S)
    }
}

impl Default for Settings {
    /// The waits and statuses of .NET's client, for repeatable requests; proxies of the environment.
    fn default() -> Self {
        let mut retry = Policy::named("dotnet").unwrap_or_else(Policy::none).within(RETRY_BUDGET);
        retry.retries_not_idempotent = false;
        Settings {
            retry,
            reads_secondary: false,
            connections_max: CONNECTIONS_MAX,
            idle_for: Duration::from_secs(60),
            connect_for: Duration::from_secs(10),
            // Longer than the service's own 30 s.
            attempt_for: Duration::from_secs(40),
            part_for: Duration::from_secs(30),
            tls_roots: TlsRoots::default(),
            proxies: Proxies::from_environment(),
            user_agent: concat!("larimar-storage-client/", env!("CARGO_PKG_VERSION")).to_owned(),
            observer: None,
        }
    }
}
