//! A plan: changes of the map, moves of rows, and what was refused.

use super::refusal::Refusal;
use shard_backend::MoveMode;
use shard_map::{Change, MappingId, Name};
use std::time::Duration;

/// A planned move of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedMove {
    /// The map.
    pub map: Name,
    /// The mapping.
    pub mapping: MappingId,
    /// The shard that has it.
    pub from: Name,
    /// The shard that is to have it.
    pub to: Name,
    /// How.
    pub mode: MoveMode,
    /// Rows of all tables.
    pub rows: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// How long writers are refused, about; readers, too, if it is offline.
    pub pause: Duration,
}

/// A move that was asked for or would help, and is not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedMove {
    /// The map.
    pub map: Name,
    /// The mapping.
    pub mapping: MappingId,
    /// Why, and what helps.
    pub why: Refusal,
}

/// How even the shards are after a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// All shards are within the tolerance, and no plan has fewer moves.
    Fewest,
    /// All shards are within the tolerance; at least so many moves are needed, and the search for fewer was
    /// ended at its bound.
    AtLeast(usize),
    /// No plan was found that brings all shards within the tolerance: this one comes near.
    Uneven,
}

/// A plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Changes of the map that move nothing, made first.
    pub changes: Vec<Change>,
    /// Moves, in any order.
    pub moves: Vec<PlannedMove>,
    /// Moves that are not made.
    pub refused: Vec<RefusedMove>,
    /// How even the shards are after it, if that was asked for.
    pub balance: Option<Balance>,
}

impl Plan {
    /// Rows of all moves.
    pub fn rows(&self) -> u64 {
        self.moves.iter().map(|one| one.rows).sum()
    }

    /// Bytes of all moves.
    pub fn bytes(&self) -> u64 {
        self.moves.iter().map(|one| one.bytes).sum()
    }
}
