//! The end of ranges that nobody closes: of a server that is dropped, of an opening that fails, of either
//! when whoever waits for it does not wait any longer, as a stamp's process does when a store does not
//! answer.
//!
//! What always holds: each range is kept by its group commit, and keeps the block cache, its memory tables
//! and the writers' threads; so none is left that takes operations.

use super::maintenance::Maintenance;
use std::sync::Arc;

/// Has all ranges refuse further operations when it is dropped, unless they are [kept](Self::keep).
pub(crate) struct AbandonedOnDrop {
    maintenance: Option<Arc<Maintenance>>,
}

impl AbandonedOnDrop {
    pub(crate) fn new(maintenance: &Arc<Maintenance>) -> Self {
        AbandonedOnDrop { maintenance: Some(maintenance.clone()) }
    }

    /// They are served from now on.
    pub(crate) fn keep(mut self) {
        self.maintenance = None;
    }
}

impl Drop for AbandonedOnDrop {
    fn drop(&mut self) {
        if let Some(maintenance) = &self.maintenance {
            maintenance.abandon();
        }
    }
}
