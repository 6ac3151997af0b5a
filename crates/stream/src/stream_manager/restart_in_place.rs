//! Begins the stream manager's log anew in the files that it has, where there is no space for new ones: so a
//! start on a full disk takes no space, however often it happens, and a log that is full on a full disk goes
//! on, without which nothing could be deleted.
//!
//! ```text
//! kept     old log (again)                          snapshot
//! begun                      snapshot, then synced             then synced
//! ```
//!
//! Of each of these the first sector is written and synced before the rest.
//!
//! What always holds: one of the two files is whole and on the disk at any moment. A former process may have
//! ended before its sync of what is read now, or that may have failed: so the file that is kept is written
//! again and synced before the other is written over. Acknowledged bytes are the same in both, so that a torn
//! write of them changes nothing.

use super::log_files::{FOLDER, PATHS, write_failed};
use crate::error::StreamError;
use crate::record::EncodedRecord;
use base::{Disk, DiskFile, OpenMode};
use bytes::Bytes;
use std::sync::Arc;

/// A disk writes so many bytes whole or not at all.
const SECTOR_SIZE: usize = 512;

/// The files, which hold the next log.
pub(super) struct RestartedLog {
    pub(super) files: [Arc<dyn DiskFile>; 2],
    /// Where the zeros behind the snapshot end.
    pub(super) grown_to: u64,
}

/// Which file is kept while the other is written, as an index; `None`: neither is whole, or the snapshot does
/// not fit.
fn choose_kept(whole: [bool; 2], sizes_bytes: [u64; 2], snapshot_bytes: u64) -> Option<usize> {
    let fits = sizes_bytes.iter().all(|size_bytes| *size_bytes >= snapshot_bytes);
    whole.iter().position(|is_whole| *is_whole).filter(|_| fits)
}

/// Opens both files and begins the log anew in them: see [`begin_in_place`].
pub(super) async fn restart_in_place(
    disk: &dyn Disk,
    whole: &[Option<Bytes>; 2],
    snapshot: &EncodedRecord,
) -> Result<RestartedLog, StreamError> {
    let mut files = Vec::with_capacity(PATHS.len());
    for path in PATHS {
        let failed = |error: std::io::Error| StreamError::read(path, &error);
        if !disk.exists(path).await.map_err(failed)? {
            return Err(StreamError::DiskFull);
        }
        files.push(disk.open(path, OpenMode::Write).await.map_err(failed)?);
    }
    let files: [Arc<dyn DiskFile>; 2] =
        files.try_into().map_err(|_| StreamError::Folder("stream manager's layout".to_owned()))?;
    begin_in_place(disk, files, whole, snapshot).await
}

/// Writes `snapshot` at the start of both files, one after the other; `whole` is what each of them holds now,
/// if it is whole. A disk that is full means that it can't be done so.
pub(super) async fn begin_in_place(
    disk: &dyn Disk,
    files: [Arc<dyn DiskFile>; 2],
    whole: &[Option<Bytes>; 2],
    snapshot: &EncodedRecord,
) -> Result<RestartedLog, StreamError> {
    let mut sizes = [0; 2];
    for ((file, size), path) in files.iter().zip(&mut sizes).zip(PATHS) {
        *size = file.size().await.map_err(|error| StreamError::read(path, &error))?;
    }
    let kept = choose_kept(whole.each_ref().map(Option::is_some), sizes, snapshot.bytes.len() as u64);
    let kept = kept.and_then(|kept| Some((kept, whole[kept].clone()?)));
    let (kept, old) = kept.ok_or(StreamError::DiskFull)?;
    // Their names may be newer than what the disk has of the folder.
    disk.sync_folder(FOLDER).await.map_err(|error| StreamError::write(FOLDER, &error))?;
    let grown_to = sizes[0].min(sizes[1]);
    let mut new = Vec::from(snapshot.bytes.clone());
    new.resize(grown_to as usize, 0);
    let new = Bytes::from(new);
    for (index, content) in [(kept, old), (1 - kept, new.clone()), (kept, new)] {
        // Apart, so that whatever a power loss leaves of the rest, the header says what was begun: it is no
        // damage.
        let header = content.slice(..content.len().min(SECTOR_SIZE));
        for (at, piece) in [(0, header.clone()), (header.len() as u64, content.slice(header.len()..))] {
            files[index].write_at(at, piece).await.map_err(write_failed)?;
            files[index].sync_data().await.map_err(|error| StreamError::write(PATHS[index], &error))?;
        }
    }
    Ok(RestartedLog { files, grown_to })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_whole_is_kept_until_the_other_has_the_snapshot() {
        for (whole, sizes, expected) in [
            ([true, true], [100, 100], Some(0)),
            ([false, true], [100, 100], Some(1)),
            ([true, false], [100, 100], Some(0)),
            ([false, false], [100, 100], None),
            ([true, true], [100, 99], None),
            ([true, true], [99, 100], None),
        ] {
            assert_eq!(choose_kept(whole, sizes, 100), expected, "{whole:?} {sizes:?}");
        }
    }
}
