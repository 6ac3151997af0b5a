//! The start of a connection: from an accepted socket to a stream whose protocol is known.
//!
//! In the clear the first bytes tell the protocol; with TLS the handshake does. The caller bounds the time of both.

use super::activity::Activity;
use super::preface::{Protocol, protocol_of};
use super::tls::TlsIdentity;
use super::watched_socket::WatchedSocket;
use base::Clock;
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A stream that requests can be read from.
pub(crate) enum Opened {
    /// In the clear.
    Clear(WatchedSocket<TcpStream>),
    /// Encrypted.
    Encrypted(Box<TlsStream<WatchedSocket<TcpStream>>>),
}

/// Opens an accepted socket; with an identity only to clients that encrypt. What goes through it is noted in `activity`.
pub(super) async fn open(
    stream: TcpStream,
    tls: Option<&TlsIdentity>,
    clock: &dyn Clock,
    activity: Arc<Activity>,
) -> io::Result<(Opened, Protocol)> {
    match tls {
        None => {
            let protocol = protocol_of(&stream, clock).await?;
            Ok((Opened::Clear(WatchedSocket::new(stream, activity)), protocol))
        }
        Some(identity) => {
            let (stream, protocol) = identity.accept(WatchedSocket::new(stream, activity)).await?;
            Ok((Opened::Encrypted(Box::new(stream)), protocol))
        }
    }
}
