//! The start of a connection: from an accepted socket to a stream whose protocol is known.
//!
//! In the clear the first bytes tell the protocol; with TLS the handshake does. The caller bounds the time of
//! both.

use super::activity::Activity;
use super::plain_http::{is_plain_http, refuse};
use super::preface::{Protocol, protocol_of};
use super::tls::TlsIdentity;
use super::watched_socket::WatchedSocket;
use base::{Clock, Random};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A stream that requests can be read from.
pub(crate) enum ServerSocket {
    /// In the clear.
    Clear(WatchedSocket<TcpStream>),
    /// Encrypted.
    Encrypted(Box<TlsStream<WatchedSocket<TcpStream>>>),
}

/// Opens an accepted socket; with an identity only to clients that encrypt. What goes through it is noted in
/// `activity`.
pub(super) async fn open(
    stream: TcpStream,
    tls: Option<&TlsIdentity>,
    clock: &dyn Clock,
    random: &dyn Random,
    activity: Arc<Activity>,
) -> io::Result<(ServerSocket, Protocol)> {
    match tls {
        None => {
            let protocol = protocol_of(&stream, clock).await?;
            Ok((ServerSocket::Clear(WatchedSocket::new(stream, activity)), protocol))
        }
        Some(_) if is_plain_http(&stream).await? => {
            refuse(stream, clock, random).await?;
            Err(io::Error::new(io::ErrorKind::InvalidData, "the client does not encrypt"))
        }
        Some(identity) => {
            let (stream, protocol) = identity.accept(WatchedSocket::new(stream, activity)).await?;
            Ok((ServerSocket::Encrypted(Box::new(stream)), protocol))
        }
    }
}

impl AsyncRead for ServerSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ServerSocket::Clear(stream) => Pin::new(stream).poll_read(context, buffer),
            ServerSocket::Encrypted(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for ServerSocket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            ServerSocket::Clear(stream) => Pin::new(stream).poll_write(context, bytes),
            ServerSocket::Encrypted(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            ServerSocket::Clear(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            ServerSocket::Encrypted(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            ServerSocket::Clear(stream) => stream.is_write_vectored(),
            ServerSocket::Encrypted(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ServerSocket::Clear(stream) => Pin::new(stream).poll_flush(context),
            ServerSocket::Encrypted(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ServerSocket::Clear(stream) => Pin::new(stream).poll_shutdown(context),
            ServerSocket::Encrypted(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
