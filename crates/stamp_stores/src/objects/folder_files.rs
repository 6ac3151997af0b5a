//! The files of objects in a folder: what blocks.
//!
//! ```text
//! FOLDER/<name of the object>      a whole object
//! FOLDER/.partial/<32 hex>         one that is being written; linked to its name when it is whole and synced
//! ```
//!
//! What always holds: a name never has less than its whole content, whenever the machine stops; *created*
//! and *refused* are answered only when the object's name is durable; the folder is held open, so that one
//! that is unmounted is an error and not an empty store; once a sync of a folder has failed nothing is
//! created any more, because what a later sync says is worth nothing (Rebello et al., "Can Applications
//! Recover from fsync Failures?", USENIX ATC 2020).

use crate::objects::folder_names::{PARTIAL, check_name, may_hold, sort_entries};
use base::Random;
use bytes::Bytes;
use parking_lot::Mutex;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::fs::{fstat, fsync, linkat, mkdirat, open, openat, statat, unlinkat};
use rustix::io::Errno;
use stamp::PutAnswer;
use stamp_streams::{LIST_PAGE_NAMES_MAX, ListPage, StoreError};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const FILE_MODE: u32 = 0o640;
const FOLDER_MODE: u32 = 0o750;
/// Folders whose names are known to be durable, at most: then all are forgotten, and synced once more.
const KNOWN_FOLDERS_MAX: usize = 10_000;
/// How long a file that is being written is let be, in seconds.
const PARTIAL_KEPT_FOR_S: i64 = 24 * 60 * 60;
/// How often a folder is made that is removed at the same time.
const FOLDER_TRIES_MAX: usize = 8;

/// Files below one folder.
pub(crate) struct FolderFiles {
    root: OwnedFd,
    random: Arc<dyn Random>,
    /// Folders that this process has made durable.
    known_folders: Mutex<BTreeSet<String>>,
    /// A folder's sync failed.
    is_broken: AtomicBool,
}

