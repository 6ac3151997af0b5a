//! How large a range is and where its bytes lie, from its checkpoints' statistics and indexes.

use super::RangeTree;
use crate::error::PartitionError;
use bytes::Bytes;

impl RangeTree {
    /// Bytes of its checkpoints that are its own, roughly; what is only in memory does not count.
    pub(crate) async fn size_bytes(&self) -> Result<u64, PartitionError> {
        let tree = self.tree();
        let mut size_bytes = 0;
        for checkpoint in tree.checkpoints.iter() {
            size_bytes += checkpoint.visible_bytes().await?;
        }
        Ok(size_bytes)
    }

    /// Checkpoints that a read may have to ask.
    pub(crate) fn checkpoint_count(&self) -> usize {
        self.tree.load().checkpoints.len()
    }

    /// A key of each row block, with the bytes of the block.
    pub(crate) async fn weighted_keys(&self) -> Result<Vec<(Bytes, u64)>, PartitionError> {
        let tree = self.tree();
        let mut keys = Vec::new();
        for checkpoint in tree.checkpoints.iter() {
            keys.extend(checkpoint.checkpoint.blocks_in(&checkpoint.reference.limit).await?);
        }
        Ok(keys)
    }
}
