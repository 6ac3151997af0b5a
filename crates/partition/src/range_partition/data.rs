//! A range's blob data: bytes too large for rows, in a stream of their own. Rows name them as pieces.
//!
//! What always holds:
//! - a piece's bytes are durable before anybody knows the piece, and a change whose row names an extent that
//!   this range does not list is refused: so a row never names bytes that are not there;
//! - an extent leaves the list only while nobody has it pinned and no row names it (`blob_data_collector`);
//! - pins are in memory: who appends has them until the row is durable, who reads until the last byte is
//!   read. After a restart there are neither, and what no row names is garbage;
//! - what is appended before a range is handed over may be named in rows of its heirs: these list the extent,
//!   and ask their ancestors for pins before they let it go. What is appended while it is handed over is
//!   appended again at the heirs.

use crate::blob_data::piece::{Piece, overflow_start, take_pieces};
use crate::error::PartitionError;
use crate::key::RowKey;
use crate::operation::{Row, RowChange};
use base::codec::Decoder;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use stream::{ExtentId, StreamName};

/// What a range knows of its blob data.
pub(crate) struct RangeData {
    pub(super) stream: StreamName,
    /// The extents that rows of this range may name.
    extents: Mutex<Listed>,
    /// By how many bytes more rows name after all changes that are durable than before the first; negative:
    /// less.
    grown_bytes: AtomicI64,
    /// With that, the bytes that rows name, as far as it is known: since the last count.
    named_before_bytes: AtomicI64,
    /// How often the count was forgotten. Held while what has grown is shown, and while a count begins or
    /// ends: it sees a group and its growth, or neither.
    forgotten: Mutex<u64>,
    /// Changes of rows since the last collection.
    pub(super) changes: AtomicU64,
    /// Uploads, and changes of rows that name more or less than before. A collection makes none of them.
    pub(super) activity: AtomicU64,
    /// Ranges that it has taken over from, directly or not, and that somebody still uses.
    ancestors: Vec<Weak<RangeData>>,
}

/// The list and what is just leaving it.
#[derive(Debug, Default)]
struct Listed {
    used: BTreeMap<ExtentId, ExtentUse>,
    /// Off the list, but perhaps still in the stream.
    leaving: Vec<ExtentId>,
}

/// Who needs an extent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ExtentUse {
    pins: u32,
    /// A collection wants it to leave, and nobody has pinned it or named it in a row since.
    condemned: bool,
}

impl RangeData {
    pub(super) fn new(stream: StreamName, listed: &[ExtentId]) -> Self {
        let used = listed.iter().map(|extent| (*extent, ExtentUse::default())).collect();
        let extents = Listed { used, leaving: Vec::new() };
        RangeData {
            stream,
            extents: Mutex::new(extents),
            grown_bytes: AtomicI64::new(0),
            named_before_bytes: AtomicI64::new(0),
            forgotten: Mutex::new(0),
            changes: AtomicU64::new(1),
            activity: AtomicU64::new(0),
            ancestors: Vec::new(),
        }
    }

    /// The same for an heir of `parents`.
    pub(super) fn inherited_from(self, parents: &[Arc<RangeData>]) -> Self {
        let former = parents.iter().flat_map(|data| &data.ancestors);
        let used = former.filter(|ancestor| ancestor.strong_count() > 0).cloned();
        RangeData { ancestors: parents.iter().map(Arc::downgrade).chain(used).collect(), ..self }
    }

    /// Extents that are pinned at an ancestor: an upload may have begun there whose row will be one of this
    /// range. Nobody begins another one there, so those that are missing here stay so.
    pub(super) fn pinned_at_ancestors(&self) -> BTreeSet<ExtentId> {
        let mut pinned = BTreeSet::new();
        for ancestor in self.ancestors.iter().filter_map(Weak::upgrade) {
            let extents = ancestor.extents.lock();
            let its = extents.used.iter().filter(|(_, found)| found.pins > 0);
            pinned.extend(its.map(|(extent, _)| *extent));
        }
        pinned
    }

