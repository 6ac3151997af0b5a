//! What a move needs next: a function of its states, of what the map has, and of what is wanted.
//!
//! What always holds:
//!
//! * an action is chosen over the map as it is; the change itself checks again, in the compare-and-swap
//!   (`map_changes.rs`), so an action that was chosen late changes nothing;
//! * a state is put only after what it says was seen: a mover that was killed between a change and its record
//!   finds the change in the map's history under its own note, and records it;
//! * rows of clients are never deleted: a side is cleared only if the map does not have the mapping there.

use crate::log::state::{Move, MoveOrder, MoveState};
use shard_map::{Epoch, Placement, State};

/// What is wanted of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Its end.
    Finish,
    /// That all is as before.
    Undo,
    /// That the source's rows are deleted after it.
    DeleteSource,
}

/// Changes of the map that the move made, each once, by the notes of the map's history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnChanges {
    pub(crate) mark: Option<Epoch>,
    pub(crate) place: Option<Epoch>,
    pub(crate) open: Option<Epoch>,
    pub(crate) reopen: Option<Epoch>,
}

/// What the map has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observed {
    pub(crate) own: OwnChanges,
    /// Where the mapping is; none: it is no more.
    pub(crate) placement: Option<Placement>,
    /// The epoch of the catalog.
    pub(crate) epoch: Epoch,
}

/// What is done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Take the mapping for this move, and mark it in the map.
    Mark,
    /// Claim the source, publish, and wait for writers.
    Drain(Epoch),
    /// Claim the target, and wait for former copies.
    Claim(Epoch),
    Copy(Epoch),
    Verify,
    /// Put the mapping on the target, not yet open.
    Place,
    /// Claim the target anew, wait, and open the mapping there.
    Open(Epoch),
    /// The same, if others changed the mapping meanwhile: it is open as they have it.
    Settle {
        claim: Epoch,
        since: Epoch,
    },
    /// Bring all shards up to the map, and certify.
    Finish(Epoch),
    DeleteSource(Epoch),
    /// Set the mapping online on the source again.
    Reopen,
    /// Publish, claim the target, and delete the rows of the copy.
    ClearTarget(Epoch),
    /// Publish only: nothing was written to the target, or it has the mapping.
    PublishOnly {
        note: Option<String>,
    },
    /// Put a state.
    Record(MoveState),
    /// Nothing is to be done.
    Stop,
    /// What is wanted can't be done.
    Refuse(&'static str),
}

const TOO_LATE: &str = "the target has the mapping already; move it back with a new move";
const NOT_DONE: &str = "the source's rows are deleted after the move only; finish it first";
const CHANGED_SINCE: &str =
    "the mapping was changed since the move; `repair` finds and deletes rows that are not routed to a shard";

/// What a move needs next.
pub(crate) fn choose_action(of: &Move, seen: &Observed, wish: Wish) -> Action {
    use MoveState::{
        Claimed, Copied, Done, Drained, Failed, Marked, Placed, Planned, Reopened, SourceDeleted, Switched,
        Undoing, Undone, Verified,
    };
    let state = of.state();
    let is_before_switch =
        matches!(state, Planned { .. } | Marked { .. } | Drained | Claimed | Copied { .. } | Verified { .. });
    match (wish, state) {
        (Wish::Undo, Failed { reason }) => return record_undoing(&format!("it failed: {reason}")),
        (Wish::Undo, _) if is_before_switch => return record_undoing("on command"),
        (Wish::Undo, Placed { .. } | Switched { .. } | Done { .. } | SourceDeleted { .. }) => {
            return Action::Refuse(TOO_LATE);
        }
        (Wish::DeleteSource, state) if !matches!(state, Done { .. } | SourceDeleted { .. }) => {
            return Action::Refuse(NOT_DONE);
        }
        _ => {}
    }
    match state {
        Planned { .. } => after_planned(&of.order, seen),
        Verified { .. } if seen.own.place.is_some() => record(seen.own.place, |epoch| Placed { epoch }),
        Marked { .. } | Drained | Claimed | Copied { .. } | Verified { .. } => while_marked(of, seen),
        Placed { epoch } => after_placed(&of.order, *epoch, seen),
        Switched { epoch } => Action::Finish(*epoch),
        Done { certificate } if wish == Wish::DeleteSource => {
            let is_same = seen.placement.as_ref().is_some_and(|there| {
                there.shard == of.order.to && there.since == certificate.epochs.switched
            });
            if is_same {
                Action::DeleteSource(certificate.epochs.placed)
            } else {
                Action::Refuse(CHANGED_SINCE)
            }
        }
        Undoing { .. } => while_undoing(of, seen),
        Reopened { claim } => after_reopened(of, *claim, seen),
        Done { .. } | SourceDeleted { .. } | Undone { .. } | Failed { .. } => Action::Stop,
    }
}

