//! Whether the bytes that rows name as pieces can be there at all: for damage checks.
//!
//! What always holds in a whole folder: a piece lies in an extent that its range's data stream lists, below
//! that one's end. A read says so of the piece it is about; no other check notices.

use crate::blob_data::piece::Piece;
use crate::error::PartitionError;
use std::collections::BTreeMap;
use stream::{ExtentId, StreamName, Streams};

/// Where the extents of a data stream end.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataEnds {
    ends: BTreeMap<ExtentId, u64>,
}

impl DataEnds {
    pub(crate) fn of(streams: &Streams, stream: &StreamName) -> Result<Self, PartitionError> {
        if !streams.exists(stream) {
            return Ok(DataEnds::default());
        }
        Ok(DataEnds { ends: streams.stat(stream)?.extents.into_iter().collect() })
    }

    /// Why this piece is not there, if it is not.
    pub(crate) fn problem_of(&self, piece: &Piece) -> Option<String> {
        let (extent, offset) = (piece.extent, piece.offset);
        let wanted = format!("{} bytes of blob data at {offset} of extent {extent}", piece.stored_bytes());
        match self.ends.get(&extent) {
            None => Some(format!("{wanted}, which the range does not have")),
            Some(end) if offset.saturating_add(piece.stored_bytes()) > *end => {
                Some(format!("{wanted}, which ends at byte {end}"))
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_lies_below_the_end_of_an_extent_that_is_listed() {
        let ends = DataEnds { ends: BTreeMap::from([(ExtentId(3), 132)]) };
        for (extent, offset, len, is_there) in [
            (3, 0, 100, true),
            (3, 0, 101, false),
            (3, 1, 100, false),
            (4, 0, 1, false),
            (3, u64::MAX, 1, false),
        ] {
            let piece = Piece::for_tests(extent, offset, len);
            assert_eq!(ends.problem_of(&piece).is_none(), is_there, "{piece:?}");
        }
    }
}
