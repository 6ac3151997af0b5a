//! Where a mapping's keys are, and what may be done with them.
//!
//! What always holds: [`Placement::since`] rises whenever the mapping's keys, shard or state become others
//! (see `stamp.rs`), so a client that knows a mapping with its `since` knows all of it.

use crate::name::Name;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Number of a change of a catalog, counted from 1; 0 is a catalog that nothing was put into. All maps and
/// shards of a catalog share one sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The one after it.
    pub fn next(self) -> Self {
        Epoch(self.0 + 1)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// What may be done with keys. Ordered: a later one allows less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Read and written.
    #[default]
    Online,
    /// Read only.
    ReadOnly,
    /// Neither.
    Offline,
}

impl State {
    /// Whether it is [`State::Online`].
    pub(crate) fn is_online(&self) -> bool {
        *self == State::Online
    }
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            State::Online => "online",
            State::ReadOnly => "read-only",
            State::Offline => "offline",
        })
    }
}

/// Where a mapping's keys are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// The shard that has them.
    pub shard: Name,
    /// What may be done with them.
    #[serde(default, skip_serializing_if = "State::is_online")]
    pub state: State,
    /// The epoch since which the mapping is as it is.
    #[serde(default)]
    pub since: Epoch,
}

impl Placement {
    /// Online on this shard; what is put into a catalog gets its epoch there.
    pub fn on(shard: Name) -> Self {
        Placement { shard, state: State::Online, since: Epoch(0) }
    }

    /// Whether shard and state are the same.
    pub fn is_same_place(&self, other: &Self) -> bool {
        self.shard == other.shard && self.state == other.state
    }
}
