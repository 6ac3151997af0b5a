//! Tails: what most readers of a row do not need of it, in append blocks of their own.
//!
//! ```text
//! payload of a tail's block = the tail as it is, or, if it is shorter than the tail, the tail as an LZ4 block
//! ```
//!
//! A row block then holds the heads of many rows and says where their tails are and how long: who decides over a row or
//! lists it reads one block for dozens of rows, and who wants a tail reads that tail and no other. Why a payload has
//! nothing in front of the tail: so a flush appends what is in memory, and a merge what it has read, without a copy. What
//! always holds: tails lie in extents that the checkpoint's stream lists, before the row block that names them. Those that
//! were written with it have the order of their rows; others lie where a merge has left them.

use super::row_block::compress_if_worth_it;
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;
use stream::{BLOCK_HEADER_SIZE, ExtentId, Location};

/// Shorter ones stay in their rows: one more read would cost more than they do.
pub(crate) const TAIL_SIZE_BYTES_MIN: usize = 1 << 10;
/// No tail is larger: it is a part of a row.
const TAIL_SIZE_BYTES_MAX: u32 = 64 << 20;

/// Where a tail lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailPlace {
    pub(crate) location: Location,
    /// As it is, not as it is stored. Not 0.
    pub(crate) size_bytes: u32,
}

impl TailPlace {
    pub(super) fn put(self, out: &mut Vec<u8>) {
        out.put_varint(u64::from(self.size_bytes));
        out.put_varint(self.location.extent.0);
        out.put_varint(self.location.offset);
        out.put_varint(u64::from(self.location.len));
    }

    /// Reads a place, or 0 for none.
    pub(super) fn take(decoder: &mut Decoder<'_>) -> Result<Option<Self>, DecodeError> {
        let short = |number: u64| u32::try_from(number).map_err(|_| DecodeError("tail place"));
        let size_bytes = short(decoder.varint("tail size")?)?;
        if size_bytes == 0 {
            return Ok(None);
        }
        let extent = ExtentId(decoder.varint("tail extent")?);
        let offset = decoder.varint("tail offset")?;
        let len = short(decoder.varint("tail length")?)?;
        offset.checked_add(BLOCK_HEADER_SIZE as u64 + u64::from(len)).ok_or(DecodeError("tail offset"))?;
        Ok(Some(TailPlace { location: Location { extent, offset, len }, size_bytes }))
    }

    /// Bytes that it takes in its extent.
    pub(crate) fn stored_size_bytes(self) -> u64 {
        BLOCK_HEADER_SIZE as u64 + u64::from(self.location.len)
    }
}

/// A tail as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredTail {
    pub(super) payload: Bytes,
    /// As it is, not as it is stored.
    pub(crate) size_bytes: u32,
    /// `None`: it comes from memory.
    pub(super) read: Option<ReadTail>,
}

/// Where a tail that was read came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadTail {
    pub(super) location: Location,
    /// Where the read began whose memory its payload is a part of.
    pub(super) run: Location,
}

impl StoredTail {
    /// A tail that is to be stored. `not_tried` counts those that are not compressed because the last one hardly shrank.
    pub(super) fn of(tail: &Bytes, not_tried: &mut u32) -> Self {
        let size_bytes = tail.len() as u32;
        let payload = compress_if_worth_it(tail, not_tried).map_or_else(|| tail.clone(), Bytes::from);
        StoredTail { payload, size_bytes, read: None }
    }

    /// What a place holds, which was read with others from `run` on.
    pub(crate) fn at(place: TailPlace, run: Location, payload: Bytes) -> Self {
        let read = Some(ReadTail { location: place.location, run });
        StoredTail { payload, size_bytes: place.size_bytes, read }
    }

    /// The tail.
    pub(super) fn unpacked(&self) -> Result<Bytes, DecodeError> {
        if self.payload.len() as u64 == u64::from(self.size_bytes) {
            return Ok(self.payload.clone());
        }
        if self.payload.len() as u64 > u64::from(self.size_bytes) || self.size_bytes > TAIL_SIZE_BYTES_MAX {
            return Err(DecodeError("tail size"));
        }
        let tail = lz4_flex::block::decompress(&self.payload, self.size_bytes as usize);
        let tail = tail.map_err(|_| DecodeError("tail compression"))?;
        if tail.len() == self.size_bytes as usize { Ok(tail.into()) } else { Err(DecodeError("tail size")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tails_come_back(tails in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 1..3000),
            (any::<u8>(), 1usize..9000).prop_map(|(byte, len)| vec![byte; len]),
        ], 0..20)) {
            let mut not_tried = 0;
            for tail in tails {
                let stored = StoredTail::of(&Bytes::from(tail.clone()), &mut not_tried);
                prop_assert_eq!(stored.unpacked().unwrap(), &tail);
                let shorter = StoredTail { size_bytes: stored.size_bytes - 1, ..stored };
                prop_assert!(shorter.unpacked().is_err());
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, size_bytes: u8) {
            let _ = TailPlace::take(&mut Decoder::new(&bytes));
            let _ = StoredTail { payload: bytes.into(), size_bytes: size_bytes.into(), read: None }.unpacked();
        }

        #[test]
        fn places_come_back(extent: u64, offset in 0..1u64 << 40, len: u32, size_bytes in 1..u32::MAX) {
            let place = TailPlace { location: Location { extent: ExtentId(extent), offset, len }, size_bytes };
            let mut out = Vec::new();
            place.put(&mut out);
            let mut decoder = Decoder::new(&out);
            prop_assert_eq!(TailPlace::take(&mut decoder), Ok(Some(place)));
            prop_assert!(decoder.is_empty());
        }
    }
}
