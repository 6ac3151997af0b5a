//! The fence: whether a shard lets a client's operation pass, by what it has of the mapping.
//!
//! Backends ask it inside of the transaction of the write, with a lock that is held until the commit. What
//! always holds: what passes is right for the epoch of the shard's copy, however old the client's map is.

use super::copy::{LocalCopy, LocalMapping};
use shard_map::{Epoch, MappingId, Name, State};

/// What a client wants with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To read it.
    Read,
    /// To write it.
    Write,
}

/// Why an operation does not pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The mapping is not on the shard, or not yet.
    #[error("map `{map}`: {mapping} is not on this shard; read the map again")]
    NotHere {
        /// The map.
        map: Name,
        /// The mapping's id.
        mapping: String,
    },
    /// The client knows another epoch of it.
    #[error(
        "map `{map}`: {mapping} is as it is since epoch {here}, and the client knows it since {known}; read the map again"
    )]
    OtherEpoch {
        /// The map.
        map: Name,
        /// The mapping's id.
        mapping: String,
        /// Since when it is so here.
        here: Epoch,
        /// Since when the client thinks it is.
        known: Epoch,
    },
    /// Its state does not allow it.
    #[error("map `{map}`: {mapping} is {state}")]
    State {
        /// The map.
        map: Name,
        /// The mapping's id.
        mapping: String,
        /// What it is.
        state: State,
    },
}

impl Refusal {
    /// Whether a newer map may have another route for the key.
    pub fn is_late(&self) -> bool {
        !matches!(self, Refusal::State { .. })
    }
}

/// Whether an operation passes. `here` is what the shard has of the mapping.
pub fn check_fence(
    map: &Name,
    mapping: &MappingId,
    here: Option<&LocalMapping>,
    known: Epoch,
    access: Access,
) -> Result<(), Refusal> {
    let (map, id) = (map.clone(), mapping.to_string());
    match here {
        None => Err(Refusal::NotHere { map, mapping: id }),
        Some(here) if here.since != known => {
            Err(Refusal::OtherEpoch { map, mapping: id, here: here.since, known })
        }
        Some(here) => match (here.state, access) {
            (State::Online, _) | (State::ReadOnly, Access::Read) => Ok(()),
            (state, _) => Err(Refusal::State { map, mapping: id, state }),
        },
    }
}

impl LocalCopy {
    /// Whether an operation passes this shard's fence.
    pub fn check(
        &self,
        map: &Name,
        mapping: &MappingId,
        known: Epoch,
        access: Access,
    ) -> Result<(), Refusal> {
        check_fence(map, mapping, self.mapping(map.as_str(), mapping), known, access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_of_the_epoch_and_allowed() {
        let map = Name::parse("m").expect("a name");
        let here = |state| LocalMapping { high: None, state, since: Epoch(7) };
        let check = |here: Option<&LocalMapping>, known, access| {
            check_fence(&map, &MappingId::Virtual(3), here, Epoch(known), access)
                .map_err(|refusal| refusal.is_late())
        };
        for (here, known, access, expected) in [
            (Some(here(State::Online)), 7, Access::Write, Ok(())),
            (Some(here(State::Online)), 7, Access::Read, Ok(())),
            (Some(here(State::ReadOnly)), 7, Access::Read, Ok(())),
            (Some(here(State::ReadOnly)), 7, Access::Write, Err(false)),
            (Some(here(State::Offline)), 7, Access::Read, Err(false)),
            (Some(here(State::Online)), 6, Access::Read, Err(true)),
            (Some(here(State::Online)), 8, Access::Write, Err(true)),
            (None, 7, Access::Write, Err(true)),
        ] {
            assert_eq!(check(here.as_ref(), known, access), expected, "{here:?} {known} {access:?}");
        }
    }
}
