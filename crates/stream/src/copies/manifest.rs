//! Which streams there are, and which extents each lists: what a copy must have, too.
//!
//! Empty extents are left out: no block lies in one, and the next owner of a stream begins another. What
//! always holds: each extent that a stream lists has a length above 0.

use crate::ids::{ExtentId, StreamName};
use base::checksum::crc64;
use base::codec::Encode;
use std::collections::BTreeMap;

/// An extent that streams list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestExtent {
    /// Bytes that it has.
    pub length: u64,
    /// Digest of its blocks, where one is kept: only folders have it.
    pub digest: Option<u64>,
}

/// All streams, and the extents that they list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamManifest {
    /// The extents of each stream, in order.
    pub streams: BTreeMap<StreamName, Vec<ExtentId>>,
    /// All extents that a stream lists.
    pub extents: BTreeMap<ExtentId, ManifestExtent>,
}

impl StreamManifest {
    /// Lists an extent at the end of a stream, unless it is empty.
    pub fn list(&mut self, stream: &StreamName, extent: ExtentId, found: ManifestExtent) {
        let listed = self.streams.entry(stream.clone()).or_default();
        if found.length > 0 {
            listed.push(extent);
            self.extents.insert(extent, found);
        }
    }

    /// Bytes of all extents.
    pub fn size_bytes(&self) -> u64 {
        self.extents.values().map(|extent| extent.length).sum()
    }

    /// Whether the other one has the same streams with the same extents of the same lengths.
    pub fn has_same_lists(&self, other: &StreamManifest) -> bool {
        let lengths = |manifest: &StreamManifest| -> BTreeMap<ExtentId, u64> {
            manifest.extents.iter().map(|(id, extent)| (*id, extent.length)).collect()
        };
        self.streams == other.streams && lengths(self) == lengths(other)
    }

    /// A checksum of all of it, digests included: a source that has changed, or another one, has another.
    pub fn fingerprint(&self) -> u64 {
        let mut out = Vec::new();
        for (name, extents) in &self.streams {
            out.put_bytes_field(name.as_str().as_bytes());
            out.put_varint(extents.len() as u64);
            extents.iter().for_each(|extent| out.put_u64_field(extent.0));
        }
        for (id, extent) in &self.extents {
            out.put_u64_field(id.0);
            out.put_u64_field(extent.length);
            out.put_u8_field(u8::from(extent.digest.is_some()));
            out.put_u64_field(extent.digest.unwrap_or_default());
        }
        crc64(&[&out])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids, lengths and digests.
    type Extents<'a> = &'a [(u64, u64, u64)];

    fn manifest(lists: &[(&str, Extents<'_>)]) -> StreamManifest {
        let mut manifest = StreamManifest::default();
        for (name, extents) in lists {
            let name = StreamName::new(name);
            manifest.streams.entry(name.clone()).or_default();
            for &(id, length, digest) in *extents {
                manifest.list(&name, ExtentId(id), ManifestExtent { length, digest: Some(digest) });
            }
        }
        manifest
    }

    #[test]
    fn any_change_of_a_source_changes_its_fingerprint() {
        let one = manifest(&[("a", &[(1, 10, 5), (2, 20, 6)]), ("b", &[(2, 20, 6)])]);
        let same = manifest(&[("a", &[(1, 10, 5), (9, 0, 0), (2, 20, 6)]), ("b", &[(2, 20, 6)])]);
        assert_eq!(one.fingerprint(), same.fingerprint(), "an empty extent says nothing");
        for other in [
            manifest(&[("a", &[(2, 20, 6), (1, 10, 5)]), ("b", &[(2, 20, 6)])]),
            manifest(&[("a", &[(1, 10, 5), (2, 20, 6)]), ("c", &[(2, 20, 6)])]),
            manifest(&[("a", &[(1, 10, 5), (2, 20, 6)])]),
            manifest(&[("a", &[(1, 10, 5), (2, 21, 6)]), ("b", &[(2, 21, 6)])]),
            manifest(&[("a", &[(1, 10, 5), (3, 20, 6)]), ("b", &[(3, 20, 6)])]),
        ] {
            assert_ne!(one.fingerprint(), other.fingerprint());
            assert!(!one.has_same_lists(&other));
        }
        let rewritten = manifest(&[("a", &[(1, 10, 5), (2, 20, 7)]), ("b", &[(2, 20, 7)])]);
        assert_ne!(one.fingerprint(), rewritten.fingerprint());
        assert!(one.has_same_lists(&rewritten), "a stamp keeps no digests");
    }
}
