//! Brings the files of extents up to what the journal says of them.
//!
//! What always holds: damage of one file does not stop any other from being served. A file that can't be
//! used, or lacks bytes, takes no more appends; what it has is read as ever, each block verified. Bytes for
//! which there is no space in their file are returned, if the caller keeps them pending, and count as there.

use super::lost_file::LostFile;
use super::misplaced::{owner_of, put_in_place};
use super::unsure_end::take_whole_tail;
use super::whole_blocks::{find_end, has_whole_blocks};
use crate::error::{StreamError, is_disk_full, write_failed};
use crate::extent_node::extent::Extent;
use crate::extent_node::extent_path;
use crate::extent_node::journal::JournalRecovery;
use crate::extent_node::state::ExtentState;
use crate::ids::ExtentId;
use base::{Disk, DiskFile, OpenMode};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Journaled bytes that may be missing in an extent's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournaledBytes {
    pub(crate) offset: u64,
    pub(crate) bytes: Bytes,
    /// The newest segment has them, not the one before it.
    pub(crate) is_newest: bool,
}

impl JournaledBytes {
    /// With memory of its own: else it would keep the whole segment in memory.
    fn copied(&self) -> Self {
        JournaledBytes { bytes: Bytes::copy_from_slice(&self.bytes), ..*self }
    }
}

/// The files of extents, opened.
pub(crate) struct OpenedExtents {
    pub(crate) extents: BTreeMap<ExtentId, Arc<Extent>>,
    /// Names of files besides.
    pub(crate) others: Vec<String>,
    /// A file is missing, short, or another's.
    pub(crate) has_losses: bool,
    /// What found no space: at most what the journal's segments hold.
    pub(crate) pending: BTreeMap<ExtentId, Vec<JournaledBytes>>,
}

/// What [`open_extents`] does with what it finds.
#[derive(Clone, Copy)]
struct BringUpOptions {
    /// All was in the extents.
    is_clean: bool,
    /// What finds no space is returned.
    keeps_pending: bool,
}

/// Opens every extent's file, writes what only the journal has, and syncs it. `keeps_pending`: what finds no
/// space there is returned; else that is an error.
pub(crate) async fn open_extents(
    disk: &dyn Disk,
    recovered: &mut JournalRecovery,
    keeps_pending: bool,
) -> Result<OpenedExtents, StreamError> {
    for found in put_in_place(disk, &recovered.table).await? {
        tracing::warn!("{found}: it was moved to its name");
    }
    let mut names =
        disk.list("extents").await.map_err(|error| StreamError::read("folder extents", &error))?;
    let mut appends: BTreeMap<ExtentId, Vec<JournaledBytes>> = BTreeMap::new();
    for (index, (extent, offset, bytes)) in recovered.appends.iter().enumerate() {
        let is_newest = index >= recovered.newest_appends_from;
        appends.entry(*extent).or_default().push(JournaledBytes {
            offset: *offset,
            bytes: bytes.clone(),
            is_newest,
        });
    }
    let options = BringUpOptions { is_clean: recovered.is_clean, keeps_pending };
    let mut extents = BTreeMap::new();
    let mut pending = BTreeMap::new();
    let mut has_losses = false;
    for (&id, state) in &mut recovered.table.extents {
        let path = extent_path(id);
        names.retain(|name| path.rsplit('/').next() != Some(name));
        let journaled = appends.remove(&id).unwrap_or_default();
        let file = match open_file(disk, id, *state, &journaled).await? {
            Ok(file) => {
                if recovered.is_end_unsure && !state.frozen && !state.in_doubt {
                    take_whole_tail(&*file, id, state).await?;
                }
                let brought = bring_up(&*file, id, state, &journaled, options).await?;
                has_losses |= brought.is_short;
                if !brought.pending.is_empty() {
                    pending.insert(id, brought.pending);
                }
                file
            }
            Err(problem) => {
                tell(id, &problem);
                has_losses = true;
                state.frozen = true;
                Arc::new(LostFile(problem))
            }
        };
        extents.insert(id, Arc::new(Extent::new(id, file, *state)));
    }
    Ok(OpenedExtents { extents, others: names, has_losses, pending })
}

fn tell(extent: ExtentId, problem: &str) {
    let place = extent_path(extent);
    tracing::error!(
        place,
        problem,
        "damage: larimar check tells what it means, larimar repair what can be done"
    );
}

