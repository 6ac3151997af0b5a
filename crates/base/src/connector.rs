//! Outgoing connections, handed in, so that a client of a service can run under a seed.
//!
//! What always holds: a connector gives a stream of bytes and knows nothing of what is said on it, such as
//! TLS.

use crate::BoxFuture;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A connected stream of bytes.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Socket for T {}

/// Makes connections.
pub trait Connector: Send + Sync + 'static {
    /// Connects to `port` of `host`, a name or an address (IPv6 without brackets). The caller bounds the
    /// time.
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Socket>>>;
}

/// The operating system's TCP and its resolver of names, on the tokio runtime that is current at the call.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemConnector;

impl Connector for SystemConnector {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Socket>>> {
        Box::pin(async move {
            let socket = TcpStream::connect((host, port)).await?;
            // A request is one write, and its answer is waited for.
            socket.set_nodelay(true)?;
            Ok(Box::new(socket) as Box<dyn Socket>)
        })
    }
}
