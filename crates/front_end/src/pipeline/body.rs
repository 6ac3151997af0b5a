//! A request's body before it is read: an operation that needs it reads it, within the bounds.
//!
//! What always holds: nothing is kept of a body that is announced too large, and a large one waits for
//! memory. A body that is read whole is the one whose length and MD5 were announced, if they were. What is
//! left of the body of a refused request is taken in, within bounds, before the answer.

use super::request;
use crate::access::{Phase, RequestNotes};
use crate::bounds::limits::{Limits, SMALL_BODY_SIZE_BYTES_MAX};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::fairness::account_bounds::AccountBounds;
use crate::fairness::request_turn::RequestTurn;
use crate::request::content_md5::{CONTENT_MD5, announced_md5, check_md5};
use base::Clock;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Version;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::EXPECT;
use hyper::http::request::Parts;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::{Semaphore, SemaphorePermit};

/// What a body has to be: bytes in pieces.
pub(crate) trait RequestBody:
    Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send
{
}

impl<B> RequestBody for B where B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send {}

/// A body that is lent to the operation, and that knows how far it was read.
pub(super) struct LentBody<'a, B> {
    body: Pin<&'a mut B>,
    is_begun: bool,
    is_over: bool,
}

impl<'a, B: RequestBody> LentBody<'a, B> {
    pub(super) fn new(body: Pin<&'a mut B>) -> Self {
        LentBody { body, is_begun: false, is_over: false }
    }

    /// Takes in what is left of it after its request was refused. Who expects a `100 Continue`, which the
    /// first read sends, sends nothing before it; what is too long is never taken in whole, and in HTTP/2 an
    /// answer may come before the body's end.
    pub(super) async fn discard_rest(&mut self, parts: &Parts, clock: &dyn Clock) {
        let is_withheld = !self.is_begun && parts.headers.contains_key(EXPECT);
        let is_too_long = self.size_hint().lower() > request::DISCARDED_SIZE_BYTES_MAX as u64;
        let is_useless = is_withheld || is_too_long || parts.version == Version::HTTP_2;
        if !is_useless && !self.is_end_stream() {
            request::discard_body(self, clock).await;
        }
    }
}

impl<B: RequestBody> Body for LentBody<'_, B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        self.is_begun = true;
        if self.is_over {
            return Poll::Ready(None);
        }
        let polled = self.body.as_mut().poll_frame(context);
        self.is_over = matches!(polled, Poll::Ready(None | Some(Err(_))));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A body that is unread yet.
pub(crate) struct IncomingBody<'a, B> {
    body: B,
    parts: &'a Parts,
    bounds: BodyBounds<'a>,
}

/// What bodies are read within.
#[derive(Clone, Copy)]
pub(super) struct BodyBounds<'a> {
    pub(super) limits: &'a Limits,
    /// Of all accounts together. Permits are KiB.
    pub(super) large_bodies: &'a Semaphore,
    /// Of each account.
    pub(super) accounts: &'a AccountBounds,
    /// The account's number.
    pub(super) account: u32,
    /// Where the account takes turns with others.
    pub(super) turn: &'a RequestTurn<'a>,
    /// Where waits are noted, and what measures them.
    pub(super) timing: (&'a RequestNotes, &'a dyn Clock),
}

impl<'a> BodyBounds<'a> {
    /// The account's part first: while it waits for that, it is not among those that wait for the whole.
    async fn take_memory(self, permits: u32) -> Option<BodyMemory<'a>> {
        let BodyBounds { large_bodies, accounts, account, .. } = self;
        let of_account = accounts.admit_body(account, permits).await?;
        Some([of_account, large_bodies.acquire_many(permits).await.ok()?])
    }
}

/// The places of a large body in memory: the account's, and that of all.
pub(crate) type BodyMemory<'a> = [SemaphorePermit<'a>; 2];

