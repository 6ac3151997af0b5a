//! Mappings that several sources claim, put together to one map.
//!
//! A shard's copy claims what is on the shard; an old map may claim the rest. Of two claims of the same keys
//! the one with the higher `since` is right, because a shard closes what it lost before another opens it;
//! claims of one epoch are a contradiction, which only a choice resolves.

use super::recovered::{RecoverError, Recovery};
use crate::local::copy::{LocalMap, LocalMapping};
use shard_map::{
    Bound, Epoch, Hashed, KeyType, MapBuilder, MapError, MappingId, Name, Placement, ShardMap, State,
};
use std::collections::BTreeMap;

/// A mapping on a shard, as a source has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) shard: Name,
    pub(super) high: Option<Bound>,
    pub(super) state: State,
    pub(super) since: Epoch,
    /// Whether it is the shard's own copy that says so. Others are taken only where no copy has the keys, and
    /// get a new epoch, because nothing tells what became of them.
    pub(super) is_of_copy: bool,
}

/// All claims of a map.
#[derive(Clone, Debug)]
pub(super) struct Claims {
    pub(super) name: Name,
    pub(super) key: KeyType,
    pub(super) hash: Option<Hashed>,
    /// The shard whose copy, or the map that, says so.
    pub(super) source: String,
    /// Whether a copy says that the map has ranges.
    has_ranges: bool,
    claims: Vec<(MappingId, Claim)>,
}

impl Claims {
    pub(super) fn new(name: Name, key: KeyType, hash: Option<Hashed>, source: String) -> Self {
        Claims { name, key, hash, source, has_ranges: false, claims: Vec::new() }
    }

    /// All mappings of a shard's copy.
    pub(super) fn add_copy(&mut self, shard: &Name, map: &LocalMap) {
        self.has_ranges |= map.has_ranges;
        for (id, LocalMapping { high, state, since }) in &map.mappings {
            let (shard, high) = (shard.clone(), high.clone());
            let claim = Claim { shard, high, state: *state, since: *since, is_of_copy: true };
            self.claims.push((id.clone(), claim));
        }
    }

    /// A mapping of an old map.
    pub(super) fn add(&mut self, id: MappingId, claim: Claim) {
        self.claims.push((id, claim));
    }

    /// The map of all claims that win. `epoch` is for those that nothing vouches for.
    pub(super) fn settle(mut self, epoch: Epoch, recovery: &mut Recovery) -> Result<ShardMap, RecoverError> {
        // Copies before others, the newest first.
        self.claims
            .sort_by_key(|(id, claim)| (!claim.is_of_copy, std::cmp::Reverse(claim.since), id.clone()));
        let mut won: BTreeMap<MappingId, Claim> = BTreeMap::new();
        for (id, claim) in std::mem::take(&mut self.claims) {
            match self.in_the_way(&id, &claim, &won)? {
                None => {
                    if !claim.is_of_copy {
                        recovery.from_map.push((self.name.clone(), id.to_string(), claim.shard.clone()));
                    }
                    won.insert(id, claim);
                }
                Some(winner) if claim.is_of_copy => {
                    let winner = winner.shard.clone();
                    recovery.superseded.push((self.name.clone(), id.to_string(), claim.shard, winner));
                }
                Some(_) => {}
            }
        }
        let is_range = |id: &MappingId| matches!(id, MappingId::Range(_));
        if self.has_ranges && self.hash.is_none() && !won.keys().any(is_range) {
            return Err(RecoverError::NoRanges { map: self.name });
        }
        stamp(&mut won, epoch);
        self.build(won).map_err(|error| RecoverError::Map { error })
    }

    /// The claim that has the keys already, if any has.
    fn in_the_way<'a>(
        &self,
        id: &MappingId,
        claim: &Claim,
        won: &'a BTreeMap<MappingId, Claim>,
    ) -> Result<Option<&'a Claim>, RecoverError> {
        let ranges = won.iter().filter_map(|(id, claim)| match id {
            MappingId::Range(low) => Some((low, claim)),
            MappingId::Pin(_) | MappingId::Virtual(_) => None,
        });
        let other = match id {
            MappingId::Range(low) => ranges.into_iter().find(|(other_low, other)| {
                let begins_before_end =
                    |low: &Bound, end: &Option<Bound>| end.as_ref().is_none_or(|end| low < end);
                begins_before_end(low, &other.high) && begins_before_end(other_low, &claim.high)
            }),
            MappingId::Pin(_) | MappingId::Virtual(_) => {
                return match won.get(id) {
                    Some(other) if other.since == claim.since && claim.is_of_copy => {
                        Err(self.contradiction(id, other, claim))
                    }
                    other => Ok(other),
                };
            }
        };
        let Some((other_low, other)) = other else { return Ok(None) };
        let MappingId::Range(low) = id else { return Ok(None) };
        let ends_behind =
            other.high.is_some() && claim.high.as_ref().is_none_or(|high| Some(high) > other.high.as_ref());
        let is_within = low >= other_low && !ends_behind;
        if claim.is_of_copy && (other.since == claim.since || !is_within) {
            return Err(self.contradiction(id, other, claim));
        }
        Ok(Some(other))
    }

    fn contradiction(&self, id: &MappingId, first: &Claim, second: &Claim) -> RecoverError {
        RecoverError::Contradiction {
            map: self.name.clone(),
            mapping: id.to_string(),
            first: first.shard.clone(),
            first_since: first.since,
            second: second.shard.clone(),
            second_since: second.since,
        }
    }

    fn build(&self, won: BTreeMap<MappingId, Claim>) -> Result<ShardMap, MapError> {
        let mut map = MapBuilder::new(self.name.clone(), self.key.clone());
        let key_error = |error| MapError::Key { map: self.name.clone(), error };
        if let Some(hash) = self.hash {
            map.hash(hash)?;
        }
        for (id, Claim { shard, high, state, since, .. }) in won {
            map.since(since);
            let placement = Placement { shard, state, since };
            match id {
                MappingId::Pin(key) => {
                    map.pin(&self.key.decode(key.as_bytes()).map_err(key_error)?, placement)?;
                }
                MappingId::Range(low) => {
                    let values = |bound: &Bound| self.key.decode_bound(bound.as_bytes()).map_err(key_error);
                    let high = high.as_ref().map(values).transpose()?;
                    map.range(&values(&low)?, high.as_deref(), placement)?;
                }
                MappingId::Virtual(number) => {
                    map.place(number, number, placement)?;
                }
            }
        }
        map.build()
    }
}

/// A new epoch for all but pins that a copy vouches for. Of what lies below, no copy says whether another
/// shard has, or was about to get, a pin of one of its keys that clients know.
fn stamp(won: &mut BTreeMap<MappingId, Claim>, epoch: Epoch) {
    for (id, claim) in won {
        if !claim.is_of_copy || !matches!(id, MappingId::Pin(_)) {
            claim.since = epoch;
        }
    }
}
