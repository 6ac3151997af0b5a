//! The claim of a mapping in a shard: which move's writes pass there.
//!
//! ```text
//! none --claim 5--> 5, active --release 5--> 5, released --claim 6--> 6, active
//! ```
//!
//! What always holds: a stored epoch never falls, and a released claim is never active again; so the writes
//! of a move pass from its claim until its end, and no batch of it that is late passes after that.

use super::error::BackendError;
use shard_map::{Epoch, MappingId, Name};

/// What a shard stores of the claims of a mapping: the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredClaim {
    /// The epoch by which a move claimed it.
    pub epoch: Epoch,
    /// Whether that move is under way; else its claim was released.
    pub is_active: bool,
}

/// The mapping that a message names.
#[derive(Clone, Copy)]
pub(super) struct Claimed<'a> {
    pub(super) place: &'a str,
    pub(super) map: &'a Name,
    pub(super) mapping: &'a MappingId,
}

impl Claimed<'_> {
    /// What is stored after a claim; none if it is stored already.
    pub(super) fn claim(
        self,
        there: Option<StoredClaim>,
        given: Epoch,
    ) -> Result<Option<StoredClaim>, BackendError> {
        match there {
            Some(there) if there.epoch > given => Err(self.other(there.epoch, given)),
            Some(there) if there.epoch == given && !there.is_active => Err(self.released(given)),
            Some(there) if there.epoch == given => Ok(None),
            _ => Ok(Some(StoredClaim { epoch: given, is_active: true })),
        }
    }

    /// Whether the writes of a claim pass.
    pub(super) fn check(self, there: Option<StoredClaim>, given: Epoch) -> Result<(), BackendError> {
        match there {
            Some(there) if there.epoch != given => Err(self.other(there.epoch, given)),
            Some(there) if !there.is_active => Err(self.released(given)),
            Some(_) => Ok(()),
            None => Err(self.other(Epoch(0), given)),
        }
    }

    fn other(self, there: Epoch, given: Epoch) -> BackendError {
        let (place, map, mapping) = (self.place.to_owned(), self.map.clone(), self.mapping.clone());
        BackendError::Claimed { place, map, mapping, there, given }
    }

    fn released(self, given: Epoch) -> BackendError {
        let (place, map, mapping) = (self.place.to_owned(), self.map.clone(), self.mapping.clone());
        BackendError::Released { place, map, mapping, given }
    }
}

/// What is stored after a release; none if it is without effect.
pub(super) fn release(there: Option<StoredClaim>, given: Epoch) -> Option<StoredClaim> {
    let there = there.filter(|there| there.epoch == given && there.is_active)?;
    Some(StoredClaim { is_active: false, ..there })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_taken_kept_and_released_once() {
        let map = Name::parse("m").expect("a name");
        let mapping = MappingId::Virtual(3);
        let claimed = Claimed { place: "place", map: &map, mapping: &mapping };
        let stored = |epoch, is_active| Some(StoredClaim { epoch: Epoch(epoch), is_active });
        let taken = Ok(stored(5, true));
        // What is stored; what a claim by 5 stores, whether its writes pass, and what its release stores.
        for (there, after_claim, passes, after_release) in [
            (None, taken.clone(), false, None),
            (stored(4, true), taken.clone(), false, None),
            (stored(4, false), taken, false, None),
            (stored(5, true), Ok(None), true, stored(5, false)),
            (stored(5, false), Err(claimed.released(Epoch(5))), false, None),
            (stored(6, true), Err(claimed.other(Epoch(6), Epoch(5))), false, None),
            (stored(6, false), Err(claimed.other(Epoch(6), Epoch(5))), false, None),
        ] {
            assert_eq!(claimed.claim(there, Epoch(5)), after_claim, "{there:?}");
            assert_eq!(claimed.check(there, Epoch(5)).is_ok(), passes, "{there:?}");
            assert_eq!(release(there, Epoch(5)), after_release, "{there:?}");
        }
    }
}