/// The extent's file, or why it can't be used.
async fn open_file(
    disk: &dyn Disk,
    extent: ExtentId,
    state: ExtentState,
    journaled: &[JournaledBytes],
) -> Result<Result<Arc<dyn DiskFile>, String>, StreamError> {
    let path = extent_path(extent);
    let file = match disk.open(&path, OpenMode::Write).await {
        Ok(file) => file,
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(StreamError::read(&path, &error));
        }
        // Nothing, or something, is in the journal: the rest is missing in the new file as it was in the old
        // one.
        Err(_) if state.length == 0 || !journaled.is_empty() => {
            let file =
                disk.open(&path, OpenMode::CreateNew).await.map_err(|error| write_failed(&path, error))?;
            disk.sync_folder("extents").await.map_err(|error| write_failed(&path, error))?;
            if state.length > 0 {
                tell(extent, "the file is missing: what the journal has of it is there again");
            }
            file
        }
        Err(_) => return Ok(Err(format!("the file is missing; it should hold {} bytes", state.length))),
    };
    match owner_of(&*file, extent).await {
        Some(owner) if owner != extent => Ok(Err(format!("the file holds extent {owner}"))),
        _ => Ok(Ok(file)),
    }
}

/// What became of an extent's file.
#[derive(Default)]
struct FileOutcome {
    is_short: bool,
    /// What found no space in it.
    pending: Vec<JournaledBytes>,
}

/// Writes what is only journaled, and cuts off what lies beyond the length: it was never acknowledged. After
/// a clean stop all of it is there, and only damaged blocks are written.
async fn bring_up(
    file: &dyn DiskFile,
    extent: ExtentId,
    state: &mut ExtentState,
    journaled: &[JournaledBytes],
    options: BringUpOptions,
) -> Result<FileOutcome, StreamError> {
    let path = extent_path(extent);
    let mut pending = Vec::new();
    for chunk in journaled {
        let JournaledBytes { offset, bytes, .. } = chunk;
        // What verifies is not written over after a clean stop, whatever the journal says. After any other it
        // is, though it may be there: a sync of it may have failed, and then only what is written again is
        // synced by the next.
        if options.is_clean && has_whole_blocks(file, extent, *offset, bytes.len() as u64).await {
            continue;
        }
        match file.write_at(*offset, bytes.clone()).await {
            Err(error) if is_disk_full(&error) && options.keeps_pending => pending.push(chunk.copied()),
            written => written.map_err(|error| write_failed(&path, error))?,
        }
    }
    let len = file.size().await.map_err(|error| StreamError::read(&path, &error))?;
    if state.in_doubt {
        find_end(file, extent, state, len).await;
    }
    let is_short = end_with(len, &pending) < state.length;
    if is_short {
        tell(extent, &format!("the file has {len} bytes; it should hold {}", state.length));
        state.frozen = true;
    }
    // Where the end is in doubt, what lies behind it may be all that is left of what was acknowledged.
    let is_cut = len > state.length && !state.in_doubt;
    if is_cut {
        file.set_len(state.length).await.map_err(|error| write_failed(&path, error))?;
    }
    if !journaled.is_empty() || is_cut {
        match file.sync_data().await {
            // It is unknown what of it is on the disk: all of it is to be written again.
            Err(error) if is_disk_full(&error) && options.keeps_pending => {
                pending = journaled.iter().map(JournaledBytes::copied).collect();
            }
            synced => synced.map_err(|error| write_failed(&path, error))?,
        }
    }
    Ok(FileOutcome { is_short, pending })
}

/// Where an extent ends whose file has so many bytes, with these besides, which are in order.
fn end_with(len: u64, pending: &[JournaledBytes]) -> u64 {
    pending.iter().fold(len, |end, chunk| match chunk.offset <= end {
        true => end.max(chunk.offset + chunk.bytes.len() as u64),
        false => end,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pending_counts_as_there_unless_something_is_missing_before_it() {
        let chunk = |(offset, size): &(u64, usize)| JournaledBytes {
            offset: *offset,
            bytes: Bytes::from(vec![7; *size]),
            is_newest: true,
        };
        for (len, pending, expected) in [
            (10, &[] as &[(u64, usize)], 10),
            (10, &[(10, 5)], 15),
            (12, &[(10, 5)], 15),
            (20, &[(10, 5)], 20),
            (10, &[(10, 5), (15, 5)], 20),
            // The second one was written, and the first one was not.
            (20, &[(10, 5)], 20),
            (9, &[(10, 5)], 9),
            (10, &[(10, 5), (16, 5)], 15),
        ] {
            let pending: Vec<JournaledBytes> = pending.iter().map(chunk).collect();
            assert_eq!(end_with(len, &pending), expected, "{len} {pending:?}");
        }
    }
}
