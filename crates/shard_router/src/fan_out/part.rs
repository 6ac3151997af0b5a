//! The part of a map that is on one shard: what a shard's answer must be restricted to.
//!
//! What always holds: of the rows of one key, exactly one part of a map holds them. A shard may have others:
//! a move copies rows before the map has them there, and deletes them behind it. An answer that was read
//! before a check of its part passed lacks no row: each mapping has the `since` of the map then, a mapping
//! that left the shard has never the same one again, and rows are deleted behind it only.

#[cfg(any(feature = "postgres", feature = "sqlite"))]
use crate::backend::fence_rows::{FenceRow, mapping_of_row};
use crate::map::map_read::{LookupError, MapRead};
use shard_backend::Fence;
use shard_map::{Epoch, KeyValue, MappingId, Name, Shard, ShardMap, State};
use shard_store::{Access, LocalCopy, LocalMapping, Refusal, check_fence};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Why an answer may lack rows of its part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartRefusal {
    /// The shard has another part of the map than the client knows, or it may not be read.
    #[error(transparent)]
    Fence(#[from] Refusal),
    /// The shard is offline.
    #[error("it is offline")]
    Offline,
    /// It is not in the map any more, or at another location.
    #[error("it is not in the map any more, or at another location; query again")]
    Gone,
    /// Only the map's age says that it is right, and the answer came when it was too old.
    #[error("the answer came when the map was older than {age_max:?}; query again, or less at a time")]
    MapTooOld {
        /// How old it may be.
        age_max: Duration,
    },
    /// What the shard knows of the map was not read.
    #[error("what it knows of the map was not read: {0}")]
    Unread(String),
}

impl PartRefusal {
    /// Whether a newer map may have another answer.
    pub fn is_late(&self) -> bool {
        match self {
            PartRefusal::Fence(refusal) => refusal.is_late(),
            PartRefusal::Offline | PartRefusal::Gone | PartRefusal::MapTooOld { .. } => true,
            PartRefusal::Unread(_) => false,
        }
    }
}

/// The part of a map that is on one shard.
#[derive(Clone, Debug)]
pub struct ShardPart {
    read: Arc<MapRead>,
    map: Arc<ShardMap>,
    shard: Shard,
    mappings: Vec<MappingId>,
    state: State,
}

impl ShardPart {
    /// The parts of a map, a shard each, in the order of the shards' names.
    pub(crate) fn all(read: &Arc<MapRead>, map: &str) -> Result<Vec<Self>, LookupError> {
        let map = read.map(map)?;
        let mut found: BTreeMap<Name, (Vec<MappingId>, State)> = BTreeMap::new();
        for (mapping, placement) in map.mappings() {
            let (mappings, state) = found.entry(placement.shard.clone()).or_default();
            mappings.push(mapping);
            *state = placement.state.max(*state);
        }
        let part = |(name, (mappings, state)): (Name, (Vec<MappingId>, State))| {
            let no_shard =
                || LookupError::NoShard { catalog: read.catalog.name().clone(), shard: name.clone() };
            let shard = read.catalog.shard(name.as_str()).ok_or_else(no_shard)?.clone();
            let state = shard.state.max(state);
            Ok(ShardPart { read: read.clone(), map: map.clone(), shard, mappings, state })
        };
        found.into_iter().map(part).collect()
    }

    /// The shard.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// The map.
    pub fn map(&self) -> &Arc<ShardMap> {
        &self.map
    }

    /// The map's mappings that are on the shard.
    pub fn mappings(&self) -> &[MappingId] {
        &self.mappings
    }

    /// The least that is allowed with any of them; what is offline is not queried.
    pub fn state(&self) -> State {
        self.state
    }

    pub(crate) fn read(&self) -> &Arc<MapRead> {
        &self.read
    }

    /// Whether the shard's copy has all of the part, since the epochs of the map, and lets it be read.
    pub fn check_copy(&self, copy: Option<&LocalCopy>) -> Result<(), PartRefusal> {
        self.check(|mapping| copy?.mapping(self.map.name().as_str(), mapping).cloned())
    }

    /// The same by the fence's rows of the map: `since` and state by the mappings' ids.
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    pub(crate) fn check_rows(&self, rows: Vec<FenceRow>) -> Result<(), PartRefusal> {
        let rows: BTreeMap<String, (i64, String)> =
            rows.into_iter().map(|(mapping, since, state)| (mapping, (since, state))).collect();
        self.check(|mapping| {
            let (since, state) = rows.get(&mapping.to_string())?;
            mapping_of_row(*since, state)
        })
    }

    fn check(&self, here: impl Fn(&MappingId) -> Option<LocalMapping>) -> Result<(), PartRefusal> {
        for mapping in &self.mappings {
            let known = self.map.placement(mapping).map_or(Epoch(0), |placement| placement.since);
            check_fence(self.map.name(), mapping, here(mapping).as_ref(), known, Access::Read)?;
        }
        Ok(())
    }

    /// Whether the map is young enough, for shards that are not asked. A move waits for longer before it
    /// takes anything away, unless the shard's fence holds.
    pub(crate) fn check_unasked(
        &self,
        fence: Fence,
        monotonic: Duration,
        age_max: Duration,
    ) -> Result<(), PartRefusal> {
        match fence {
            Fence::HeldUntilCommit => Err(PartRefusal::Unread("its connector has no copy of it".to_owned())),
            Fence::Expires | Fence::None if self.read.age(monotonic) < age_max => Ok(()),
            Fence::Expires | Fence::None => Err(PartRefusal::MapTooOld { age_max }),
        }
    }

    /// Whether the rows of this key are the shard's: all others that it has are left out.
    pub fn holds(&self, key: &[KeyValue]) -> bool {
        self.map.route(key).is_ok_and(|route| route.placement.shard == self.shard.name)
    }
}
