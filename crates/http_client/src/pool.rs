//! Connections to one endpoint: as many as the settings say, kept for the next request while they are fresh.
//!
//! What always holds: a request holds a permit from before it has a connection until its answer's body has
//! ended or is dropped; a connection is made only when none is idle; so there are never more connections than
//! permits. A connection is lent to one request at a time, and is kept only if its answer was read to the
//! end.

use crate::dial::{DialError, Dialer};
use crate::endpoint::Endpoint;
use crate::proxy::Proxy;
use crate::settings::ConnectionSettings;
use crate::surroundings::Surroundings;
use crate::time_out::within;
use base::Socket;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::HeaderValue;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use retry::Outcome;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections to one endpoint.
pub struct Pool {
    /// Where the connections go.
    pub endpoint: Endpoint,
    /// The `Host` header; none if the endpoint's can't be one.
    pub host: Option<HeaderValue>,
    /// The endpoint's proxy, which stays the same, or why it can't be used.
    proxy: Result<Option<Proxy>, String>,
    dialer: Arc<Dialer>,
    /// Clock and tasks.
    pub surroundings: Surroundings,
    /// Bounds.
    pub settings: ConnectionSettings,
    permits: Arc<Semaphore>,
    /// The one that was used last is at the end. Never more than permits.
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    sender: SendRequest<Full<Bytes>>,
    since: Duration,
}

/// A connection that one request has; dropped, it is closed.
pub struct Lease {
    pool: Arc<Pool>,
    sender: SendRequest<Full<Bytes>>,
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    /// The answer was read to its end: the next request may have the connection.
    pub fn put_back(self) {
        if !self.sender.is_closed() {
            let since = self.pool.surroundings.clock.monotonic();
            self.pool.idle.lock().push(Idle { sender: self.sender, since });
        }
    }
}

/// An attempt that brought no answer.
#[derive(Debug)]
pub struct NoAnswer {
    /// What may have become of it.
    pub outcome: Outcome,
    /// What is wrong, for people.
    pub what: String,
    /// Another attempt would end the same way.
    pub is_final: bool,
}

impl NoAnswer {
    /// Nothing of the request has left this process.
    pub fn unsent(what: String) -> Self {
        NoAnswer { outcome: Outcome::Unsent, what, is_final: false }
    }
}

impl From<DialError> for NoAnswer {
    fn from(error: DialError) -> Self {
        NoAnswer { outcome: Outcome::Unsent, what: error.what, is_final: error.is_final }
    }
}

impl Pool {
    /// No connection yet.
    pub fn new(
        endpoint: Endpoint,
        dialer: Arc<Dialer>,
        surroundings: Surroundings,
        settings: ConnectionSettings,
    ) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(settings.connections_max.max(1)));
        let host = HeaderValue::from_str(&endpoint.authority).ok();
        let proxy = dialer.proxy(&endpoint).map_err(|error| error.what);
        let idle = Mutex::new(Vec::new());
        Arc::new(Pool { endpoint, host, proxy, dialer, surroundings, settings, permits, idle })
    }

    /// The proxy of plain requests, which name the whole address to it.
    pub fn plain_proxy(&self) -> Result<Option<&Proxy>, NoAnswer> {
        Ok(self.proxy()?.filter(|_| !self.endpoint.origin.is_tls))
    }

    fn proxy(&self) -> Result<Option<&Proxy>, NoAnswer> {
        match &self.proxy {
            Ok(proxy) => Ok(proxy.as_ref()),
            Err(what) => Err(NoAnswer { is_final: true, ..NoAnswer::unsent(what.clone()) }),
        }
    }

    /// Sends the request and waits for the head of its answer, at most `answer_for`.
    pub async fn exchange(
        self: &Arc<Self>,
        mut request: Request<Full<Bytes>>,
        answer_for: Duration,
    ) -> Result<(Response<Incoming>, Lease), NoAnswer> {
        let clock = &*self.surroundings.clock;
        let mut permit = self.permit().await?;
        loop {
            let (mut lease, was_idle) = match self.fresh_idle(permit).await {
                Ok(lease) => (lease, true),
                Err(permit) => (self.connect(permit).await?, false),
            };
            match within(clock, answer_for, lease.sender.try_send_request(request)).await {
                None => {
                    let what = format!("no answer in {} s", answer_for.as_secs_f32());
                    return Err(NoAnswer { outcome: Outcome::TimedOut, what, is_final: false });
                }
                Some(Ok(response)) => return Ok((response, lease)),
                Some(Err(mut failed)) => match failed.take_message() {
                    // Nothing was sent: the connection was closed while it was idle.
                    Some(unsent) if was_idle => {
                        request = unsent;
                        permit = lease._permit;
                    }
                    Some(_) => return Err(NoAnswer::unsent("the connection was closed at once".to_owned())),
                    None => {
                        let what = format!("the connection broke: {}", with_causes(failed.error()));
                        return Err(NoAnswer { outcome: Outcome::Broken, what, is_final: false });
                    }
                },
            }
        }
    }

    /// What a connection needs; waits until there is one to be had.
    pub async fn permit(&self) -> Result<OwnedSemaphorePermit, NoAnswer> {
        let (clock, wait_for) = (&*self.surroundings.clock, self.settings.permit_for);
        match within(clock, wait_for, self.permits.clone().acquire_owned()).await {
            Some(Ok(permit)) => Ok(permit),
            _ => {
                let count = self.settings.connections_max;
                Err(NoAnswer::unsent(format!("all {count} connections are busy (connections_max)")))
            }
        }
    }

    /// An idle connection that is still usable. Each that is not is closed here, so the loop ends.
    async fn fresh_idle(
        self: &Arc<Self>,
        permit: OwnedSemaphorePermit,
    ) -> Result<Lease, OwnedSemaphorePermit> {
        let clock = &self.surroundings.clock;
        loop {
            let Some(Idle { mut sender, since }) = self.idle.lock().pop() else { return Err(permit) };
            let is_fresh = clock.monotonic().saturating_sub(since) < self.settings.idle_for;
            if is_fresh
                && matches!(within(&**clock, self.settings.connect_for, sender.ready()).await, Some(Ok(())))
            {
                return Ok(Lease { pool: self.clone(), sender, _permit: permit });
            }
        }
    }

    /// A new socket, which a caller with a permit may have.
    pub async fn dial(&self) -> Result<Box<dyn Socket>, NoAnswer> {
        let (clock, connect_for) = (&*self.surroundings.clock, self.settings.connect_for);
        match within(clock, connect_for, self.dialer.dial(&self.endpoint, self.proxy()?)).await {
            Some(socket) => Ok(socket?),
            None => {
                let authority = &self.endpoint.authority;
                let span = connect_for.as_secs_f32();
                Err(NoAnswer::unsent(format!("{authority} can't be reached in {span} s")))
            }
        }
    }

    async fn connect(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Result<Lease, NoAnswer> {
        let socket = self.dial().await?;
        // It sends nothing yet, so it takes no time.
        let (sender, connection) = http1::handshake(TokioIo::new(socket)).await.map_err(|error| {
            NoAnswer::unsent(format!("the connection can't be used: {}", with_causes(&error)))
        })?;
        // Its errors are those of the requests on it.
        let connection = async move {
            let _ = connection.await;
        };
        self.surroundings.spawner.spawn("connection of a client", Box::pin(connection));
        Ok(Lease { pool: self.clone(), sender, _permit: permit })
    }
}

/// An error's text with those of its causes, of which hyper's own texts have none.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
