//! A small server of S3's protocol in this process, with faults on purpose.
//!
//! What always holds: a request that a client must never send (a PUT without its condition or length, a
//! body that is not what was signed) is answered 400 `BadRequest`, which no test expects.

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub(crate) const BUCKET: &str = "bkt";

/// What becomes of the next request to the bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// It is not done, and answered so.
    Status(u16, &'static str),
    /// It is done, and answered so.
    DoneThenStatus(u16, &'static str),
    /// It is not done, and its connection ends.
    Reset,
    /// It is done, and its connection ends.
    DoneThenReset,
    /// It is not done, and never answered.
    Silence,
    /// The answer ends in its middle.
    Cut,
    /// The answer is whole, whatever range was asked for.
    Whole,
    /// The answer has another range.
    OtherRange,
    /// The answer leads elsewhere.
    Redirect,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

#[derive(Default)]
pub(crate) struct State {
    objects: Mutex<BTreeMap<String, Bytes>>,
    pub(crate) seen: Mutex<Vec<Seen>>,
    pub(crate) faults: Mutex<VecDeque<Fault>>,
    /// Answers by method and path with query: of the bucket's settings, and of services that give
    /// credentials.
    pub(crate) fixed: Mutex<BTreeMap<String, (u16, String)>>,
}

/// The server; it ends with the runtime of its test.
pub(crate) struct S3Server {
    pub(crate) port: u16,
    pub(crate) state: Arc<State>,
}

impl S3Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(None).await
    }

    pub(crate) async fn start_with(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(State::default());
        let shared = state.clone();
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.expect("a connection");
                let (state, tls) = (shared.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => {
                            if let Ok(socket) = tls.accept(socket).await {
                                serve(TokioIo::new(socket), state).await;
                            }
                        }
                        None => serve(TokioIo::new(socket), state).await,
                    }
                });
            }
        });
        S3Server { port, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn fault(&self, fault: Fault) {
        self.state.faults.lock().push_back(fault);
    }

    /// The requests since the last call.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.state.seen.lock())
    }

    pub(crate) fn fix(&self, request: &str, status: u16, body: &str) {
        self.state.fixed.lock().insert(request.to_owned(), (status, body.to_owned()));
    }
}

async fn serve<S>(socket: TokioIo<S>, state: Arc<State>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(move |request| answer(state.clone(), request));
    // An error is a connection that ends.
    drop(hyper::server::conn::http1::Builder::new().serve_connection(socket, service).await);
}

type Body = BoxBody<Bytes, io::Error>;

fn full(status: u16, body: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(body.into()).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = hyper::StatusCode::from_u16(status).expect("a status");
    response
}

fn error(status: u16, code: &str) -> Response<Body> {
    full(status, format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>m</Message></Error>"))
}

fn reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "on purpose")
}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Body>, io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| reset())?.to_bytes();
    let seen = Seen { method: head.method, target: head.uri.to_string(), headers: head.headers, body };
    state.seen.lock().push(seen.clone());
    let fixed = state.fixed.lock().get(&format!("{} {}", seen.method, seen.target)).cloned();
    if let Some((status, body)) = fixed {
        return Ok(full(status, body));
    }
    let fault = state.faults.lock().pop_front();
    match fault {
        Some(Fault::Status(status, code)) => Ok(error(status, code)),
        Some(Fault::DoneThenStatus(status, code)) => {
            drop(carry_out(&state, &seen));
            Ok(error(status, code))
        }
        Some(Fault::Reset) => Err(reset()),
        Some(Fault::DoneThenReset) => {
            drop(carry_out(&state, &seen));
            Err(reset())
        }
        Some(Fault::Silence) => std::future::pending().await,
        Some(Fault::Cut) => Ok(cut()),
        Some(Fault::Whole) => {
            let whole = state.objects.lock().get(&key_of(&seen)).cloned();
            Ok(full(200, whole.unwrap_or_default()))
        }
        Some(Fault::OtherRange) => {
            let mut response = full(206, "xx");
            response.headers_mut().insert("content-range", "bytes 7-8/100".parse().expect("a header"));
            Ok(response)
        }
        Some(Fault::Redirect) => {
            let mut response = error(307, "TemporaryRedirect");
            response.headers_mut().insert("location", seen.target.parse().expect("a header"));
            Ok(response)
        }
        None => Ok(carry_out(&state, &seen)),
    }
}

fn cut() -> Response<Body> {
    let frames = [Ok(Frame::data(Bytes::from_static(b"half"))), Err(reset())];
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(stream::iter(frames))));
    *response.status_mut() = hyper::StatusCode::PARTIAL_CONTENT;
    response.headers_mut().insert("content-length", "100".parse().expect("a header"));
    response.headers_mut().insert("content-range", "bytes 0-99/100".parse().expect("a header"));
    response
}

