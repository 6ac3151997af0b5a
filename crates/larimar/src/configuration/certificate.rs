//! The certificate and its key, from the files that the settings name. They are read at the start, and again
//! every minute and on SIGHUP: whoever renews them, a tool for short-lived certificates for one, need not
//! stop the server.
//!
//! What always holds: a pair that can't be used at the start is refused; later it is logged and the
//! one before goes on. No key is printed.

use crate::apart::run_apart;
use crate::bounded_file::read_bounded;
use base::Clock;
use front_end::{TlsError, TlsIdentity};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const CERTIFICATE_FLAG: &str = "--tls-cert";
const KEY_FLAG: &str = "--tls-key";

/// Bytes of a file with a certificate (chain) or a key at most.
const PEM_FILE_SIZE_BYTES_MAX: usize = 1 << 20;

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
    /// How often other files took the place of those of the start.
    adopted_count: u64,
}

/// A look at the files that has begun: they are read apart from what it is for.
struct Look {
    files: Files,
    adopted_count: u64,
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
            let content = read_bounded(path, PEM_FILE_SIZE_BYTES_MAX);
            content.map_err(|error| CertificateError::File { flag, path: path.to_owned(), error })
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
        Ok(Certificate { identity, watched: Mutex::new(Watched { files, seen: Ok(read), adopted_count: 0 }) })
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
        let watched = &mut *self.watched();
        *watched = Watched { adopted_count: watched.adopted_count + 1, ..read };
    }

    /// Looks at the files every minute and uses what is new in them.
    pub(crate) async fn follow(&self, clock: &dyn Clock) -> std::convert::Infallible {
        loop {
            clock.sleep(LOOK_EVERY).await;
            let look = self.begin_look();
            let files = look.files.clone();
            match self.end_look(look, run_apart(move || files.read()).await) {
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

    fn begin_look(&self) -> Look {
        let watched = self.watched();
        Look { files: watched.files.clone(), adopted_count: watched.adopted_count }
    }

    /// What became of the files since they were last seen; `None`: nothing, or others are used since the look
    /// began.
    fn end_look(
        &self,
        look: Look,
        read: Result<Pair, CertificateError>,
    ) -> Option<Result<(), CertificateError>> {
        let Watched { files, seen, adopted_count } = &mut *self.watched();
        if *adopted_count != look.adopted_count {
            return None;
        }
        let (found, outcome) = match read {
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

    fn look(served: &Certificate) -> Option<Result<(), CertificateError>> {
        let look = served.begin_look();
        let read = look.files.read();
        served.end_look(look, read)
    }

    #[test]
    fn each_change_of_the_files_is_told_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
        let write = |path: &Path, content: &[u8]| std::fs::write(path, content).expect("a file");
        write(&certificate, CERTIFICATE);
        write(&key, KEY);
        let served = Certificate::read(&certificate, &key).expect("a pair");
        assert!(!format!("{served:?}").contains("PRIVATE"), "{served:?}");
        let look = || look(&served).map(|outcome| outcome.map_err(|error| error.to_string()));
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
        assert!(look(&served).is_none());
        write("a.pem", b"nonsense");
        assert!(look(&served).is_none());
        write("b.pem", b"nonsense");
        let told = look(&served).expect("a change").expect_err("no certificate").to_string();
        assert!(told.contains("b.pem"), "{told}");
    }

    /// What was read before other files were adopted took their place again.
    #[test]
    fn a_look_that_began_before_other_files_says_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, content: &[u8]| std::fs::write(path(name), content).expect("a file");
        write("cert.pem", CERTIFICATE);
        write("key.pem", KEY);
        let served = Certificate::read(&path("cert.pem"), &path("key.pem")).expect("a pair");
        let begun = served.begin_look();
        let read = begun.files.read();
        write("cert.pem", RENEWED);
        write("key.pem", RENEWED_KEY);
        served.adopt(Certificate::read(&path("cert.pem"), &path("key.pem")).expect("a pair"));
        assert!(served.end_look(begun, read).is_none());
        assert!(look(&served).is_none());
    }

    #[test]
    fn a_file_that_is_too_large_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cert.pem");
        let file = std::fs::File::create(&path).expect("a file");
        file.set_len(PEM_FILE_SIZE_BYTES_MAX as u64 + 1).expect("a size");
        let refused = Certificate::read(&path, &path).expect_err("refused").to_string();
        assert!(
            refused.starts_with("--tls-cert ") && refused.ends_with("more than 1048576 bytes"),
            "{refused}"
        );
    }
}
