//! What plans are made of.

use crate::limits::{CLOCK_BOUND, EXPIRES_AFTER};
use shard_backend::Capabilities;
use shard_map::{Catalog, MappingId, Name};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a mapping's rows take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MappingSize {
    /// Rows of all tables.
    pub rows: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// Load, in any unit that is the same for all mappings: requests a second, say.
    pub load: u64,
}

/// A mapping of a catalog.
pub type MappingOf = (Name, MappingId);

/// What plans are made of.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The catalog.
    pub catalog: Catalog,
    /// What the shards can do that can be reached.
    pub capabilities: BTreeMap<Name, Capabilities>,
    /// What mappings take; others take nothing.
    pub sizes: BTreeMap<MappingOf, MappingSize>,
    /// Mappings that moves have.
    pub moving: BTreeSet<MappingOf>,
    /// What is asked for.
    pub settings: PlanSettings,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanSettings {
    /// Whether rows may be moved while clients are away, if the backends allow nothing better.
    pub is_offline_allowed: bool,
    /// Rows that are copied a second, for estimates; as many are compared.
    pub rows_per_second: u64,
    /// How long a move waits until signatures end, on sides that are fenced by them.
    pub expiry_wait: Duration,
    /// By how much of the mean a shard may have more than the mean, in percent.
    pub tolerance_percent: u64,
    /// Whether mappings may go to shards with other tags than theirs.
    pub crosses_tags: bool,
}

impl Default for PlanSettings {
    fn default() -> Self {
        PlanSettings {
            is_offline_allowed: false,
            rows_per_second: 50_000,
            expiry_wait: EXPIRES_AFTER.saturating_add(CLOCK_BOUND),
            tolerance_percent: 10,
            crosses_tags: false,
        }
    }
}

impl Facts {
    pub(crate) fn size(&self, of: &MappingOf) -> MappingSize {
        self.sizes.get(of).copied().unwrap_or_default()
    }
}
