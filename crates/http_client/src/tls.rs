//! TLS to a server: the roots that its certificate is checked against, and the handshake.
//!
//! What always holds: certificates and host names are always checked.

use base::Socket;
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Certificates that servers are trusted by.
#[derive(Clone, Debug, Default)]
pub enum TlsRoots {
    /// Those of the operating system, or of `SSL_CERT_FILE` and `SSL_CERT_DIR`; read when they are first
    /// needed.
    #[default]
    System,
    /// These, in PEM form, and no others.
    Pem(Vec<u8>),
}

/// What a client proves itself with: a chain of certificates and their private key, in PEM form.
#[derive(Clone)]
pub struct TlsIdentity {
    /// The certificate, and those between it and its root.
    pub certificates: Vec<u8>,
    /// The key of the first one.
    pub key: Vec<u8>,
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsIdentity(hidden)")
    }
}

/// What handshakes with servers need.
#[derive(Clone)]
pub struct Tls {
    connector: TlsConnector,
}

impl Tls {
    /// Reads the roots; an error says why they can't be used.
    pub fn new(roots: &TlsRoots) -> Result<Self, String> {
        Self::identified(roots, None)
    }

    /// The same, with what servers that ask for it know the client by.
    ///
    /// # Errors
    ///
    /// Why the roots, or certificates and key, can't be used.
    pub fn identified(roots: &TlsRoots, identity: Option<&TlsIdentity>) -> Result<Self, String> {
        let mut store = RootCertStore::empty();
        match roots {
            TlsRoots::System => {
                let found = rustls_native_certs::load_native_certs();
                let (added, _) = store.add_parsable_certificates(found.certs);
                if added == 0 {
                    let why = found.errors.first().map_or(String::new(), |error| format!(" ({error})"));
                    return Err(format!(
                        "this system has no root certificates{why}; install ca-certificates, or give a file"
                    ));
                }
            }
            TlsRoots::Pem(pem) => {
                for certificate in CertificateDer::pem_slice_iter(pem) {
                    let certificate = certificate.map_err(|error| error.to_string())?;
                    store.add(certificate).map_err(|error| error.to_string())?;
                }
                if store.is_empty() {
                    let why = "it holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)";
                    return Err(why.to_owned());
                }
            }
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(store);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let chain: Result<Vec<_>, _> =
                    CertificateDer::pem_slice_iter(&identity.certificates).collect();
                let chain = chain.map_err(|error| format!("the client's certificate: {error}"))?;
                let key = PrivateKeyDer::from_pem_slice(&identity.key)
                    .map_err(|error| format!("the client's key: {error}"))?;
                let pair = builder.with_client_auth_cert(chain, key);
                pair.map_err(|error| format!("the client's certificate and key: {error}"))?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls { connector: TlsConnector::from(Arc::new(config)) })
    }

    /// Shakes hands with the server of that name, whose certificate has to be for it; the caller bounds the
    /// time.
    pub async fn shake(&self, host: &str, socket: Box<dyn Socket>) -> io::Result<Box<dyn Socket>> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, format!("{host} is no host name")))?;
        Ok(Box::new(self.connector.connect(name, socket).await?))
    }
}
