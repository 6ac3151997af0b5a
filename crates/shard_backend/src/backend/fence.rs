//! What a write needs of the shard's fence, from its check until its commit.
//!
//! What always holds: of two writers of a shardlet, a client's and a move's, at most one passes at a time; a
//! write of a sharded table names the mapping that it writes.

use super::claim::{Claimed, StoredClaim};
use super::error::BackendError;
use super::shardlet::Shardlet;
use crate::schema::table::TableSchema;
use crate::value::row::RowKey;
use shard_map::{Epoch, KeyValue, MappingId, Name, State};
use shard_store::{Access, LocalMapping, check_fence};

/// What the fence must have of the shardlet's mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceHold {
    /// The mapping is on the shard since this epoch, and online: a client's write.
    Open(Epoch),
    /// The mapping takes no writes of clients: it is not on the shard, read-only or offline; and this claim
    /// is the one that is stored, and not released. The write of a copy, or a delete after it: a late one is
    /// refused.
    Closed(Epoch),
}

impl FenceHold {
    /// Whether a write passes. `here` is what the shard has of the mapping, and `claim` the stored claim.
    pub fn check(
        self,
        place: &str,
        map: &Name,
        mapping: &MappingId,
        here: Option<&LocalMapping>,
        claim: Option<StoredClaim>,
    ) -> Result<(), BackendError> {
        match self {
            FenceHold::Open(known) => check_fence(map, mapping, here, known, Access::Write)
                .map_err(|refusal| BackendError::Fence { place: place.to_owned(), refusal }),
            FenceHold::Closed(_) if here.is_some_and(|here| here.state == State::Online) => {
                let (map, mapping) = (map.clone(), mapping.clone());
                Err(BackendError::TakesWrites { place: place.to_owned(), map, mapping })
            }
            FenceHold::Closed(given) => Claimed { place, map, mapping }.check(claim, given),
        }
    }
}

/// What a shard has of a mapping, by the row of its fence.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) fn stored_mapping(place: &str, since: i64, state: &str) -> Result<LocalMapping, BackendError> {
    let states = [State::Online, State::ReadOnly, State::Offline];
    let Some(state) = states.into_iter().find(|known| known.to_string() == state) else {
        let what = format!("its fence has a mapping in the state {state:?}, which is unknown");
        return Err(shard_store::StoreError::refused(place, what).into());
    };
    // Bounds decide nothing here.
    Ok(LocalMapping { high: None, state, since: Epoch(since.cast_unsigned()) })
}

/// Whether a row may be written with the shardlet: it is of its mapping, which a sharded table must have.
pub(crate) fn check_shardlet(
    place: &str,
    table: &TableSchema,
    shardlet: &Shardlet,
    key: &RowKey,
) -> Result<(), BackendError> {
    let is_right = match table.is_sharded() {
        true => shardlet.mapping().is_some() && shardlet.holds(shard_key(table, key)),
        false => shardlet.mapping().is_none(),
    };
    match is_right {
        true => Ok(()),
        false => Err(BackendError::OtherShardlet {
            place: place.to_owned(),
            table: table.name().to_owned(),
            key: key.to_string(),
            shardlet: shardlet.to_string(),
        }),
    }
}

/// The shard key of a row's key.
pub(crate) fn shard_key<'a>(table: &TableSchema, key: &'a RowKey) -> &'a [KeyValue] {
    key.values.get(..table.shard_key().len()).unwrap_or(&key.values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_and_a_copy_never_pass_at_the_same_time() {
        let map = Name::parse("m").expect("a name");
        let here = |state, since| Some(LocalMapping { high: None, state, since: Epoch(since) });
        let passes = |hold: FenceHold, here: &Option<LocalMapping>| {
            let claim = StoredClaim { epoch: Epoch(9), is_active: true };
            hold.check("place", &map, &MappingId::Virtual(3), here.as_ref(), Some(claim)).is_ok()
        };
        for (here, open_of_7, closed) in [
            (None, false, true),
            (here(State::Online, 7), true, false),
            (here(State::Online, 8), false, false),
            (here(State::ReadOnly, 7), false, true),
            (here(State::Offline, 7), false, true),
        ] {
            let found =
                (passes(FenceHold::Open(Epoch(7)), &here), passes(FenceHold::Closed(Epoch(9)), &here));
            assert_eq!(found, (open_of_7, closed), "{here:?}");
            assert!(
                !passes(FenceHold::Closed(Epoch(8)), &here) && !passes(FenceHold::Closed(Epoch(10)), &here)
            );
        }
    }
}
