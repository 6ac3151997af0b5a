//! What a pinned snapshot keeps of one range: its tree and what is seen of it, and with them the memory
//! tables that were flushed and the checkpoints that were compacted since.

use crate::memory::memory_table::MemoryTable;
use crate::operation::RowVersion;
use crate::tree::Tree;
use std::sync::Arc;

/// A range as it was.
pub(crate) struct PinnedView {
    pub(super) tree: Arc<Tree>,
    pub(super) visible: RowVersion,
}

impl PinnedView {
    /// The memory tables that it has and `now` has not: addresses, and bytes of each.
    pub(super) fn held_tables(&self, now: &Tree) -> Vec<(usize, u64)> {
        let is_held = |table: &&Arc<MemoryTable>| !now.memory_tables().any(|other| Arc::ptr_eq(table, other));
        let held = self.tree.memory_tables().filter(is_held);
        held.map(|table| (Arc::as_ptr(table) as usize, table.size_bytes())).collect()
    }
}
