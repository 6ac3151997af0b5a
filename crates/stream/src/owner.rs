//! Who may change a stream: one life of a process, and the number of times that the stream has changed hands.
//!
//! An epoch alone is not enough: two processes that count on from the same number have the same one. What
//! always holds: of two owners of one epoch only the first is accepted, and one of an older epoch never is.

use crate::ids::{OwnerEpoch, StreamName};
use base::Random;
use base::codec::{DecodeError, Decoder, Encode};
use std::fmt;
use std::hash::{Hash, Hasher};

/// Bytes of an [`Owner`] in stored formats.
pub const OWNER_SIZE: usize = 24;

/// One life of a process: from its joining the stamp to the end of its lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u128);

impl Incarnation {
    /// The owner of what programs wrote that had no incarnations, up to format 6. No process has it.
    pub const UNKNOWN: Incarnation = Incarnation(0);

    /// Another one than any before.
    pub fn draw(random: &dyn Random) -> Self {
        let wide = (u128::from(random.next_u64()) << 64) | u128::from(random.next_u64());
        Incarnation(wide.max(1))
    }

    /// Reads 16 bytes, little-endian.
    pub(crate) fn decode(decoder: &mut Decoder<'_>, field: &'static str) -> Result<Self, DecodeError> {
        let bytes = decoder.take(16, field)?.try_into().map_err(|_| DecodeError(field))?;
        Ok(Incarnation(u128::from_le_bytes(bytes)))
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The process that has a range or a stream, and the number of times that it has changed hands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// The life of a process that owns it.
    pub incarnation: Incarnation,
    /// Rises with each change of owner.
    pub epoch: OwnerEpoch,
}

impl Owner {
    /// The first owner of what `incarnation` has made.
    pub const fn first(incarnation: Incarnation) -> Self {
        Owner { incarnation, epoch: OwnerEpoch(1) }
    }

    /// An owner of which only the epoch was written.
    pub(crate) fn of_epoch(epoch: OwnerEpoch) -> Self {
        Owner { incarnation: Incarnation::UNKNOWN, epoch }
    }

    /// Of the two the one of the later epoch.
    pub(crate) fn max_epoch(self, other: Owner) -> Owner {
        if other.epoch > self.epoch { other } else { self }
    }

    /// Whether its requests are accepted where `seen` was the newest owner: it is the same one or newer. Of
    /// an equal epoch only the owner itself is.
    pub fn may_act_after(&self, seen: &Owner) -> bool {
        self.epoch > seen.epoch || self == seen
    }

    /// Appends it: 16 bytes of incarnation, 8 of epoch, little-endian.
    pub fn encode(&self, out: &mut impl Encode) {
        out.put_raw(&self.incarnation.0.to_le_bytes());
        out.put_u64_field(self.epoch.0);
    }

    /// Reads what [`Self::encode`] wrote.
    pub fn decode(decoder: &mut Decoder<'_>, field: &'static str) -> Result<Self, DecodeError> {
        let incarnation = Incarnation::decode(decoder, field)?;
        Ok(Owner { incarnation, epoch: OwnerEpoch(decoder.u64(field)?) })
    }
}

impl Hash for Owner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.incarnation.hash(state);
        self.epoch.0.hash(state);
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in epoch {}", self.incarnation, self.epoch.0)
    }
}

/// A stream as one of its owners names it: whoever changes a stream says for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedStream {
    /// Which stream.
    pub name: StreamName,
    /// For whom it is changed.
    pub owner: Owner,
}

impl StreamName {
    /// The stream as `owner` names it.
    pub fn owned_by(&self, owner: Owner) -> OwnedStream {
        OwnedStream { name: self.clone(), owner }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(incarnation: u128, epoch: u64) -> Owner {
        Owner { incarnation: Incarnation(incarnation), epoch: OwnerEpoch(epoch) }
    }

    #[test]
    fn an_older_owner_and_another_one_of_the_same_epoch_are_refused() {
        for (new, seen, accepted) in [
            (owner(1, 2), owner(1, 2), true),
            (owner(1, 3), owner(2, 2), true),
            (owner(1, 3), owner(1, 2), true),
            (owner(1, 2), owner(2, 2), false),
            (owner(2, 2), owner(1, 2), false),
            (owner(9, 1), owner(1, 2), false),
            (owner(1, 1), owner(1, 2), false),
            // A folder of a former format: its owner goes on, and nobody else in its epoch.
            (owner(0, 2), owner(0, 2), true),
            (owner(7, 2), owner(0, 2), false),
            (owner(7, 3), owner(0, 2), true),
        ] {
            assert_eq!(new.may_act_after(&seen), accepted, "{new} after {seen}");
        }
    }

    #[test]
    fn owners_come_back() {
        for owner in [owner(0, 0), owner(1 << 100, 7), owner(u128::MAX, u64::MAX)] {
            let mut bytes = Vec::new();
            owner.encode(&mut bytes);
            assert_eq!(bytes.len(), OWNER_SIZE);
            assert_eq!(Owner::decode(&mut Decoder::new(&bytes), "owner"), Ok(owner));
        }
        assert!(Owner::decode(&mut Decoder::new(&[0; OWNER_SIZE - 1]), "owner").is_err());
    }
}