/// A body in memory, and its place there: kept until it is worked off.
pub(crate) struct WholeBody<'a> {
    /// The bytes.
    pub(crate) bytes: Bytes,
    /// Its place.
    pub(crate) memory: Option<BodyMemory<'a>>,
}

impl WholeBody<'_> {
    /// For operations without a body.
    pub(crate) const fn empty() -> Self {
        WholeBody { bytes: Bytes::new(), memory: None }
    }
}

/// A body that is read in portions, as they come.
pub(crate) struct BodyPortions<'a, B> {
    body: Pin<Box<B>>,
    turn: &'a RequestTurn<'a>,
    timing: (&'a RequestNotes, &'a dyn Clock),
}

impl<B: RequestBody> BodyPortions<'_, B> {
    /// The next bytes, once it is the account's turn; `None`: that was all.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let (notes, clock) = self.timing;
        let coming = notes.begin(clock);
        let bytes = self.next_received().await?;
        notes.end(Phase::Body, coming, clock);
        let waiting = notes.begin(clock);
        self.turn.wait().await;
        notes.end(Phase::Turn, waiting, clock);
        Ok(bytes)
    }

    async fn next_received(&mut self) -> Result<Option<Bytes>, ApiError> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
                Some(Err(error)) => {
                    tracing::debug!("a request's body broke off: {}", error.into());
                    return Err(ErrorCode::InvalidInput.into());
                }
            }
        }
    }
}

impl<'a, B: RequestBody> IncomingBody<'a, B> {
    /// How many bytes it has, if they are announced.
    pub(crate) fn announced_size(&self) -> Option<u64> {
        request::announced_body_size(self.parts, &self.body)
    }

