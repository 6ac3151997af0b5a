//! Which objects of extents a sweep deletes: a pure choice over a listing of the store, all documents at one
//! revision, and the extents that were dropped.
//!
//! The listing comes **first**: an extent is in a document before its first part is sent, so documents that
//! are read after the listing name every listed extent that any owner may still need. An extent that no
//! document names never enters one again, but by a restore; so it is deleted only when a complete backup is
//! younger than its drop. Its parts go, its seal stays as a tombstone, so that a part of a former owner that
//! arrives late is refused at the extent's end.
//!
//! ```text
//! in no document, not known as dropped     seal it, then write that it is dropped
//! dropped, no object at its length         seal it
//! dropped, older than the readers' grace   parts go, whatever is beside the tombstone goes
//!   and than the newest complete backup
//! tombstone alone, older than a week       the tombstone goes, then the key
//! bundle of an extent in no document       it goes: its parts stay as long as they are needed
//! ```
//!
//! What always holds: nothing that a document names is touched; parts go only beside a tombstone.

use crate::extent::bundle_path::BundlePath;
use crate::extent::part_path::PartPath;
use crate::ids::{ExtentName, StampId};
use crate::metadata::transaction::Revision;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long the parts of a dropped extent stay, for readers that still use them.
pub const READERS_GRACE: Duration = Duration::from_secs(60 * 60);
/// How long its tombstone stays.
pub const TOMBSTONE_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The objects of extents that a listing of the store has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Listing {
    /// The names of parts and seals.
    pub paths: BTreeSet<PartPath>,
    /// The names of bundles.
    pub bundles: BTreeSet<BundlePath>,
    /// The metadata store's revision, read after the listing had ended.
    pub ended_at: Revision,
}

/// What all documents name, read at one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamedExtents {
    /// The extents that any document lists.
    pub extents: BTreeSet<ExtentName>,
    /// The revision.
    pub read_at: Revision,
}

/// An extent that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DroppedExtent {
    /// Its bytes: the offset of its seal.
    pub length: u64,
    /// When its key was written last.
    pub dropped_at: Revision,
    /// How long ago that is, by the metadata store's clock.
    pub age: Duration,
}

/// What a sweep knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SweepView {
    /// What the store has.
    pub listing: Listing,
    /// What is needed.
    pub named: NamedExtents,
    /// What was dropped, read at the same revision.
    pub dropped: BTreeMap<ExtentName, DroppedExtent>,
    /// The revision of the newest complete backup of this generation.
    pub backup: Option<Revision>,
    /// Whether extents may be deleted; not during a restore.
    pub is_collection_on: bool,
}

/// One step of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SweepAction {
    /// Find the extent's end and seal it; if it is not known as dropped, write that it is, with its length,
    /// unless its key is there.
    Seal(ExtentName),
    /// Delete the object.
    Delete(PartPath),
    /// Delete the bundle.
    DeleteBundle(BundlePath),
    /// Nothing of the extent is left: remove its key.
    Forget(ExtentName),
}

impl SweepAction {
    /// The name of the object that it deletes, if it does.
    pub fn object(&self, stamp: StampId) -> Option<String> {
        match self {
            SweepAction::Delete(path) => Some(path.format(stamp)),
            SweepAction::DeleteBundle(path) => Some(path.format(stamp)),
            SweepAction::Seal(_) | SweepAction::Forget(_) => None,
        }
    }
}

/// Why a sweep does nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SweepRefused {
    /// A restore is under way.
    #[error("collection is off: a restore is under way")]
    CollectionOff,
    /// The documents were read before the listing had ended.
    #[error("documents of revision {} are older than the listing, which ended at {}", read_at.0, ended_at.0)]
    DocumentsTooOld {
        /// When they were read.
        read_at: Revision,
        /// When the listing ended.
        ended_at: Revision,
    },
}

/// Chooses the steps of a sweep, in order.
pub fn choose_sweep(view: &SweepView) -> Result<Vec<SweepAction>, SweepRefused> {
    let (read_at, ended_at) = (view.named.read_at, view.listing.ended_at);
    if !view.is_collection_on {
        return Err(SweepRefused::CollectionOff);
    }
    if read_at < ended_at {
        return Err(SweepRefused::DocumentsTooOld { read_at, ended_at });
    }
    let mut listed: BTreeMap<ExtentName, Vec<PartPath>> = BTreeMap::new();
    for path in &view.listing.paths {
        listed.entry(path.extent).or_default().push(*path);
    }
    for extent in view.dropped.keys() {
        listed.entry(*extent).or_default();
    }
    let is_unnamed = |extent: &ExtentName| !view.named.extents.contains(extent);
    let bundles = view.listing.bundles.iter().filter(|bundle| is_unnamed(&bundle.extent));
    let unnamed = listed.into_iter().filter(|(extent, _)| is_unnamed(extent));
    let steps = unnamed.flat_map(|(extent, paths)| choose_for_extent(view, extent, &paths));
    Ok(bundles.map(|bundle| SweepAction::DeleteBundle(*bundle)).chain(steps).collect())
}

