//! One request of a search for credentials.
//!
//! What always holds: waits and answers are bounded; no error shows a body, which may repeat secrets.

use crate::exchange::{Outgoing, Service};
use crate::surroundings::StoreSurroundings;
use bytes::Bytes;
use http_client::{ConnectionSettings, Dialer, Endpoint, Proxies, TlsRoots};
use hyper::Method;
use hyper::header::{HeaderName, HeaderValue};
use std::sync::Arc;
use std::time::Duration;

/// The longest wait for a connection: the machine's own service is near, or not there at all.
const CONNECT_FOR: Duration = Duration::from_secs(1);
/// The longest wait for an answer, or a part of it.
const ANSWER_FOR: Duration = Duration::from_secs(3);
/// Bytes of an answer, at most.
const ANSWER_SIZE_BYTES_MAX: usize = 256 << 10;

/// What looking for credentials needs.
pub(crate) struct Search {
    pub(crate) surroundings: StoreSurroundings,
    pub(crate) region: String,
    /// With the roots and proxies of the bucket.
    pub(crate) dialer: Arc<Dialer>,
}

impl Search {
    /// A dialer for what is on this machine or its own network: without proxies.
    pub(crate) fn near(&self) -> Arc<Dialer> {
        let connector = self.surroundings.http.connector.clone();
        Arc::new(Dialer::new(connector, Proxies::none(), TlsRoots::System))
    }

    /// Sends one request and gives the body of its answer, if that is a success; an error shows no body.
    pub(crate) async fn fetch(
        &self,
        dialer: &Arc<Dialer>,
        url: &str,
        method: Method,
        headers: Vec<(HeaderName, HeaderValue)>,
        body: Bytes,
    ) -> Result<Bytes, FetchError> {
        let endpoint = Endpoint::parse(url.split('?').next().unwrap_or(url)).map_err(FetchError::Broken)?;
        // As it is written: an endpoint has no slash at its end.
        let behind_scheme = url.split_once("://").map_or("", |(_, rest)| rest);
        let target = behind_scheme.find('/').map_or("/", |at| &behind_scheme[at..]).to_owned();
        let connections = ConnectionSettings {
            connections_max: 1,
            idle_for: Duration::ZERO,
            connect_for: CONNECT_FOR,
            permit_for: ANSWER_FOR,
            part_for: ANSWER_FOR,
        };
        let service =
            Service::new(endpoint, dialer.clone(), &self.surroundings.http, connections, ANSWER_FOR);
        let outgoing = Outgoing { method, target, headers, body };
        let answer = service.send(outgoing, ANSWER_SIZE_BYTES_MAX).await;
        let answer = answer.map_err(|lost| FetchError::Broken(lost.what().to_owned()))?;
        match answer.status {
            200..300 => Ok(answer.body),
            status => Err(FetchError::Status(status, answer.body)),
        }
    }
}

/// No success.
#[derive(Debug)]
pub(crate) enum FetchError {
    /// No answer.
    Broken(String),
    /// An answer with an error, and its body, which may repeat secrets.
    Status(u16, Bytes),
}

impl FetchError {
    /// For people, without the body.
    pub(crate) fn shown(&self) -> String {
        match self {
            FetchError::Broken(what) => what.clone(),
            FetchError::Status(status, _) => format!("it answers {status}"),
        }
    }
}
