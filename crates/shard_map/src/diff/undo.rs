//! Undoing a change: what it made different becomes what it was, at a new epoch.
//!
//! What always holds: an undo changes nothing that the change did not, and not what is frozen: only what
//! froze a mapping knows when its keys may change again. If something of it has been changed
//! since, the undo is refused as a whole.

use super::difference::Diff;
use super::edit::{MapEdit, PinEdit, RangeEdit, ShardEdit, VirtualEdit};
use super::patch::{Fit, PatchError, edit};
use crate::catalog::catalog::Catalog;
use crate::change::apply::Changed;
use crate::change::error::ChangeError;

/// A change that can't be undone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UndoError {
    /// Something of it has been changed since.
    #[error("the change to epoch {epoch} can't be undone, because something changed since: {error}")]
    Changed {
        /// The epoch that the change led to.
        epoch: crate::catalog::placement::Epoch,
        /// What is different.
        error: PatchError,
    },
    /// The catalog would not be right without it.
    #[error("the change to epoch {epoch} can't be undone: {error}")]
    Refused {
        /// The epoch that the change led to.
        epoch: crate::catalog::placement::Epoch,
        /// What is wrong.
        error: ChangeError,
    },
}

impl Catalog {
    /// The catalog without a change that was made to an earlier epoch of it, one epoch later.
    pub fn undo(&self, diff: &Diff) -> Result<Changed, UndoError> {
        let mut after = self.clone();
        edit(&mut after, &reversed(diff), Fit::ContentThatDiffers)
            .map_err(|error| UndoError::Changed { epoch: diff.to, error })?;
        self.finish(after).map_err(|error| UndoError::Refused { epoch: diff.to, error })
    }
}

fn reversed(diff: &Diff) -> Diff {
    let shard = |edit: &ShardEdit| {
        let ShardEdit { name, old, new } = edit.clone();
        ShardEdit { name, old: new, new: old }
    };
    Diff {
        from: diff.to,
        to: diff.from,
        shards: diff.shards.iter().map(shard).collect(),
        maps: diff.maps.iter().map(reversed_map).collect(),
    }
}

fn reversed_map(edit: &MapEdit) -> MapEdit {
    let MapEdit { name, old, new, pins, ranges, virtual_shards, frozen: _ } = edit.clone();
    let pin = |PinEdit { key, old, new }| PinEdit { key, old: new, new: old };
    let range = |RangeEdit { low, old, new }| RangeEdit { low, old: new, new: old };
    let run = |VirtualEdit { first, last, old, new }| VirtualEdit { first, last, old: new, new: old };
    MapEdit {
        name,
        old: new,
        new: old,
        pins: pins.into_iter().map(pin).collect(),
        ranges: ranges.into_iter().map(range).collect(),
        virtual_shards: virtual_shards.into_iter().map(run).collect(),
        frozen: Vec::new(),
    }
}
