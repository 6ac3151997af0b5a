//! The admin side's sockets: few connections, one request each, and little patience.

use super::answers::Admin;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HOST, HeaderValue, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

/// Connections at once; further ones wait until one is closed.
const CONNECTIONS_MAX: usize = 64;
/// A connection is closed after so long, whatever its request has come to.
const CONNECTION_FOR_MAX: Duration = Duration::from_secs(10);
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
    /// Listens on this port of the machine itself; 0 is a free one.
    pub(crate) fn bind(port: u16) -> std::io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        Ok(AdminListener { address: listener.local_addr()?, listener })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers for as long as the process lives, on a thread of its own: a start that reads much, and workers
    /// that are busy, keep nobody from an answer.
    pub(crate) fn start(self, admin: Admin) -> std::io::Result<()> {
        // The thread first: one that is refused must not take a runtime with it, which may not end here.
        let (sender, receiver) = std::sync::mpsc::sync_channel::<(Runtime, TcpListener)>(1);
        let serve = move || {
            if let Ok((runtime, listener)) = receiver.recv() {
                match runtime.block_on(serve(listener, Arc::new(admin))) {}
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

async fn serve(listener: TcpListener, admin: Arc<Admin>) -> Infallible {
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = connections.clone().acquire_owned().await else {
            // The semaphore is never closed.
            return std::future::pending().await;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("a connection to the admin port could not be accepted: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let admin = admin.clone();
        tokio::spawn(async move {
            let answers = service_fn(|request| std::future::ready(answer(&admin, &request)));
            let connection = http1::Builder::new()
                .keep_alive(false)
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_FOR_MAX)
                .max_buf_size(HEAD_SIZE_BYTES_MAX)
                .serve_connection(TokioIo::new(stream), answers);
            match tokio::time::timeout(CONNECTION_FOR_MAX, connection).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!("a connection to the admin port broke: {error}"),
                Err(_) => tracing::debug!("a connection to the admin port took too long"),
            }
            drop(permit);
        });
    }
}

fn answer(admin: &Admin, request: &Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let header = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let crosses = request.headers().contains_key(ORIGIN);
    let host = header(HOST).or_else(|| request.uri().authority().map(|authority| authority.as_str()));
    let answered = admin.answer(request.method().as_str(), request.uri().path(), host, crosses);
    let mut response = match request.method() {
        &Method::HEAD => Response::default(),
        _ => Response::new(Full::new(Bytes::from(answered.body.into_owned()))),
    };
    *response.status_mut() =
        StatusCode::from_u16(answered.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(answered.content_type));
    if answered.allows {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    Ok(response)
}
