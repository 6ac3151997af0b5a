//! A connection to an endpoint: straight, through a proxy, with TLS.
//!
//! ```text
//! http                    socket
//! https                   socket, TLS
//! http through a proxy    socket to the proxy; requests name the whole address
//! https through a proxy   socket to the proxy, CONNECT host:port, TLS
//! ```
//!
//! What always holds: a proxy's answer is bounded in size; whatever fails here, nothing of a request was
//! sent.

use crate::endpoint::{Endpoint, Origin};
use crate::proxy::{Proxies, Proxy};
use crate::tls::{Tls, TlsIdentity, TlsRoots};
use base::{Connector, Socket};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Bytes of a proxy's answer to CONNECT, at most.
const PROXY_ANSWER_SIZE_BYTES_MAX: usize = 8 << 10;

/// Makes connections for requests.
pub struct Dialer {
    connector: Arc<dyn Connector>,
    proxies: Proxies,
    roots: TlsRoots,
    identity: Option<TlsIdentity>,
    /// Made at the first connection that needs it.
    tls: Mutex<Option<Tls>>,
}

/// Why there is no connection.
#[derive(Debug)]
pub struct DialError {
    /// What is wrong, for people.
    pub what: String,
    /// Another attempt would end the same way.
    pub is_final: bool,
}

impl DialError {
    fn transient(what: String) -> Self {
        DialError { what, is_final: false }
    }
    fn fixed(what: String) -> Self {
        DialError { what, is_final: true }
    }
}

impl Dialer {
    /// Connections through these proxies, to servers of these roots. Roots are read at the first connection
    /// with TLS.
    pub fn new(connector: Arc<dyn Connector>, proxies: Proxies, roots: TlsRoots) -> Self {
        Dialer { connector, proxies, roots, identity: None, tls: Mutex::new(None) }
    }

    /// The same, with what servers that ask for it know the client by.
    pub fn identified_by(self, identity: Option<TlsIdentity>) -> Self {
        Dialer { identity, ..self }
    }

    /// The proxy of an endpoint.
    pub fn proxy(&self, endpoint: &Endpoint) -> Result<Option<Proxy>, DialError> {
        self.proxies.of(endpoint).map_err(DialError::fixed)
    }

    /// Connects; the caller bounds the time.
    pub async fn dial(
        &self,
        endpoint: &Endpoint,
        proxy: Option<&Proxy>,
    ) -> Result<Box<dyn Socket>, DialError> {
        let origin = &endpoint.origin;
        let socket = match proxy {
            None => self.open(origin).await?,
            Some(proxy) => {
                let mut socket = self.open(&proxy.origin).await?;
                if proxy.origin.is_tls {
                    socket = self.shake(&proxy.origin, socket).await?;
                }
                if origin.is_tls {
                    tunnel(&mut socket, origin, proxy).await?;
                }
                socket
            }
        };
        if origin.is_tls { self.shake(origin, socket).await } else { Ok(socket) }
    }

    async fn open(&self, origin: &Origin) -> Result<Box<dyn Socket>, DialError> {
        let Origin { host, port, .. } = origin;
        let socket = self.connector.connect(host, *port).await;
        socket.map_err(|error| DialError::transient(format!("{host}:{port} can't be reached: {error}")))
    }

    async fn shake(&self, origin: &Origin, socket: Box<dyn Socket>) -> Result<Box<dyn Socket>, DialError> {
        let tls = self.tls()?;
        tls.shake(&origin.host, socket).await.map_err(|error| {
            let what = format!("TLS with {}:{} fails: {error}", origin.host, origin.port);
            // Of a certificate that is refused; a cut connection is an I/O error of its own kind.
            let is_final = error.kind() == std::io::ErrorKind::InvalidData;
            DialError { what, is_final }
        })
    }

    fn tls(&self) -> Result<Tls, DialError> {
        let mut made = self.tls.lock();
        if let Some(tls) = &*made {
            return Ok(tls.clone());
        }
        let tls = Tls::identified(&self.roots, self.identity.as_ref())
            .map_err(|why| DialError::fixed(format!("the certificates can't be used: {why}")))?;
        *made = Some(tls.clone());
        Ok(tls)
    }
}

/// Has the proxy connect the socket to the origin.
async fn tunnel(socket: &mut Box<dyn Socket>, origin: &Origin, proxy: &Proxy) -> Result<(), DialError> {
    let failed = |error: std::io::Error| DialError::transient(format!("the proxy breaks off: {error}"));
    let host = &origin.host;
    let target = if host.contains(':') {
        format!("[{host}]:{}", origin.port)
    } else {
        format!("{host}:{}", origin.port)
    };
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n").into_bytes();
    if let Some(authorization) = &proxy.authorization {
        request.extend_from_slice(b"proxy-authorization: ");
        request.extend_from_slice(authorization.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    socket.write_all(&request).await.map_err(failed)?;
    socket.flush().await.map_err(failed)?;
    let mut answer = Vec::new();
    // Byte by byte: what follows the answer is TLS.
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() >= PROXY_ANSWER_SIZE_BYTES_MAX {
            return Err(DialError::transient("the proxy's answer is too long".to_owned()));
        }
        answer.push(socket.read_u8().await.map_err(failed)?);
    }
    let line = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned();
    let status = line.split(' ').nth(1).unwrap_or_default();
    match status {
        _ if status.starts_with('2') && status.len() == 3 => Ok(()),
        "407" => Err(DialError::fixed(
            "the proxy wants a name and a password; give them in its address".to_owned(),
        )),
        _ => Err(DialError::transient(format!("the proxy does not connect to {target}: {line}"))),
    }
}
