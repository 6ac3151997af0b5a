//! Why something is not moved, and what helps.

use shard_backend::{MoveMode, Reason};
use shard_map::{ChangeError, Name, State};

/// Why something is not moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such map.
    #[error("there is no map `{0}`")]
    NoMap(Name),
    /// There is no such mapping.
    #[error("map `{map}` has no mapping {mapping}")]
    NoMapping {
        /// The map.
        map: Name,
        /// The mapping's id.
        mapping: String,
    },
    /// There is no such shard.
    #[error("there is no shard `{0}`; add it first")]
    NoShard(Name),
    /// It is there already.
    #[error("map `{map}`: {mapping} is on shard `{shard}` already")]
    IsThere {
        /// The map.
        map: Name,
        /// The mapping in words.
        mapping: String,
        /// The shard.
        shard: Name,
    },
    /// It is not where the plan has it.
    #[error("map `{map}`: {mapping} is on shard `{there}`, and the plan has it on `{planned}`; plan anew")]
    Elsewhere {
        /// The map.
        map: Name,
        /// The mapping in words.
        mapping: String,
        /// Where it is.
        there: Name,
        /// Where it was.
        planned: Name,
    },
    /// It is not online: a move has it, or somebody closed it.
    #[error("map `{map}`: {mapping} is {state}; finish or undo the move that has it, or set it online")]
    NotOnline {
        /// The map.
        map: Name,
        /// The mapping in words.
        mapping: String,
        /// What it is.
        state: State,
    },
    /// A move has it.
    #[error("map `{map}`: move {id} has {mapping}; finish or undo it first")]
    Moving {
        /// The map.
        map: Name,
        /// The mapping's id.
        mapping: String,
        /// The move.
        id: String,
    },
    /// Something has it frozen: a move, whose rows are deleted, or a repair.
    #[error("map `{map}`: {mapping} is frozen by {by}; finish that first")]
    Frozen {
        /// The map.
        map: Name,
        /// The mapping in words.
        mapping: String,
        /// What froze it.
        by: String,
    },
    /// The map changed under a move, which may still write keys that are in another mapping now.
    #[error("map `{map}` changed under move {id}; undo that move first")]
    ChangedUnderMove {
        /// The map.
        map: Name,
        /// The move.
        id: String,
    },
    /// The shard takes nothing.
    #[error("shard `{shard}` is {why}, so nothing is moved to it")]
    TakesNothing {
        /// The shard.
        shard: Name,
        /// Why: draining, read-only, offline.
        why: String,
    },
    /// The backends allow an offline move only, which was not asked for.
    #[error(
        "from `{from}` to `{to}` rows are moved offline only ({}); ask for an offline move while clients are away",
        reasons_text(.reasons)
    )]
    OfflineOnly {
        /// The source.
        from: Name,
        /// The target.
        to: Name,
        /// Why not better.
        reasons: Vec<Reason>,
    },
    /// Nothing is known of what a shard can do.
    #[error("nothing is known of the backend of shard `{0}`; set up a connection to it")]
    NoBackend(Name),
    /// A table of a side is not as declared.
    #[error("shard `{shard}` does not have the declared tables: {drift}")]
    Drift {
        /// The shard.
        shard: Name,
        /// What differs.
        drift: String,
    },
    /// The schema is not one of the map.
    #[error("{0}")]
    Schema(String),
    /// The map can't be changed so.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// No shard is left that could take anything.
    #[error("there is no other shard that takes mappings; add one")]
    NoTarget,
}

fn reasons_text(reasons: &[Reason]) -> String {
    let against_read_only = reasons.iter().filter(|reason| reason.mode == MoveMode::ReadOnly);
    against_read_only.map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
