//! The document of a range: the one record of which extents its streams have.
//!
//! Plain data; `change.rs` changes it, `codec.rs` has its bytes. What always holds in a document of this
//! crate: extents of a stream have rising ordinals below the stream's next one, so that no ordinal is used
//! twice; no extent is listed twice in one stream.

use crate::ids::{ExtentName, Incarnation, Mark, Owner, RangeId, StreamId};
use std::collections::{BTreeMap, BTreeSet};
use stream::OwnerEpoch;

/// Who has a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnEntry {
    /// The owner; none if it was released.
    pub owner: Option<Incarnation>,
    /// The epoch of the owner, or of the last one. It only rises.
    pub epoch: OwnerEpoch,
}

impl std::hash::Hash for OwnEntry {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.owner.hash(state);
        self.epoch.0.hash(state);
    }
}

impl OwnEntry {
    /// The entry while `owner` has the range.
    pub fn of(owner: Owner) -> Self {
        OwnEntry { owner: Some(owner.incarnation), epoch: owner.epoch }
    }

    /// The entry of a range that `epoch` had, and nobody has now.
    pub fn released(epoch: OwnerEpoch) -> Self {
        OwnEntry { owner: None, epoch }
    }
}

/// A contiguous range of row keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyLimits {
    /// The first key.
    pub from: Vec<u8>,
    /// The first key behind it; none at the end of the table.
    pub to: Option<Vec<u8>>,
}

impl KeyLimits {
    /// Whether `key` is within.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.from.as_slice() <= key && self.to.as_ref().is_none_or(|to| key < to.as_slice())
    }

    /// The keys that are in both.
    pub fn intersection(&self, other: &KeyLimits) -> KeyLimits {
        let from = self.from.clone().max(other.from.clone());
        let to = match (&self.to, &other.to) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs).clone()),
            (mine, theirs) => mine.clone().or_else(|| theirs.clone()),
        };
        KeyLimits { from, to }
    }
}

/// An extent in the list of a stream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtentEntry {
    /// The extent.
    pub name: ExtentName,
    /// Its number in this stream.
    pub ordinal: u64,
    /// Bytes that it has for ever; none while it is not known to be sealed.
    pub length: Option<u64>,
    /// The keys of it that count; none if it was made for this stream. Set when a range was split.
    pub limits: Option<KeyLimits>,
}

/// A place in a stream. What is before it is not needed any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrimPoint {
    /// The first extent that is needed.
    pub ordinal: u64,
    /// The first byte of it that is.
    pub offset: u64,
}

/// A stream of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamEntry {
    /// What the range uses it for; unique in the range.
    pub purpose: String,
    /// The ordinal of the extent that is added next.
    pub next_ordinal: u64,
    /// What is needed of it.
    pub trim: TrimPoint,
    /// Its extents, in order.
    pub extents: Vec<ExtentEntry>,
}

impl StreamEntry {
    /// The entry of `extent`.
    pub fn extent(&self, extent: ExtentName) -> Option<&ExtentEntry> {
        self.extents.iter().find(|entry| entry.name == extent)
    }
}

/// All metadata of a range.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RangeDocument {
    /// Which range.
    pub range: RangeId,
    /// Its owner, as `own/<range>` has it too: the metadata store can't compare inside a value.
    pub own: OwnEntry,
    /// Its keys.
    pub keys: KeyLimits,
    /// Its streams.
    pub streams: BTreeMap<StreamId, StreamEntry>,
    /// The change that wrote this.
    pub mark: Mark,
    /// Whether it says what headers of parts can't, and no backup has it: no extent takes its first part.
    pub needs_backup: bool,
}

impl RangeDocument {
    /// A document of a new range without streams. No backup has it.
    pub fn new(range: RangeId, own: OwnEntry, keys: KeyLimits, mark: Mark) -> Self {
        RangeDocument { range, own, keys, streams: BTreeMap::new(), mark, needs_backup: true }
    }

    /// Whether any stream lists `extent`.
    pub fn names(&self, extent: ExtentName) -> bool {
        self.streams.values().any(|stream| stream.extent(extent).is_some())
    }

    /// All extents without a recorded length, stream by stream and in stream order.
    pub fn unsealed(&self) -> impl Iterator<Item = (StreamId, &ExtentEntry)> {
        self.streams.iter().flat_map(|(id, stream)| {
            let open = stream.extents.iter().filter(|entry| entry.length.is_none());
            open.map(|entry| (*id, entry))
        })
    }

    /// The recorded lengths of these extents; 0 without one.
    pub(crate) fn lengths_of(&self, extents: &BTreeSet<ExtentName>) -> BTreeMap<ExtentName, u64> {
        let length_of = |extent: &ExtentName| {
            let mut entries = self.streams.values().filter_map(|stream| stream.extent(*extent));
            (*extent, entries.next().and_then(|entry| entry.length).unwrap_or_default())
        };
        extents.iter().map(length_of).collect()
    }

    /// All extents that are listed, each once.
    pub fn extents(&self) -> BTreeSet<ExtentName> {
        self.streams.values().flat_map(|stream| stream.extents.iter().map(|entry| entry.name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(from: &str, to: Option<&str>) -> KeyLimits {
        KeyLimits { from: from.into(), to: to.map(Into::into) }
    }

    #[test]
    fn limits_hold_and_intersect() {
        let all = KeyLimits::default();
        let middle = limits("b", Some("d"));
        assert!(all.contains(b"") && all.contains(b"zz"));
        for (key, is_within) in [("a", false), ("b", true), ("cz", true), ("d", false)] {
            assert_eq!(middle.contains(key.as_bytes()), is_within, "{key}");
        }
        for (other, expected) in [
            (all.clone(), middle.clone()),
            (limits("c", None), limits("c", Some("d"))),
            (limits("", Some("c")), limits("b", Some("c"))),
            (limits("", Some("z")), middle.clone()),
        ] {
            assert_eq!(middle.intersection(&other), expected);
            assert_eq!(other.intersection(&middle), expected);
        }
    }
}
