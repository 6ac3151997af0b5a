//! The names in the modelled stamp, and which key a write has.

use stamp::{
    Generation, Incarnation, KeyLimits, Mark, Owner, OwnerEpoch, RangeId, StampId, StampLife, StreamId,
};

/// A client's write, numbered in order of submission from 1.
pub(crate) type Write = u64;

/// Sets the scene and owns nothing.
pub(crate) const GENESIS: Incarnation = Incarnation(0);
/// The first incarnation of a process.
pub(crate) const FIRST_INCARNATION: u128 = 1;
/// Seals for a sweep.
pub(crate) const SWEEPER: Incarnation = Incarnation(900);
/// Seals for a take that was given up.
pub(crate) const STRAY: Incarnation = Incarnation(901);
/// Restores; a number is added for each restore.
pub(crate) const RESTORER: u128 = 910;

/// The first key of the second half.
pub(crate) const MIDDLE: &[u8] = b"m";

/// The modelled range before any split.
pub(crate) fn first_range() -> RangeId {
    RangeId::new(GENESIS, 0)
}

/// Its log.
pub(crate) fn first_log() -> StreamId {
    StreamId::new(GENESIS, 1)
}

/// The first mark.
pub(crate) fn first_mark() -> Mark {
    Mark::new(GENESIS, 2)
}

/// The stamp in a life of its metadata store.
pub(crate) fn life(generation: Generation) -> StampLife {
    StampLife { stamp: StampId(1), generation }
}

/// An owner that only seals.
pub(crate) fn sealer(incarnation: Incarnation) -> Owner {
    Owner { incarnation, epoch: OwnerEpoch(0) }
}

/// Whether the write is within these keys: odd writes are in the first half, even ones in the second.
pub(crate) fn is_within(write: Write, keys: &KeyLimits) -> bool {
    keys.contains(if write % 2 == 1 { b"a" } else { b"z" })
}
