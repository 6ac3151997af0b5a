//! Removing what replaced checkpoints leave: streams, and extents of those whose first rows have moved.
//!
//! What always holds: only what nobody reads any more is removed; what is refused now, by a full disk
//! perhaps, is owed until it is done.

use super::RangeTree;
use super::replaced::Shed;
use crate::error::PartitionError;
use crate::settings::PlantedFault;
use crate::tree::TreeCheckpoint;
use std::collections::BTreeSet;
use std::sync::Arc;
use stream::{ExtentId, StreamChange};

impl RangeTree {
    /// Removes the streams of replaced checkpoints that nobody reads any more, and of those that nothing ever
    /// referred to. What can't be removed now is remembered.
    pub(crate) async fn remove_unused(&self) -> Result<(), PartitionError> {
        let free: Vec<u64> = {
            let mut retired = self.replaced.retired.lock();
            let unread = |checkpoint: &mut Arc<TreeCheckpoint>| {
                Arc::strong_count(checkpoint) == 1 && Arc::strong_count(&checkpoint.checkpoint) == 1
            };
            let is_shed = |number| self.replaced.shed.lock().iter().any(|shed| shed.is_read(number));
            let is_free = |checkpoint: &mut Arc<TreeCheckpoint>| {
                unread(checkpoint) && !is_shed(checkpoint.reference.number)
            };
            retired.extract_if(.., is_free).map(|checkpoint| checkpoint.reference.number).collect()
        };
        self.replaced.unused.lock().extend(free);
        // What is refused is owed still, and neither a flush nor the removals below have to wait for it.
        if let Err(error) = self.free_shed().await {
            tracing::debug!(table = self.table.name(), id = self.id, %error, "extents of a checkpoint stay for now");
        }
        let mut gone = BTreeSet::new();
        let outcome = self.delete_unused(&mut gone).await;
        self.evict(gone);
        outcome
    }

    /// Deletes the streams, and adds the extents that they listed to `gone`.
    async fn delete_unused(&self, gone: &mut BTreeSet<ExtentId>) -> Result<(), PartitionError> {
        // A flush may be at it as well: nobody takes what another one has taken.
        while let Some(number) = self.take_unused() {
            let stream = self.names.checkpoint(number);
            let extents = self.extents_of(number);
            if let Err(error) = self.shared.streams.delete(&stream, self.owner).await {
                if self.shared.streams.exists(&stream) {
                    self.replaced.unused.lock().push(number);
                    return Err(error.into());
                }
                // It has gone; what failed came after that.
                tracing::warn!(%stream, %error, "extents of a checkpoint that was removed stay for now");
            }
            gone.extend(extents);
        }
        Ok(())
    }

    /// The extents that a checkpoint's stream lists; none if there is no such stream.
    fn extents_of(&self, number: u64) -> BTreeSet<ExtentId> {
        let stat = self.shared.streams.stat(&self.names.checkpoint(number));
        stat.map(|stat| stat.extents.into_iter().map(|(extent, _)| extent).collect()).unwrap_or_default()
    }

    /// Evicts the blocks of extents that no checkpoint of this range names any more. If an heir of the range
    /// still reads them, it reads them once more from the disk.
    fn evict(&self, mut gone: BTreeSet<ExtentId>) {
        if gone.is_empty() {
            return;
        }
        // Compactions leave overflows where they are, and in parts what the parts before have written.
        let tree = self.tree();
        let named = tree.checkpoints.iter().flat_map(|one| self.extents_of(one.reference.number));
        if self.shared.settings.planted_fault != Some(PlantedFault::EvictedNamedBlocks) {
            named.for_each(|extent| {
                gone.remove(&extent);
            });
        }
        self.shared.cache.evict(&gone);
    }

    fn take_unused(&self) -> Option<u64> {
        self.replaced.unused.lock().pop()
    }

    /// Removes a checkpoint that was written for nothing: nothing refers to it, and nothing ever will. If
    /// that is refused, it is done before the next one is written.
    pub(crate) async fn discard(&self, number: u64) {
        self.replaced.unused.lock().push(number);
        self.try_to_remove_unused().await;
    }

    pub(crate) async fn try_to_remove_unused(&self) {
        if let Err(error) = self.remove_unused().await {
            tracing::debug!(table = self.table.name(), id = self.id, %error, "an unused checkpoint stays for now");
        }
    }

    /// Gives back the extents of what moved, where nobody reads it as it was.
    pub(crate) async fn free_shed(&self) -> Result<(), PartitionError> {
        if self.shared.settings.planted_fault == Some(PlantedFault::FruitlessReclaim) {
            return Ok(());
        }
        let numbers: BTreeSet<u64> = self.replaced.shed.lock().iter().map(Shed::number).collect();
        let mut outcome = Ok(());
        for number in numbers {
            // One that does not read must not keep the others.
            outcome = outcome.and(self.free_shed_of(number).await);
        }
        outcome
    }

    /// The same of one checkpoint.
    async fn free_shed_of(&self, number: u64) -> Result<(), PartitionError> {
        // In this order: whatever was replaced before this tree is among those that are asked for readers,
        // and who reads this tree or a later one needs no more than is kept.
        let tree = self.tree();
        let Some(owed) = self.replaced.unread_shed(number) else { return Ok(()) };
        // Else it has gone as a whole.
        if let Some(now) = tree.checkpoints.iter().find(|one| one.reference.number == number) {
            let start = &now.reference.limit.start;
            let needed = now.checkpoint.extents_from(start, self.table.has_data()).await?;
            let stream = self.names.checkpoint(number);
            let listed = self.shared.streams.stat(&stream)?.extents;
            // The last one has the root, and may be open.
            let before_last = listed.iter().take(listed.len().saturating_sub(1)).map(|(extent, _)| *extent);
            let root = now.reference.root.extent;
            let extents: Vec<_> =
                before_last.filter(|extent| *extent != root && !needed.contains(extent)).collect();
            if !extents.is_empty() {
                let gone = extents.iter().copied().collect();
                let stream = stream.owned_by(self.owner);
                self.shared.streams.multi_modify(&[StreamChange::Unlist { stream, extents }]).await?;
                self.evict(gone);
            }
        }
        // Not before: what is refused now, by a full disk perhaps, is owed until it is done.
        self.replaced.forget_shed(&owed);
        Ok(())
    }
}
