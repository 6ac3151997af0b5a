//! The states of a move, as they are stored.
//!
//! ```text
//! planned -> marked -> drained -> claimed -> copied -> verified -> placed -> switched -> done
//!    |          |         |          |          |          |                             |
//!    |          |         |          |          |          |     source-deleting <-------+
//!    |          |         |          |          |          |     -> source-cleared -> source-deleted
//!    +----------+---------+----------+----------+----------+--> undoing -> reopened
//!    |          |         |          |          |          |    -> target-cleared -> undone
//!    +----------+---------+----------+----------+----------+--> failed -> undoing
//! ```
//!
//! What always holds: a state is put once, under its number; the one before it is never changed. What a state
//! says was done is done. From `placed` on the target has the mapping, and a move is undone by a move back.

use super::id::MoveId;
use crate::rows::report::TableReport;
use serde::{Deserialize, Serialize};
use shard_backend::MoveMode;
use shard_map::{Epoch, Name, State};

/// The newest format, which is written.
pub(crate) const FORMAT: u64 = 1;

/// What is to be moved, as it was when the move began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveOrder {
    /// The map.
    pub map: Name,
    /// The id of the mapping, as text.
    pub mapping: String,
    /// The shard that has it.
    pub from: Name,
    /// The shard that is to have it.
    pub to: Name,
    /// Since when it was as it was.
    pub since: Epoch,
    /// The epoch of the catalog.
    pub catalog_epoch: Epoch,
    /// Whether readers are kept out, too.
    pub is_offline: bool,
    /// Rows by the plan, for progress.
    pub rows: u64,
    /// The fingerprint of the schema.
    pub schema: String,
}

impl MoveOrder {
    /// What the mapping is while its rows are copied.
    pub(crate) fn marked_state(&self) -> State {
        if self.is_offline { State::Offline } else { State::ReadOnly }
    }

    /// How it is moved.
    pub fn mode(&self) -> MoveMode {
        if self.is_offline { MoveMode::Offline } else { MoveMode::ReadOnly }
    }
}

/// What was done last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum MoveState {
    /// Nothing yet.
    Planned {
        /// What is to be moved.
        order: MoveOrder,
    },
    /// The map has the mapping as read-only or offline.
    Marked {
        /// Since when: the claim of the copy.
        epoch: Epoch,
    },
    /// The source lets no client write the mapping any more.
    Drained,
    /// The target takes the copy of this move, and of no earlier one.
    Claimed,
    /// All rows of the source are on the target, and no others.
    Copied {
        /// How many.
        rows: u64,
    },
    /// Both sides were read and are equal.
    Verified {
        /// Which key the digests are made with.
        key_id: String,
        /// What is equal.
        tables: Vec<TableReport>,
    },
    /// The map has the mapping on the target, not yet open.
    Placed {
        /// Since when: the claim that no late write of the copy has.
        epoch: Epoch,
    },
    /// The map has the mapping on the target, online.
    Switched {
        /// Since when.
        epoch: Epoch,
    },
    /// All shards know it. The certificate says what was moved.
    Done {
        /// The certificate.
        certificate: Box<crate::certificate::Certificate>,
    },
    /// The rows that the source still has are being deleted; the mapping keeps its keys meanwhile.
    SourceDeleting,
    /// They are deleted, and no late delete can arrive.
    SourceCleared {
        /// How many.
        rows: u64,
        /// What is to be known of it, if anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// The rows that the source still had are deleted, and the mapping may have other keys again.
    SourceDeleted {
        /// How many.
        rows: u64,
        /// What is to be known of it, if anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// It is not to be finished.
    Undoing {
        /// Why.
        reason: String,
    },
    /// The map has the mapping online on the source again, or another change of it is in the way.
    Reopened {
        /// The claim under which the target's rows are deleted.
        claim: Epoch,
    },
    /// The target has no rows of the copy, and no late write of the move can arrive.
    TargetCleared {
        /// What is to be known of it, if anything.
        note: Option<String>,
    },
    /// It is as before the move.
    Undone {
        /// What is to be known of it, if anything.
        note: Option<String>,
    },
    /// It can't go on; undo it.
    Failed {
        /// Why.
        reason: String,
    },
}

impl MoveState {
    /// Its name, as stored and shown.
    pub fn name(&self) -> &'static str {
        match self {
            MoveState::Planned { .. } => "planned",
            MoveState::Marked { .. } => "marked",
            MoveState::Drained => "drained",
            MoveState::Claimed => "claimed",
            MoveState::Copied { .. } => "copied",
            MoveState::Verified { .. } => "verified",
            MoveState::Placed { .. } => "placed",
            MoveState::Switched { .. } => "switched",
            MoveState::Done { .. } => "done",
            MoveState::SourceDeleting => "source-deleting",
            MoveState::SourceCleared { .. } => "source-cleared",
            MoveState::SourceDeleted { .. } => "source-deleted",
            MoveState::Undoing { .. } => "undoing",
            MoveState::Reopened { .. } => "reopened",
            MoveState::TargetCleared { .. } => "target-cleared",
            MoveState::Undone { .. } => "undone",
            MoveState::Failed { .. } => "failed",
        }
    }

    /// Whether the mapping is still in the hands of the move, so that no other may begin.
    pub fn is_active(&self) -> bool {
        use MoveState::{Done, SourceDeleted, Undone};
        !matches!(self, Done { .. } | SourceDeleted { .. } | Undone { .. })
    }
}

