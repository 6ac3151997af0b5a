//! Whole blocks in an extent's file: whether a part of it consists of them, and how far they reach.
//!
//! What always holds: a block counts only if its header, its place and its checksum fit.

use crate::block::{self, BLOCK_HEADER_SIZE};
use crate::extent_node::state::ExtentState;
use crate::ids::{ExtentId, Location};
use base::DiskFile;

/// Whether so many bytes from `offset` on are whole blocks of the extent.
pub(crate) async fn has_whole_blocks(file: &dyn DiskFile, extent: ExtentId, offset: u64, size: u64) -> bool {
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

/// Takes whole blocks behind the length: their appends may have been acknowledged.
pub(crate) async fn find_end(file: &dyn DiskFile, extent: ExtentId, state: &mut ExtentState, len: u64) {
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
