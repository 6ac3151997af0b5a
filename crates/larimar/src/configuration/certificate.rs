//! The certificate and its key, from the files that the settings name. They are read at the start, and again
//! every minute and on SIGHUP: whoever renews them, a tool for short-lived certificates for one, need not
//! stop the server.
//!
//! What always holds: a pair that can't be used at the start is refused; later it is logged and the
//! one before goes on. No key is printed.

use base::Clock;
use front_end::{TlsError, TlsIdentity};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const CERTIFICATE_FLAG: &str = "--tls-cert";
const KEY_FLAG: &str = "--tls-key";

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Why a file can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    #[error("{flag} {}: {error}", path.display())]
    File { flag: &'static str, path: PathBuf, error: std::io::Error },
    #[error("{flag} {}: {error}", path.display())]
    Content { flag: &'static str, path: PathBuf, error: TlsError },
}

/// Who the server is to clients that encrypt, and the files that say so.
pub(crate) struct Certificate {
    pub(crate) identity: TlsIdentity,
    watched: Mutex<Watched>,
}

/// The files, and what was last seen of them.
struct Watched {
    files: Files,
    seen: Seen,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("files", &self.watched().files).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// What the files hold.
#[derive(Clone, PartialEq, Eq)]
struct Pair {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Files {
    fn read(&self) -> Result<Pair, CertificateError> {
        let read = |flag, path: &Path| {
            std::fs::read(path).map_err(|error| CertificateError::File { flag, path: path.to_owned(), error })
        };
        let certificate = read(CERTIFICATE_FLAG, &self.certificate)?;
        Ok(Pair { certificate, key: read(KEY_FLAG, &self.key)? })
    }

    fn blamed(&self, error: TlsError) -> CertificateError {
        let (flag, path) = match error.is_about_key() {
            true => (KEY_FLAG, &self.key),
            false => (CERTIFICATE_FLAG, &self.certificate),
        };
        CertificateError::Content { flag, path: path.clone(), error }
    }
}

/// What a look at the files showed; `Err`: why there is nothing to use.
type Seen = Result<Pair, String>;

impl Certificate {
    /// Reads the files.
    pub(crate) fn read(certificate: &Path, key: &Path) -> Result<Self, CertificateError> {
        let files = Files { certificate: certificate.to_owned(), key: key.to_owned() };
        let read = files.read()?;
        let identity = TlsIdentity::from_pem(&read.certificate, &read.key);
        let identity = identity.map_err(|error| files.blamed(error))?;
        Ok(Certificate { identity, watched: Mutex::new(Watched { files, seen: Ok(read) }) })
    }

    fn watched(&self) -> std::sync::MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on what `read` has read is used, and its files are looked at.
    pub(crate) fn adopt(&self, read: Certificate) {
        let read = read.watched.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Ok(pair) = &read.seen
            && let Err(error) = self.identity.renew(&pair.certificate, &pair.key)
        {
            // The same bytes were good a moment ago.
            tracing::warn!("the certificate can't be used, the one before goes on: {error}");
            return;
        }
        *self.watched() = read;
    }

    /// Looks at the files every minute and uses what is new in them.
    pub(crate) async fn follow(&self, clock: &dyn Clock) -> std::convert::Infallible {
        loop {
            clock.sleep(LOOK_EVERY).await;
            match self.look() {
                None => {}
                Some(Ok(())) => {
                    let file = self.watched().files.certificate.clone();
                    tracing::info!(file = %file.display(), "the renewed certificate is used");
                }
                Some(Err(error)) => {
                    tracing::warn!("a renewed certificate can't be used, the one before goes on: {error}");
                }
            }
        }
    }

    /// What became of the files since they were last seen; `None`: nothing.
    fn look(&self) -> Option<Result<(), CertificateError>> {
        let Watched { files, seen } = &mut *self.watched();
        let (found, outcome) = match files.read() {
            Err(error) => (Err(error.to_string()), Err(error)),
            Ok(pair) if seen.as_ref() == Ok(&pair) => return None,
            Ok(pair) => {
                let renewed = self.identity.renew(&pair.certificate, &pair.key);
                (Ok(pair), renewed.map_err(|error| files.blamed(error)))
            }
        };
        let was_told = found.is_err() && *seen == found;
        *seen = found;
        (!was_told).then_some(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &[u8] = include_bytes!("../../../front_end/tests/certificates/server.pem");
    const KEY: &[u8] = include_bytes!("../../../front_end/tests/certificates/server-key.pem");
    const RENEWED: &[u8] = include_bytes!("../../../front_end/tests/certificates/renewed.pem");
    const RENEWED_KEY: &[u8] = include_bytes!("../../../front_end/tests/certificates/renewed-key.pem");

    #[test]
    fn each_change_of_the_files_is_told_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
        let write = |path: &Path, content: &[u8]| std::fs::write(path, content).expect("a file");
        write(&certificate, CERTIFICATE);
        write(&key, KEY);
        let served = Certificate::read(&certificate, &key).expect("a pair");
        assert!(!format!("{served:?}").contains("PRIVATE"), "{served:?}");
        let look = || served.look().map(|outcome| outcome.map_err(|error| error.to_string()));
        assert_eq!(look(), None);
        // Tools write one file after the other.
        write(&certificate, RENEWED);
        let told = look().expect("a change").expect_err("the key is another's");
        assert!(told.starts_with("--tls-cert ") && told.contains("cert.pem"), "{told}");
        assert_eq!(look(), None);
        write(&key, RENEWED_KEY);
        assert_eq!(look(), Some(Ok(())));
        assert_eq!(look(), None);
        std::fs::remove_file(&key).expect("it was there");
        let told = look().expect("a change").expect_err("the key is missing");
        assert!(told.starts_with("--tls-key ") && told.contains("key.pem"), "{told}");
        assert_eq!(look(), None);
        write(&key, b"nonsense");
        let told = look().expect("a change").expect_err("no key");
        assert!(told.contains("key.pem: it holds no private key"), "{told}");
        write(&key, RENEWED_KEY);
        assert_eq!(look(), Some(Ok(())));
    }
    /// The watch went back to the files from before when the settings named others.
    #[test]
    fn other_files_are_used_and_looked_at() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, content: &[u8]| std::fs::write(path(name), content).expect("a file");
        for (name, content) in
            [("a.pem", CERTIFICATE), ("a-key.pem", KEY), ("b.pem", RENEWED), ("b-key.pem", RENEWED_KEY)]
        {
            write(name, content);
        }
        let served = Certificate::read(&path("a.pem"), &path("a-key.pem")).expect("a pair");
        served.adopt(Certificate::read(&path("b.pem"), &path("b-key.pem")).expect("a pair"));
        assert!(format!("{served:?}").contains("b.pem"), "{served:?}");
        assert!(served.look().is_none());
        write("a.pem", b"nonsense");
        assert!(served.look().is_none());
        write("b.pem", b"nonsense");
        let told = served.look().expect("a change").expect_err("no certificate").to_string();
        assert!(told.contains("b.pem"), "{told}");
    }
}
