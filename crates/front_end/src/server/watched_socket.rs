//! A socket that notes what goes through it, so that the connection's watch knows whether the client takes
//! what is sent to it.

use super::activity::Activity;
use rustix::net::sockopt::set_socket_linger;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A socket under watch. With encryption it is the one below it.
pub(crate) struct WatchedSocket<T: AsFd> {
    socket: T,
    activity: Arc<Activity>,
}

impl<T: AsFd> WatchedSocket<T> {
    /// Notes what goes through `socket` in `activity`.
    pub(super) fn new(socket: T, activity: Arc<Activity>) -> Self {
        WatchedSocket { socket, activity }
    }

    fn note_write(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match written {
            Poll::Pending => self.activity.note_blocked(),
            Poll::Ready(Ok(size)) => self.activity.note_written(size),
            Poll::Ready(Err(_)) => {}
        }
        written
    }
}

impl<T: AsFd> Drop for WatchedSocket<T> {
    /// A socket that does not linger is reset when it is closed.
    fn drop(&mut self) {
        if self.activity.is_reset()
            && let Err(error) = set_socket_linger(&self.socket, Some(Duration::ZERO))
        {
            tracing::debug!("a connection is closed, not reset: {error}");
        }
    }
}

impl<T: AsyncRead + AsFd + Unpin> AsyncRead for WatchedSocket<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = read {
            self.activity.note_read(buffer.filled().len() - before);
        }
        read
    }
}

impl<T: AsyncWrite + AsFd + Unpin> AsyncWrite for WatchedSocket<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.note_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        self.note_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
