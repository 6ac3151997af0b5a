//! The sockets of `larimar shard serve-map`.
//!
//! One task reads the home every [`REFRESH_EVERY`]; requests are answered from what it read last. What always
//! holds: at most [`CONNECTIONS_MAX`] connections and [`WAITERS_MAX`] waiting requests; each connection ends
//! in [`CONNECTION_FOR_MAX`]; on loopback, requests that name another host or come from a page are refused.

use super::answer::{Answer, answer};
use super::request::wanted;
use base::BoxFuture;
use base::{Clock, Spawner};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use shard_map::Catalog;
use shard_store::{CatalogHome, HomeError};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// Connections at once; further ones wait until one is closed.
const CONNECTIONS_MAX: usize = 512;
/// Requests that wait for a newer epoch at once; further ones are refused with 503.
const WAITERS_MAX: usize = 256;
/// A connection is closed after so long: longer than the longest wait.
const CONNECTION_FOR_MAX: Duration = Duration::from_secs(300);
/// How long the head of a request may take.
const HEAD_FOR_MAX: Duration = Duration::from_secs(5);
/// Bytes of a request's head.
const HEAD_SIZE_BYTES_MAX: usize = 16 << 10;
/// How long accepting rests after a failure, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often the home is looked at.
const REFRESH_EVERY: Duration = Duration::from_secs(1);

/// A bound socket, and whose requests it answers.
pub struct Listening {
    /// The socket.
    pub listener: TcpListener,
    /// Whether it is of this machine alone.
    pub is_loopback: bool,
}

struct Served {
    newest: watch::Receiver<Arc<Catalog>>,
    waiters: Semaphore,
    clock: Arc<dyn Clock>,
    is_loopback: bool,
}

/// Serves a home's map for as long as it is polled; fails if the home can't be read at the start.
pub fn serve_map<'a>(
    home: CatalogHome,
    listening: Listening,
    clock: Arc<dyn Clock>,
    spawner: Arc<dyn Spawner>,
) -> BoxFuture<'a, Result<Infallible, HomeError>> {
    Box::pin(async move {
        let (sender, newest) = watch::channel(Arc::new(home.load().await?));
        let (waiters, is_loopback) = (Semaphore::new(WAITERS_MAX), listening.is_loopback);
        let served = Arc::new(Served { newest, waiters, clock: clock.clone(), is_loopback });
        tokio::select! {
            never = follow(home, sender, clock) => match never {},
            never = accept(listening.listener, served, spawner) => match never {},
        }
    })
}

/// Reads the home again and again. A home that fails is tried again; what was read last stays.
async fn follow(home: CatalogHome, newest: watch::Sender<Arc<Catalog>>, clock: Arc<dyn Clock>) -> Infallible {
    loop {
        clock.sleep(REFRESH_EVERY).await;
        let known = newest.borrow().clone();
        match home.refresh(&known).await {
            Ok(catalog) if catalog.epoch() != known.epoch() => drop(newest.send(Arc::new(catalog))),
            Ok(_) => {}
            Err(error) => tracing::warn!("the map is served as of epoch {}: {error}", known.epoch()),
        }
    }
}

async fn accept(listener: TcpListener, served: Arc<Served>, spawner: Arc<dyn Spawner>) -> Infallible {
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = connections.clone().acquire_owned().await else {
            // The semaphore is never closed.
            return std::future::pending().await;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("a connection could not be accepted: {error}");
                served.clock.sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let served = served.clone();
        let answers = async move {
            connection(stream, &served).await;
            drop(permit);
        };
        spawner.spawn("shard map", Box::pin(answers));
    }
}

async fn connection(stream: TcpStream, served: &Served) {
    let answers = service_fn(|request| respond(served, request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_FOR_MAX)
        .max_buf_size(HEAD_SIZE_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), answers);
    tokio::select! {
        ended = connection => if let Err(error) = ended {
            tracing::debug!("a connection broke: {error}");
        },
        () = served.clock.sleep(CONNECTION_FOR_MAX) => {}
    }
}

async fn respond(served: &Served, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let answered = answer_of(served, &request).await;
    let length = answered.body.len();
    let mut response = match request.method() {
        &Method::HEAD => Response::default(),
        _ => Response::new(Full::new(Bytes::from(answered.body))),
    };
    *response.status_mut() =
        StatusCode::from_u16(answered.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut put = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    };
    if request.method() == Method::HEAD && answered.status != 304 {
        put(header::CONTENT_LENGTH, &length.to_string());
    }
    put(header::CONTENT_TYPE, "application/json");
    // A cache asks whether it is still so.
    put(header::CACHE_CONTROL, "no-cache");
    if let Some(epoch) = answered.epoch {
        put(header::ETAG, &format!("\"{epoch}\""));
    }
    match answered.status {
        405 => put(header::ALLOW, "GET, HEAD"),
        503 => put(header::RETRY_AFTER, "1"),
        _ => {}
    }
    Ok(response)
}

async fn answer_of(served: &Served, request: &Request<Incoming>) -> Answer {
    let header = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    let is_foreign = !header(header::HOST).is_some_and(is_this_machine) || header(header::ORIGIN).is_some();
    if served.is_loopback && is_foreign {
        return Answer::refused(403, "ask for 127.0.0.1 or localhost, and not from a page");
    }
    let uri = request.uri();
    let wanted = match wanted(request.method().as_str(), uri.path(), uri.query().unwrap_or_default()) {
        Ok(wanted) => wanted,
        Err((status, what)) => return Answer::refused(status, &what),
    };
    let mut newest = served.newest.clone();
    let mut catalog = newest.borrow_and_update().clone();
    if let Some((after, wait)) = wanted.after
        && catalog.epoch().0 <= after
        && !wait.is_zero()
    {
        let Ok(_permit) = served.waiters.try_acquire() else {
            return Answer::refused(503, "too many requests wait; try again");
        };
        let later = newest.wait_for(|catalog| catalog.epoch().0 > after);
        tokio::select! {
            // The sender is there for as long as this task.
            found = later => if let Ok(found) = found { catalog = found.clone() },
            () = served.clock.sleep(wait) => {}
        }
    }
    let after = wanted.after.map(|(after, _)| after);
    answer(&wanted.target, &catalog, header(header::IF_NONE_MATCH), after)
}

/// Whether a `Host` header names this machine by a name that no other has.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(name, _)| name),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}
