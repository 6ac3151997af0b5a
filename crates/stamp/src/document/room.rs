//! What may still be added to a document, which has a bound: pure.
//!
//! ```text
//! 0 ........................ taken from users ....................... | .. reserve .. | bound
//!                            all changes                                flushes,        what makes no
//!                                                                       compactions,    document larger
//!                                                                       deletions
//! ```
//!
//! A document that is full must become smaller again: what makes it smaller (a flush that lets a log's
//! extents go, a compaction, a deletion) makes it larger first. So users' writes end before the bound, where
//! a reserve for such work begins; the layers above refuse them as on a full disk.

use crate::document::change::Change;
use crate::document::codec::DOCUMENT_SIZE_BYTES_MAX;

/// Bytes of a document that are kept back for work that makes it smaller: some 700 extents.
pub const DOCUMENT_RESERVE_BYTES: usize = DOCUMENT_SIZE_BYTES_MAX / 8;

/// Changes that would make a document larger than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it would have {size} bytes, and {DOCUMENT_SIZE_BYTES_MAX} are allowed: delete what is not needed")]
pub struct DocumentFull {
    /// Bytes that it would have.
    pub size: usize,
}

/// By how many bytes a document of this size is in its reserve: until it is out of it, the caller should
/// request only what makes it smaller.
pub fn missing_document_bytes(size: usize) -> usize {
    size.saturating_sub(DOCUMENT_SIZE_BYTES_MAX - DOCUMENT_RESERVE_BYTES)
}

/// Whether changes may be made that take a document from `size_before` to `size` bytes. What ends extents,
/// drops them or is on the way to that may always, also beyond the bound.
pub fn check_document_size(changes: &[Change], size_before: usize, size: usize) -> Result<(), DocumentFull> {
    let is_taken =
        size <= DOCUMENT_SIZE_BYTES_MAX || size <= size_before || !changes.iter().any(Change::grows);
    if is_taken { Ok(()) } else { Err(DocumentFull { size }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ExtentName, Incarnation, StreamId};

    const MAX: usize = DOCUMENT_SIZE_BYTES_MAX;

    #[test]
    fn users_stop_before_the_work_that_makes_a_document_smaller() {
        for (size, missing) in [
            (0, 0),
            (MAX - DOCUMENT_RESERVE_BYTES, 0),
            (MAX - DOCUMENT_RESERVE_BYTES + 1, 1),
            (MAX + 7, MAX / 8 + 7),
        ] {
            assert_eq!(missing_document_bytes(size), missing, "{size}");
        }
    }

    #[test]
    fn what_makes_a_document_smaller_is_taken_whatever_its_size() {
        let stream = StreamId::new(Incarnation(1), 1);
        let extent = ExtentName::new(Incarnation(1), 2);
        let adds = Change::AddExtent { stream, extent };
        let records = Change::RecordLength { stream, extent, length: 1 };
        let deletes = Change::DeleteStream { stream };
        for (changes, before, size, is_taken) in [
            (vec![adds.clone()], 100, MAX, true),
            (vec![adds.clone()], 100, MAX + 1, false),
            (vec![adds.clone()], MAX + 9, MAX + 10, false),
            // A compaction: what it has made, for what it was made of.
            (vec![adds.clone(), deletes.clone()], MAX + 9, MAX + 9, true),
            (vec![adds, deletes.clone()], MAX - 9, MAX + 9, false),
            (vec![records], MAX, MAX + 9, true),
            (vec![deletes], MAX + 9, MAX + 1, true),
        ] {
            let found = check_document_size(&changes, before, size);
            let expected = if is_taken { Ok(()) } else { Err(DocumentFull { size }) };
            assert_eq!(found, expected, "{changes:?} {before} {size}");
        }
    }
}
