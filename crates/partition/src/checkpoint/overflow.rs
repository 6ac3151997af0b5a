//! Overflows: what most readers of a row do not need of it, in append blocks of their own.
//!
//! ```text
//! payload of an overflow's block = the overflow as it is, or, if it is shorter than the overflow, the overflow as an LZ4 block
//! ```
//!
//! A row block then holds the heads of many rows and holds the place and length of their overflows: an
//! operation that decides over a row or lists it reads one block for dozens of rows, and a reader of an
//! overflow reads that overflow and no other. Why a payload has nothing in front of the overflow: so a flush
//! appends what is in memory, and a merge what it has read, without a copy. What always holds: overflows lie
//! in extents that the checkpoint's stream lists, before the row block that names them. Those that were
//! written with it have the order of their rows; others lie where a merge has left them.

use super::compression::compress_if_worth_it;
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;
use stream::{BLOCK_HEADER_SIZE, ExtentId, Location};

/// Shorter ones stay in their rows: one more read would cost more than they do.
pub(crate) const OVERFLOW_SIZE_BYTES_MIN: usize = 1 << 10;
/// No overflow is larger: it is a part of a row.
const OVERFLOW_SIZE_BYTES_MAX: u32 = 64 << 20;

/// Where an overflow lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverflowPlace {
    pub(crate) location: Location,
    /// As it is, not as it is stored. Not 0.
    pub(crate) size_bytes: u32,
}

impl OverflowPlace {
    pub(super) fn put(self, out: &mut Vec<u8>) {
        out.put_varint(u64::from(self.size_bytes));
        out.put_varint(self.location.extent.0);
        out.put_varint(self.location.offset);
        out.put_varint(u64::from(self.location.len));
    }

    /// Reads a place, or 0 for none.
    pub(super) fn take(decoder: &mut Decoder<'_>) -> Result<Option<Self>, DecodeError> {
        let short = |number: u64| u32::try_from(number).map_err(|_| DecodeError("overflow place"));
        let size_bytes = short(decoder.varint("overflow size")?)?;
        if size_bytes == 0 {
            return Ok(None);
        }
        let extent = ExtentId(decoder.varint("overflow extent")?);
        let offset = decoder.varint("overflow offset")?;
        let len = short(decoder.varint("overflow length")?)?;
        offset
            .checked_add(BLOCK_HEADER_SIZE as u64 + u64::from(len))
            .ok_or(DecodeError("overflow offset"))?;
        Ok(Some(OverflowPlace { location: Location { extent, offset, len }, size_bytes }))
    }

    /// Bytes that it takes in its extent.
    pub(crate) fn stored_size_bytes(self) -> u64 {
        BLOCK_HEADER_SIZE as u64 + u64::from(self.location.len)
    }
}

/// An overflow as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredOverflow {
    pub(super) payload: Bytes,
    /// As it is, not as it is stored.
    pub(crate) size_bytes: u32,
    /// `None`: it comes from memory.
    pub(super) read: Option<ReadOverflow>,
}

/// Where an overflow that was read came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadOverflow {
    pub(super) location: Location,
    /// Where the read began whose memory its payload is a part of.
    pub(super) run: Location,
}

impl StoredOverflow {
    /// An overflow that is to be stored. `not_tried` counts those that are not compressed because the last
    /// one hardly shrank.
    pub(super) fn of(overflow: &Bytes, not_tried: &mut u32) -> Self {
        let size_bytes = overflow.len() as u32;
        let payload = compress_if_worth_it(overflow, not_tried).map_or_else(|| overflow.clone(), Bytes::from);
        StoredOverflow { payload, size_bytes, read: None }
    }

    /// What a place holds, which was read with others from `run` on.
    pub(crate) fn at(place: OverflowPlace, run: Location, payload: Bytes) -> Self {
        let read = Some(ReadOverflow { location: place.location, run });
        StoredOverflow { payload, size_bytes: place.size_bytes, read }
    }

    /// The overflow.
    pub(super) fn unpacked(&self) -> Result<Bytes, DecodeError> {
        if self.payload.len() as u64 == u64::from(self.size_bytes) {
            return Ok(self.payload.clone());
        }
        if self.payload.len() as u64 > u64::from(self.size_bytes) || self.size_bytes > OVERFLOW_SIZE_BYTES_MAX
        {
            return Err(DecodeError("overflow size"));
        }
        let overflow = lz4_flex::block::decompress(&self.payload, self.size_bytes as usize);
        let overflow = overflow.map_err(|_| DecodeError("overflow compression"))?;
        if overflow.len() == self.size_bytes as usize {
            Ok(overflow.into())
        } else {
            Err(DecodeError("overflow size"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tails_come_back(overflows in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 1..3000),
            (any::<u8>(), 1usize..9000).prop_map(|(byte, len)| vec![byte; len]),
        ], 0..20)) {
            let mut not_tried = 0;
            for overflow in overflows {
                let stored = StoredOverflow::of(&Bytes::from(overflow.clone()), &mut not_tried);
                prop_assert_eq!(stored.unpacked().unwrap(), &overflow);
                let shorter = StoredOverflow { size_bytes: stored.size_bytes - 1, ..stored };
                prop_assert!(shorter.unpacked().is_err());
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, size_bytes: u8) {
            let _ = OverflowPlace::take(&mut Decoder::new(&bytes));
            let _ = StoredOverflow { payload: bytes.into(), size_bytes: size_bytes.into(), read: None }.unpacked();
        }

        #[test]
        fn places_come_back(extent: u64, offset in 0..1u64 << 40, len: u32, size_bytes in 1..u32::MAX) {
            let place = OverflowPlace { location: Location { extent: ExtentId(extent), offset, len }, size_bytes };
            let mut out = Vec::new();
            place.put(&mut out);
            let mut decoder = Decoder::new(&out);
            prop_assert_eq!(OverflowPlace::take(&mut decoder), Ok(Some(place)));
            prop_assert!(decoder.is_empty());
        }
    }
}
