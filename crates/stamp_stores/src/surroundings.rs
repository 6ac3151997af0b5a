//! What stores touch outside themselves, handed in.

use base::Disk;
use base::system::SystemDisk;
use bytes::Bytes;
use http_client::{Proxies, Surroundings};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a file of credentials or certificates, at most.
const FILE_SIZE_BYTES_MAX: u64 = 1 << 20;

/// Clock, chance, tasks, sockets, files and variables. Cheap to clone.
#[derive(Clone)]
pub struct StoreSurroundings {
    /// Clock, chance, tasks and sockets.
    pub http: Surroundings,
    /// The root of the file system: files of credentials and certificates are read from it. The objects of a
    /// folder are not.
    pub disk: Arc<dyn Disk>,
    /// The environment's variables.
    pub variables: Arc<BTreeMap<String, String>>,
}

impl StoreSurroundings {
    /// The real ones, with tasks on the tokio runtime that is current at the call, and the variables as they
    /// are then. Variables that are no UTF-8 are left out.
    pub fn system() -> Self {
        let texts = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        StoreSurroundings {
            http: Surroundings::system(),
            disk: Arc::new(SystemDisk::new(Path::new("/"))),
            variables: Arc::new(texts.collect()),
        }
    }

    /// A variable that is set, and not to nothing.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A whole file; an error says why it can't be read.
    pub(crate) async fn read_file(&self, path: &str) -> Result<Bytes, FileError> {
        let full = std::path::absolute(path).map_err(|error| FileError::Other(error.to_string()))?;
        let relative = full.to_string_lossy().trim_start_matches('/').to_owned();
        let read = async {
            let file = self.disk.open(&relative, base::OpenMode::Read).await?;
            let size = file.size().await?;
            if size > FILE_SIZE_BYTES_MAX {
                return Err(std::io::Error::other("it is too long"));
            }
            file.read_at(0, size as usize).await
        };
        read.await.map_err(|error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => FileError::NotThere,
            _ => FileError::Other(error.to_string()),
        })
    }
}

/// Why a file can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FileError {
    #[error("it is not there")]
    NotThere,
    #[error("{0}")]
    Other(String),
}

/// The proxies that the variables name, in capitals or not.
pub(crate) fn proxies(surroundings: &StoreSurroundings) -> Proxies {
    let either = |name: &str| {
        let found = surroundings.variable(name).or_else(|| surroundings.variable(&name.to_uppercase()));
        found.unwrap_or_default()
    };
    let all = either("all_proxy");
    let or_all = |proxy| if str::is_empty(proxy) { all } else { proxy };
    Proxies::new(or_all(either("http_proxy")), or_all(either("https_proxy")), either("no_proxy"))
}
