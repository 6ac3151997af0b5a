//! How large a range is and where its bytes lie, from its checkpoints' statistics and indexes.

use super::RangePartition;
use crate::error::PartitionError;
use bytes::Bytes;

impl RangePartition {
    /// Bytes of its checkpoints that are its own, roughly; what is only in memory does not count.
    pub(crate) async fn size_bytes(&self) -> Result<u64, PartitionError> {
        let tree = self.tree();
        let mut size_bytes = 0;
        for checkpoint in &tree.checkpoints {
            size_bytes += checkpoint.visible_bytes().await?;
        }
        Ok(size_bytes)
    }

    /// A key of each row block, with the bytes of the block.
    pub(crate) async fn weighted_keys(&self) -> Result<Vec<(Bytes, u64)>, PartitionError> {
        let tree = self.tree();
        let mut keys = Vec::new();
        for checkpoint in &tree.checkpoints {
            keys.extend(checkpoint.checkpoint.blocks_in(&checkpoint.reference.limit).await?);
        }
        Ok(keys)
    }
}