impl FolderFiles {
    /// Opens a folder that is there.
    pub(crate) fn open(path: &str, random: Arc<dyn Random>) -> io::Result<Self> {
        let root = open(path, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        match mkdirat(&root, PARTIAL, Mode::from(FOLDER_MODE)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        fsync(&root)?;
        clear_partial(&root, &random)?;
        let (known_folders, is_broken) = (Mutex::default(), AtomicBool::new(false));
        Ok(FolderFiles { root, random, known_folders, is_broken })
    }

    /// Creates an object, unless one of this name is there.
    pub(crate) fn create(&self, name: &str, content: &[u8]) -> PutAnswer {
        if check_name(name).is_err() {
            return PutAnswer::Failed { status: 400 };
        }
        if self.is_broken.load(Ordering::Relaxed) {
            return PutAnswer::Unknown;
        }
        let partial = format!("{PARTIAL}/{:016x}{:016x}", self.random.next_u64(), self.random.next_u64());
        let answer = match self.write_partial(&partial, content) {
            Ok(file) => self.name_partial(&partial, &file, name),
            // No space, or a quota: nothing has the name.
            Err(Errno::NOSPC | Errno::DQUOT) => PutAnswer::Failed { status: 507 },
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => PutAnswer::Failed { status: 403 },
            Err(_) => PutAnswer::Unknown,
        };
        // What stays of it holds nothing but space.
        let _ = unlinkat(&self.root, &*partial, AtFlags::empty());
        answer
    }

    fn write_partial(&self, partial: &str, content: &[u8]) -> Result<File, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mut file = File::from(openat(&self.root, partial, flags, Mode::from(FILE_MODE))?);
        let errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        file.write_all(content).map_err(errno)?;
        file.sync_all().map_err(errno)?;
        Ok(file)
    }

    /// Gives the written file its name, if that is free.
    fn name_partial(&self, partial: &str, file: &File, name: &str) -> PutAnswer {
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        for _ in 0..FOLDER_TRIES_MAX {
            if self.make_folders(folder).is_err() {
                return PutAnswer::Unknown;
            }
            let is_ours = match linkat(&self.root, partial, &self.root, name, AtFlags::empty()) {
                Ok(()) => true,
                // A file system of the network may have done it, and lost its own answer.
                Err(Errno::EXIST) => match fstat(file) {
                    Ok(found) => found.st_nlink > 1,
                    Err(_) => return PutAnswer::Unknown,
                },
                // The folder was removed since, empty.
                Err(Errno::NOENT) => {
                    self.known_folders.lock().remove(folder);
                    continue;
                }
                Err(Errno::NOSPC | Errno::DQUOT) => return PutAnswer::Failed { status: 507 },
                Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => return PutAnswer::Failed { status: 403 },
                Err(_) => return PutAnswer::Unknown,
            };
            // Also when another one was first: who is answered *refused* may rely on what is there.
            return match self.sync_folder(folder) {
                Ok(()) if is_ours => PutAnswer::Created,
                Ok(()) => PutAnswer::Refused,
                Err(_) => PutAnswer::Unknown,
            };
        }
        PutAnswer::Unknown
    }

    /// Makes a folder and those above it, and their names durable, unless this process did so before.
    fn make_folders(&self, folder: &str) -> Result<(), Errno> {
        if folder.is_empty() || self.known_folders.lock().contains(folder) {
            return Ok(());
        }
        let ends = folder.match_indices('/').map(|(at, _)| at).chain([folder.len()]);
        for end in ends {
            let path = &folder[..end];
            match mkdirat(&self.root, path, Mode::from(FOLDER_MODE)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            self.sync_folder(path.rsplit_once('/').map_or("", |(above, _)| above))?;
        }
        let mut known = self.known_folders.lock();
        if known.len() >= KNOWN_FOLDERS_MAX {
            known.clear();
        }
        known.insert(folder.to_owned());
        Ok(())
    }

    /// Makes the names in a folder durable.
    fn sync_folder(&self, folder: &str) -> Result<(), Errno> {
        let opened = if folder.is_empty() { None } else { Some(self.open_folder(folder)?) };
        let synced = fsync(opened.as_ref().unwrap_or(&self.root));
        if let Err(error) = synced {
            self.is_broken.store(true, Ordering::Relaxed);
            tracing::error!(folder, %error, "a folder of objects can't be made durable");
        }
        synced
    }

    fn open_folder(&self, folder: &str) -> Result<OwnedFd, Errno> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        openat(&self.root, folder, flags, Mode::empty())
    }

    /// Reads a piece of an object.
    pub(crate) fn read(&self, name: &str, offset: u64, length: u64) -> Result<Bytes, StoreError> {
        check_name(name).map_err(StoreError::Refused)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = match openat(&self.root, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT | Errno::NOTDIR) => return Err(StoreError::NotThere),
            Err(error) => return Err(failed(name, &error.into())),
        };
        let read = || -> io::Result<Vec<u8>> {
            let size = file.metadata()?.len();
            let mut content = vec![0; length.min(size.saturating_sub(offset)) as usize];
            file.read_exact_at(&mut content, offset)?;
            Ok(content)
        };
        read().map(Bytes::from).map_err(|error| failed(name, &error))
    }

    /// Deletes an object, and its folder if that is empty then.
    pub(crate) fn delete(&self, name: &str) -> Result<(), StoreError> {
        check_name(name).map_err(StoreError::Refused)?;
        match unlinkat(&self.root, name, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
            Err(error @ (Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::ISDIR)) => {
                return Err(StoreError::Refused(format!("{name}: {error}")));
            }
            Err(error) => return Err(StoreError::UnknownOutcome(format!("{name}: {error}"))),
        }
        let Some((folder, _)) = name.rsplit_once('/') else { return self.synced(name, "") };
        self.synced(name, folder)?;
        // Refused while anything is in it.
        if unlinkat(&self.root, folder, AtFlags::REMOVEDIR).is_ok() {
            self.known_folders.lock().remove(folder);
        }
        Ok(())
    }

