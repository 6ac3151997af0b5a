//! The data folder as the process takes hold of it: made if missing, locked against a second process.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The file whose lock a server holds, and that names its process.
const LOCK_NAME: &str = "LOCK";

/// Only the user who runs the server may look into a data folder that it makes.
const OWN_FOLDER_MODE: u32 = 0o700;

/// Why a folder can't be taken hold of.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    #[error("the data folder {} can't be made: {error}; {}", path.display(), advice(error))]
    Create { path: PathBuf, error: std::io::Error },
    #[error(
        "the data folder {} is in use by another process{holder}; stop it, or choose another folder with --data",
        path.display()
    )]
    InUse { path: PathBuf, holder: String },
    #[error("the data folder {} can't be read: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("the data folder {} is in use by another process{holder}; stop it first", path.display())]
    InUseOffline { path: PathBuf, holder: String },
    #[error("the data folder {} can't be locked: {error}; {}", path.display(), advice(error))]
    Lock { path: PathBuf, error: std::io::Error },
}

/// What helps against a file system that refuses.
fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied => "check the permissions, or choose another folder with --data",
        ErrorKind::ReadOnlyFilesystem => {
            "it can only be read there: mount its file system for writing, name the folder in ReadWritePaths= of the \
             unit if systemd starts the server with ProtectSystem=, or choose another folder with --data"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "make room on its disk, or choose another folder with --data"
        }
        _ => "choose another folder with --data",
    }
}

/// Makes the folder if it is missing, so that it outlives a power loss as what is acknowledged in it must.
pub(crate) fn create(path: &Path) -> Result<(), FolderError> {
    let failed = |error| FolderError::Create { path: path.to_owned(), error };
    let missing: Vec<&Path> = missing_folders(path).collect();
    std::fs::create_dir_all(folder_of(path)).map_err(failed)?;
    // Whoever reads the files needs no account's key.
    match std::fs::DirBuilder::new().mode(OWN_FOLDER_MODE).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {}
        made => made.map_err(failed)?,
    }
    for made in missing {
        match File::open(folder_of(made)) {
            Ok(folder) => folder.sync_all().map_err(failed)?,
            // Who may make a folder there need not be allowed to read it.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                tracing::warn!(
                    "{} can't be read: whether {} outlives a power loss is up to the file system",
                    folder_of(made).display(),
                    made.display()
                );
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

/// The folders that are not there: `path` and those around it, from the inside out.
fn missing_folders(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
}

/// The folder that holds the name of `path`.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Holds the folder until dropped. The kernel lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

/// Locks the folder, or says who holds it.
pub(crate) fn lock(path: &Path) -> Result<FolderLock, FolderError> {
    let failed = |error| FolderError::Lock { path: path.to_owned(), error };
    let lock_path = path.join(LOCK_NAME);
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(lock_path)
        .map_err(failed)?;
    take(&mut file, path)?;
    file.set_len(0).map_err(failed)?;
    write!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(FolderLock { _file: file })
}

/// Takes the lock, or says who has it.
fn take(file: &mut File, path: &Path) -> Result<(), FolderError> {
    let Err(error) = flock(&*file, FlockOperation::NonBlockingLockExclusive) else { return Ok(()) };
    if error != rustix::io::Errno::WOULDBLOCK {
        return Err(FolderError::Lock { path: path.to_owned(), error: error.into() });
    }
    let mut holder = String::new();
    // Only to name the holder: without it the message is shorter.
    let _ = file.read_to_string(&mut holder);
    let holder = holder.trim().parse::<u32>().map_or(String::new(), |pid| format!(" (process {pid})"));
    Err(FolderError::InUse { path: path.to_owned(), holder })
}

/// Holds a folder that is only read: no server may hold it meanwhile, and nothing in it is made or changed.
/// Without a lock file no server has ever served it.
pub(crate) fn hold_for_reading(path: &Path) -> Result<Option<FolderLock>, FolderError> {
    let unreadable = |error| FolderError::Unreadable { path: path.to_owned(), error };
    std::fs::read_dir(path).map_err(unreadable)?;
    let mut file = match File::open(path.join(LOCK_NAME)) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    take(&mut file, path).map_err(|error| match error {
        FolderError::InUse { path, holder } => FolderError::InUseOffline { path, holder },
        other => other,
    })?;
    Ok(Some(FolderLock { _file: file }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_folders_are_made_and_those_around_them_known() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        let missing: Vec<_> = missing_folders(&path).map(folder_of).collect();
        assert_eq!(missing, [&root.path().join("a"), root.path()]);
        create(&path).unwrap();
        assert!(path.is_dir() && missing_folders(&path).next().is_none());
        create(&path).unwrap();
        assert_eq!(folder_of(Path::new("data")), Path::new("."));
    }

    #[test]
    fn advice_fits_the_failure() {
        for (kind, part) in [
            (ErrorKind::PermissionDenied, "permissions"),
            (ErrorKind::ReadOnlyFilesystem, "ReadWritePaths="),
            (ErrorKind::StorageFull, "make room"),
            (ErrorKind::NotADirectory, "another folder"),
        ] {
            assert!(advice(&kind.into()).contains(part), "{kind:?}");
        }
    }

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
