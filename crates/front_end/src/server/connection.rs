//! One connection: its protocol, its requests, its end.
//!
//! What always holds: a client that sends nothing, or only half of its headers, or takes no more of a blob, is dropped
//! in time, with the bytes that were kept for it; a stop lets the request under way finish.

use super::activity::{Activity, UnderWay};
use super::listener::Phase;
use super::opening::{Opened, open};
use super::preface::Protocol;
use super::tls::TlsIdentity;
use crate::limits::Limits;
use crate::pipeline::{ConnectionInfo, Pipeline, ServiceApi};
use crate::reply_body::ResponseBody;
use base::{Clock, Spawner};
use futures_util::future::{Either, select};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Requests at once on one HTTP/2 connection.
const HTTP2_STREAMS_MAX: u32 = 256;

/// Smallest read buffer that hyper takes, and so the smallest bound of headers.
const BUFFER_SIZE_BYTES_MIN: usize = 8192;

/// How often an idle HTTP/2 client is asked whether it is still there.
const HTTP2_PING_EVERY: Duration = Duration::from_secs(60);

/// How long a connection is silent before the kernel asks, how often it asks again, and how often in vain.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(60);
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);
const KEEP_ALIVE_COUNT: u32 = 4;

/// What all connections share.
pub(crate) struct ConnectionSettings {
    http1: http1::Builder,
    http2: http2::Builder<TaskExecutor>,
    clock: Arc<dyn Clock>,
    header_read_for_max: Duration,
    reply_taken_for_max: Duration,
    tls: Option<TlsIdentity>,
}

impl ConnectionSettings {
    /// From the front end's limits; with an identity connections are encrypted.
    pub(crate) fn new(
        limits: &Limits,
        tls: Option<TlsIdentity>,
        clock: Arc<dyn Clock>,
        spawner: Arc<dyn Spawner>,
    ) -> Self {
        let header_size = limits.header_size_bytes_max.max(BUFFER_SIZE_BYTES_MIN);
        let mut http1 = http1::Builder::new();
        // No header timer: it would cost each request a timer of its own. The activity watch below bounds silence.
        http1.max_header_size(header_size).max_buf_size(header_size);
        let mut http2 = http2::Builder::new(TaskExecutor { spawner });
        http2
            .timer(TokioTimer::new())
            .max_header_list_size(u32::try_from(header_size).unwrap_or(u32::MAX))
            .max_concurrent_streams(HTTP2_STREAMS_MAX)
            .keep_alive_interval(HTTP2_PING_EVERY);
        let Limits { header_read_for_max, reply_taken_for_max, .. } = *limits;
        ConnectionSettings { http1, http2, clock, header_read_for_max, reply_taken_for_max, tls }
    }
}

/// Starts the tasks that HTTP/2 needs for its streams.
#[derive(Clone)]
struct TaskExecutor {
    spawner: Arc<dyn Spawner>,
}

impl<F> Executor<F> for TaskExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        self.spawner.spawn("HTTP/2 stream", Box::pin(task));
    }
}

/// Serves a connection until it ends or is told to.
pub(crate) async fn serve_connection<S: ServiceApi>(
    api: Arc<Pipeline<S>>,
    info: ConnectionInfo,
    stream: TcpStream,
    settings: &ConnectionSettings,
    mut phase: watch::Receiver<Phase>,
) {
    // The listener's thread took it; from here on it belongs to the one that runs this task.
    let moved = stream.into_std().and_then(TcpStream::from_std);
    let prepared = moved.and_then(|stream| {
        stream.set_nodelay(true)?;
        keep_alive(&stream)?;
        Ok(stream)
    });
    let stream = match prepared {
        Ok(stream) => stream,
        Err(error) => {
            tracing::debug!("a connection broke at once: {error}");
            return;
        }
    };
    let (opened, protocol) = {
        let opening = pin!(open(stream, settings.tls.as_ref(), &*settings.clock));
        let too_late = settings.clock.sleep(settings.header_read_for_max);
        let stopped = pin!(phase.wait_for(|phase| *phase != Phase::Serving));
        match select(opening, select(too_late, stopped)).await {
            Either::Left((Ok(opened), _)) => opened,
            // Nothing was asked: nobody waits for an answer.
            Either::Left((Err(error), _)) => {
                tracing::debug!("a connection was not opened: {error}");
                return;
            }
            Either::Right(_) => return,
        }
    };
    match opened {
        Opened::Clear(stream) => serve_stream(api, info, stream, protocol, settings, phase).await,
        Opened::Encrypted(stream) => serve_stream(api, info, stream, protocol, settings, phase).await,
    }
}

/// Has the kernel ask a silent peer whether it is still there: one that vanished says nothing, for ever.
fn keep_alive(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEP_ALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, KEEP_ALIVE_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, KEEP_ALIVE_COUNT)
}

/// Serves a connection whose protocol is known.
async fn serve_stream<S, T>(
    api: Arc<Pipeline<S>>,
    info: ConnectionInfo,
    stream: T,
    protocol: Protocol,
    settings: &ConnectionSettings,
    phase: watch::Receiver<Phase>,
) where
    S: ServiceApi,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::new(Activity::default());
    let watched = activity.clone();
    let handler = service_fn(move |request: Request<Incoming>| {
        let api = api.clone();
        let activity = activity.clone();
        let under_way = UnderWay::start(activity.clone());
        async move {
            let response = api.handle(info, request).await;
            // A whole body is as good as sent; a streamed one keeps the request under way as long as it is taken.
            let response = response.map(|body| body.guarded(under_way).watched(|| activity.watch_reply()));
            Ok::<Response<ResponseBody>, Infallible>(response)
        }
    });
    let io = TokioIo::new(stream);
    let clock = settings.clock.clone();
    let (silence_max, taken_for_max) = (settings.header_read_for_max, settings.reply_taken_for_max);
    let result = match protocol {
        Protocol::Http1 => {
            let connection = settings.http1.serve_connection(io, handler);
            let silence = watched.silence(clock, Some(silence_max), taken_for_max);
            run(connection, http1::Connection::graceful_shutdown, phase, silence).await
        }
        Protocol::Http2 => {
            let connection = settings.http2.serve_connection(io, handler);
            // Between requests its pings tell whether the client is there.
            let silence = watched.silence(clock, None, taken_for_max);
            run(connection, http2::Connection::graceful_shutdown, phase, silence).await
        }
    };
    if let Err(error) = result {
        tracing::debug!("a connection ended badly: {error}");
    }
}

/// Runs a connection; on a stop it finishes its requests, and when time is up, or it was silent for too long, it is
/// dropped.
async fn run<C: Future<Output = hyper::Result<()>>>(
    connection: C,
    finish: impl FnOnce(Pin<&mut C>),
    mut phase: watch::Receiver<Phase>,
    silence: impl Future<Output = ()>,
) -> hyper::Result<()> {
    let mut connection = pin!(connection);
    {
        let stopped = pin!(phase.wait_for(|phase| *phase != Phase::Serving));
        match select(connection.as_mut(), select(stopped, pin!(silence))).await {
            Either::Left((result, _)) => return result,
            Either::Right((Either::Right(_), _)) => return Ok(()),
            Either::Right((Either::Left(_), _)) => {}
        }
    }
    finish(connection.as_mut());
    let closed = pin!(phase.wait_for(|phase| *phase == Phase::Closed));
    match select(connection, closed).await {
        Either::Left((result, _)) => result,
        Either::Right(_) => Ok(()),
    }
}