fn record(epoch: Option<Epoch>, state: impl FnOnce(Epoch) -> MoveState) -> Action {
    epoch.map_or(Action::Stop, |epoch| Action::Record(state(epoch)))
}

fn record_undoing(reason: &str) -> Action {
    Action::Record(MoveState::Undoing { reason: reason.to_owned() })
}

/// Whether the mapping is as it was when the move began.
fn is_as_planned(order: &MoveOrder, seen: &Observed) -> bool {
    let planned = Placement { shard: order.from.clone(), state: State::Online, since: order.since };
    seen.placement.as_ref() == Some(&planned)
}

/// Whether the mapping is as the move marked it.
fn is_as_marked(order: &MoveOrder, epoch: Epoch, seen: &Observed) -> bool {
    let marked = Placement { shard: order.from.clone(), state: order.marked_state(), since: epoch };
    seen.placement.as_ref() == Some(&marked)
}

fn after_planned(order: &MoveOrder, seen: &Observed) -> Action {
    if seen.own.mark.is_some() {
        return record(seen.own.mark, |epoch| MoveState::Marked { epoch });
    }
    if is_as_planned(order, seen) {
        return Action::Mark;
    }
    let note = "the mapping was changed before the move began".to_owned();
    Action::Record(MoveState::Undone { note: Some(note) })
}

fn while_marked(of: &Move, seen: &Observed) -> Action {
    let Some(mark) = of.marked_epoch() else { return Action::Stop };
    if !is_as_marked(&of.order, mark, seen) {
        let reason = match &seen.placement {
            None => "the mapping was removed from the map under the move".to_owned(),
            Some(there) => format!(
                "the mapping was changed under the move: it is {} on `{}` since epoch {}, and was marked at {mark}",
                there.state, there.shard, there.since
            ),
        };
        return Action::Record(MoveState::Failed { reason });
    }
    match of.state() {
        MoveState::Marked { .. } => Action::Drain(mark),
        MoveState::Drained => Action::Claim(mark),
        MoveState::Claimed => Action::Copy(mark),
        MoveState::Copied { .. } => Action::Verify,
        _ => Action::Place,
    }
}

fn after_placed(order: &MoveOrder, epoch: Epoch, seen: &Observed) -> Action {
    if seen.own.open.is_some() {
        return record(seen.own.open, |epoch| MoveState::Switched { epoch });
    }
    let placed = Placement { shard: order.to.clone(), state: order.marked_state(), since: epoch };
    match &seen.placement {
        Some(there) if *there == placed => Action::Open(epoch),
        there => {
            let since = there.as_ref().map_or(seen.epoch, |there| there.since);
            Action::Settle { claim: epoch, since }
        }
    }
}

fn while_undoing(of: &Move, seen: &Observed) -> Action {
    let order = &of.order;
    if seen.own.place.is_some() {
        // The switch was faster.
        return record(seen.own.place, |epoch| MoveState::Placed { epoch });
    }
    if seen.own.reopen.is_some() {
        return record(seen.own.reopen, |claim| MoveState::Reopened { claim });
    }
    match of.marked_epoch().or(seen.own.mark) {
        // A mark that another mover is about to make would stay; after one of our own it can't.
        None if is_as_planned(order, seen) => Action::Mark,
        None => Action::Record(MoveState::Undone { note: Some("nothing was done yet".to_owned()) }),
        Some(mark) if is_as_marked(order, mark, seen) => Action::Reopen,
        // Later than the mark, and no other move of the mapping can have it.
        Some(_) => Action::Record(MoveState::Reopened { claim: seen.epoch }),
    }
}

fn after_reopened(of: &Move, claim: Epoch, seen: &Observed) -> Action {
    let note = |text: &str| Action::PublishOnly { note: Some(text.to_owned()) };
    match &seen.placement {
        _ if !of.has_claimed() => Action::PublishOnly { note: None },
        None => {
            note("the mapping is no more; rows of the copy may be on the target, and `repair` finds them")
        }
        Some(there) if there.shard == of.order.to => {
            note("the mapping was put on the target by another change, so the rows there stay")
        }
        Some(_) => Action::ClearTarget(claim),
    }
}

#[cfg(test)]
mod tests;
