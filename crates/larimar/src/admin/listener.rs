//! The admin side's sockets: few connections, one request each, and little patience.
//!
//! What always holds: a body is read only of a request that was let in, up to a bound.

use super::answers::{Admin, Head};
use super::route::{Addressed, Answer};
use front_end::TlsIdentity;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue, ORIGIN, WWW_AUTHENTICATE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

/// Connections at once; further ones wait until one is closed.
const CONNECTIONS_MAX: usize = 64;
/// A connection is closed after so long, unless a request that was let in with a token is being answered.
const CONNECTION_FOR_MAX: Duration = Duration::from_secs(10);
/// How often it is looked at whether it still is.
const ANSWERED_POLL_AFTER: Duration = Duration::from_millis(250);
/// Its answer has so long to be read.
const ANSWER_READ_FOR_MAX: Duration = Duration::from_secs(5);
/// A body has to come within so long.
const BODY_FOR_MAX: Duration = Duration::from_secs(5);
/// Bytes of a body.
const BODY_SIZE_BYTES_MAX: usize = 16 << 10;
/// A connection whose request has not come whole by then is closed: silent ones keep no health check waiting.
const HEAD_FOR_MAX: Duration = Duration::from_secs(1);
/// Bytes of a request's head.
const HEAD_SIZE_BYTES_MAX: usize = 8 << 10;
/// How long accepting rests after a failure, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The bound port.
pub(crate) struct AdminListener {
    listener: std::net::TcpListener,
    address: SocketAddr,
}

impl AdminListener {
    /// Listens there, or on a socket that was passed; port 0 is a free one.
    pub(crate) fn bind(passed: Option<std::net::TcpListener>, address: SocketAddr) -> std::io::Result<Self> {
        let listener = passed.map_or_else(|| std::net::TcpListener::bind(address), Ok)?;
        listener.set_nonblocking(true)?;
        Ok(AdminListener { address: listener.local_addr()?, listener })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers for as long as the process lives, on a thread of its own: a start that reads much, and workers
    /// that are busy, keep nobody from an answer. With `tls` connections are encrypted.
    pub(crate) fn start(self, admin: Arc<Admin>, tls: Option<TlsIdentity>) -> std::io::Result<()> {
        // The thread first: one that is refused must not take a runtime with it, which may not end here.
        let (sender, receiver) = std::sync::mpsc::sync_channel::<(Runtime, TcpListener)>(1);
        let serve = move || {
            if let Ok((runtime, listener)) = receiver.recv() {
                match runtime.block_on(serve(listener, tls, admin)) {}
            }
        };
        std::thread::Builder::new().name("admin".to_owned()).spawn(serve)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let listener = TcpListener::from_std(self.listener);
        drop(entered);
        match listener {
            Ok(listener) => {
                // The thread is there for as long as nothing has come.
                let _ = sender.send((runtime, listener));
                Ok(())
            }
            Err(error) => {
                runtime.shutdown_background();
                Err(error)
            }
        }
    }
}

async fn serve(listener: TcpListener, tls: Option<TlsIdentity>, admin: Arc<Admin>) -> Infallible {
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = connections.clone().acquire_owned().await else {
            // The semaphore is never closed.
            return std::future::pending().await;
        };
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("a connection to the admin port could not be accepted: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (admin, tls) = (admin.clone(), tls.clone());
        tokio::spawn(async move {
            // Of a connection that is broken already nobody waits for an answer.
            let Ok(local) = stream.local_addr() else { return };
            let ends = (local, peer);
            match tls {
                None => serve_connection(&admin, ends, stream).await,
                Some(tls) => match tokio::time::timeout(HEAD_FOR_MAX, tls.accept_http1(stream)).await {
                    Ok(Ok(stream)) => serve_connection(&admin, ends, stream).await,
                    _ => tracing::debug!("a handshake at the admin port failed"),
                },
            }
            drop(permit);
        });
    }
}

async fn serve_connection<S>(admin: &Arc<Admin>, ends: (SocketAddr, SocketAddr), stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let is_answered = AtomicBool::new(false);
    let answers = service_fn(|request| answer(admin, ends, request, &is_answered));
    let connection = http1::Builder::new()
        .keep_alive(false)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_FOR_MAX)
        .max_buf_size(HEAD_SIZE_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), answers);
    let patience = async {
        tokio::time::sleep(CONNECTION_FOR_MAX).await;
        if is_answered.load(Ordering::Relaxed) {
            while is_answered.load(Ordering::Relaxed) {
                tokio::time::sleep(ANSWERED_POLL_AFTER).await;
            }
            tokio::time::sleep(ANSWER_READ_FOR_MAX).await;
        }
    };
    tokio::select! {
        ended = connection => if let Err(error) = ended {
            tracing::debug!("a connection to the admin port broke: {error}");
        },
        () = patience => tracing::debug!("a connection to the admin port took too long"),
    }
}

async fn answer(
    admin: &Arc<Admin>,
    (local, peer): (SocketAddr, SocketAddr),
    request: Request<Incoming>,
    is_answered: &AtomicBool,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let header = |name| parts.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let host = header(HOST).or_else(|| parts.uri.authority().map(|authority| authority.as_str()));
    let crosses = parts.headers.contains_key(ORIGIN);
    let token = header(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    let addressed = Addressed { host, crosses, local: local.ip() };
    let (method, path) = (parts.method.as_str(), parts.uri.path());
    let query = parts.uri.query().unwrap_or_default();
    let answered = match admin.admit(Head { method, path, query, addressed, token, peer }).await {
        Err(refused) => refused,
        Ok(admitted) => match whole(body, &parts.method).await {
            Err(refused) => refused,
            Ok(body) => {
                is_answered.store(admitted.role.is_some(), Ordering::Relaxed);
                let answered = admin.answer(admitted, &body).await;
                is_answered.store(false, Ordering::Relaxed);
                answered
            }
        },
    };
    Ok(response(answered, &parts.method))
}

/// A whole body.
async fn whole(body: Incoming, method: &Method) -> Result<Bytes, Answer> {
    // Of a look it is not even read.
    if matches!(method, &Method::GET | &Method::HEAD) {
        return Ok(Bytes::new());
    }
    match tokio::time::timeout(BODY_FOR_MAX, Limited::new(body, BODY_SIZE_BYTES_MAX).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(_)) => Err(Answer::error(413, "body_too_large", "a body has 16 KiB at most")),
        Err(_) => Err(Answer::error(408, "body_too_slow", "the body has not come within 5 s")),
    }
}

fn response(answered: Answer, method: &Method) -> Response<Full<Bytes>> {
    let mut response = match method {
        &Method::HEAD => Response::default(),
        _ => Response::new(Full::new(Bytes::from(answered.body.into_owned()))),
    };
    *response.status_mut() =
        StatusCode::from_u16(answered.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(answered.content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if answered.status == 401 {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"larimar\""));
    }
    if let Some(allowed) = answered.allowed.and_then(|allowed| HeaderValue::from_str(&allowed).ok()) {
        headers.insert(ALLOW, allowed);
    }
    response
}
