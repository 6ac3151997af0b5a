//! One connection that a single caller keeps, for requests whose bytes are ready: a write, a read, and
//! buffers that are used again. It is what hyper's connections are in [`super::pool`], for callers that send
//! so much that a task, a timer and maps of headers for each request would be most of their work.
//!
//! What always holds: it counts among the connections of the endpoint, by a permit; it is used again only if
//! the last answer was read to its end and nothing came behind it; a request that is dropped closes it; each
//! wait is bounded, by the same settings as in the pool; buffers that have grown are freed.

use super::answer_reader::{AnswerReader, Progress, Unread};
use base::{BoxFuture, Clock, Socket};
use http_client::{NoAnswer, Pool};
use hyper::StatusCode;
use hyper::header::HeaderMap;
use retry::Outcome;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::sync::OwnedSemaphorePermit;

/// Bytes that there is room for before each read, at least.
const READ_SIZE_BYTES_MIN: usize = 4 << 10;
/// Bytes of a buffer that are kept between requests, at most.
pub(crate) const KEPT_SIZE_BYTES_MAX: usize = 1 << 20;

/// A connection to an endpoint, made when it is needed.
pub(crate) struct KeepAlive {
    pool: Arc<Pool>,
    open: Option<Open>,
    /// The answer at hand.
    input: Vec<u8>,
    reader: AnswerReader,
    alarm: Alarm,
}

struct Open {
    socket: Box<dyn Socket>,
    /// When its last answer was whole.
    since: Duration,
    _permit: OwnedSemaphorePermit,
}

/// An answer that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exchanged {
    Whole(StatusCode),
    /// Its body is longer than what is read whole.
    TooLong(StatusCode),
}

/// A request under way.
struct Sending<'a> {
    request: &'a [u8],
    sent: usize,
    is_flushed: bool,
    error: Option<io::Error>,
}

impl KeepAlive {
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        KeepAlive {
            pool,
            open: None,
            input: Vec::new(),
            reader: AnswerReader::new(),
            alarm: Alarm::default(),
        }
    }

    /// Sends a request and reads its answer whole; the head is waited for `answer_for` at most.
    pub(crate) async fn exchange(
        &mut self,
        request: &[u8],
        answer_for: Duration,
    ) -> Result<Exchanged, NoAnswer> {
        self.input.clear();
        self.input.shrink_to(KEPT_SIZE_BYTES_MAX);
        self.reader = AnswerReader::new();
        let clock = self.pool.surroundings.clock.clone();
        let mut now = clock.monotonic();
        // Away while it is in use, so that it is closed if this future is dropped.
        let mut open = match self.fresh(now).await {
            Some(open) => open,
            None => {
                let _permit = self.pool.permit().await?;
                let socket = self.pool.dial().await?;
                now = clock.monotonic();
                Open { socket, since: now, _permit }
            }
        };
        let mut sending = Sending { request, sent: 0, is_flushed: false, error: None };
        let (mut deadline, mut progress) = (now + answer_for, Progress::Head);
        loop {
            let (socket, input, alarm) = (&mut *open.socket, &mut self.input, &mut self.alarm);
            if input.capacity() - input.len() < READ_SIZE_BYTES_MIN / 2 {
                input.reserve(READ_SIZE_BYTES_MIN);
            }
            let read = poll_fn(|context| {
                sending.poll(context, socket);
                match pin!(socket.read_buf(input)).poll(context) {
                    Poll::Ready(read) => Poll::Ready(Some(read)),
                    Poll::Pending => alarm.poll(context, &*clock, deadline).map(|()| None),
                }
            });
            let size = match read.await {
                None => return Err(self.timed_out(progress, answer_for)),
                Some(Err(error)) => return Err(broken(progress, sending.error.unwrap_or(error))),
                Some(Ok(size)) => size,
            };
            progress = match self.reader.advance(&mut self.input, size == 0) {
                Ok(Progress::Whole) => break,
                Ok(progress) => progress,
                Err(Unread::TooLong) => return self.status().map(Exchanged::TooLong),
                Err(Unread::Broken(what)) => {
                    let error = sending.error.unwrap_or_else(|| io::Error::other(what));
                    return Err(broken(progress, error));
                }
            };
            if progress == Progress::Body {
                deadline = clock.monotonic() + self.pool.settings.part_for;
            }
        }
        if self.reader.keeps_open(&self.input) && sending.sent == request.len() {
            open.since = clock.monotonic();
            self.open = Some(open);
        }
        self.status().map(Exchanged::Whole)
    }

    /// The connection of the last request, if it is still usable: not too old, and nothing came on it.
    async fn fresh(&mut self, now: Duration) -> Option<Open> {
        let idle_for = self.pool.settings.idle_for;
        let mut open = self.open.take().filter(|open| now.saturating_sub(open.since) < idle_for)?;
        let input = &mut self.input;
        input.reserve(READ_SIZE_BYTES_MIN);
        let is_quiet =
            poll_fn(|context| Poll::Ready(pin!(open.socket.read_buf(input)).poll(context).is_pending()));
        if is_quiet.await {
            return Some(open);
        }
        input.clear();
        None
    }

    fn timed_out(&self, progress: Progress, answer_for: Duration) -> NoAnswer {
        let what = match progress {
            Progress::Head => format!("no answer in {} s", answer_for.as_secs_f32()),
            _ => {
                let part_for = self.pool.settings.part_for;
                format!("nothing more of the answer in {} s", part_for.as_secs_f32())
            }
        };
        NoAnswer { outcome: Outcome::TimedOut, what, is_final: false }
    }

    fn status(&self) -> Result<StatusCode, NoAnswer> {
        let status = StatusCode::from_u16(self.reader.status());
        status.map_err(|error| broken(Progress::Head, io::Error::other(error)))
    }

    /// Headers of the last answer.
    pub(crate) fn headers(&self) -> HeaderMap {
        self.reader.headers(&self.input)
    }

    /// Its body.
    pub(crate) fn body(&self) -> &[u8] {
        self.reader.body(&self.input)
    }
}

