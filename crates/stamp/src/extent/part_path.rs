//! Where the objects of an extent lie in the object store.
//!
//! ```text
//! <stamp, 32 hex>/x/<2 hex of a hash>/<incarnation, 32 hex>-<counter, 16 hex>/<offset, 16 hex>
//! ```
//!
//! The two digits spread extents over the store's index. The next name of an extent is computed, so that a
//! listing is never needed to read. What always holds: two objects have two names, the part that ends at an
//! offset and the seal at that offset compete for one, and only names of this form are parsed.

use crate::ids::{ExtentName, StampId, UniqueName, parse_narrow};
use base::checksum::crc64;
use base::codec::Encode;

/// Name of an object of an extent in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartPath {
    /// The extent.
    pub extent: ExtentName,
    /// Bytes of body in the extent before the object.
    pub offset: u64,
}

impl PartPath {
    /// The name in `stamp`.
    pub fn format(&self, stamp: StampId) -> String {
        format!("{}{:016x}", extent_folder(stamp, self.extent), self.offset)
    }

    /// Reads a name in `stamp`; none if it is not that of a part or seal.
    pub fn parse(name: &str, stamp: StampId) -> Option<Self> {
        let rest = name.strip_prefix(&extents_folder(stamp))?;
        let (spread, rest) = rest.split_once('/')?;
        let (extent, offset) = rest.split_once('/')?;
        let path = PartPath { extent: ExtentName(UniqueName::parse(extent)?), offset: parse_narrow(offset)? };
        (spread == spread_digits(path.extent)).then_some(path)
    }
}

/// What all names of extents of a stamp begin with.
pub fn extents_folder(stamp: StampId) -> String {
    format!("{stamp}/x/")
}

/// What all names of an extent's objects begin with.
pub fn extent_folder(stamp: StampId, extent: ExtentName) -> String {
    format!("{}{}/{extent}/", extents_folder(stamp), spread_digits(extent))
}

/// Two digits that spread extents over the store's index.
pub(crate) fn spread_digits(extent: ExtentName) -> String {
    let mut bytes = Vec::new();
    extent.0.encode(&mut bytes);
    bytes.put_u8_field(0);
    format!("{:02x}", crc64(&[&bytes]) & 0xff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Incarnation;
    use std::collections::BTreeSet;

    const STAMP: StampId = StampId(0xf);

    #[test]
    fn names_come_back() {
        for (counter, offset) in [(0, 0), (1, 4096), (u64::MAX, u64::MAX)] {
            let path = PartPath { extent: ExtentName::new(Incarnation(3), counter), offset };
            let name = path.format(STAMP);
            assert_eq!(PartPath::parse(&name, STAMP), Some(path));
            assert_eq!(name.len(), 32 + 3 + 3 + 49 + 1 + 16);
            assert!(name.starts_with(&extent_folder(STAMP, path.extent)));
        }
    }

    #[test]
    fn other_names_are_no_parts() {
        let name = PartPath { extent: ExtentName::new(Incarnation(3), 1), offset: 5 }.format(STAMP);
        for other in [
            name.replace("/x/", "/y/"),
            format!("{name}0"),
            name[..name.len() - 1].to_owned(),
            name.replacen("/x/", "/x/zz", 1),
            String::new(),
        ] {
            assert_eq!(PartPath::parse(&other, STAMP), None, "{other}");
        }
        assert_eq!(PartPath::parse(&name, StampId(0xe)), None, "another stamp");
    }

    #[test]
    fn neighbouring_extents_are_spread() {
        let digits: BTreeSet<String> =
            (0..256).map(|counter| spread_digits(ExtentName::new(Incarnation(3), counter))).collect();
        assert!(digits.len() > 100, "{}", digits.len());
    }
}