    /// Pins all of these extents, or none because one has gone.
    pub(super) fn pin(&self, wanted: &[ExtentId]) -> bool {
        let extents = &mut self.extents.lock().used;
        if !wanted.iter().all(|extent| extents.contains_key(extent)) {
            return false;
        }
        for extent in wanted {
            if let Some(found) = extents.get_mut(extent) {
                found.pins += 1;
                found.condemned = false;
            }
        }
        true
    }

    /// Pins an extent that was just appended to, and lists it if it is new. False: it was collected while the
    /// append was under way, because it was not the stream's last any more.
    pub(super) fn pin_appended(&self, extent: ExtentId, is_in_stream: impl FnOnce() -> bool) -> bool {
        let mut listed = self.extents.lock();
        if !listed.used.contains_key(&extent) && (listed.leaving.contains(&extent) || !is_in_stream()) {
            return false;
        }
        let found = listed.used.entry(extent).or_default();
        found.pins += 1;
        found.condemned = false;
        true
    }

    /// Lists an extent that was appended to, and pins it no longer than that takes.
    #[cfg(test)]
    pub(super) fn list_for_tests(&self, extent: ExtentId) -> bool {
        let is_listed = self.pin_appended(extent, || true);
        self.unpin(&[extent]);
        is_listed
    }

    pub(super) fn unpin(&self, pinned: &[ExtentId]) {
        let extents = &mut self.extents.lock().used;
        for extent in pinned {
            if let Some(found) = extents.get_mut(extent) {
                found.pins = found.pins.saturating_sub(1);
            }
        }
    }

    /// Whether somebody writes or reads in it now.
    pub(super) fn is_pinned(&self, extent: ExtentId) -> bool {
        self.extents.lock().used.get(&extent).is_some_and(|found| found.pins > 0)
    }

    /// Condemns those of `wanted`, which the stream lists, that nobody has pinned, and says which.
    pub(super) fn condemn(&self, wanted: impl Iterator<Item = ExtentId>) -> Vec<ExtentId> {
        let inherited = self.pinned_at_ancestors();
        let mut listed = self.extents.lock();
        let mut condemned = Vec::new();
        for extent in wanted {
            if inherited.contains(&extent) || listed.leaving.contains(&extent) {
                continue;
            }
            // Uploads that all were given up before they had pinned it leave an extent that is not on the
            // list: whoever is about to pin it after all pardons it, too.
            let found = listed.used.entry(extent).or_default();
            if found.pins == 0 {
                found.condemned = true;
                condemned.push(extent);
            }
        }
        condemned
    }

    /// Takes those of `wanted` off the list that are condemned still, and says which. They are leaving until
    /// [`Self::have_left`].
    pub(super) fn remove_condemned(&self, wanted: &[ExtentId]) -> Vec<ExtentId> {
        let mut listed = self.extents.lock();
        for extent in wanted {
            if listed.used.get(extent).is_some_and(|found| found.condemned && found.pins == 0) {
                listed.used.remove(extent);
                listed.leaving.push(*extent);
            }
        }
        listed.leaving.clone()
    }

    /// What was leaving has left the stream, or comes back because that failed.
    pub(super) fn have_left(&self, have_left: bool) {
        let mut listed = self.extents.lock();
        let leaving = std::mem::take(&mut listed.leaving);
        if !have_left {
            listed.used.extend(leaving.into_iter().map(|extent| (extent, ExtentUse::default())));
        }
    }

