//! Headers for table tests: one extent of one stream.

use crate::extent::part_header::{ExtentPlace, PartHeader, PartKind, StampLife};
use crate::extent::seal_body::seal_body;
use crate::ids::{ExtentName, Generation, Incarnation, Owner, RangeId, StampId, StreamId};
use base::checksum::crc64;
use stream::OwnerEpoch;

/// The extent of these headers.
pub(crate) fn extent() -> ExtentName {
    ExtentName::new(Incarnation(1), 10)
}

/// The stamp of these headers.
pub(crate) fn life() -> StampLife {
    StampLife { stamp: StampId(100), generation: Generation(200) }
}

/// The place of these headers.
pub(crate) fn place() -> ExtentPlace {
    let by = Incarnation(1);
    ExtentPlace { extent: extent(), range: RangeId::new(by, 11), stream: StreamId::new(by, 12), ordinal: 0 }
}

/// An owner by small numbers.
pub(crate) fn writer(incarnation: u128, epoch: u64) -> Owner {
    Owner { incarnation: Incarnation(incarnation), epoch: OwnerEpoch(epoch) }
}

/// A part whose body's checksum tells its offset.
pub(crate) fn part(writer: Owner, offset: u64, body_length: u64, previous: u64) -> PartHeader {
    let body_checksum = 1000 + offset;
    let (life, place, kind) = (life(), place(), PartKind::Part);
    PartHeader { kind, life, place, offset, body_length, writer, body_checksum, previous }
}

/// A seal that lists no parts.
pub(crate) fn seal(writer: Owner, offset: u64, previous: u64) -> PartHeader {
    let body = seal_body(&[]);
    let (life, place, kind) = (life(), place(), PartKind::Seal);
    let (body_length, body_checksum) = (body.len() as u64, crc64(&[&body]));
    PartHeader { kind, life, place, offset, body_length, writer, body_checksum, previous }
}
