//! A lock between processes, for a file that several of them change.
//!
//! What always holds: at most one holder at a time, among threads and processes of one machine; the lock goes
//! with its holder, also if that is killed.

use rustix::fs::{FlockOperation, flock};
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

/// A lock that may be held by another process.
pub trait FileLock: Send + Sync + 'static {
    /// Takes the lock, until what is returned is dropped; none if another holds it.
    fn try_lock(&self) -> io::Result<Option<Box<dyn Send + Sync>>>;
}

/// The operating system's lock of a file, which is made if it is missing and never removed.
pub struct SystemFileLock {
    path: PathBuf,
}

impl SystemFileLock {
    /// The lock of the file at `path`.
    pub fn new(path: &Path) -> Self {
        SystemFileLock { path: path.to_owned() }
    }
}

impl FileLock for SystemFileLock {
    fn try_lock(&self) -> io::Result<Option<Box<dyn Send + Sync>>> {
        // A lock belongs to an open file, so two threads that open it exclude each other, too.
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&self.path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_one_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let (one, other) = (SystemFileLock::new(&path), SystemFileLock::new(&path));
        let held = one.try_lock().unwrap();
        assert!(held.is_some() && one.try_lock().unwrap().is_none() && other.try_lock().unwrap().is_none());
        drop(held);
        assert!(other.try_lock().unwrap().is_some());
        assert!(SystemFileLock::new(&folder.path().join("no/lock")).try_lock().is_err());
    }
}
