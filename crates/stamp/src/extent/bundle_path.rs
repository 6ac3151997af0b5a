//! Where the bundles of an extent lie in the object store: copies of small parts, many in one object.
//!
//! ```text
//! <stamp, 32 hex>/bundle/<2 hex of a hash>/<extent>/<offset, 16 hex>-<end, 16 hex>
//! ```
//!
//! They lie beside the extents, so that what lists, counts and deletes parts does not see them. What always
//! holds: a name says which bytes of which extent are in the object, and only names of this form are parsed.

use crate::extent::part_path::spread_digits;
use crate::ids::{ExtentName, StampId, UniqueName, parse_narrow};

/// Name of a bundle in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BundlePath {
    /// The extent.
    pub extent: ExtentName,
    /// Where its first part begins: bytes of body in the extent before it.
    pub offset: u64,
    /// Where its last part ends.
    pub end: u64,
}

impl BundlePath {
    /// The name in `stamp`.
    pub fn format(&self, stamp: StampId) -> String {
        format!("{}{:016x}-{:016x}", bundle_folder(stamp, self.extent), self.offset, self.end)
    }

    /// Reads a name in `stamp`; none if it is not that of a bundle.
    pub fn parse(name: &str, stamp: StampId) -> Option<Self> {
        let rest = name.strip_prefix(&bundles_folder(stamp))?;
        let (spread, rest) = rest.split_once('/')?;
        let (extent, bytes) = rest.split_once('/')?;
        let (offset, end) = bytes.split_once('-')?;
        let extent = ExtentName(UniqueName::parse(extent)?);
        let path = BundlePath { extent, offset: parse_narrow(offset)?, end: parse_narrow(end)? };
        (spread == spread_digits(extent) && path.offset < path.end).then_some(path)
    }
}

/// What all names of bundles of a stamp begin with.
pub fn bundles_folder(stamp: StampId) -> String {
    format!("{stamp}/bundle/")
}

/// What all names of an extent's bundles begin with.
pub fn bundle_folder(stamp: StampId, extent: ExtentName) -> String {
    format!("{}{}/{extent}/", bundles_folder(stamp), spread_digits(extent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extent::part_path::PartPath;
    use crate::ids::Incarnation;

    const STAMP: StampId = StampId(0xf);

    #[test]
    fn names_come_back_and_others_are_no_bundles() {
        let extent = ExtentName::new(Incarnation(3), 7);
        let path = BundlePath { extent, offset: 5, end: u64::MAX };
        let name = path.format(STAMP);
        assert_eq!(BundlePath::parse(&name, STAMP), Some(path));
        assert!(name.starts_with(&bundle_folder(STAMP, extent)));
        assert_eq!(PartPath::parse(&name, STAMP), None);
        assert_eq!(BundlePath::parse(&PartPath { extent, offset: 5 }.format(STAMP), STAMP), None);
        let empty = BundlePath { end: 5, ..path }.format(STAMP);
        for other in [empty, format!("{name}0"), name.replace("/bundle/", "/x/"), String::new()] {
            assert_eq!(BundlePath::parse(&other, STAMP), None, "{other}");
        }
        assert_eq!(BundlePath::parse(&name, StampId(0xe)), None, "another stamp");
    }
}