    fn synced(&self, name: &str, folder: &str) -> Result<(), StoreError> {
        match self.sync_folder(folder) {
            // The folder itself was removed by another deletion.
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(StoreError::UnknownOutcome(format!("{name}: {error}"))),
        }
    }

    /// A page of names.
    pub(crate) fn list(&self, prefix: &str, after: Option<&str>) -> Result<ListPage, StoreError> {
        let mut names = Vec::new();
        let listed = self.list_folder("", prefix, after, &mut names);
        listed.map_err(|error| failed(prefix, &error.into()))?;
        let has_more = names.len() > LIST_PAGE_NAMES_MAX;
        names.truncate(LIST_PAGE_NAMES_MAX);
        Ok(ListPage { names, has_more })
    }

    /// Adds names below a folder, `path` with its slash, until there is one more than a page has.
    fn list_folder(
        &self,
        path: &str,
        prefix: &str,
        after: Option<&str>,
        names: &mut Vec<String>,
    ) -> Result<(), Errno> {
        for (entry, is_folder) in self.entries(path)? {
            if names.len() > LIST_PAGE_NAMES_MAX {
                return Ok(());
            }
            let full = format!("{path}{entry}");
            if is_folder {
                let below = format!("{full}/");
                if may_hold(&below, prefix, after) {
                    self.list_folder(&below, prefix, after, names)?;
                }
            } else if full.starts_with(prefix) && after.is_none_or(|after| full.as_str() > after) {
                names.push(full);
            }
        }
        Ok(())
    }

    /// Names in a folder and whether they are folders, in the order of objects' names.
    fn entries(&self, path: &str) -> Result<Vec<(String, bool)>, Errno> {
        let folder = match path.strip_suffix('/') {
            None => {
                openat(&self.root, ".", OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?
            }
            Some(folder) => match self.open_folder(folder) {
                Ok(folder) => folder,
                // It was removed since, empty.
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Vec::new()),
                Err(error) => return Err(error),
            },
        };
        let mut entries = Vec::new();
        for entry in Dir::read_from(folder.as_fd())? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            // The folder itself, the one above it, and what is being written.
            if name.starts_with('.') {
                continue;
            }
            let is_folder = match entry.file_type() {
                FileType::Directory => true,
                FileType::RegularFile => false,
                FileType::Unknown => self.open_folder(&format!("{path}{name}")).is_ok(),
                _ => continue,
            };
            entries.push((name.to_owned(), is_folder));
        }
        sort_entries(&mut entries);
        Ok(entries)
    }
}

/// Removes what processes that were killed left of objects that they were writing, once it is old by the file
/// system's own clock. A writer that is that slow loses its file, and its creation is of unknown outcome.
fn clear_partial(root: &OwnedFd, random: &Arc<dyn Random>) -> io::Result<()> {
    let path = |name: &str| format!("{PARTIAL}/{name}");
    let probe = path(&format!("{:016x}", random.next_u64()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let now_s = fstat(openat(root, &*probe, flags, Mode::from(FILE_MODE))?)?.st_mtime;
    unlinkat(root, &*probe, AtFlags::empty())?;
    let folder = openat(root, PARTIAL, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    for entry in Dir::read_from(folder.as_fd())? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        let Ok(found) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        if is_file && now_s.saturating_sub(found.st_mtime) > PARTIAL_KEPT_FOR_S {
            // Another process may be first.
            let _ = unlinkat(&folder, name, AtFlags::empty());
        }
    }
    Ok(())
}

fn failed(name: &str, error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::IsADirectory => {
            StoreError::Refused(format!("{name}: {error}"))
        }
        _ => StoreError::Unavailable(format!("{name}: {error}")),
    }
}