    /// Reads it in portions, of which the caller keeps as few as it likes.
    pub(crate) fn into_portions(self) -> BodyPortions<'a, B> {
        BodyPortions { body: Box::pin(self.body), turn: self.bounds.turn, timing: self.bounds.timing }
    }

    pub(super) fn new(body: B, parts: &'a Parts, bounds: BodyBounds<'a>) -> Self {
        IncomingBody { body, parts, bounds }
    }

    /// Reads it whole, after taking memory for it if it is large.
    pub(crate) async fn read_whole(self) -> Result<WholeBody<'a>, ApiError> {
        let size_max = self.bounds.limits.body_size_bytes_max;
        self.read_up_to(size_max).await
    }

    /// The same with a bound of the operation's own, which is below the front end's.
    pub(crate) async fn read_up_to(self, size_max: usize) -> Result<WholeBody<'a>, ApiError> {
        let size_max = size_max.min(self.bounds.limits.body_size_bytes_max);
        self.read_document(size_max).await
    }

    /// The same with a bound that may be above the front end's. It takes its place among the large bodies,
    /// too.
    pub(crate) async fn read_document(self, size_max: usize) -> Result<WholeBody<'a>, ApiError> {
        let announced = request::announced_body_size(self.parts, &self.body);
        if announced.is_some_and(|size| size > size_max as u64) {
            return Err(ApiError::body_too_large(size_max as u64));
        }
        let md5 = announced_md5(self.parts.headers.get(CONTENT_MD5))?;
        let size = announced.map_or(size_max, |size| size as usize);
        let memory = if size > SMALL_BODY_SIZE_BYTES_MAX {
            // More than there is would wait for ever.
            let permits = size.min(self.bounds.limits.all_bodies_size_bytes_max()).div_ceil(1024);
            let permits = u32::try_from(permits).unwrap_or(u32::MAX);
            Some(self.bounds.take_memory(permits).await.ok_or_else(|| ApiError::new(ErrorCode::ServerBusy))?)
        } else {
            None
        };
        let (notes, clock) = self.bounds.timing;
        let coming = notes.begin(clock);
        let bytes = request::collect_body(self.body, size_max).await?;
        notes.end(Phase::Body, coming, clock);
        // A stream of HTTP/2 can end without an error before all that was announced has come.
        if announced.is_some_and(|size| size != bytes.len() as u64) {
            tracing::debug!("a request's body ended after {} bytes", bytes.len());
            return Err(ErrorCode::InvalidInput.into());
        }
        // What follows is the request's work.
        let waiting = notes.begin(clock);
        self.bounds.turn.wait().await;
        notes.end(Phase::Turn, waiting, clock);
        check_md5(md5, &bytes)?;
        Ok(WholeBody { bytes, memory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fairness::worker_turns::WorkerTurns;
    use futures_util::{FutureExt, TryStreamExt};
    use http_body_util::Full;
    use hyper::Request;
    use std::sync::Arc;

    /// What one account reads bodies within.
    struct Bounds {
        limits: Limits,
        large_bodies: Semaphore,
        accounts: AccountBounds,
        turns: WorkerTurns,
        notes: RequestNotes,
        clock: Arc<base::system::SystemClock>,
    }

    impl Bounds {
        fn new(limits: Limits) -> Self {
            let large_bodies = Semaphore::new(limits.all_bodies_size_bytes_max().div_ceil(1024));
            let accounts = AccountBounds::new(1, &limits);
            let clock = Arc::new(base::system::SystemClock::new());
            Bounds {
                limits,
                large_bodies,
                accounts,
                turns: WorkerTurns::new(clock.clone()),
                notes: RequestNotes::new(true),
                clock,
            }
        }

        fn of<'a>(&'a self, turn: &'a RequestTurn<'a>) -> BodyBounds<'a> {
            let Bounds { limits, large_bodies, accounts, .. } = self;
            let timing = (&self.notes, &*self.clock as &dyn Clock);
            BodyBounds { limits, large_bodies, accounts, account: 0, turn, timing }
        }
    }

    /// A body that ended before all that was announced had come, as HTTP/2 lets it without an error, was
    /// taken for whole.
    #[test]
    fn a_body_that_ends_early_is_refused() {
        let bounds = Bounds::new(Limits::default());
        let turn = RequestTurn::new(&bounds.turns, 0);
        for (announced, is_whole) in [(Some("5"), true), (None, true), (Some("6"), false), (Some("4"), false)]
        {
            let mut request = Request::builder();
            if let Some(announced) = announced {
                request = request.header(hyper::header::CONTENT_LENGTH, announced);
            }
            let (parts, ()) = request.body(()).expect("a request").into_parts();
            // It says nothing of its length, as one whose stream may still end.
            let portions =
                futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"hello"))]);
            let body = http_body_util::StreamBody::new(portions.map_ok(hyper::body::Frame::data));
            let body = IncomingBody::new(body, &parts, bounds.of(&turn));
            let read = body.read_whole().now_or_never().expect("it is there");
            assert_eq!(read.is_ok(), is_whole, "{announced:?}");
        }
    }

    /// Lists of blocks once had no place among the large bodies: very many at once took memory without a
    /// bound.
    #[test]
    fn a_large_document_waits_for_memory() {
        let (parts, ()) = Request::new(()).into_parts();
        let bounds = Bounds::new(Limits { bodies_size_bytes_max: 10 << 20, ..Limits::default() });
        let turn = RequestTurn::new(&bounds.turns, 0);
        let body = |size| {
            let body = Full::new(Bytes::from(vec![b'x'; size]));
            IncomingBody::new(body, &parts, bounds.of(&turn)).read_document(8 << 20)
        };
        let first = body(6 << 20).now_or_never().expect("there is room").expect("it is small enough");
        assert_eq!(first.bytes.len(), 6 << 20);
        let mut second = std::pin::pin!(body(6 << 20));
        assert!(second.as_mut().now_or_never().is_none(), "it waits");
        assert!(body(1 << 10).now_or_never().is_some(), "small ones don't");
        drop(first);
        assert!(second.now_or_never().is_some_and(|read| read.is_ok()));
        let larger = IncomingBody::new(Full::new(Bytes::new()), &parts, bounds.of(&turn));
        assert!(larger.read_document(100 << 20).now_or_never().is_some(), "as much as there is will do");
    }
}
