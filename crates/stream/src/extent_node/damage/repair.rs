//! What a repair does to extents: flipped bits are written as they were, and ends that were in doubt are
//! taken as they are.

use super::walk::{WalkStep, walk};
use crate::error::StreamError;
use crate::extent_node::extent::Extent;
use crate::extent_node::journal::Request;
use crate::extent_node::{ExtentNode, ExtentStat};
use crate::ids::ExtentId;
use bytes::Bytes;

impl ExtentNode {
    /// Whether blocks that were acknowledged may be missing at the extent's end.
    pub(crate) fn is_in_doubt(&self, extent: ExtentId) -> Result<bool, StreamError> {
        Ok(self.extent(extent)?.state().in_doubt)
    }

    /// What the extent's file holds, also behind an end that is in doubt. Nothing may be under way in it.
    pub(crate) async fn walk(&self, extent: ExtentId) -> Result<Vec<WalkStep>, StreamError> {
        let extent = self.extent(extent)?;
        Ok(walk(&content(&extent).await?, extent.id))
    }

    /// Writes blocks of which one bit was flipped as they were. Returns their offsets.
    pub(crate) async fn mend(&self, extent: ExtentId) -> Result<Vec<u64>, StreamError> {
        let extent = self.extent(extent)?;
        let write_failed =
            |error: std::io::Error| StreamError::write(&format!("extent {}", extent.id), &error);
        let mut mended = Vec::new();
        for walked in walk(&content(&extent).await?, extent.id) {
            if let WalkStep::Flipped { location, block, .. } = walked {
                extent.file.write_at(location.offset, block).await.map_err(write_failed)?;
                mended.push(location.offset);
            }
        }
        if !mended.is_empty() {
            extent.file.sync_data().await.map_err(write_failed)?;
        }
        Ok(mended)
    }

    /// From now on the extent ends where it does.
    pub(crate) async fn accept_end(&self, extent: ExtentId) -> Result<ExtentStat, StreamError> {
        let extent = self.extent(extent)?;
        let state = self.ask(|reply| Request::AcceptEnd { extent: extent.clone(), reply }).await?;
        Ok(state.into())
    }
}

/// The extent's bytes, as many as its file has of them, and those that wait for it.
async fn content(extent: &Extent) -> Result<Bytes, StreamError> {
    let failed = |error: std::io::Error| StreamError::read(&format!("extent {}", extent.id), &error);
    let state = extent.state();
    let size = extent.file.size().await.map_err(failed)?;
    let len = if state.in_doubt { size } else { size.min(state.length) };
    let content = extent.file.read_at(0, len as usize).await.map_err(failed)?;
    let pending = extent.pending_below(state.length);
    if pending.is_empty() {
        return Ok(content);
    }
    let mut content = Vec::from(content);
    for (offset, bytes) in pending {
        let (from, end) = (offset as usize, offset as usize + bytes.len());
        if content.len() < end {
            content.resize(end, 0);
        }
        content[from..end].copy_from_slice(&bytes);
    }
    Ok(content.into())
}
