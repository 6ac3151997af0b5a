//! Why the server could not start or go on, with what helps.

use crate::configuration::Storage;
use crate::data_folder;
use crate::passed_sockets::PassedError;
use crate::stamp::stores::StampFailure;
use partition::PartitionError;
use std::io::ErrorKind;
use std::net::SocketAddr;
use stream::StreamError;

/// Why the server could not start or go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error("the operating system refuses the server's threads: {0}")]
    Runtime(std::io::Error),
    #[error("can't listen on {address}: {error}{}", advice(flag, *address, error))]
    Listen { flag: &'static str, address: SocketAddr, error: std::io::Error },
    #[error("--otlp: {0}")]
    Collector(String),
    #[error(transparent)]
    Passed(#[from] PassedError),
    #[error(transparent)]
    Folder(#[from] data_folder::FolderError),
    #[error("--data {storage}: {error}")]
    Unusable { storage: Storage, error: StreamError },
    #[error(
        "{storage}: the disk is full; make room on it ({NEW_FOLDER_SIZE_MIB} MiB for a new data folder, some MiB for one that is there)"
    )]
    NoRoom { storage: Storage },
    #[error("{storage}: {error}")]
    Stream { storage: Storage, error: StreamError },
    #[error("{storage}: {error}")]
    Partition { storage: Storage, error: PartitionError },
    #[error("{0}")]
    ReadyFile(String),
    #[error("--access-log {file}: {error}; give a file in a folder that is there, or - for standard output")]
    AccessLog { file: String, error: std::io::Error },
    #[error("signals can't be received: {0}")]
    Signal(std::io::Error),
    #[error(transparent)]
    Stamp(#[from] StampFailure),
}

/// What a new data folder takes, the journal first of all; see `docs/settings.md`.
const NEW_FOLDER_SIZE_MIB: u64 = 200;

/// What helps against an address that can't be listened on.
fn advice(flag: &str, address: SocketAddr, error: &std::io::Error) -> String {
    let port = address.port();
    match error.kind() {
        ErrorKind::AddrInUse => {
            format!("; is another server running there? Choose another port with {flag} (not {port})")
        }
        ErrorKind::AddrNotAvailable => {
            "; this machine has no such address, give one that it has with --host".to_owned()
        }
        ErrorKind::PermissionDenied => {
            format!("; the system keeps this port from you, choose one of 1024 and above with {flag}")
        }
        _ => String::new(),
    }
}

pub(crate) fn of_stream(storage: Storage, error: StreamError) -> ServeError {
    match error {
        StreamError::DiskFull => ServeError::NoRoom { storage },
        StreamError::Folder(_) => ServeError::Unusable { storage, error },
        _ => ServeError::Stream { storage, error },
    }
}

pub(crate) fn of_partition(storage: Storage, error: PartitionError) -> ServeError {
    match error {
        PartitionError::DiskFull => ServeError::NoRoom { storage },
        _ => ServeError::Partition { storage, error },
    }
}
