//! What a move needs next: a function of its states, of what the map has, and of what is wanted.
//!
//! What always holds:
//!
//! * an action is chosen over the map as it is; the change itself checks again, in the compare-and-swap
//!   (`map_changes.rs`), so an action that was chosen late changes nothing;
//! * a state is put only after what it says was seen: a mover that was killed between a change and its record
//!   finds in the map that the mapping is frozen by the move, and how far it is;
//! * nothing is written or deleted by a claim while the mapping is not frozen by the move;
//! * rows of clients are never deleted: a side is cleared only if the map does not have the mapping there.

use crate::certificate::Certificate;
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

/// Whether the mapping is frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freeze {
    /// It is not.
    None,
    /// By the move, since this epoch.
    Own(Epoch),
    /// By something else.
    Other,
}

/// What the map has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observed {
    /// Where the mapping is; none: it is no more.
    pub(crate) placement: Option<Placement>,
    pub(crate) freeze: Freeze,
    /// The epoch of the catalog.
    pub(crate) epoch: Epoch,
}

impl Observed {
    fn is_own(&self) -> bool {
        matches!(self.freeze, Freeze::Own(_))
    }
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
    /// The same, if others changed the mapping meanwhile: it is as they have it, and is thawed.
    Settle {
        claim: Epoch,
        since: Epoch,
    },
    /// Bring all shards up to the map, and certify.
    Finish(Epoch),
    /// Freeze the mapping, which is online on the target since this epoch.
    Freeze(Epoch),
    /// Delete the source's rows under a claim.
    DeleteSource(Epoch),
    /// Set the mapping online on the source again, which is marked since this epoch.
    Reopen(Epoch),
    /// Publish, claim the target, and delete the rows of the copy.
    ClearTarget(Epoch),
    /// Publish, claim the target, and end that claim: rows there stay.
    EndClaim {
        claim: Epoch,
        note: String,
    },
    /// Publish only: nothing was written to the target.
    PublishOnly,
    /// Thaw the mapping, which is frozen since this epoch.
    Thaw(Epoch),
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
const FROZEN: &str =
    "something else has frozen the mapping: another move, or a repair that `repair` ends; go on after that";
const GONE: &str = "the mapping is no more; rows of the copy may be on the target, and `repair` finds them";
const ON_TARGET: &str = "the mapping was put on the target by another change, so the rows there stay";
const THAWED: &str =
    "the mapping was thawed by others; rows of the copy may be on the target, and `repair` finds them";

/// What a move needs next.
pub(crate) fn choose_action(of: &Move, seen: &Observed, wish: Wish) -> Action {
    use MoveState::{
        Claimed, Copied, Done, Drained, Failed, Marked, Placed, Planned, Reopened, SourceCleared,
        SourceDeleted, SourceDeleting, Switched, TargetCleared, Undoing, Undone, Verified,
    };
    let state = of.state();
    let is_before_switch =
        matches!(state, Planned { .. } | Marked { .. } | Drained | Claimed | Copied { .. } | Verified { .. });
    let is_done = matches!(state, Done { .. } | SourceDeleting | SourceCleared { .. } | SourceDeleted { .. });
    match (wish, state) {
        (Wish::Undo, Failed { reason }) => return record_undoing(&format!("it failed: {reason}")),
        (Wish::Undo, _) if is_before_switch => return record_undoing("on command"),
        (Wish::Undo, Placed { .. } | Switched { .. }) => return Action::Refuse(TOO_LATE),
        (Wish::Undo, _) if is_done => return Action::Refuse(TOO_LATE),
        (Wish::DeleteSource, _) if !is_done => return Action::Refuse(NOT_DONE),
        _ => {}
    }
    match state {
        Planned { .. } => after_planned(&of.order, seen),
        Marked { .. } | Drained | Claimed | Copied { .. } | Verified { .. } => while_marked(of, seen),
        Placed { epoch } => after_placed(&of.order, *epoch, seen),
        Switched { epoch } => Action::Finish(*epoch),
        Done { certificate } if wish == Wish::DeleteSource => after_done(&of.order, certificate, seen),
        SourceDeleting => while_deleting(of, seen),
        SourceCleared { rows, note } => {
            thaw_or(seen, || MoveState::SourceDeleted { rows: *rows, note: note.clone() })
        }
        Undoing { .. } => while_undoing(of, seen),
        Reopened { claim } => after_reopened(of, *claim, seen),
        TargetCleared { note } => thaw_or(seen, || Undone { note: note.clone() }),
        Done { .. } | SourceDeleted { .. } | Undone { .. } | Failed { .. } => Action::Stop,
    }
}

fn thaw_or(seen: &Observed, state: impl FnOnce() -> MoveState) -> Action {
    if let Freeze::Own(since) = seen.freeze { Action::Thaw(since) } else { Action::Record(state()) }
}

fn record_undoing(reason: &str) -> Action {
    Action::Record(MoveState::Undoing { reason: reason.to_owned() })
}

/// Whether the mapping is as it was when the move began.
fn is_as_planned(order: &MoveOrder, seen: &Observed) -> bool {
    let planned = Placement { shard: order.from.clone(), state: State::Online, since: order.since };
    seen.placement.as_ref() == Some(&planned)
}

fn after_planned(order: &MoveOrder, seen: &Observed) -> Action {
    match (&seen.placement, seen.freeze) {
        // One change does both. If others set its state since, that is found next.
        (_, Freeze::Own(since)) => Action::Record(MoveState::Marked { epoch: since }),
        // A mark that another mover is about to make would still come, once it is thawed.
        (_, Freeze::Other) if is_as_planned(order, seen) => Action::Refuse(FROZEN),
        _ if is_as_planned(order, seen) => Action::Mark,
        _ => {
            let note = "the mapping was changed before the move began".to_owned();
            Action::Record(MoveState::Undone { note: Some(note) })
        }
    }
}

fn while_marked(of: &Move, seen: &Observed) -> Action {
    let Some(mark) = of.marked_epoch() else { return Action::Stop };
    if let (MoveState::Verified { .. }, Some(there)) = (of.state(), &seen.placement)
        && seen.is_own()
        && there.shard == of.order.to
    {
        return Action::Record(MoveState::Placed { epoch: there.since });
    }
    let marked = Placement { shard: of.order.from.clone(), state: of.order.marked_state(), since: mark };
    if seen.placement.as_ref() != Some(&marked) || !seen.is_own() {
        let reason = match &seen.placement {
            None => "the mapping was removed from the map under the move".to_owned(),
            Some(there) if *there == marked => "the mapping was thawed under the move".to_owned(),
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
    let placed = Placement { shard: order.to.clone(), state: order.marked_state(), since: epoch };
    match &seen.placement {
        Some(there) if *there == placed && seen.is_own() => Action::Open(epoch),
        there => {
            let since = there.as_ref().map_or(seen.epoch, |there| there.since);
            Action::Settle { claim: epoch, since }
        }
    }
}

/// Whether the mapping is as the move opened it on the target.
fn is_as_switched(order: &MoveOrder, certificate: &Certificate, seen: &Observed) -> bool {
    let is_it = |there: &Placement| there.shard == order.to && there.since == certificate.epochs.switched;
    seen.placement.as_ref().is_some_and(is_it)
}

fn after_done(order: &MoveOrder, certificate: &Certificate, seen: &Observed) -> Action {
    match seen.freeze {
        _ if !is_as_switched(order, certificate, seen) => Action::Refuse(CHANGED_SINCE),
        Freeze::Other => Action::Refuse(FROZEN),
        _ => Action::Record(MoveState::SourceDeleting),
    }
}

/// Nothing is deleted before the mapping is frozen, nor after another change of it.
fn while_deleting(of: &Move, seen: &Observed) -> Action {
    let Some(certificate) = of.certificate() else { return Action::Stop };
    match seen.freeze {
        Freeze::Own(since) => Action::DeleteSource(since),
        Freeze::None if is_as_switched(&of.order, certificate, seen) => {
            Action::Freeze(certificate.epochs.switched)
        }
        _ => Action::Record(MoveState::Done { certificate: Box::new(certificate.clone()) }),
    }
}

fn while_undoing(of: &Move, seen: &Observed) -> Action {
    let order = &of.order;
    match (&seen.placement, seen.freeze) {
        // The switch was faster.
        (Some(there), Freeze::Own(_)) if there.shard == order.to => {
            Action::Record(MoveState::Placed { epoch: there.since })
        }
        (Some(there), Freeze::Own(_)) if there.state == order.marked_state() => Action::Reopen(there.since),
        // Reopened, by the move or by others; later than the mark, which is the copy's claim.
        (Some(there), Freeze::Own(_)) => Action::Record(MoveState::Reopened { claim: there.since }),
        // No other move of the mapping can have this epoch.
        _ if of.marked_epoch().is_some() => Action::Record(MoveState::Reopened { claim: seen.epoch }),
        // A mark that another mover is about to make would stay; after one of our own it can't.
        (_, Freeze::Other) if is_as_planned(order, seen) => Action::Refuse(FROZEN),
        _ if is_as_planned(order, seen) => Action::Mark,
        _ => Action::Record(MoveState::Undone { note: Some("nothing was done yet".to_owned()) }),
    }
}

fn after_reopened(of: &Move, claim: Epoch, seen: &Observed) -> Action {
    let end = |note: &str| Action::EndClaim { claim, note: note.to_owned() };
    match &seen.placement {
        _ if !of.has_claimed() => Action::PublishOnly,
        None => end(GONE),
        Some(there) if there.shard == of.order.to => end(ON_TARGET),
        Some(_) if !seen.is_own() => end(THAWED),
        Some(_) => Action::ClearTarget(claim),
    }
}

#[cfg(test)]
mod tests;
