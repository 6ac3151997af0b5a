//! The data folder as the process takes hold of it: made if missing, locked against a second process.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Why a folder can't be taken hold of.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    #[error("the data folder {} can't be made: {error}; choose another with --data", path.display())]
    Create { path: PathBuf, error: std::io::Error },
    #[error(
        "the data folder {} is in use by another process{holder}; stop it, or choose another folder with --data",
        path.display()
    )]
    InUse { path: PathBuf, holder: String },
    #[error("the data folder {} can't be locked: {error}; check its permissions", path.display())]
    Lock { path: PathBuf, error: std::io::Error },
}

/// Makes the folder if it is missing.
pub(crate) fn create(path: &Path) -> Result<(), FolderError> {
    std::fs::create_dir_all(path).map_err(|error| FolderError::Create { path: path.to_owned(), error })
}

/// Holds the folder until dropped. The kernel lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

/// Locks the folder, or says who holds it.
pub(crate) fn lock(path: &Path) -> Result<FolderLock, FolderError> {
    let failed = |error| FolderError::Lock { path: path.to_owned(), error };
    let lock_path = path.join("LOCK");
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(lock_path)
        .map_err(failed)?;
    if let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if error != rustix::io::Errno::WOULDBLOCK {
            return Err(failed(error.into()));
        }
        let mut holder = String::new();
        // Only to name the holder: without it the message is shorter.
        let _ = file.read_to_string(&mut holder);
        let holder = holder.trim().parse::<u32>().map_or(String::new(), |pid| format!(" (process {pid})"));
        return Err(FolderError::InUse { path: path.to_owned(), holder });
    }
    file.set_len(0).map_err(failed)?;
    write!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(FolderLock { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_is_refused_and_names_the_holder() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock(folder.path()).unwrap();
        let refused = lock(folder.path()).unwrap_err().to_string();
        assert!(refused.contains(&format!("(process {})", std::process::id())), "{refused}");
        drop(first);
        lock(folder.path()).unwrap();
    }
}
