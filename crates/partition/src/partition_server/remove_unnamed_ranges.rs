//! Ranges that no map names are removed, as soon as that is possible.

use super::server::PartitionServer;
use super::unnamed_range::UnnamedRange;
use crate::background::retries::RangeName;
use crate::error::PartitionError;
use crate::range_partition::RangePartition;
use stream::{Owner, StreamError};

impl PartitionServer {
    /// These inherit nothing after all. What can't be removed now is remembered.
    pub(super) async fn remove_failed_heirs(&self, names: impl Iterator<Item = RangeName>) {
        // Heirs are made by this process.
        let owner = Owner::first(self.shared.life.incarnation);
        self.unnamed_ranges.lock().extend(names.map(|name| UnnamedRange { name, owner }));
        if let Err(error) = self.remove_unnamed_ranges().await {
            tracing::warn!(%error, "streams of a hand-over that failed can't be removed; it is tried again");
        }
    }

    /// Removes the streams of ranges that no map names, as far as that was not done yet.
    pub(super) async fn remove_unnamed_ranges(&self) -> Result<(), PartitionError> {
        let streams = &self.shared.streams;
        while let Some(unnamed) = self.take_unnamed_range() {
            let (table, id) = unnamed.name;
            let names = streams.list(&RangePartition::streams_folder(table, id));
            match streams.multi_modify(&unnamed.deletes(&names)).await {
                // Another process has given the id, too: what it has made is not this one's to remove.
                Ok(()) | Err(StreamError::NotOwner { .. }) => {}
                Err(error) => {
                    // If they have gone nevertheless, there is nothing to do the next time.
                    self.unnamed_ranges.lock().push(unnamed);
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    fn take_unnamed_range(&self) -> Option<UnnamedRange> {
        self.unnamed_ranges.lock().pop()
    }
}
