//! Pieces: where a row's bytes lie that are not in the row, and how rows name them.
//!
//! ```text
//! value of a row in a table with data = pieces, then what the service likes
//! pieces = varint count, count × (varint extent, varint offset, varint length)
//! bytes of a piece, from `offset` of the extent on: append blocks of DATA_BLOCK_SIZE_BYTES each, the last one shorter
//! ```
//!
//! Why every such row starts with its pieces: the layer can tell which bytes are still named, and can move them,
//! without knowing what a blob is. Why blocks of this size: each has one checksum, so a read of a few bytes verifies one
//! block and not the whole piece. What always holds: a piece has 1 to [`PIECE_SIZE_BYTES_MAX`] bytes.

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

    /// The append block that holds byte `at` of the piece, and where that byte lies in it; `None`: it is beyond.
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

/// Appends the pieces that a row names; this comes first in its value.
pub fn put_pieces(out: &mut Vec<u8>, pieces: &[Piece]) {
    out.put_varint(pieces.len() as u64);
    for piece in pieces {
        out.put_varint(piece.extent.0);
        out.put_varint(piece.offset);
        out.put_varint(u64::from(piece.len));
    }
}

/// Reads the pieces that a row names; what follows is the service's.
pub fn take_pieces(decoder: &mut Decoder<'_>) -> Result<Vec<Piece>, DecodeError> {
    let count = decoder.varint("piece count")?;
    let mut pieces = Vec::with_capacity(count.min(decoder.rest().len() as u64 / 3) as usize);
    for _ in 0..count {
        let extent = ExtentId(decoder.varint("piece extent")?);
        let offset = decoder.varint("piece offset")?;
        let len = u32::try_from(decoder.varint("piece length")?).map_err(|_| DecodeError("piece length"))?;
        if len == 0 || len as usize > PIECE_SIZE_BYTES_MAX {
            return Err(DecodeError("piece length"));
        }
        pieces.push(Piece { extent, offset, len });
    }
    Ok(pieces)
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
        fn pieces_come_back(raw in prop::collection::vec((any::<u64>(), any::<u64>(), 1..=PIECE_SIZE_BYTES_MAX as u32), 0..5)) {
            let pieces: Vec<Piece> = raw.into_iter().map(|(e, o, l)| Piece::for_tests(e, o, l)).collect();
            let mut out = Vec::new();
            put_pieces(&mut out, &pieces);
            let mut decoder = Decoder::new(&out);
            prop_assert_eq!(take_pieces(&mut decoder), Ok(pieces));
            prop_assert!(decoder.is_empty());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = take_pieces(&mut Decoder::new(&bytes));
        }
    }
}
