//! A mover that freezes nothing, and takes its mapping for frozen: a fault on purpose, which histories must
//! find.

use super::choose_action::{Freeze, Observed};
use crate::log::state::{Move, MoveState};
use shard_map::{Change, MapChange, Name};

/// What such a mover sees: that its mapping is frozen wherever its states say so.
pub(super) fn taken_for_frozen(of: &Move, seen: Observed) -> Observed {
    let Some(there) = &seen.placement else { return seen };
    let order = &of.order;
    let is_closed_on = |shard: &Name| there.shard == *shard && there.state == order.marked_state();
    let has_verified = of.states.iter().any(|record| matches!(record.state, MoveState::Verified { .. }));
    let is_own = match of.state() {
        MoveState::Planned { .. } => is_closed_on(&order.from),
        // Marked, placed by a switch that was faster, or open again.
        MoveState::Undoing { .. } => {
            let is_open_again = there.shard == order.from && of.marked_epoch().is_some();
            is_closed_on(&order.from) || has_verified && is_closed_on(&order.to) || is_open_again
        }
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
