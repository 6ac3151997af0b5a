//! A response's body: whole in memory, or streamed from where its bytes are.
//!
//! What always holds: a stream has the length that was announced, or breaks off with an error that closes the
//! connection; a guard lives until a stream is sent or dropped; a reader that takes a body in slices has
//! buffer space for all of it when it ends.

use crate::bounds::answer_memory::TakenMemory;
use crate::fairness::request_turn::RequestTurn;
use crate::fairness::worker_turns::WorkerTurns;
use base::BoxFuture;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::Stream;
use hyper::body::{Body, Frame, SizeHint};
use std::any::Any;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Bytes of a body that are handed over at once to a reader in slices: a frame of HTTP/2.
const SLICE_SIZE_BYTES: usize = 16 << 10;

/// Bytes of a large body in memory that are handed over at once otherwise, so that its memory is held until
/// nearly all of it is sent.
const PORTION_SIZE_BYTES: usize = 128 << 10;

/// Bytes that are read while they are sent.
pub(crate) struct ReplyStream {
    pub(crate) bytes: Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>,
    /// How many there are.
    pub(crate) size: u64,
}

impl ReplyStream {
    /// Of bytes that are there.
    pub(crate) fn whole(bytes: Vec<u8>) -> Self {
        let size = bytes.len() as u64;
        ReplyStream { bytes: Box::pin(futures_util::stream::once(async { Ok(Bytes::from(bytes)) })), size }
    }

    /// The same, but broken off after `left` bytes.
    pub(crate) fn cut_after(self, mut left: u64) -> Self {
        let mut bytes = self.bytes;
        let mut is_sent = false;
        let cut = futures_util::stream::poll_fn(move |context| {
            if left == 0 {
                // What was handed over before is sent while this waits.
                if !std::mem::replace(&mut is_sent, true) {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                return Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())));
            }
            let Some(next) = ready!(bytes.as_mut().poll_next(context)) else {
                return Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())));
            };
            let next = next.map(|mut bytes| {
                bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                left -= bytes.len() as u64;
                bytes
            });
            Poll::Ready(Some(next))
        });
        ReplyStream { bytes: Box::pin(cut), size: self.size }
    }

    /// The same, but broken off if it is not sent when `time` is over. That is looked at with each portion.
    pub(crate) fn until(self, time: BoxFuture<'static, ()>) -> Self {
        let (mut bytes, mut time) = (self.bytes, Some(time));
        let bytes = futures_util::stream::poll_fn(move |context| {
            let Some(running) = &mut time else { return Poll::Ready(None) };
            if running.as_mut().poll(context).is_ready() {
                time = None;
                return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
            }
            bytes.as_mut().poll_next(context)
        });
        ReplyStream { bytes: Box::pin(bytes), size: self.size }
    }
}

impl ReplyStream {
    /// The same, whose portions are read when it is the account's turn.
    pub(crate) fn in_turns(self, turns: Arc<WorkerTurns>, account: u32) -> Self {
        let bytes = futures_util::stream::unfold(self.bytes, move |mut bytes| {
            let turns = turns.clone();
            async move {
                let turn = RequestTurn::new(&turns, account);
                let next = turn.measured(async {
                    turn.wait().await;
                    bytes.next().await
                });
                let next = next.await?;
                Some((next, bytes))
            }
        });
        ReplyStream { bytes: Box::pin(bytes), size: self.size }
    }
}

impl fmt::Debug for ReplyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReplyStream({} bytes)", self.size)
    }
}

/// The body of a response.
pub struct ResponseBody {
    /// What is in memory.
    ready: Bytes,
    /// What comes after it.
    stream: Option<ReplyStream>,
    /// Bytes that were not handed over yet.
    left: u64,
    /// Dropped with the body.
    guard: Option<Box<dyn Any + Send>>,
    is_sliced: bool,
    /// Freed with the body.
    memory: Option<TakenMemory>,
    /// Nothing, but not known to be the end before that was polled: the HTTP implementation leaves out the
    /// length of a body that is no body, even where it is among the headers.
    is_shown_empty: bool,
    resets_connection: bool,
}

impl ResponseBody {
    /// Whether nothing of its response is sent, and the connection is reset, as a simulated fault wants it.
    pub fn resets_connection(&self) -> bool {
        self.resets_connection
    }

    /// Of a response that is not sent.
    pub(crate) fn reset() -> Self {
        ResponseBody { resets_connection: true, ..ResponseBody::whole(Bytes::new()) }
    }

    pub(crate) fn whole(bytes: Bytes) -> Self {
        let left = bytes.len() as u64;
        ResponseBody {
            ready: bytes,
            stream: None,
            left,
            guard: None,
            is_sliced: false,
            memory: None,
            is_shown_empty: false,
            resets_connection: false,
        }
    }

    /// No body, whose length of 0 is sent.
    pub(crate) fn shown_empty() -> Self {
        ResponseBody { is_shown_empty: true, ..ResponseBody::whole(Bytes::new()) }
    }

    pub(crate) fn stream(stream: ReplyStream) -> Self {
        let left = stream.size;
        ResponseBody {
            ready: Bytes::new(),
            stream: Some(stream),
            left,
            guard: None,
            is_sliced: false,
            memory: None,
            is_shown_empty: false,
            resets_connection: false,
        }
    }

    /// Keeps `guard` until a streamed body is handed over.
    pub(crate) fn guarded(mut self, guard: impl Any + Send) -> Self {
        if self.stream.is_some() {
            self.guard = Some(Box::new(guard));
        }
        self
    }

