//! Brings the files of extents up to what the journal says of them.
//!
//! What always holds: what is wrong with one file keeps no other from being served. A file that can't be used, or lacks
//! bytes, takes no more appends; what it has is read as ever, each block verified.

use super::extent::Extent;
use super::extent_path;
use super::journal::Recovered;
use super::lost_file::LostFile;
use super::misplaced::{owner_of, put_in_place};
use super::state::ExtentState;
use super::unsure_end::take_whole_tail;
use crate::block::{self, BLOCK_HEADER_SIZE};
use crate::error::{StreamError, is_disk_full};
use crate::ids::{ExtentId, Location};
use base::{Disk, DiskFile, OpenMode};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The files of extents, opened.
pub(super) struct OpenedExtents {
    pub(super) extents: BTreeMap<ExtentId, Arc<Extent>>,
    /// Names of files besides.
    pub(super) others: Vec<String>,
    /// A file is missing, short, or another's.
    pub(super) has_losses: bool,
}

/// Opens every extent's file, writes what only the journal has, and syncs it.
pub(super) async fn open_extents(
    disk: &dyn Disk,
    recovered: &mut Recovered,
) -> Result<OpenedExtents, StreamError> {
    for found in put_in_place(disk, &recovered.table).await? {
        tracing::warn!("{found}: it was moved to its name");
    }
    let mut names =
        disk.list("extents").await.map_err(|error| StreamError::read("folder extents", &error))?;
    let mut appends: BTreeMap<ExtentId, Vec<(u64, Bytes)>> = BTreeMap::new();
    for (extent, offset, bytes) in &recovered.appends {
        appends.entry(*extent).or_default().push((*offset, bytes.clone()));
    }
    let mut extents = BTreeMap::new();
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
                has_losses |= bring_up(&*file, id, state, &journaled, recovered.is_clean).await?;
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
    Ok(OpenedExtents { extents, others: names, has_losses })
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
    journaled: &[(u64, Bytes)],
) -> Result<Result<Arc<dyn DiskFile>, String>, StreamError> {
    let path = extent_path(extent);
    let file = match disk.open(&path, OpenMode::Write).await {
        Ok(file) => file,
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(StreamError::read(&path, &error));
        }
        // Nothing, or something, is in the journal: the rest is missing in the new file as it was in the old one.
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

pub(super) fn write_failed(path: &str, error: std::io::Error) -> StreamError {
    if is_disk_full(&error) { StreamError::DiskFull } else { StreamError::write(path, &error) }
}

/// Writes what is only journaled, and cuts off what lies beyond the length: it was never acknowledged. After a clean stop all
/// of it is there, and only damaged blocks are written. True: the file is too short.
async fn bring_up(
    file: &dyn DiskFile,
    extent: ExtentId,
    state: &mut ExtentState,
    journaled: &[(u64, Bytes)],
    is_clean: bool,
) -> Result<bool, StreamError> {
    let path = extent_path(extent);
    for (offset, bytes) in journaled {
        // What verifies is not written over after a clean stop, whatever the journal says. After any other it is, though it
        // may be there: a sync of it may have failed, and then only what is written again is synced by the next.
        if is_clean && has_whole_blocks(file, extent, *offset, bytes.len() as u64).await {
            continue;
        }
        file.write_at(*offset, bytes.clone()).await.map_err(|error| write_failed(&path, error))?;
    }
    let len = file.size().await.map_err(|error| StreamError::read(&path, &error))?;
    if state.in_doubt {
        find_end(file, extent, state, len).await;
    }
    if len < state.length {
        tell(extent, &format!("the file has {len} bytes; it should hold {}", state.length));
        state.frozen = true;
    }
    // Where the end is in doubt, what lies behind it may be all that is left of what was acknowledged.
    let is_cut = len > state.length && !state.in_doubt;
    if is_cut {
        file.set_len(state.length).await.map_err(|error| write_failed(&path, error))?;
    }
    if !journaled.is_empty() || is_cut {
        file.sync_data().await.map_err(|error| write_failed(&path, error))?;
    }
    Ok(len < state.length)
}

/// Whether so many bytes from `offset` on are whole blocks of the extent.
async fn has_whole_blocks(file: &dyn DiskFile, extent: ExtentId, offset: u64, size: u64) -> bool {
    let end = offset + size;
    let mut at = offset;
    while at < end {
        match block_at(file, extent, at, end).await {
            Some((next, _)) => at = next,
            None => return false,
        }
    }
    true
}

/// Takes whole blocks behind the length: whoever appended them may have been told so.
pub(super) async fn find_end(file: &dyn DiskFile, extent: ExtentId, state: &mut ExtentState, len: u64) {
    while let Some((end, checksum)) = block_at(file, extent, state.length, len).await {
        state.length = end;
        state.digest = state.digest.map(|digest| digest.then(checksum));
    }
}

/// Where the whole block at `offset` ends, and its checksum.
async fn block_at(file: &dyn DiskFile, extent: ExtentId, offset: u64, len: u64) -> Option<(u64, u64)> {
    if offset + BLOCK_HEADER_SIZE as u64 > len {
        return None;
    }
    let header = file.read_at(offset, BLOCK_HEADER_SIZE).await.ok()?;
    let location = Location { extent, offset, len: block::payload_len(&header, extent, offset).ok()? };
    if location.end() > len {
        return None;
    }
    let block = file.read_at(offset, BLOCK_HEADER_SIZE + location.len as usize).await.ok()?;
    block::verify(&block, location).ok()?;
    let (_, checksum) = block::step(&block, extent, offset).ok()?;
    Some((location.end(), checksum))
}