    /// Checks that the rows of `changes` name only extents that are there, and says by how many bytes more is
    /// named once they are durable. `seen` are rows as they were, as far as the decision saw them.
    pub(super) fn check_changes<'a>(
        &self,
        changes: &[RowChange],
        seen: impl Iterator<Item = &'a Row>,
    ) -> Result<i64, PartitionError> {
        let mut after = Vec::new();
        for change in changes {
            let RowChange::Put { value, .. } = change else { continue };
            overflow_start(value)
                .map_err(|_| PartitionError::Operation("a row without its start or overflow"))?;
            let pieces = pieces_of(value)?;
            if pieces.is_empty() {
                continue;
            }
            let extents = &mut self.extents.lock().used;
            for piece in &pieces {
                extents.get_mut(&piece.extent).ok_or_else(gone)?.condemned = false;
            }
            after.extend(pieces);
        }
        let grown_bytes = growth_of(changes, after, seen);
        if grown_bytes != 0 {
            self.activity.fetch_add(1, Ordering::Relaxed);
        }
        self.changes.fetch_add(1, Ordering::Relaxed);
        Ok(grown_bytes)
    }

    /// Shows changes by which so many bytes more are named, which are durable. Not before: a count sees only
    /// what is shown, and what is taken back never was.
    pub(super) fn show(&self, grown_bytes: i64, show: impl FnOnce()) {
        let _together = self.forgotten.lock();
        show();
        if grown_bytes != 0 {
            self.grown_bytes.fetch_add(grown_bytes, Ordering::Relaxed);
            // A collection that has begun since the decision has not seen them.
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Bytes that rows name, as far as it is known: counted by the last collection and followed since.
    pub(super) fn named_bytes(&self) -> u64 {
        let (before, grown) = (&self.named_before_bytes, &self.grown_bytes);
        (before.load(Ordering::Relaxed) + grown.load(Ordering::Relaxed)).max(0) as u64
    }

    /// Takes the marks of dead containers, and then the snapshot that a count goes over, and notes how much
    /// had grown by then.
    pub(super) fn begin_count<M, S>(
        &self,
        marks: impl FnOnce() -> M,
        snapshot: impl FnOnce() -> S,
    ) -> (CountBegun, M, S) {
        // A mark that is set from now on is not among these, and then this count is forgotten.
        let forgotten = *self.forgotten.lock();
        let marks = marks();
        let _together = self.forgotten.lock();
        let begun = CountBegun { forgotten, grown_bytes: self.grown_bytes.load(Ordering::Relaxed) };
        (begun, marks, snapshot())
    }

    /// So many bytes were named when the count began; what has changed since is known. Unless counts were to
    /// be forgotten meanwhile.
    pub(super) fn end_count(&self, begun: CountBegun, named_bytes: u64) {
        let forgotten = self.forgotten.lock();
        if *forgotten == begun.forgotten {
            self.named_before_bytes.store(named_bytes as i64 - begun.grown_bytes, Ordering::Relaxed);
        }
    }

    /// How often others wrote or deleted blob data here since the range was opened.
    pub(super) fn activity(&self) -> u64 {
        self.activity.load(Ordering::Relaxed)
    }

    /// What is known of how much is named does not count any more: the next collection counts anew.
    pub(super) fn forget_count(&self) {
        let mut forgotten = self.forgotten.lock();
        *forgotten += 1;
        self.named_before_bytes.store(-self.grown_bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        self.changes.fetch_add(1, Ordering::Relaxed);
    }
}

/// What was so when a count began.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountBegun {
    forgotten: u64,
    grown_bytes: i64,
}

/// How many bytes more are named after changes, each piece once: snapshots share pieces with their blob, and
/// so do regions of pages. `after` are the pieces of what is put.
fn growth_of<'a>(changes: &[RowChange], mut after: Vec<Piece>, seen: impl Iterator<Item = &'a Row>) -> i64 {
    let mut changed: Vec<&RowKey> = changes.iter().map(RowChange::key).collect();
    changed.sort_unstable();
    let mut before = Vec::new();
    for row in seen {
        let Ok(pieces) = pieces_of(&row.value) else { continue };
        if changed.binary_search(&&row.key).is_err() {
            after.extend_from_slice(&pieces);
        }
        before.extend(pieces);
    }
    size_of_distinct(&mut after) as i64 - size_of_distinct(&mut before) as i64
}

/// Whether changes name bytes that no row did which the decision saw: they were uploaded for it.
pub(super) fn names_new_bytes<'a>(changes: &[RowChange], seen: impl Iterator<Item = &'a Row>) -> bool {
    let of = |value: &[u8]| pieces_of(value).unwrap_or_default();
    let put = changes.iter().filter_map(|change| match change {
        RowChange::Put { value, .. } => Some(of(value)),
        RowChange::Delete { .. } => None,
    });
    let after: Vec<Piece> = put.flatten().collect();
    let before: BTreeSet<Piece> = match after.is_empty() {
        true => BTreeSet::new(),
        false => seen.flat_map(|row| of(&row.value)).collect(),
    };
    after.iter().any(|piece| !before.contains(piece))
}

