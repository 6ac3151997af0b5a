//! A response's body: whole in memory, or streamed from where its bytes are.
//!
//! What always holds: a stream has the length that was announced, or breaks off with an error that closes the
//! connection; whoever counts requests under way counts one until its body is sent or given up, and can tell whether it
//! is still asked for more.

use bytes::Bytes;
use futures_util::stream::Stream;
use hyper::body::{Body, Frame, SizeHint};
use std::any::Any;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

/// Bytes that are read while they are sent.
pub(crate) struct ReplyStream {
    pub(crate) bytes: Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>,
    /// How many there are.
    pub(crate) size: u64,
}

impl fmt::Debug for ReplyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReplyStream({} bytes)", self.size)
    }
}

/// The body of a response.
pub struct ResponseBody {
    content: Content,
    /// Dropped with the body.
    guard: Option<Box<dyn Any + Send>>,
    /// How often it was asked for more, for whoever watches it.
    asked: Option<Arc<AtomicU64>>,
}

enum Content {
    Whole(Option<Bytes>),
    Stream(ReplyStream),
}

impl ResponseBody {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        ResponseBody {
            content: Content::Whole((!bytes.is_empty()).then_some(bytes)),
            guard: None,
            asked: None,
        }
    }

    pub(crate) fn stream(stream: ReplyStream) -> Self {
        ResponseBody { content: Content::Stream(stream), guard: None, asked: None }
    }

    /// Keeps `guard` until the body is sent, if that takes time.
    pub(crate) fn guarded(mut self, guard: impl Any + Send) -> Self {
        if matches!(self.content, Content::Stream(_)) {
            self.guard = Some(Box::new(guard));
        }
        self
    }

    /// Counts in what `watch` gives how often the body is asked for more, if it is sent bit by bit.
    pub(crate) fn watched(mut self, watch: impl FnOnce() -> Arc<AtomicU64>) -> Self {
        if matches!(self.content, Content::Stream(_)) {
            self.asked = Some(watch());
        }
        self
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(asked) = &self.asked {
            asked.fetch_add(1, Ordering::Relaxed);
        }
        match &mut self.content {
            Content::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Stream(stream) => match stream.bytes.as_mut().poll_next(context) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Some(Ok(bytes))) => {
                    stream.size = stream.size.saturating_sub(bytes.len() as u64);
                    Poll::Ready(Some(Ok(Frame::data(bytes))))
                }
                Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error))),
                Poll::Ready(None) if stream.size > 0 => {
                    Poll::Ready(Some(Err(io::Error::other("the blob's bytes ended early"))))
                }
                Poll::Ready(None) => Poll::Ready(None),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(bytes) => bytes.is_none(),
            Content::Stream(stream) => stream.size == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Stream(stream) => SizeHint::with_exact(stream.size),
        }
    }
}
