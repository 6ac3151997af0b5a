//! One connection: its protocol, its requests, its end.
//!
//! What always holds: a client that sends nothing, or only half of its headers, or takes no more of its
//! answer, is dropped in time, with the bytes that were kept for it; over HTTP/2 only the request is dropped,
//! as long as others go on. A stop lets the requests under way finish.

use super::activity::{Activity, EndReason, Patience, UnderWay};
use super::opening::{ServerSocket, open};
use super::phase::Phase;
use super::preface::Protocol;
use super::tls::TlsIdentity;
use crate::bounds::limits::Limits;
use crate::pipeline::RequestHandler;
use crate::reply::body::ResponseBody;
use crate::request::connection_info::ConnectionInfo;
use crate::request::header_case::CasedNames;
use base::{Clock, Spawner};
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use hyper::Request;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Requests at once on one HTTP/2 connection.
const HTTP2_STREAMS_MAX: u32 = 256;

/// Smallest read buffer that hyper takes, and so the smallest bound of headers.
const BUFFER_SIZE_BYTES_MIN: usize = 8192;

/// Requests that an HTTP/2 client may cancel before they are looked at; one that cancels more is cut off.
const HTTP2_PENDING_RESETS_MAX: usize = 20;

/// Streams of an HTTP/2 connection that the server may reset for a client's mistakes before it is cut off.
const HTTP2_ERROR_RESETS_MAX: usize = 1024;

/// How long a connection is silent before the kernel probes it, the interval of probes, and how many stay
/// unanswered.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(60);
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);
const KEEP_ALIVE_COUNT: u32 = 4;

/// How long a connection that was just made has for its first request once the server stops: who has sent one
/// gets an answer. Others have nothing under way, and must not hold the stop up.
const FIRST_REQUEST_AFTER_STOP_FOR: Duration = Duration::from_millis(250);

/// What all connections share.
pub(crate) struct ConnectionSettings {
    http1: http1::Builder,
    header_size_bytes_max: usize,
    clock: Arc<dyn Clock>,
    spawner: Arc<dyn Spawner>,
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
        let header_size_bytes_max = limits.header_size_bytes_max.max(BUFFER_SIZE_BYTES_MIN);
        let mut http1 = http1::Builder::new();
        // No header timer: it would cost each request a timer of its own. The activity watch below bounds
        // silence.
        http1.max_header_size(header_size_bytes_max).max_buf_size(header_size_bytes_max);
        let Limits { header_read_for_max, reply_taken_for_max, .. } = *limits;
        ConnectionSettings {
            http1,
            header_size_bytes_max,
            clock,
            spawner,
            header_read_for_max,
            reply_taken_for_max,
            tls,
        }
    }

    /// No pings: their answers come behind all that a slow client has not read yet. Silence is bounded by the
    /// activity watch, and vanished clients are found by the kernel.
    fn http2(&self, activity: Arc<Activity>) -> http2::Builder<RequestExecutor> {
        let executor = RequestExecutor {
            spawner: self.spawner.clone(),
            activity,
            unmoved_for_max: self.reply_taken_for_max,
        };
        let mut http2 = http2::Builder::new(executor);
        http2
            .max_header_list_size(u32::try_from(self.header_size_bytes_max).unwrap_or(u32::MAX))
            .max_concurrent_streams(HTTP2_STREAMS_MAX)
            .max_pending_accept_reset_streams(HTTP2_PENDING_RESETS_MAX)
            .max_local_error_reset_streams(HTTP2_ERROR_RESETS_MAX);
        http2
    }

    fn patience(&self, protocol: Protocol) -> Patience {
        Patience {
            silence_max: self.header_read_for_max,
            unmoved_for_max: self.reply_taken_for_max,
            requests_together: protocol == Protocol::Http1,
        }
    }
}

/// Starts the requests of one HTTP/2 connection, each a task.
#[derive(Clone)]
struct RequestExecutor {
    spawner: Arc<dyn Spawner>,
    activity: Arc<Activity>,
    unmoved_for_max: Duration,
}

impl<F> Executor<F> for RequestExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, request: F) {
        let under_way = UnderWay::start(self.activity.clone());
        let task = Activity::run_request(under_way, request, self.unmoved_for_max);
        self.spawner.spawn("HTTP/2 request", Box::pin(task));
    }
}

/// Serves a connection until it ends or the server stops.
pub(crate) async fn serve_connection(
    handler: Arc<dyn RequestHandler>,
    info: ConnectionInfo,
    stream: TcpStream,
    settings: &ConnectionSettings,
    mut phase: watch::Receiver<Phase>,
) {
    // The listener's thread took it; from here on it belongs to the one that runs this task.
    let moved = stream.into_std().and_then(TcpStream::from_std);
    let stream = match moved.and_then(prepare) {
        Ok(stream) => stream,
        Err(error) => {
            tracing::debug!("a connection broke at once: {error}");
            return;
        }
    };
    let activity = Arc::new(Activity::default());
    let (opened, protocol) = {
        let opening =
            pin!(open(stream, settings.tls.as_ref(), &*settings.clock, handler.random(), activity.clone()));
        let too_late = settings.clock.sleep(settings.header_read_for_max);
        let stopped = pin!(async {
            let _ = phase.wait_for(|phase| *phase != Phase::Serving).await;
            let closed = pin!(phase.wait_for(|phase| *phase == Phase::Closed));
            let _ = select(closed, settings.clock.sleep(FIRST_REQUEST_AFTER_STOP_FOR)).await;
        });
        match select(opening, select(too_late, stopped)).await {
            Either::Left((Ok(opened), _)) => opened,
            // No request came: no answer is due.
            Either::Left((Err(error), _)) => {
                tracing::debug!("a connection was not opened: {error}");
                return;
            }
            Either::Right(_) => return,
        }
    };
    serve_stream(handler, info, opened, protocol, activity, settings, phase).await;
}

