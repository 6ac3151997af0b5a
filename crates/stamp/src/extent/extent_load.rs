//! Reading an extent whose length is recorded: part after part, up to that length.
//!
//! What always holds: an extent that is shorter or longer than its record, or whose chain is broken, is an
//! error, never an end; nothing behind the recorded length is read.

use crate::error::StoredError;
use crate::extent::chain::{Chain, Link};
use crate::extent::choose_after_append::Found;
use crate::extent::part_header::{PartHeader, PartLabel};
use crate::ids::ExtentName;

/// The load of one extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtentLoad {
    chain: Chain,
    length: u64,
}

impl ExtentLoad {
    /// Reads `extent` up to `length`.
    pub fn new(extent: ExtentName, length: u64) -> Self {
        ExtentLoad { chain: Chain::new(extent), length }
    }

    /// The offset of the part to read next; none at the end.
    pub fn next_offset(&self) -> Option<u64> {
        (self.chain.end() < self.length).then_some(self.chain.end())
    }

    /// The read of the next part found this. The part that counts, or none if it must be read again. An error
    /// is damage only if the range is still ours: see `choose_after_broken`.
    pub fn found(&mut self, found: Found) -> Result<Option<PartHeader>, StoredError> {
        let what = PartLabel { extent: self.chain.extent(), offset: self.chain.end() };
        let header = match found {
            Found::Unknown => return Ok(None),
            Found::NotThere => return Err(StoredError::Missing { what: what.to_string() }),
            Found::Damaged(error) => return Err(error),
            Found::Header(header) => header,
        };
        let mut chain = self.chain.clone();
        if chain.extend(&header)? == Link::Seal {
            let why = format_args!("the extent is sealed here, and has {} bytes", self.length);
            return Err(StoredError::malformed(&what, &why));
        }
        if chain.end() > self.length {
            let why = format_args!("it reaches behind the extent's {} bytes", self.length);
            return Err(StoredError::malformed(&what, &why));
        }
        self.chain = chain;
        Ok(Some(header))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extent::fixtures::{extent, part, seal, writer};

    #[test]
    fn an_extent_is_read_up_to_its_length() {
        let first = part(writer(1, 1), 0, 10, 0);
        let second = part(writer(1, 1), 10, 10, first.checksum());
        let mut load = ExtentLoad::new(extent(), 20);
        assert_eq!(load.next_offset(), Some(0));
        assert_eq!(load.found(Found::Header(first)), Ok(Some(first)));
        assert_eq!(load.found(Found::Unknown), Ok(None));
        assert_eq!(load.next_offset(), Some(10));
        assert_eq!(load.found(Found::Header(second)), Ok(Some(second)));
        assert_eq!(load.next_offset(), None);
        assert_eq!(ExtentLoad::new(extent(), 0).next_offset(), None);
    }

    #[test]
    fn short_long_and_broken_extents_are_errors() {
        let first = part(writer(1, 1), 0, 10, 0);
        for (length, found, why) in [
            (10, Found::NotThere, "is missing"),
            (10, Found::Header(seal(writer(1, 1), 0, 0)), "is sealed here, and has 10 bytes"),
            (5, Found::Header(first), "reaches behind the extent's 5 bytes"),
            (10, Found::Header(part(writer(1, 1), 0, 10, 3)), "does not continue"),
            (10, Found::Damaged(StoredError::Missing { what: "x".to_owned() }), "x is missing"),
        ] {
            let mut load = ExtentLoad::new(extent(), length);
            let error = load.found(found).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
