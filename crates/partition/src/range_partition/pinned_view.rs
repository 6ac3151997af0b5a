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
    /// The memory tables that it has and `now` has not: addresses, and bytes of each. `None`: the range is
    /// gone, and has no other use for any of them.
    pub(super) fn held_tables(&self, now: Option<&Tree>) -> Vec<(usize, u64)> {
        let has = |now: &Tree, table: &Arc<MemoryTable>| now.memory_tables().any(|it| Arc::ptr_eq(table, it));
        let held = self.tree.memory_tables().filter(|table| !now.is_some_and(|now| has(now, table)));
        held.map(|table| (Arc::as_ptr(table) as usize, table.size_bytes())).collect()
    }
}
