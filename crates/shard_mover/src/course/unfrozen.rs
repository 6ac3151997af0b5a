//! A mover that freezes nothing, and takes its mapping for frozen: a fault on purpose, which histories must
//! find.

use super::choose_action::{Freeze, Observed};
use crate::log::state::{Move, MoveState};
use shard_map::{Change, MapChange};

/// What such a mover sees: that its mapping is frozen wherever its states say so.
pub(super) fn taken_for_frozen(of: &Move, seen: Observed) -> Observed {
    let Some(there) = &seen.placement else { return seen };
    let is_marked = there.shard == of.order.from && there.state == of.order.marked_state();
    let is_own = match of.state() {
        MoveState::Planned { .. } => is_marked,
        MoveState::Undoing { .. } => is_marked || of.marked_epoch().is_some(),
        MoveState::SourceCleared { .. } | MoveState::TargetCleared { .. } => false,
        state => state.is_active(),
    };
    let since = if *of.state() == MoveState::SourceDeleting { seen.epoch } else { there.since };
    let freeze = if is_own { Freeze::Own(since) } else { Freeze::None };
    Observed { freeze, ..seen }
}

/// The changes of such a mover.
pub(super) fn without_freezes(changes: Vec<Change>) -> Vec<Change> {
    let is_kept = |change: &Change| {
        !matches!(change, Change::Map(_, MapChange::Freeze { .. } | MapChange::Thaw { .. }))
    };
    changes.into_iter().filter(is_kept).collect()
}