fn choose_for_extent(view: &SweepView, extent: ExtentName, paths: &[PartPath]) -> Vec<SweepAction> {
    let Some(dropped) = view.dropped.get(&extent) else { return vec![SweepAction::Seal(extent)] };
    let is_in_no_backup = view.backup.is_some_and(|backup| backup >= dropped.dropped_at);
    if !is_in_no_backup || dropped.age < READERS_GRACE {
        return Vec::new();
    }
    let tombstone = PartPath { extent, offset: dropped.length };
    let is_old = dropped.age >= TOMBSTONE_AGE;
    match paths {
        [] if is_old => vec![SweepAction::Forget(extent)],
        [only] if is_old && *only == tombstone => vec![SweepAction::Delete(tombstone)],
        paths if !paths.contains(&tombstone) => vec![SweepAction::Seal(extent)],
        paths => {
            let others = paths.iter().filter(|path| **path != tombstone);
            others.map(|path| SweepAction::Delete(*path)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Incarnation;
    use SweepAction::{Delete, Forget, Seal};

    const HOUR: Duration = READERS_GRACE;
    const WEEK: Duration = TOMBSTONE_AGE;

    fn extent(counter: u64) -> ExtentName {
        ExtentName::new(Incarnation(1), counter)
    }

    fn path(counter: u64, offset: u64) -> PartPath {
        PartPath { extent: extent(counter), offset }
    }

    /// Extent 1 is named; extent 2 of 20 bytes was dropped at revision 5; extent 3 is unknown.
    fn view(offsets_of_2: &[u64], age: Duration, backup: Option<u64>) -> SweepView {
        let mut paths = BTreeSet::from([path(1, 0)]);
        paths.extend(offsets_of_2.iter().map(|offset| path(2, *offset)));
        let dropped = DroppedExtent { length: 20, dropped_at: Revision(5), age };
        SweepView {
            listing: Listing { paths, bundles: BTreeSet::new(), ended_at: Revision(8) },
            named: NamedExtents { extents: BTreeSet::from([extent(1)]), read_at: Revision(8) },
            dropped: BTreeMap::from([(extent(2), dropped)]),
            backup: backup.map(Revision),
            is_collection_on: true,
        }
    }

    #[test]
    fn what_goes_when() {
        let second = Duration::from_secs(1);
        type Case<'a> = (&'a [u64], Duration, Option<u64>, &'a [SweepAction]);
        let cases: [Case<'_>; 12] = [
            (&[0, 10, 20], HOUR, Some(5), &[Delete(path(2, 0)), Delete(path(2, 10))]),
            (&[0, 10, 20], HOUR - second, Some(5), &[]),
            (&[0, 10, 20], HOUR, Some(4), &[]),
            (&[0, 10, 20], HOUR, None, &[]),
            (&[0, 10], HOUR, Some(5), &[Seal(extent(2))]),
            (&[], HOUR, Some(5), &[Seal(extent(2))]),
            (&[20], HOUR, Some(5), &[]),
            (&[20], WEEK, Some(5), &[Delete(path(2, 20))]),
            (&[0, 20], WEEK, Some(5), &[Delete(path(2, 0))]),
            (&[20, 30], HOUR, Some(9), &[Delete(path(2, 30))]),
            (&[], WEEK, Some(5), &[Forget(extent(2))]),
            (&[], WEEK, None, &[]),
        ];
        for (offsets, age, backup, expected) in cases {
            let chosen = choose_sweep(&view(offsets, age, backup)).unwrap();
            assert_eq!(chosen, expected, "{offsets:?}, {age:?}, {backup:?}");
        }
    }

    #[test]
    fn an_extent_that_nothing_knows_is_sealed_and_written_down_first() {
        let mut view = view(&[], Duration::ZERO, None);
        view.listing.paths.insert(path(3, 40));
        assert_eq!(choose_sweep(&view).unwrap(), [Seal(extent(3))]);
    }

    #[test]
    fn a_bundle_goes_with_the_name_of_its_extent() {
        let bundle = |counter| BundlePath { extent: extent(counter), offset: 0, end: 9 };
        let mut view = view(&[0, 20], Duration::ZERO, None);
        view.listing.bundles = [1, 2, 3].map(bundle).into();
        let gone = [SweepAction::DeleteBundle(bundle(2)), SweepAction::DeleteBundle(bundle(3))];
        assert_eq!(choose_sweep(&view).unwrap(), gone, "the parts of 2 stay, for readers and backups");
        assert_eq!(gone.map(|gone| gone.object(StampId(1)).is_some()), [true; 2]);
    }

    #[test]
    fn an_extent_that_a_document_names_is_never_touched() {
        let mut view = view(&[0, 10, 20], WEEK, Some(9));
        view.named.extents.insert(extent(2));
        assert_eq!(choose_sweep(&view).unwrap(), []);
    }

    #[test]
    fn documents_are_read_after_the_listing_and_nothing_goes_during_a_restore() {
        let mut early = view(&[0, 20], WEEK, Some(9));
        early.named.read_at = Revision(7);
        let error = choose_sweep(&early).unwrap_err().to_string();
        assert_eq!(error, "documents of revision 7 are older than the listing, which ended at 8");
        let mut off = view(&[0, 20], WEEK, Some(9));
        off.is_collection_on = false;
        assert_eq!(choose_sweep(&off), Err(SweepRefused::CollectionOff));
    }
}