/// The object that a request names, of either style; empty for the bucket.
fn key_of(seen: &Seen) -> String {
    let path = seen.target.split('?').next().unwrap_or_default();
    let path = percent_decode_str(path).decode_utf8().expect("UTF-8").into_owned();
    let in_host = seen.header("host").starts_with(&format!("{BUCKET}."));
    let below = if in_host { Some(path.as_str()) } else { path.strip_prefix(&format!("/{BUCKET}")) };
    below.unwrap_or_default().trim_start_matches('/').to_owned()
}

/// Whether a request is one that this server's clients may send.
fn is_well_formed(seen: &Seen) -> bool {
    let digest = Sha256::digest(&seen.body).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let hash = seen.header("x-amz-content-sha256");
    let authorization = seen.header("authorization");
    let signs = |name: &str| {
        let names = authorization.split("SignedHeaders=").nth(1).and_then(|rest| rest.split(',').next());
        names.is_some_and(|names| names.split(';').any(|signed| signed == name))
    };
    let all_signed = seen
        .headers
        .keys()
        .filter(|name| {
            name.as_str().starts_with("x-amz-") || ["host", "if-none-match", "range"].contains(&name.as_str())
        })
        .all(|name| signs(name.as_str()));
    let is_put = seen.method == Method::PUT;
    let has_condition =
        seen.header("if-none-match") == "*" && seen.header("content-length") == seen.body.len().to_string();
    authorization.starts_with("AWS4-HMAC-SHA256 Credential=")
        && all_signed
        && signs("host")
        && signs("x-amz-date")
        && (hash == digest || hash == "UNSIGNED-PAYLOAD")
        && !seen.headers.contains_key("transfer-encoding")
        && (!is_put || has_condition)
}

fn carry_out(state: &State, seen: &Seen) -> Response<Body> {
    if !is_well_formed(seen) {
        return error(400, "BadRequest");
    }
    let key = key_of(seen);
    let mut objects = state.objects.lock();
    match seen.method.as_str() {
        "PUT" if objects.contains_key(&key) => error(412, "PreconditionFailed"),
        "PUT" => {
            objects.insert(key, seen.body.clone());
            full(200, "")
        }
        "DELETE" => {
            objects.remove(&key);
            full(204, "")
        }
        "GET" if key.is_empty() => of_bucket(&objects, seen),
        "GET" => match objects.get(&key) {
            Some(content) => ranged(content, seen.header("range")),
            None => error(404, "NoSuchKey"),
        },
        _ => error(405, "MethodNotAllowed"),
    }
}

fn ranged(content: &Bytes, range: &str) -> Response<Body> {
    let limits = range.strip_prefix("bytes=").and_then(|range| range.split_once('-')).expect("a range");
    let (from, last): (u64, u64) = (limits.0.parse().expect("a number"), limits.1.parse().expect("a number"));
    let size = content.len() as u64;
    if from >= size || last < from {
        return error(416, "InvalidRange");
    }
    let last = last.min(size - 1);
    let mut response = full(206, content.slice(from as usize..last as usize + 1));
    let range = format!("bytes {from}-{last}/{size}");
    response.headers_mut().insert("content-range", range.parse().expect("a header"));
    response
}

fn of_bucket(objects: &BTreeMap<String, Bytes>, seen: &Seen) -> Response<Body> {
    let query = seen.target.split('?').nth(1).unwrap_or_default();
    let decode = |text: &str| percent_decode_str(text).decode_utf8().expect("UTF-8").into_owned();
    let parameters: BTreeMap<String, String> = query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect();
    let parameter = |name: &str| parameters.get(name).cloned().unwrap_or_default();
    if parameter("list-type") != "2" {
        return error(501, "NotImplemented");
    }
    let (prefix, after) = (parameter("prefix"), parameter("start-after"));
    let most: usize = parameter("max-keys").parse().expect("a number");
    let found = objects.keys().filter(|key| key.starts_with(&prefix) && (after.is_empty() || **key > after));
    let found: Vec<&String> = found.collect();
    let entry = |key: &&String| {
        let key = utf8_percent_encode(key, NON_ALPHANUMERIC).to_string();
        format!("<Contents><Key>{key}</Key><Size>1</Size><ETag>&quot;x&quot;</ETag></Contents>")
    };
    let entries: String = found.iter().take(most).map(entry).collect();
    let is_truncated = found.len() > most;
    full(
        200,
        format!(
            "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
             <Name>{BUCKET}</Name><EncodingType>url</EncodingType><IsTruncated>{is_truncated}</IsTruncated>{entries}\
             </ListBucketResult>"
        ),
    )
}
