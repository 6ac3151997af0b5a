//! Names and numbers of the stream layer.

use std::fmt;
use std::sync::Arc;

/// Number of an extent; never used twice in a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtentId(pub u64);

impl fmt::Display for ExtentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Name of a stream, by convention `table/range/purpose`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamName(Arc<str>);

/// Bytes a stream's name may have.
pub const STREAM_NAME_SIZE_MAX: usize = 255;

impl StreamName {
    /// A stream's name; `name` is chosen by code, not by users.
    pub fn new(name: &str) -> Self {
        assert!(
            !name.is_empty() && name.len() <= STREAM_NAME_SIZE_MAX,
            "stream name of 1 to 255 bytes: {name:?}"
        );
        StreamName(name.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The streams that have one owner together are those whose names have the same first two parts; a name
    /// of fewer parts stands for itself.
    pub fn group(&self) -> &str {
        self.0.match_indices('/').nth(1).map_or(&self.0, |(at, _)| &self.0[..at])
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Number that rises with each change of a stream's owner. An append with an older one than the extent has
/// seen is refused, so a former owner can't write after its successor has read the length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnerEpoch(pub u64);

/// Where an append block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// Which extent.
    pub extent: ExtentId,
    /// Offset of the block's header in the extent, in bytes.
    pub offset: u64,
    /// Length of the block's payload, in bytes.
    pub len: u32,
}

impl Location {
    /// Offset of the byte after this block.
    pub fn end(&self) -> u64 {
        self.offset + crate::block::BLOCK_HEADER_SIZE as u64 + u64::from(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_a_range_are_a_group() {
        for (name, group) in [
            ("entity/1/metadata", "entity/1"),
            ("entity/1/row_data/17", "entity/1"),
            ("entity/11/log", "entity/11"),
            ("partition_map/copy", "partition_map/copy"),
            ("log", "log"),
        ] {
            assert_eq!(StreamName::new(name).group(), group);
        }
    }
}