fn broken(progress: Progress, error: io::Error) -> NoAnswer {
    let what = match progress {
        Progress::Head => format!("the connection broke: {error}"),
        _ => format!("the answer breaks off: {error}"),
    };
    NoAnswer { outcome: Outcome::Broken, what, is_final: false }
}

impl Sending<'_> {
    /// Sends what the socket takes. After an error the answer may still come: a server that refuses a
    /// request need not read it.
    fn poll(&mut self, context: &mut Context<'_>, socket: &mut dyn Socket) {
        while self.sent < self.request.len() && self.error.is_none() {
            match Pin::new(&mut *socket).poll_write(context, &self.request[self.sent..]) {
                Poll::Pending => return,
                Poll::Ready(Ok(0)) => self.error = Some(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(size)) => self.sent += size,
                Poll::Ready(Err(error)) => self.error = Some(error),
            }
        }
        if !self.is_flushed && self.error.is_none() {
            match Pin::new(socket).poll_flush(context) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.is_flushed = true,
                Poll::Ready(Err(error)) => self.error = Some(error),
            }
        }
    }
}

/// A timer that outlives requests: most are answered long before their deadline, so that it is set again only
/// when it has gone off, for what is left until the deadline of then.
#[derive(Default)]
struct Alarm {
    set: Option<(Duration, BoxFuture<'static, ()>)>,
}

impl Alarm {
    /// Ready when the deadline has passed.
    fn poll(&mut self, context: &mut Context<'_>, clock: &dyn Clock, deadline: Duration) -> Poll<()> {
        loop {
            let sleep = match &mut self.set {
                Some((at, sleep)) if *at <= deadline => sleep,
                _ => {
                    let left = deadline.saturating_sub(clock.monotonic());
                    &mut self.set.insert((deadline, clock.sleep(left))).1
                }
            };
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.set = None;
            if clock.monotonic() >= deadline {
                return Poll::Ready(());
            }
        }
    }
}
