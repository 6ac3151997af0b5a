//! TLS: the server's certificate and key, and the handshake of one connection.
//!
//! The protocol inside is chosen in the handshake (ALPN `h2` or `http/1.1`), so nothing has to look at the
//! first bytes. What always holds: a certificate and a key that do not belong together are refused when they
//! are given, not by each client, and those before them stay; the key is never printed; versions of TLS older
//! than 1.2 are not spoken.

use super::preface::Protocol;
use arc_swap::ArcSwap;
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

/// HTTP/2 in a handshake.
const ALPN_HTTP2: &[u8] = b"h2";

/// HTTP/1.1 in a handshake.
const ALPN_HTTP1: &[u8] = b"http/1.1";

/// What begins a key that needs a password (PKCS #8).
const ENCRYPTED_KEY: &[u8] = b"-----BEGIN ENCRYPTED PRIVATE KEY-----";

/// What such a key of older form begins with.
const ENCRYPTED_KEY_OLD: &[u8] = b"Proc-Type: 4,ENCRYPTED";

/// Why a certificate and its key can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate's file has none.
    #[error("it holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)")]
    NoCertificate,
    /// The certificate's file is broken.
    #[error("its certificate can't be read: {0}")]
    Certificate(String),
    /// The key's file has none.
    #[error("it holds no private key in PEM form (-----BEGIN PRIVATE KEY-----)")]
    NoKey,
    /// The key's file has one that needs a password.
    #[error("its private key is encrypted; decrypt it first (openssl pkey -in KEY -out PLAIN-KEY)")]
    EncryptedKey,
    /// The key's file is broken.
    #[error("its private key can't be read: {0}")]
    Key(String),
    /// They do not belong together, or are of a kind that is not supported.
    #[error("the certificate and the key can't be used together: {0}")]
    Pair(String),
}

impl TlsError {
    /// Whether the key's file is to blame rather than the certificate's.
    pub fn is_about_key(&self) -> bool {
        matches!(self, TlsError::NoKey | TlsError::EncryptedKey | TlsError::Key(_))
    }
}

/// Who the server is to clients that encrypt. Copies are the same one: what is renewed in one is in all.
#[derive(Clone)]
pub struct TlsIdentity {
    acceptor: TlsAcceptor,
    http1_acceptor: TlsAcceptor,
    current: Arc<Current>,
}

/// What handshakes show.
#[derive(Debug)]
struct Current(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsIdentity(hidden)")
    }
}

impl TlsIdentity {
    /// From a chain of certificates (the server's own first) and its private key, both as PEM.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let current = Arc::new(Current(ArcSwap::from_pointee(read_pair(certificates, key)?)));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(pair_error)?
            .with_no_client_auth()
            .with_cert_resolver(current.clone());
        let mut http1 = config.clone();
        http1.alpn_protocols = vec![ALPN_HTTP1.to_vec()];
        config.alpn_protocols = vec![ALPN_HTTP2.to_vec(), ALPN_HTTP1.to_vec()];
        let acceptor = |config| TlsAcceptor::from(Arc::new(config));
        Ok(TlsIdentity { acceptor: acceptor(config), http1_acceptor: acceptor(http1), current })
    }

    /// From now on handshakes show this pair, given as to [`Self::from_pem`]; connections that are open stay.
    /// An error says why it can't be used, and the former goes on.
    pub fn renew(&self, certificates: &[u8], key: &[u8]) -> Result<(), TlsError> {
        self.current.0.store(Arc::new(read_pair(certificates, key)?));
        Ok(())
    }

    /// Shakes hands for a server that speaks HTTP/1.1 only; the caller bounds the time.
    pub async fn accept_http1<T>(&self, stream: T) -> io::Result<TlsStream<T>>
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        self.http1_acceptor.accept(stream).await
    }

    /// Shakes hands; the caller bounds the time. A client that chooses no protocol speaks HTTP/1.1.
    pub(crate) async fn accept<T>(&self, stream: T) -> io::Result<(TlsStream<T>, Protocol)>
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let stream = self.acceptor.accept(stream).await?;
        let protocol = match stream.get_ref().1.alpn_protocol() {
            Some(ALPN_HTTP2) => Protocol::Http2,
            _ => Protocol::Http1,
        };
        Ok((stream, protocol))
    }
}

fn pair_error(error: rustls::Error) -> TlsError {
    TlsError::Pair(error.to_string())
}

