//! A model of an object store in this process: as much of S3's protocol as the server uses, a latency for
//! each request, and so many creations a second.
//!
//! What always holds: nothing is answered before its time; an object is created once. Signatures are not
//! looked at: the tests of `stamp_stores` do that.

use crate::Outcome;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

pub(super) const BUCKET: &str = "model";

/// What the model is slow at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// How long a request takes.
    pub(super) latency: Duration,
    /// Creations that begin in a second, at most.
    pub(super) creates_per_second: f64,
}

struct State {
    pace: Pace,
    objects: Mutex<BTreeMap<String, Bytes>>,
    /// When the next creation may begin.
    next_create: Mutex<Instant>,
}

/// Starts the model on a thread that ends with this program; answers where it listens.
pub(super) fn start(pace: Pace) -> Outcome<SocketAddr> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let serve = move || {
        runtime.block_on(async move {
            let state = State { pace, objects: Mutex::default(), next_create: Mutex::new(Instant::now()) };
            accept(listener, Arc::new(state)).await
        })
    };
    std::thread::Builder::new().name("store-model".to_owned()).spawn(serve)?;
    Ok(address)
}

async fn accept(listener: std::net::TcpListener, state: Arc<State>) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let state = state.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let state = state.clone();
                async move { Ok::<_, Infallible>(state.answer(request).await) }
            });
            // An error is a connection that ends.
            drop(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), service)
                    .await,
            );
        });
    }
}

fn plain(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
}

fn error(status: StatusCode, code: &str) -> Response<Full<Bytes>> {
    plain(status, format!("<Error><Code>{code}</Code><Message>model</Message></Error>"))
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let Ok(body) = body.collect().await else {
            return error(StatusCode::BAD_REQUEST, "IncompleteBody");
        };
        let path = head.uri.path();
        let key = path.trim_start_matches('/').strip_prefix(BUCKET).unwrap_or_default();
        let key = key.trim_start_matches('/').to_owned();
        self.wait_for_turn(head.method == Method::PUT).await;
        match head.method {
            Method::PUT => match locked(&self.objects).entry(key) {
                std::collections::btree_map::Entry::Occupied(_) => {
                    error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed")
                }
                std::collections::btree_map::Entry::Vacant(vacant) => {
                    vacant.insert(body.to_bytes());
                    plain(StatusCode::OK, "")
                }
            },
            Method::DELETE => {
                locked(&self.objects).remove(&key);
                plain(StatusCode::NO_CONTENT, "")
            }
            Method::GET if key.is_empty() => self.of_bucket(head.uri.query().unwrap_or_default()),
            Method::GET => {
                let range = head.headers.get("range").and_then(|range| range.to_str().ok());
                match locked(&self.objects).get(&key) {
                    Some(content) => ranged(content, range.unwrap_or_default()),
                    None => error(StatusCode::NOT_FOUND, "NoSuchKey"),
                }
            }
            _ => error(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
        }
    }

    /// Until a request that comes now would be done.
    async fn wait_for_turn(&self, is_create: bool) {
        let now = Instant::now();
        let begins_at = match is_create {
            false => now,
            true => {
                let mut next = locked(&self.next_create);
                let begins_at = now.max(*next);
                *next = begins_at + Duration::from_secs_f64(1.0 / self.pace.creates_per_second);
                begins_at
            }
        };
        tokio::time::sleep_until(begins_at + self.pace.latency).await;
    }

    fn of_bucket(&self, query: &str) -> Response<Full<Bytes>> {
        if query.starts_with("versioning") {
            return plain(StatusCode::OK, "<VersioningConfiguration/>");
        }
        if query.starts_with("lifecycle") {
            return error(StatusCode::NOT_FOUND, "NoSuchLifecycleConfiguration");
        }
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let found = pairs.find_map(|(key, value)| (key == name).then(|| value.to_owned()));
            found.map(|value| decoded(&value)).unwrap_or_default()
        };
        let (prefix, after) = (parameter("prefix"), parameter("start-after"));
        let page_max: usize = parameter("max-keys").parse().unwrap_or(1000);
        let objects = locked(&self.objects);
        let mut found = objects.keys().filter(|key| key.starts_with(&prefix) && **key > after);
        let page: String = found
            .by_ref()
            .take(page_max)
            .map(|key| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>"))
            .collect();
        let has_more = found.next().is_some();
        plain(
            StatusCode::OK,
            format!(
                "<ListBucketResult><Name>{BUCKET}</Name><EncodingType>url</EncodingType>\
                 <IsTruncated>{has_more}</IsTruncated>{page}</ListBucketResult>"
            ),
        )
    }
}

/// A parameter without its percent signs. Names of a stamp are plain letters.
fn decoded(value: &str) -> String {
    value.replace("%2F", "/")
}

fn ranged(content: &Bytes, range: &str) -> Response<Full<Bytes>> {
    let limits = range.strip_prefix("bytes=").and_then(|range| range.split_once('-'));
    let Some((Ok(from), Ok(last))) =
        limits.map(|(from, last)| (from.parse::<usize>(), last.parse::<usize>()))
    else {
        return error(StatusCode::BAD_REQUEST, "InvalidArgument");
    };
    if from >= content.len() {
        return error(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange");
    }
    let last = last.min(content.len() - 1);
    let mut response = plain(StatusCode::PARTIAL_CONTENT, content.slice(from..=last));
    if let Ok(value) = format!("bytes {from}-{last}/{}", content.len()).parse() {
        response.headers_mut().insert("content-range", value);
    }
    response
}