/// Bytes that pieces take, each once. With their headers: of small pieces these are much, and would look dead
/// for ever.
pub(super) fn size_of_distinct(pieces: &mut Vec<Piece>) -> u64 {
    pieces.sort_unstable();
    pieces.dedup();
    pieces.iter().map(Piece::stored_bytes).sum()
}

/// The pieces that a row's value names.
pub(super) fn pieces_of(value: &[u8]) -> Result<Vec<Piece>, PartitionError> {
    take_pieces(&mut Decoder::new(value))
        .map_err(|error| PartitionError::Storage(format!("stored row: {error}")))
}

/// Which extents the pieces lie in, each once.
pub(super) fn extents_of(pieces: &[Piece]) -> Vec<ExtentId> {
    let mut extents: Vec<ExtentId> = pieces.iter().map(|piece| piece.extent).collect();
    extents.sort_unstable();
    extents.dedup();
    extents
}

fn gone() -> PartitionError {
    PartitionError::Unavailable("the bytes belong to a range that was split or merged meanwhile".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob_data::piece::put_pieces;

    const ONE: ExtentId = ExtentId(1);
    const TWO: ExtentId = ExtentId(2);

    fn data() -> RangeData {
        RangeData::new(StreamName::new("blob/1/data"), &[ONE, TWO])
    }

    fn naming(extent: ExtentId) -> RowChange {
        let mut value = Vec::new();
        put_pieces(&mut value, &[Piece::for_tests(extent.0, 0, 100)]);
        RowChange::Put { key: RowKey::new("a", 1, "blob", "head"), value: value.into() }
    }

    #[test]
    fn an_extent_that_left_can_be_named_pinned_and_appended_to_no_more() {
        let data = data();
        assert_eq!(data.condemn([ONE].into_iter()), [ONE]);
        assert_eq!(data.remove_condemned(&[ONE]), [ONE]);
        // It is leaving: nobody may count on it any more, even though the stream lists it still.
        for _ in 0..2 {
            assert!(data.check_changes(&[naming(ONE)], std::iter::empty()).is_err());
            assert!(!data.pin(&[TWO, ONE]), "all or none");
            assert!(!data.pin_appended(ONE, || false));
            data.have_left(true);
        }
        assert_eq!(data.condemn([TWO].into_iter()), [TWO], "a pin that was refused pins nothing");
        assert!(data.check_changes(&[naming(TWO)], std::iter::empty()).is_ok());
    }

    /// A count that a deletion came into told of what it had deleted as named, and nobody looked for it any
    /// more.
    #[test]
    fn what_changes_during_a_count_is_not_forgotten() {
        let data = data();
        let show = |grown_bytes| data.show(grown_bytes, || {});
        let (began, (), ()) = data.begin_count(|| {}, || {});
        show(data.check_changes(&[naming(ONE)], std::iter::empty()).unwrap());
        data.end_count(began, 1000);
        assert_eq!(data.named_bytes(), 1132, "100 bytes and a header");
        let RowChange::Put { key, value } = naming(ONE) else { unreachable!() };
        let seen = [Row { key: key.clone(), version: crate::RowVersion(1), value }];
        let grown_bytes = data.check_changes(&[RowChange::Delete { key }], seen.iter()).unwrap();
        assert_eq!(data.named_bytes(), 1132, "it may be taken back");
        show(grown_bytes);
        assert_eq!(data.named_bytes(), 1000);
        let (began, (), ()) = data.begin_count(|| data.forget_count(), || {});
        assert_eq!(data.named_bytes(), 0);
        data.end_count(began, 1000);
        assert_eq!(data.named_bytes(), 0, "rows of a container that was deleted meanwhile may be in it");
    }

    /// Groups are shown by the journal's thread, beside counts: one that was shown between the growth and the
    /// snapshot of a count was in both, and one whose growth was noted before it was shown in neither.
    #[test]
    fn a_count_sees_a_group_and_its_growth_or_neither() {
        let data = data();
        let is_alone = || assert!(data.forgotten.try_lock().is_none(), "somebody may come between");
        data.show(100, is_alone);
        data.begin_count(|| {}, is_alone);
    }

    #[test]
    fn an_extent_on_its_way_out_is_not_appended_to_even_if_the_stream_lists_it() {
        let data = data();
        data.condemn([ONE].into_iter());
        data.remove_condemned(&[ONE]);
        assert!(!data.pin_appended(ONE, || true));
        // The change to the stream failed.
        data.have_left(false);
        assert!(data.pin_appended(ONE, || true));
        assert!(data.check_changes(&[naming(ONE)], std::iter::empty()).is_ok());
    }

    #[test]
    fn what_is_named_or_pinned_after_it_was_condemned_stays() {
        let data = data();
        assert_eq!(data.condemn([ONE, TWO].into_iter()), [ONE, TWO]);
        assert!(data.check_changes(&[naming(ONE)], std::iter::empty()).is_ok());
        assert!(data.pin(&[TWO]));
        assert_eq!(data.remove_condemned(&[ONE, TWO]), []);
        assert_eq!(data.condemn([TWO].into_iter()), [], "it is pinned");
        data.unpin(&[TWO]);
        assert_eq!(data.condemn([TWO].into_iter()), [TWO]);
    }

    /// An extent that only uploads had appended to that were given up was never collected, and each round of
    /// collections looked at all rows for it.
    #[test]
    fn an_extent_that_nobody_has_ever_pinned_is_condemned_like_others() {
        let new = ExtentId(3);
        for pinned_before_it_leaves in [true, false] {
            let data = data();
            assert_eq!(data.condemn([ONE, new].into_iter()), [ONE, new]);
            if pinned_before_it_leaves {
                // Its append was under way.
                assert!(data.pin_appended(new, || true));
                assert_eq!(data.remove_condemned(&[ONE, new]), [ONE]);
                data.have_left(true);
                assert!(data.check_changes(&[naming(new)], std::iter::empty()).is_ok());
            } else {
                assert_eq!(data.remove_condemned(&[ONE, new]), [ONE, new]);
                assert!(!data.pin_appended(new, || true), "it appends again");
                assert_eq!(data.condemn([new].into_iter()), [], "it is leaving");
                data.have_left(true);
                assert!(!data.pin_appended(new, || false));
            }
        }
    }

    fn row(name: &str, pieces: &[Piece]) -> Row {
        let mut value = Vec::new();
        crate::blob_data::piece::put_pieces(&mut value, pieces);
        Row { key: RowKey::new("a", 1, "blob", name), version: crate::RowVersion(1), value: value.into() }
    }

    /// What a decision does to rows that it saw.
    fn growth(seen: &[Row], puts: &[Row], deletes: &[&str]) -> i64 {
        let put = |row: &Row| RowChange::Put { key: row.key.clone(), value: row.value.clone() };
        let mut changes: Vec<RowChange> = puts.iter().map(put).collect();
        changes
            .extend(deletes.iter().map(|name| RowChange::Delete { key: RowKey::new("a", 1, "blob", name) }));
        let after = puts.iter().flat_map(|row| pieces_of(&row.value).unwrap()).collect();
        growth_of(&changes, after, seen.iter())
    }

    /// A blob with snapshots, or with pages of one piece in many regions, once looked as if it named more
    /// than was stored, so that its space never seemed worth collecting.
    #[test]
    fn pieces_that_rows_share_count_once() {
        let (first, second) = (Piece::for_tests(1, 0, 100), Piece::for_tests(1, 200, 30));
        let head = row("head", &[first]);
        assert_eq!(
            growth(&[], std::slice::from_ref(&head), &[]),
            132,
            "a new blob, with the header of its bytes"
        );
        let snapshot = row("snapshot", &[first]);
        assert_eq!(
            growth(std::slice::from_ref(&head), std::slice::from_ref(&snapshot), &[]),
            0,
            "a snapshot"
        );
        let both = [head.clone(), snapshot];
        assert_eq!(growth(&both, &[row("head", &[second])], &[]), 62, "its blob is overwritten");
        assert_eq!(growth(&both, &[], &["snapshot"]), 0, "the blob still names it");
        assert_eq!(growth(&both, &[], &["snapshot", "head"]), -132, "nobody does");
        assert_eq!(growth(&[head], &[row("head", &[second])], &[]), -70, "overwritten");
        let regions = [row("region1", &[first]), row("region2", &[first])];
        assert_eq!(growth(&[], &regions, &[]), 132, "one piece of two regions");
    }
}