/// A chain of certificates and its private key.
fn read_pair(certificates: &[u8], key: &[u8]) -> Result<CertifiedKey, TlsError> {
    let chain = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsError::Certificate(error.to_string()))?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate);
    }
    let is_encrypted = [ENCRYPTED_KEY, ENCRYPTED_KEY_OLD]
        .iter()
        .any(|mark| key.windows(mark.len()).any(|part| part == *mark));
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
        _ if is_encrypted => TlsError::EncryptedKey,
        pem::Error::NoItemsFound => TlsError::NoKey,
        other => TlsError::Key(other.to_string()),
    })?;
    certified_key(chain, ring::default_provider().key_provider.load_private_key(key).map_err(pair_error)?)
}

/// The chain with its key, if they belong together.
///
/// The library reads certificates of X.509 version 3 only; self-signed ones of version 1 are still about, and
/// clients that are configured to trust one do. Of those it is checked only whether the key's public half is
/// in them.
fn certified_key(
    chain: Vec<CertificateDer<'static>>,
    key: Arc<dyn rustls::sign::SigningKey>,
) -> Result<CertifiedKey, TlsError> {
    let identity = CertifiedKey::new(chain, key);
    match identity.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(identity),
        Err(rustls::Error::InvalidCertificate(_)) if holds_public_key(&identity) => Ok(identity),
        Err(error) => Err(pair_error(error)),
    }
}

fn holds_public_key(identity: &CertifiedKey) -> bool {
    let (Some(certificate), Some(public_key)) = (identity.cert.first(), identity.key.public_key()) else {
        return false;
    };
    let public_key = public_key.as_ref();
    !public_key.is_empty() && certificate.windows(public_key.len()).any(|part| part == public_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &[u8] = include_bytes!("../../tests/certificates/server.pem");
    const KEY: &[u8] = include_bytes!("../../tests/certificates/server-key.pem");
    const OTHER_KEY: &[u8] = include_bytes!("../../tests/certificates/other-key.pem");

    /// Certificates of X.509 version 1 were refused, whatever their key.
    #[test]
    fn old_certificates_are_taken_with_their_key_only() {
        let certificate = include_bytes!("../../tests/certificates/version-1.pem");
        let key = include_bytes!("../../tests/certificates/version-1-key.pem");
        assert!(TlsIdentity::from_pem(certificate, key).is_ok());
        assert!(matches!(TlsIdentity::from_pem(certificate, KEY), Err(TlsError::Pair(_))));
        assert!(matches!(TlsIdentity::from_pem(CERTIFICATE, key), Err(TlsError::Pair(_))));
    }

    #[test]
    fn only_a_pair_is_taken() {
        assert!(TlsIdentity::from_pem(CERTIFICATE, KEY).is_ok());
        let error = |certificates, key| TlsIdentity::from_pem(certificates, key).expect_err("no pair");
        assert!(matches!(error(CERTIFICATE, OTHER_KEY), TlsError::Pair(_)));
        assert!(matches!(error(b"", KEY), TlsError::NoCertificate));
        assert!(matches!(error(KEY, KEY), TlsError::NoCertificate));
        assert!(matches!(error(CERTIFICATE, b"nonsense"), TlsError::NoKey));
        let encrypted = [ENCRYPTED_KEY, b"\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"].concat();
        assert!(matches!(error(CERTIFICATE, &encrypted), TlsError::EncryptedKey));
        let older = [
            b"-----BEGIN RSA PRIVATE KEY-----\n",
            ENCRYPTED_KEY_OLD,
            b"\n\nAAAA\n-----END RSA PRIVATE KEY-----\n",
        ];
        let older = older.concat();
        assert!(matches!(error(CERTIFICATE, &older), TlsError::EncryptedKey));
        assert!(matches!(error(CERTIFICATE, CERTIFICATE), TlsError::NoKey));
        let cut = &CERTIFICATE[..CERTIFICATE.len() / 2];
        assert!(matches!(error(cut, KEY), TlsError::Certificate(_)));
        let garbled = b"-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
        assert!(matches!(error(garbled, KEY), TlsError::Certificate(_)));
        let not_one = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(error(not_one, KEY), TlsError::Pair(_)));
    }

    #[test]
    fn the_key_is_not_printed() {
        let identity = TlsIdentity::from_pem(CERTIFICATE, KEY).expect("a pair");
        assert_eq!(format!("{identity:?}"), "TlsIdentity(hidden)");
    }
}