/// Sends answers at once, and sees to it that a client that vanished is found.
fn prepare(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    keep_alive(&stream)?;
    Ok(stream)
}

/// Has the kernel ask a silent peer whether it is still there: one that vanished says nothing, for ever.
fn keep_alive(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEP_ALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, KEEP_ALIVE_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, KEEP_ALIVE_COUNT)
}

/// Serves a connection whose protocol is known.
async fn serve_stream(
    served_by: Arc<dyn RequestHandler>,
    info: ConnectionInfo,
    stream: ServerSocket,
    protocol: Protocol,
    activity: Arc<Activity>,
    settings: &ConnectionSettings,
    phase: watch::Receiver<Phase>,
) {
    let io = TokioIo::new(stream);
    let keeps_metadata = served_by.keeps_metadata();
    let end = || activity.end(&*settings.clock, settings.patience(protocol));
    let result = match protocol {
        Protocol::Http1 => {
            let noted = activity.clone();
            // Borrowed: a count that all connections share would go from core to core with every request.
            let served_by = &*served_by;
            let state = served_by.connection_state(settings.spawner.current_worker());
            let state = &state;
            let handler = service_fn(move |mut request: Request<Incoming>| {
                let under_way = UnderWay::start(noted.clone());
                if keeps_metadata {
                    CasedNames::note(&mut request);
                }
                served_by.answer_request(info, request, state).map(move |response| {
                    if response.body().resets_connection() {
                        under_way.note_reset();
                        return Err(reset());
                    }
                    // A whole body goes to the socket at once; a streamed one may wait for the disk.
                    Ok(response.map(|body| body.guarded(under_way)))
                })
            });
            let mut http1 = settings.http1.clone();
            // The answer to a client that came just before a stop says that there will be no other.
            http1.keep_alive(*phase.borrow() == Phase::Serving);
            let connection = http1.preserve_header_case(keeps_metadata).serve_connection(io, handler);
            run(connection, http1::Connection::graceful_shutdown, phase, end, |_| false).await
        }
        Protocol::Http2 => {
            let handler = service_fn(move |request: Request<Incoming>| {
                let served_by = served_by.clone();
                let spawner = settings.spawner.clone();
                async move {
                    let state = served_by.connection_state(spawner.current_worker());
                    let response = served_by.answer_request(info, request, &state).await;
                    // Other requests go on: only this one's stream is reset.
                    match response.body().resets_connection() {
                        true => Err(reset()),
                        false => Ok(response.map(ResponseBody::in_slices)),
                    }
                }
            });
            let connection = settings.http2(activity.clone()).serve_connection(io, handler);
            // A request may be on its way: the client learns which ones were not processed.
            let takes_leave = |ended| ended == EndReason::Silent;
            run(connection, http2::Connection::graceful_shutdown, phase, end, takes_leave).await
        }
    };
    if let Err(error) = result {
        tracing::debug!("a connection ended badly: {error}");
    }
}

/// Ends a connection without an answer, as a simulated fault wants it.
fn reset() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

/// Runs a connection; on a stop it finishes its requests, and when time is up it is dropped. So it is when it
/// has ended for us, unless it takes leave: then it finishes what may be under way, and is dropped when it
/// ends for us once more.
async fn run<C, E>(
    connection: C,
    finish: impl FnOnce(Pin<&mut C>),
    mut phase: watch::Receiver<Phase>,
    end: impl Fn() -> E,
    takes_leave: impl FnOnce(EndReason) -> bool,
) -> hyper::Result<()>
where
    C: Future<Output = hyper::Result<()>>,
    E: Future<Output = EndReason>,
{
    let mut connection = pin!(connection);
    let ended = {
        let notices = async {
            let stopped = pin!(phase.wait_for(|phase| *phase != Phase::Serving));
            match select(stopped, pin!(end())).await {
                Either::Left(_) => None,
                Either::Right((ended, _)) => Some(ended),
            }
        };
        // A set polls what was woken: the requests, which wake the connection all the time, do not ask the
        // timer and the listener with it.
        let mut notices = FuturesUnordered::from_iter([notices]);
        match select(connection.as_mut(), notices.next()).await {
            Either::Left((result, _)) => return result,
            Either::Right((ended, _)) => ended.flatten(),
        }
    };
    match ended {
        Some(ended) if !takes_leave(ended) => {
            tracing::debug!(?ended, "a connection is dropped");
            return Ok(());
        }
        _ => finish(connection.as_mut()),
    }
    let closed = pin!(phase.wait_for(|phase| *phase == Phase::Closed));
    match select(connection, select(closed, pin!(end()))).await {
        Either::Left((result, _)) => result,
        Either::Right(_) => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // The test opens the sockets that production code is handed.
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// Clients that vanish without a word were waited for for ever.
    #[tokio::test]
    async fn the_kernel_probes_silent_clients() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let _client = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("a client");
        let (accepted, _) = listener.accept().await.expect("a connection");
        let stream = prepare(accepted).expect("its options");
        assert_eq!(stream.nodelay().ok(), Some(true));
        assert_eq!(sockopt::socket_keepalive(&stream), Ok(true));
        assert_eq!(sockopt::tcp_keepidle(&stream), Ok(KEEP_ALIVE_AFTER));
        assert_eq!(sockopt::tcp_keepintvl(&stream), Ok(KEEP_ALIVE_EVERY));
        assert_eq!(sockopt::tcp_keepcnt(&stream), Ok(KEEP_ALIVE_COUNT));
    }
}
