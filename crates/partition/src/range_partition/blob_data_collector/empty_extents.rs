//! Emptying extents of blob data that are to go whatever they hold, because they are damaged: for the offline
//! repair.

use crate::error::PartitionError;
use crate::range_partition::blob_data_collector::{BlobDataCollector, MoveRows};
use std::collections::BTreeSet;
use stream::ExtentId;

/// Rounds until all rows name copies: each moves thousands.
const ROUND_COUNT_MAX: usize = 10_000;

impl BlobDataCollector {
    /// Copies what rows name in these extents, which must read, and takes them off the stream. Nobody may
    /// write meanwhile.
    pub(crate) async fn empty_extents(
        &self,
        rows: &impl MoveRows,
        extents: &BTreeSet<ExtentId>,
    ) -> Result<u64, PartitionError> {
        let data = &*self.data;
        let _collecting = self.collecting.lock().await;
        for extent in extents {
            self.core.shared.streams.seal(&data.stream, self.core.owner, *extent).await?;
        }
        let mut copied_bytes = 0;
        for _ in 0..ROUND_COUNT_MAX {
            self.move_pieces(rows, extents, &|| false, &|| false, &mut copied_bytes).await?;
            let condemned = data.condemn(extents.iter().copied());
            let released = self.release_condemned(data, &condemned).await?;
            if released.len() >= extents.len() || condemned.is_empty() {
                break;
            }
        }
        Ok(copied_bytes)
    }
}