/// A state, and when it was put.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateRecord {
    /// By the clock of the mover that put it: `2026-11-28T01:02:03.5Z`.
    pub at: String,
    /// The state.
    #[serde(flatten)]
    pub state: MoveState,
}

/// A move: all its states, from planned to the newest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Its id.
    pub id: MoveId,
    /// What is moved.
    pub order: MoveOrder,
    /// Its states, the first one planned.
    pub states: Vec<StateRecord>,
}

impl Move {
    /// Of states, if the first one is planned.
    pub(crate) fn of(id: MoveId, states: Vec<StateRecord>) -> Option<Self> {
        let MoveState::Planned { order } = &states.first()?.state else { return None };
        Some(Move { id, order: order.clone(), states })
    }

    /// The newest state.
    pub fn state(&self) -> &MoveState {
        match self.states.last() {
            Some(last) => &last.state,
            None => unreachable!("a move has a first state"),
        }
    }

    /// The epoch of the mark, which is the copy's claim.
    pub fn marked_epoch(&self) -> Option<Epoch> {
        self.find(|state| if let MoveState::Marked { epoch } = state { Some(*epoch) } else { None })
    }

    /// The epoch since which the target has the mapping.
    pub(crate) fn placed_epoch(&self) -> Option<Epoch> {
        self.find(|state| if let MoveState::Placed { epoch } = state { Some(*epoch) } else { None })
    }

    /// The certificate, if the move is done.
    pub(crate) fn certificate(&self) -> Option<&crate::certificate::Certificate> {
        self.states.iter().find_map(|record| match &record.state {
            MoveState::Done { certificate } => Some(&**certificate),
            _ => None,
        })
    }

    /// Whether an epoch is one that the move has recorded of its mapping.
    pub(crate) fn has_recorded(&self, since: Epoch) -> bool {
        use MoveState::{Marked, Placed, Reopened, Switched};
        let is_it = |state: &MoveState| match state {
            Marked { epoch } | Placed { epoch } | Switched { epoch } | Reopened { claim: epoch } => {
                *epoch == since
            }
            _ => false,
        };
        self.order.since == since || self.states.iter().any(|record| is_it(&record.state))
    }

    /// Whether rows may have been written to the target.
    pub(crate) fn has_claimed(&self) -> bool {
        self.states.iter().any(|record| record.state == MoveState::Claimed)
    }

    pub(crate) fn find<T>(&self, find: impl Fn(&MoveState) -> Option<T>) -> Option<T> {
        self.states.iter().find_map(|record| find(&record.state))
    }

    /// When a state of this name was put.
    pub(crate) fn at(&self, name: &str) -> Option<String> {
        let found = self.states.iter().find(|record| record.state.name() == name);
        found.map(|record| record.at.clone())
    }
}
