//! A lock between processes, for a file that several of them change.
//!
//! What always holds: at most one holder at a time, among threads and processes of one machine; the lock goes
//! with its holder, also if that is killed.

use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A lock that may be held by another process.
pub trait FileLock: Send + Sync + 'static {
    /// Takes the lock, until what is returned is dropped; none if another holds it.
    fn try_lock(&self) -> io::Result<Option<Box<dyn Send + Sync>>>;
}

/// The operating system's lock of a file, which is made if it is missing and never removed, unless it is
/// [`SystemFileLock::passing`].
pub struct SystemFileLock {
    path: PathBuf,
    is_passing: bool,
}

impl SystemFileLock {
    /// The lock of the file at `path`.
    pub fn new(path: &Path) -> Self {
        SystemFileLock { path: path.to_owned(), is_passing: false }
    }

    /// The same of a file that is only there for this: its holder removes it at the end. One that a killed
    /// holder has left is taken as any other.
    pub fn passing(path: &Path) -> Self {
        SystemFileLock { path: path.to_owned(), is_passing: true }
    }

    /// Whether the locked file is still the one at the path: its last holder may have removed it since it was
    /// opened here, and others lock a new one then.
    fn is_at_path(&self, file: &File) -> io::Result<bool> {
        let found = match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            found => found?,
        };
        let held = file.metadata()?;
        Ok((held.dev(), held.ino()) == (found.dev(), found.ino()))
    }
}

impl FileLock for SystemFileLock {
    fn try_lock(&self) -> io::Result<Option<Box<dyn Send + Sync>>> {
        loop {
            // A lock belongs to an open file, so two threads that open it exclude each other, too.
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(&self.path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if !self.is_passing => return Ok(Some(Box::new(file))),
                Ok(()) if self.is_at_path(&file)? => {
                    return Ok(Some(Box::new(Passing { path: self.path.clone(), _file: file })));
                }
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A lock whose file is removed while it is held, so that it is never that of the next holder.
struct Passing {
    path: PathBuf,
    _file: File,
}

impl Drop for Passing {
    fn drop(&mut self) {
        // One that stays is taken by the next holder.
        let _ = std::fs::remove_file(&self.path);
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

    #[test]
    fn a_passing_lock_leaves_no_file_and_has_one_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = SystemFileLock::passing(&path);
        for _ in 0..2 {
            let held = lock.try_lock().unwrap();
            assert!(held.is_some() && lock.try_lock().unwrap().is_none());
            drop(held);
            assert!(!path.exists());
        }
        std::fs::write(&path, "of a holder that was killed").unwrap();
        assert!(lock.try_lock().unwrap().is_some());
        // Nobody holds the file of a holder that has gone while others hold a new one.
        let (held, threads) = (std::sync::atomic::AtomicUsize::new(0), 4);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let Some(lock) = SystemFileLock::passing(&path).try_lock().unwrap() else { continue };
                        assert_eq!(held.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        std::thread::yield_now();
                        held.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });
    }
}