    /// Keeps its memory until it is handed over.
    pub(crate) fn with_memory(mut self, memory: TakenMemory) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Hands itself over in slices, the last of which is one byte, if it is longer than a slice. HTTP/2 asks
    /// for a slice when the client has made room for all before and a byte: so the client is asked for each
    /// slice, and once the body ends nothing of it waits for the client but in the socket.
    pub(crate) fn in_slices(mut self) -> Self {
        self.is_sliced = self.left > SLICE_SIZE_BYTES as u64;
        self
    }

    /// The next bytes of what is in memory.
    fn next_ready(&mut self) -> Frame<Bytes> {
        let size = match &self.memory {
            _ if self.is_sliced => slice_size(self.ready.len(), self.left),
            Some(_) => self.ready.len().min(PORTION_SIZE_BYTES),
            None => self.ready.len(),
        };
        self.left = self.left.saturating_sub(size as u64);
        Frame::data(if size == self.ready.len() {
            std::mem::take(&mut self.ready)
        } else {
            self.ready.split_to(size)
        })
    }
}

/// How many of the bytes that are ready are handed over next, if so many are left.
fn slice_size(ready: usize, left: u64) -> usize {
    let size = ready.min(SLICE_SIZE_BYTES);
    if size as u64 == left && size > 1 { size - 1 } else { size }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if !self.ready.is_empty() {
            return Poll::Ready(Some(Ok(self.next_ready())));
        }
        let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
        match ready!(stream.bytes.as_mut().poll_next(context)) {
            Some(Ok(bytes)) => {
                self.ready = bytes;
                Poll::Ready(Some(Ok(self.next_ready())))
            }
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None if self.left > 0 => Poll::Ready(Some(Err(io::Error::other("the blob's bytes ended early")))),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0 && !self.is_shown_empty
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{FutureExt, stream};
    use http_body_util::BodyExt;

    #[test]
    fn the_last_byte_is_a_slice() {
        for (ready, left, size) in [
            (1, 1, 1),
            (2, 2, 1),
            (2, 3, 2),
            (SLICE_SIZE_BYTES, 1 << 20, SLICE_SIZE_BYTES),
            (SLICE_SIZE_BYTES + 1, SLICE_SIZE_BYTES as u64 + 1, SLICE_SIZE_BYTES),
            (SLICE_SIZE_BYTES, SLICE_SIZE_BYTES as u64, SLICE_SIZE_BYTES - 1),
            (1 << 20, 1 << 20, SLICE_SIZE_BYTES),
        ] {
            assert_eq!(slice_size(ready, left), size, "{ready} of {left}");
        }
    }

    /// What a body hands over; the sizes of its parts.
    fn parts(mut body: ResponseBody) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut sizes) = (Vec::new(), Vec::new());
        while !body.is_end_stream() {
            let frame = body.frame().now_or_never().expect("it is there").expect("more").expect("no failure");
            let data = frame.into_data().expect("bytes");
            sizes.push(data.len());
            bytes.extend_from_slice(&data);
            assert_eq!(body.size_hint().exact(), Some(body.left));
        }
        assert!(body.frame().now_or_never().expect("it is there").is_none());
        (bytes, sizes)
    }

    #[test]
    fn slices_are_the_whole_body() {
        for size in [0, 1, SLICE_SIZE_BYTES, SLICE_SIZE_BYTES + 1, 3 * SLICE_SIZE_BYTES, 100_000] {
            let content: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            let chunks: Vec<Bytes> = content.chunks(40_000).map(Bytes::copy_from_slice).collect();
            let streamed = || {
                let bytes = Box::pin(stream::iter(chunks.clone()).map(Ok));
                ResponseBody::stream(ReplyStream { bytes, size: size as u64 })
            };
            let whole = || ResponseBody::whole(Bytes::from(content.clone()));
            for body in [whole(), streamed()] {
                let (bytes, sizes) = parts(body);
                assert!(bytes == content && sizes.len() <= chunks.len(), "{size}: {sizes:?}");
            }
            for body in [whole(), streamed()] {
                let (bytes, sizes) = parts(body.in_slices());
                assert!(bytes == content, "{size}: {sizes:?}");
                assert!(sizes.iter().all(|part| *part <= SLICE_SIZE_BYTES), "{size}: {sizes:?}");
                assert!(size <= SLICE_SIZE_BYTES || sizes.last() == Some(&1), "{size}: {sizes:?}");
            }
        }
    }

    /// A client that sent a `timeout` was sent the whole blob, however long that took.
    #[test]
    fn a_stream_is_broken_off_when_its_time_is_over() {
        let portions = || Box::pin(stream::repeat_with(|| Ok(Bytes::from_static(b"portion"))));
        let begun = |time| ReplyStream { bytes: portions(), size: 70 }.until(time);
        let mut body = ResponseBody::stream(begun(Box::pin(std::future::pending())));
        let mut next = || body.frame().now_or_never().expect("it is there").expect("more");
        assert!(next().is_ok() && next().is_ok());
        let mut body = ResponseBody::stream(begun(Box::pin(std::future::ready(()))));
        let mut next = || body.frame().now_or_never().expect("it is there").expect("more");
        assert_eq!(next().err().map(|error| error.kind()), Some(io::ErrorKind::TimedOut));
        assert!(next().is_err(), "and it has not ended");
    }

    #[test]
    fn a_stream_that_ends_early_is_an_error() {
        for is_sliced in [false, true] {
            let bytes = Box::pin(stream::iter([Ok(Bytes::from_static(b"half"))]));
            let mut body = ResponseBody::stream(ReplyStream { bytes, size: 100_000 });
            body.is_sliced = is_sliced;
            let mut next = || body.frame().now_or_never().expect("it is there").expect("more");
            assert!(next().is_ok());
            assert!(next().is_err());
        }
    }
}
