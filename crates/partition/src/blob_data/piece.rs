//! Pieces: where a row's bytes lie that are not in the row, and how rows name them; and how rows say which of
//! the bytes that are in them are their overflow.
//!
//! ```text
//! value of a row in a table with data = start, then what the service likes, the last bytes of it the overflow if there is one
//! start  = varint count, count × piece
//! piece  = varint extent, varint offset, varint length
//!        | varint n, varint 0, varint 0             the last one only: the value's last n bytes, at least 1, are its overflow
//! bytes of a piece, from `offset` of the extent on: append blocks of DATA_BLOCK_SIZE_BYTES each, the last one shorter
//! ```
//!
//! Why every such row starts with its pieces: the layer can tell which bytes are still named, and can move
//! them, without knowing what a blob is. Why blocks of this size: each has one checksum, so a read of a few
//! bytes verifies one block and not the whole piece. Why overflows: who decides over a row, lists it or looks
//! for its pieces needs its head, and the overflow, which is most of it, is kept apart in checkpoints. What
//! always holds: a piece has 1 to [`PIECE_SIZE_BYTES_MAX`] bytes; a head is a value without its overflow, all
//! of it, and says how long that is.

use base::codec::{DecodeError, Decoder, Encode};
use stream::{BLOCK_HEADER_SIZE, ExtentId, Location};

/// Bytes under one checksum; a read of less reads all of them.
pub const DATA_BLOCK_SIZE_BYTES: usize = 128 << 10;

/// Bytes of one piece at most: what one append takes, and what an upload holds in memory.
pub const PIECE_SIZE_BYTES_MAX: usize = 4 << 20;

/// Where some bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Piece {
    pub(crate) extent: ExtentId,
    pub(crate) offset: u64,
    len: u32,
}

impl Piece {
    /// Bytes there are.
    pub fn size_bytes(&self) -> u64 {
        u64::from(self.len)
    }

    /// Bytes that it takes of its extent, with the headers of its append blocks.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let blocks = self.size_bytes().div_ceil(DATA_BLOCK_SIZE_BYTES as u64);
        self.size_bytes() + blocks * BLOCK_HEADER_SIZE as u64
    }

    /// A piece whose append blocks lie one after the other from `first` on; `None` if they do not.
    pub(crate) fn of_blocks(locations: &[Location]) -> Option<Piece> {
        let first = locations.first()?;
        let mut len = 0;
        let mut end = first.offset;
        for (index, location) in locations.iter().enumerate() {
            let is_last = index + 1 == locations.len();
            let is_full = location.len as usize == DATA_BLOCK_SIZE_BYTES;
            if location.extent != first.extent || location.offset != end || !(is_full || is_last) {
                return None;
            }
            len += location.len;
            end = location.end();
        }
        Some(Piece { extent: first.extent, offset: first.offset, len })
    }

    /// The append block that holds byte `at` of the piece, and where that byte lies in it; `None`: it is
    /// beyond.
    pub(crate) fn block_of(&self, at: u64) -> Option<(Location, usize)> {
        if at >= self.size_bytes() {
            return None;
        }
        let block_size = DATA_BLOCK_SIZE_BYTES as u64;
        let index = at / block_size;
        let len = (self.size_bytes() - index * block_size).min(block_size);
        let offset = self.offset + index * (block_size + BLOCK_HEADER_SIZE as u64);
        Some((Location { extent: self.extent, offset, len: len as u32 }, (at % block_size) as usize))
    }

    /// Made up, for tests of services that never read it.
    pub fn for_tests(extent: u64, offset: u64, len: u32) -> Piece {
        Piece { extent: ExtentId(extent), offset, len }
    }
}

/// What a row's value starts with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowStart {
    /// The pieces that the row names.
    pub pieces: Vec<Piece>,
    /// Bytes of its overflow, which end the value unless this is a head; 0: it has none.
    pub overflow_size_bytes: usize,
}

impl RowStart {
    /// Appends it; this comes first in the row's value.
    pub fn put(&self, out: &mut Vec<u8>) {
        let has_overflow = self.overflow_size_bytes > 0;
        out.put_varint(self.pieces.len() as u64 + u64::from(has_overflow));
        for piece in &self.pieces {
            out.put_varint(piece.extent.0);
            out.put_varint(piece.offset);
            out.put_varint(u64::from(piece.len));
        }
        if has_overflow {
            out.put_varint(self.overflow_size_bytes as u64);
            out.put_varint(0);
            out.put_varint(0);
        }
    }

    /// Reads it; what follows is the service's.
    pub fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let count = decoder.varint("piece count")?;
        let mut start = RowStart::default();
        for index in 0..count {
            let extent = decoder.varint("piece extent")?;
            let offset = decoder.varint("piece offset")?;
            let len = decoder.varint("piece length")?;
            let is_overflow = len == 0 && offset == 0 && extent > 0 && index + 1 == count;
            if is_overflow {
                start.overflow_size_bytes =
                    usize::try_from(extent).map_err(|_| DecodeError("overflow length"))?;
                break;
            }
            let len = u32::try_from(len).map_err(|_| DecodeError("piece length"))?;
            if len == 0 || len as usize > PIECE_SIZE_BYTES_MAX {
                return Err(DecodeError("piece length"));
            }
            if start.pieces.is_empty() {
                start.pieces.reserve_exact((count - index).min(decoder.rest().len() as u64 / 3 + 1) as usize);
            }
            start.pieces.push(Piece { extent: ExtentId(extent), offset, len });
        }
        Ok(start)
    }
}

