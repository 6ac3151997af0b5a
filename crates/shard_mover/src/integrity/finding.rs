//! What a check of integrity found.
//!
//! What always holds: at most `FINDINGS_MAX` findings are kept, the first ones; counts are of all.

use crate::limits::FINDINGS_MAX;
use crate::log::id::MoveId;
use shard_map::{Epoch, MappingId, Name};
use std::collections::BTreeMap;
use std::fmt;

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// The map routes it to another shard, which has an equal row.
    StaleCopy {
        /// The shard that the map names.
        owner: Name,
    },
    /// The map routes it to another shard, which has another row of its key.
    Conflict {
        /// The shard that the map names.
        owner: Name,
    },
    /// The map routes it to another shard, which has no row of its key: it may be the only one.
    Stray {
        /// The shard that the map names.
        owner: Name,
    },
    /// The map routes its key to no shard.
    Unrouted,
    /// Its key is on these shards, too.
    Duplicate {
        /// The other shards.
        others: Vec<Name>,
    },
    /// It refers to a row that there is not.
    Orphan {
        /// The rule's name.
        rule: String,
        /// The key that it refers to.
        parent_key: String,
    },
}

impl FindingKind {
    /// Its name, as reports have it.
    pub fn name(&self) -> &'static str {
        match self {
            FindingKind::StaleCopy { .. } => "stale-copy",
            FindingKind::Conflict { .. } => "conflict",
            FindingKind::Stray { .. } => "stray",
            FindingKind::Unrouted => "unrouted",
            FindingKind::Duplicate { .. } => "duplicate",
            FindingKind::Orphan { .. } => "orphan",
        }
    }
}

/// A row that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where it is.
    pub shard: Name,
    /// Its table.
    pub table: String,
    /// Its key, as text.
    pub key: String,
    /// What is wrong.
    pub kind: FindingKind,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { shard, table, key, kind } = self;
        write!(out, "shard `{shard}`: table `{table}`: {key} ")?;
        match kind {
            FindingKind::StaleCopy { owner } => {
                write!(out, "is a copy: it belongs to `{owner}`, which has it")
            }
            FindingKind::Conflict { owner } => {
                write!(out, "belongs to `{owner}`, which has another row of it")
            }
            FindingKind::Stray { owner } => write!(out, "belongs to `{owner}`, which does not have it"),
            FindingKind::Unrouted => out.write_str("has a key that the map routes to no shard"),
            FindingKind::Duplicate { others } => {
                let others: Vec<&str> = others.iter().map(Name::as_str).collect();
                write!(out, "is on {} as well", others.join(", "))
            }
            FindingKind::Orphan { rule, parent_key } => {
                write!(out, "refers to {parent_key}, which is not there (rule {rule})")
            }
        }
    }
}

/// Rows of a mapping on a shard that the map does not name for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForeignRows {
    /// Rows that the owner has, too: a repair deletes these.
    pub copies: u64,
    /// Rows that the owner has otherwise, or has not.
    pub others: u64,
}

/// A shard and a mapping that it does not have.
pub type ForeignPlace = (Name, MappingId);

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntegrityReport {
    /// The first findings.
    pub findings: Vec<Finding>,
    /// Of all: how many by the name of their kind.
    pub counts: BTreeMap<&'static str, u64>,
    /// Rows that were read.
    pub rows: u64,
    /// Where rows are that belong elsewhere.
    pub foreign: BTreeMap<ForeignPlace, ForeignRows>,
    /// Moves that are not at their end: rows of their mappings on their shards are not judged.
    pub moves: Vec<MoveId>,
    /// The epoch of the map by which rows were judged.
    pub epoch: Epoch,
    /// Whether the map was changed meanwhile, so that findings may be wrong.
    pub is_of_old_map: bool,
}

impl IntegrityReport {
    /// Whether no rule is broken.
    pub fn is_clean(&self) -> bool {
        self.counts.is_empty()
    }

    pub(crate) fn add(&mut self, find: impl FnOnce() -> Finding, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(find());
        }
    }
}
