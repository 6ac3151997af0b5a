//! The chain of an extent's parts: which objects count.
//!
//! Parts count from offset 0 on, each behind the one before it, each naming the checksum of that one's
//! header, all by one writer. The chain ends with a seal that names the last part. What always holds: an
//! object that does not continue the chain is an error, never an end.

use crate::error::StoredError;
use crate::extent::part_header::{PartHeader, PartKind, PartLabel};
use crate::ids::{ExtentName, Owner};

/// The parts of an extent that are known to count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chain {
    extent: ExtentName,
    end: u64,
    previous: u64,
    writer: Option<Owner>,
}

/// What an object adds to a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Its part counts; the chain goes on behind it.
    Part,
    /// The extent ends here.
    Seal,
}

impl Chain {
    /// The chain of `extent` before its first part.
    pub fn new(extent: ExtentName) -> Self {
        Chain { extent, end: 0, previous: 0, writer: None }
    }

    /// The chain of `extent` behind parts of `writer` that are known to count: they end at `end`, the last
    /// one with a header of this checksum.
    pub(crate) fn at(extent: ExtentName, end: u64, previous: u64, writer: Owner) -> Self {
        Chain { extent, end, previous, writer: (end > 0).then_some(writer) }
    }

    /// The extent.
    pub fn extent(&self) -> ExtentName {
        self.extent
    }

    /// Bytes of body in the chain: where the next object lies.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// What the next object names as the header before it.
    pub fn previous(&self) -> u64 {
        self.previous
    }

    /// The object at the end of the chain has this header. An error if it does not continue the chain; the
    /// chain is then as it was.
    pub fn extend(&mut self, header: &PartHeader) -> Result<Link, StoredError> {
        let what = PartLabel { extent: self.extent, offset: self.end };
        if (header.place.extent, header.offset) != (self.extent, self.end) {
            return Err(StoredError::malformed(&what, &"another object was read for it"));
        }
        if header.previous != self.previous {
            return Err(StoredError::malformed(&what, &"it does not continue the parts before it"));
        }
        if header.kind == PartKind::Seal {
            return Ok(Link::Seal);
        }
        if self.writer.is_some_and(|writer| writer != header.writer) {
            return Err(StoredError::malformed(&what, &"its writer is not the one of the parts before it"));
        }
        self.writer = Some(header.writer);
        self.end = header.end();
        self.previous = header.checksum();
        Ok(Link::Part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extent::fixtures::{extent, part, seal, writer};

    #[test]
    fn parts_count_in_an_unbroken_chain() {
        let first = part(writer(1, 1), 0, 10, 0);
        let second = part(writer(1, 1), 10, 5, first.checksum());
        let end = seal(writer(2, 2), 15, second.checksum());
        let mut chain = Chain::new(extent());
        assert_eq!(chain.extend(&first), Ok(Link::Part));
        assert_eq!(chain.extend(&second), Ok(Link::Part));
        assert_eq!(chain.end(), 15);
        assert_eq!(chain.extend(&end), Ok(Link::Seal));
    }

    #[test]
    fn what_does_not_continue_the_chain_is_an_error() {
        let first = part(writer(1, 1), 0, 10, 0);
        let mut chain = Chain::new(extent());
        chain.extend(&first).unwrap();
        let before = chain.clone();
        for (header, why) in [
            (part(writer(1, 1), 10, 5, 99), "does not continue"),
            (part(writer(1, 1), 10, 5, 0), "does not continue"),
            (seal(writer(1, 1), 10, 0), "does not continue"),
            (part(writer(1, 1), 15, 5, first.checksum()), "another object"),
            (part(writer(1, 2), 10, 5, first.checksum()), "its writer"),
        ] {
            let error = chain.extend(&header).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
            assert_eq!(chain, before);
        }
    }
}