/// Appends the start of a row that names `pieces` and has no overflow.
pub fn put_pieces(out: &mut Vec<u8>, pieces: &[Piece]) {
    RowStart { pieces: pieces.to_vec(), overflow_size_bytes: 0 }.put(out);
}

/// Reads the start of a row for the pieces that it names.
pub fn take_pieces(decoder: &mut Decoder<'_>) -> Result<Vec<Piece>, DecodeError> {
    Ok(RowStart::take(decoder)?.pieces)
}

/// Where the overflow of a whole value begins; its end if it has none.
pub(crate) fn overflow_start(value: &[u8]) -> Result<usize, DecodeError> {
    let mut decoder = Decoder::new(value);
    let overflow_size_bytes = RowStart::take(&mut decoder)?.overflow_size_bytes;
    if overflow_size_bytes > decoder.rest().len() {
        return Err(DecodeError("overflow length"));
    }
    Ok(value.len() - overflow_size_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_are_as_drawn() {
        let mut out = Vec::new();
        put_pieces(&mut out, &[Piece::for_tests(5, 300, 7)]);
        assert_eq!(out, [1, 5, 0xac, 2, 7]);
        let mut out = Vec::new();
        RowStart { pieces: vec![Piece::for_tests(5, 300, 7)], overflow_size_bytes: 200 }.put(&mut out);
        assert_eq!(out, [2, 5, 0xac, 2, 7, 0xc8, 1, 0, 0]);
    }

    #[test]
    fn a_tail_is_what_a_whole_value_ends_with() {
        let value = |overflow_size_bytes, rest: &[u8]| {
            let mut out = Vec::new();
            RowStart { pieces: Vec::new(), overflow_size_bytes }.put(&mut out);
            [&out, rest].concat()
        };
        assert_eq!(overflow_start(&value(0, b"head")), Ok(5));
        assert_eq!(overflow_start(&value(4, b"headtail")), Ok(4 + 4));
        assert_eq!(overflow_start(&value(8, b"headtail")), Ok(4), "all that follows the start");
        assert!(overflow_start(&value(9, b"headtail")).is_err(), "more than there is");
        // Only the last piece may be an overflow's mark, and it says how long the overflow is.
        for malformed in [&[2, 9, 0, 0, 5, 1, 7][..], &[1, 0, 0, 0], &[1, 5, 1, 0]] {
            assert!(take_pieces(&mut Decoder::new(malformed)).is_err(), "{malformed:?}");
        }
    }

    #[test]
    fn a_byte_is_in_the_block_that_covers_it() {
        let block = DATA_BLOCK_SIZE_BYTES as u32;
        let piece = Piece::for_tests(1, 1000, 2 * block + 5);
        let step = u64::from(block) + BLOCK_HEADER_SIZE as u64;
        let location = |index: u64, len| Location { extent: ExtentId(1), offset: 1000 + index * step, len };
        assert_eq!(piece.block_of(0), Some((location(0, block), 0)));
        assert_eq!(piece.block_of(u64::from(block) - 1), Some((location(0, block), block as usize - 1)));
        assert_eq!(piece.block_of(u64::from(block)), Some((location(1, block), 0)));
        assert_eq!(piece.block_of(2 * u64::from(block) + 4), Some((location(2, 5), 4)));
        assert_eq!(piece.block_of(2 * u64::from(block) + 5), None);
        let blocks = [location(0, block), location(1, block), location(2, 5)];
        assert_eq!(Piece::of_blocks(&blocks), Some(piece));
        assert_eq!(Piece::of_blocks(&[location(0, block), location(2, 5)]), None);
        assert_eq!(Piece::of_blocks(&[location(0, 5), location(1, block)]), None);
    }

    proptest! {
        #[test]
        fn starts_come_back(
            raw in prop::collection::vec((any::<u64>(), any::<u64>(), 1..=PIECE_SIZE_BYTES_MAX as u32), 0..5),
            overflow_size_bytes in prop_oneof![Just(0usize), any::<usize>()],
        ) {
            let pieces: Vec<Piece> = raw.into_iter().map(|(e, o, l)| Piece::for_tests(e, o, l)).collect();
            let start = RowStart { pieces, overflow_size_bytes };
            let mut out = Vec::new();
            start.put(&mut out);
            let mut decoder = Decoder::new(&out);
            prop_assert_eq!(RowStart::take(&mut decoder), Ok(start));
            prop_assert!(decoder.is_empty());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = (take_pieces(&mut Decoder::new(&bytes)), overflow_start(&bytes));
        }
    }
}
