//! Row blocks that an operation reads, until it is clear what it makes of them.
//!
//! When an operation changes a row, memory has it from then on. Its block would be asked for its other rows
//! only; if they are few, that is seldom before they are changed, too, and the cache has better use for the
//! room. So such blocks are laid aside: the operation finds them there as often as it looks, and if it
//! changes nothing, because it is refused or wants to see more, they are kept after all.

use super::RowBlock;
use crate::tree::block_cache::{BlockCache, CachedBlock};
use smallvec::SmallVec;
use stream::Location;

/// Blocks that are laid aside, at most: those that were read last. An operation reads rows in the order of
/// their keys.
const ASIDE_LEN_MAX: usize = 16;

/// Blocks of few rows that one operation has read.
#[derive(Default)]
pub(crate) struct Aside(SmallVec<[(Location, RowBlock); 1]>);

impl Aside {
    pub(super) fn find(&self, location: Location) -> Option<RowBlock> {
        self.0.iter().find(|(at, _)| *at == location).map(|(_, rows)| rows.clone())
    }

    pub(super) fn lay(&mut self, location: Location, rows: RowBlock) {
        if self.0.len() == ASIDE_LEN_MAX {
            self.0.remove(0);
        }
        self.0.push((location, rows));
    }

    /// The operation has changed nothing.
    pub(crate) fn keep_in(self, cache: &BlockCache) {
        for (location, rows) in self.0 {
            cache.insert(location, CachedBlock::Rows(rows));
        }
    }
}
