//! Listing the blobs of a container, flat or by a delimiter, and finding blobs by their tags.
//!
//! A page is one walk in key order, which is name order; a group of names below a delimiter is jumped over as
//! soon as one visible blob of it was seen, and so are many blocks or pages of one blob. What always holds:
//! the time follows the page and not the container; a marker is the key where the walk goes on, and whatever
//! the walk still had to tell of rows before it lies behind it.

pub(crate) mod former_names;

use crate::error::BlobError;
use crate::lease::Lease;
use crate::rows::former_row::{SNAPSHOT_PREFIX, VERSION_PREFIX, decode_snapshot, snapshot_in, version_row};
use crate::rows::head_row::{HEAD, Head};
use crate::rows::record::BlobRecord;
use crate::rows::region_row::garbage_owner;
use crate::rows::revision::Revision;
use crate::tags::tag_filter::TagFilter;
use base::Ticks;
use base::codec::DecodeError;
use bytes::Bytes;
use partition::key::{put_text, put_text_open, row_names};
use partition::{KeyRange, ObjectTable, Partitions, RowKey, RowRef, Scan, ScanEnd, Visit};
use std::collections::BTreeSet;

/// Rows besides head and snapshots that are walked over before the rest of a blob's rows is jumped over.
const EXTRA_ROWS_MAX: usize = 16;
/// Rows that one page walks over, deleted ones included; then it ends with a marker, short or empty.
pub(crate) const WALKED_ROWS_MAX: usize = 200_000;

/// What a listing asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // Each is the parameter of its name.
pub struct ListQuery {
    pub prefix: String,
    pub delimiter: Option<String>,
    pub marker: Option<String>,
    pub max: usize,
    pub snapshots: bool,
    pub uncommitted: bool,
    pub deleted: bool,
    pub versions: bool,
    pub deleted_with_versions: bool,
    /// Names before this one are left out.
    pub start_from: Option<String>,
    /// This name and those after it are left out.
    pub end_before: Option<String>,
}

/// One entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListEntry {
    /// Names that start so, up to the delimiter.
    Prefix(String),
    /// A blob or snapshot.
    Blob {
        /// Its name.
        name: String,
        /// Which of its name's.
        revision: Revision,
        /// There are only former versions of it: this is the last.
        has_versions_only: bool,
        /// What is known of it; `None`: only staged blocks are there.
        record: Option<Box<BlobRecord>>,
        /// Its lease.
        lease: Lease,
        /// The time by which the lease is reported, and how long a deleted blob is still kept.
        now: Ticks,
    },
}

/// A page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// In name order.
    pub entries: Vec<ListEntry>,
    /// Where the next one goes on.
    pub marker: Option<String>,
}

/// The bytes that all keys of a container start with.
fn container_start(account: &str, container_id: u64) -> Vec<u8> {
    let mut start = Vec::new();
    put_text(&mut start, account);
    start.extend_from_slice(&container_id.to_be_bytes());
    start
}

fn to_marker(key: &[u8], skip: usize) -> String {
    key.iter().skip(skip).map(|byte| format!("{byte:02x}")).collect()
}

fn from_marker(marker: &str) -> Result<Vec<u8>, BlobError> {
    if !marker.len().is_multiple_of(2) || !marker.is_ascii() {
        return Err(BlobError::InvalidMarker);
    }
    (0..marker.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&marker[at..at + 2], 16).map_err(|_| BlobError::InvalidMarker))
        .collect()
}

/// A walk over the blobs of a container.
pub(crate) struct Walk<'a> {
    partitions: &'a Partitions,
    range: KeyRange,
    /// Bytes before the part of a key that a marker holds.
    skip: usize,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        partitions: &'a Partitions,
        account: &str,
        container_id: u64,
        prefix: &str,
        marker: Option<&str>,
    ) -> Result<Self, BlobError> {
        let start = container_start(account, container_id);
        let skip = start.len();
        let mut first = start.clone();
        put_text_open(&mut first, prefix);
        let mut range = KeyRange::prefix(first);
        if let Some(marker) = marker.filter(|marker| !marker.is_empty()) {
            let from = [start, from_marker(marker)?].concat();
            range.start = range.start.max(from.into());
        }
        Ok(Walk { partitions, range, skip })
    }

    /// Begins at this name, if that is behind where it would begin.
    pub(crate) fn starting_at(mut self, name: &str) -> Self {
        let mut start = self.range.start[..self.skip].to_vec();
        put_text_open(&mut start, name);
        self.range.start = self.range.start.max(start.into());
        self
    }

    /// The key of a row before `key` that the collector would have to see again to go on at `key`. `None`:
    /// there is no such row, or the walk began with it and would not get on.
    fn held_back<C: Collect>(&self, collector: &C, key: &[u8]) -> Option<Bytes> {
        let (name, row) = collector.held_back()?;
        let mut held_back = key.get(..self.skip)?.to_vec();
        put_text(&mut held_back, name);
        let is_of_same_name = key.starts_with(&held_back);
        put_text(&mut held_back, &row);
        (is_of_same_name && self.range.start < held_back).then(|| held_back.into())
    }

    /// Walks until the collector is full or everything was seen; the marker says where it would go on.
    pub(crate) async fn run<C: Collect>(self, collector: C) -> Result<(C, Option<String>), BlobError> {
        self.run_within(collector, &mut { WALKED_ROWS_MAX }).await
    }

    /// As [`Self::run`], but ends after `rows_left` rows, and takes off it what was walked over.
    pub(crate) async fn run_within<C: Collect>(
        mut self,
        collector: C,
        rows_left: &mut usize,
    ) -> Result<(C, Option<String>), BlobError> {
        let mut scan = WalkScan {
            collector,
            container_len: self.skip,
            extra: 0,
            rows_left: *rows_left,
            end: WalkEnd::Going,
        };
        loop {
            let (done, end) = self.partitions.scan(ObjectTable::Blob, self.range.clone(), scan).await?;
            scan = done;
            *rows_left = scan.rows_left;
            match (std::mem::replace(&mut scan.end, WalkEnd::Going), end) {
                (WalkEnd::Damaged(error), _) => return Err(error.into()),
                (_, ScanEnd::Complete) => return Ok((scan.collector, None)),
                (WalkEnd::Full, ScanEnd::More(key)) => {
                    let key = self.held_back(&scan.collector, &key).unwrap_or(key);
                    return Ok((scan.collector, Some(to_marker(&key, self.skip))));
                }
                (WalkEnd::NoMore, _) => return Ok((scan.collector, None)),
                (WalkEnd::Going, ScanEnd::More(key)) => self.range.start = key,
            }
            if self.range.is_empty() {
                return Ok((scan.collector, None));
            }
        }
    }
}

enum WalkEnd {
    Going,
    Full,
    /// Nothing behind is wanted.
    NoMore,
    Damaged(DecodeError),
}

/// What becomes of a row.
pub(crate) enum Taken {
    Next,
    Full,
    /// Names that begin with so many bytes of this one are not wanted any more.
    SkipGroup(usize),
}

/// What a walk collects.
pub(crate) trait Collect: Send + 'static {
    fn head(&mut self, name: &str, head: Head) -> Taken;
    fn snapshot(&mut self, name: &str, snapshot: u64, record: BlobRecord) -> Taken;
    /// Pages of a deleted blob that are still to be removed.
    fn garbage(&mut self, _name: &str, _owner: u64) -> Taken {
        Taken::Next
    }
    fn wants_snapshots(&self) -> bool;
    fn version(&mut self, _name: &str, _version: u64, _record: BlobRecord) -> Taken {
        Taken::Next
    }
    fn wants_versions(&self) -> bool {
        false
    }
    /// A row can't be read. Whether the walk goes on behind it.
    fn passes_over(&mut self, _damage: &DecodeError) -> bool {
        false
    }
    /// The name and the row of what was seen, but is returned only with the head of that name.
    fn held_back(&self) -> Option<(&str, String)> {
        None
    }
}

struct WalkScan<C> {
    collector: C,
    /// So many bytes start all keys of the container.
    container_len: usize,
    extra: usize,
    /// Rows that may still be walked over.
    rows_left: usize,
    end: WalkEnd,
}

impl<C: Collect> WalkScan<C> {
    fn take(&mut self, row: RowRef<'_>) -> Result<Visit, DecodeError> {
        let Some(rows_left) = self.rows_left.checked_sub(1) else {
            self.end = WalkEnd::Full;
            return Ok(Visit::StopBefore);
        };
        self.rows_left = rows_left;
        let (name, row_name) = row_names(row.key).ok_or(DecodeError("blob key"))?;
        let taken = if row_name == HEAD {
            self.extra = 0;
            self.collector.head(&name, Head::decode(row.value)?)
        } else if let Some(digits) = row_name.strip_prefix(VERSION_PREFIX) {
            if !self.collector.wants_versions() {
                return Ok(Visit::Continue);
            }
            let version = u64::from_str_radix(digits, 16).map_err(|_| DecodeError("version's name"))?;
            self.collector.version(&name, version, decode_snapshot(row.value)?)
        } else if row_name.starts_with(SNAPSHOT_PREFIX) {
            if !self.collector.wants_snapshots() {
                return Ok(Visit::Continue);
            }
            let snapshot = snapshot_in(&row_name)?;
            self.collector.snapshot(&name, snapshot, decode_snapshot(row.value)?)
        } else if let Some(owner) = garbage_owner(&row_name) {
            self.collector.garbage(&name, owner)
        } else {
            self.extra += 1;
            if self.extra > EXTRA_ROWS_MAX {
                self.extra = 0;
                return Ok(self.skip(row.key, |start| put_text(start, &name)));
            }
            Taken::Next
        };
        Ok(match taken {
            Taken::Next => Visit::Continue,
            Taken::Full => {
                self.end = WalkEnd::Full;
                Visit::StopBefore
            }
            Taken::SkipGroup(len) => self.skip(row.key, |start| put_text_open(start, &name[..len])),
        })
    }

    /// Jumps over the rest of the rows that begin as `put` tells, in the container that `key` is of.
    fn skip(&mut self, key: &[u8], put: impl FnOnce(&mut Vec<u8>)) -> Visit {
        let mut start = key[..self.container_len].to_vec();
        put(&mut start);
        match KeyRange::prefix(start).end {
            Some(end) => Visit::SkipTo(end),
            None => {
                self.end = WalkEnd::NoMore;
                Visit::StopBefore
            }
        }
    }
}

impl<C: Collect> Scan for WalkScan<C> {
    /// Nobody who walks over blobs looks at their content.
    fn needs_overflow(&self) -> bool {
        false
    }

    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        match self.take(row) {
            Ok(visit) => visit,
            Err(damage) if self.collector.passes_over(&damage) => Visit::Continue,
            Err(error) => {
                self.end = WalkEnd::Damaged(error);
                Visit::StopBefore
            }
        }
    }

    fn pass_over(&mut self, unseen: u64) -> Visit {
        self.rows_left = self.rows_left.saturating_sub(usize::try_from(unseen).unwrap_or(usize::MAX));
        if self.rows_left > 0 {
            return Visit::Continue;
        }
        self.end = WalkEnd::Full;
        Visit::StopBefore
    }
}

/// Collects a page of a listing.
struct CollectPage {
    query: ListQuery,
    /// The time where the page begins.
    now: Ticks,
    entries: Vec<ListEntry>,
    /// The last version of the name that the walk is at.
    last_version: Option<(String, u64, BlobRecord)>,
}

impl CollectPage {
    fn is_visible(&self, record: &BlobRecord) -> bool {
        match record.deleted {
            None => true,
            Some(deleted) => self.query.deleted && deleted.days_left(self.now).is_some(),
        }
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= self.query.max
    }

    fn take(&mut self, name: &str, revision: Revision, record: Option<BlobRecord>, lease: Lease) -> Taken {
        if self.is_full() {
            return Taken::Full;
        }
        if let Some(delimiter) = self.query.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty())
            && let Some(at) = name[self.query.prefix.len()..].find(delimiter)
        {
            let len = self.query.prefix.len() + at + delimiter.len();
            self.entries.push(ListEntry::Prefix(name[..len].to_owned()));
            return Taken::SkipGroup(len);
        }
        let has_versions_only = false;
        let (name, record, now) = (name.to_owned(), record.map(Box::new), self.now);
        self.entries.push(ListEntry::Blob { name, revision, has_versions_only, record, lease, now });
        Taken::Next
    }
}

impl Collect for CollectPage {
    fn head(&mut self, name: &str, head: Head) -> Taken {
        let current = Revision::Current;
        let last = self.last_version.take().filter(|(of, _, _)| *of == name);
        match (head.current, last) {
            (Some(record), _) if self.is_visible(&record) => {
                self.take(name, current, Some(record), head.lease)
            }
            (Some(_), _) => Taken::Next,
            (None, _) if head.staged > 0 && self.query.uncommitted => {
                self.take(name, current, None, head.lease)
            }
            (None, last @ Some(_)) if self.query.deleted_with_versions && self.is_full() => {
                // The next page must find it.
                self.last_version = last;
                Taken::Full
            }
            (None, Some((_, version, record))) if self.query.deleted_with_versions => {
                let taken = self.take(name, Revision::Version(version), Some(record), Lease::None);
                if let (Taken::Next, Some(ListEntry::Blob { has_versions_only, .. })) =
                    (&taken, self.entries.last_mut())
                {
                    *has_versions_only = true;
                }
                taken
            }
            (None, _) => Taken::Next,
        }
    }

    fn version(&mut self, name: &str, version: u64, record: BlobRecord) -> Taken {
        if !self.is_visible(&record) {
            return Taken::Next;
        }
        if self.query.versions {
            return self.take(name, Revision::Version(version), Some(record), Lease::None);
        }
        self.last_version = Some((name.to_owned(), version, record));
        Taken::Next
    }

    fn wants_versions(&self) -> bool {
        self.query.versions || self.query.deleted_with_versions
    }

    fn held_back(&self) -> Option<(&str, String)> {
        self.last_version.as_ref().map(|(name, version, _)| (name.as_str(), version_row(*version)))
    }

    fn snapshot(&mut self, name: &str, snapshot: u64, record: BlobRecord) -> Taken {
        let is_wanted = match record.deleted {
            None => self.query.snapshots,
            Some(_) => self.query.snapshots && self.is_visible(&record),
        };
        match is_wanted {
            true => self.take(name, Revision::Snapshot(snapshot), Some(record), Lease::None),
            false => Taken::Next,
        }
    }

    fn wants_snapshots(&self) -> bool {
        self.query.snapshots
    }
}

/// A page of a container's blobs.
pub(crate) async fn list_blobs(
    partitions: &Partitions,
    account: &str,
    container_id: u64,
    query: ListQuery,
) -> Result<ListPage, BlobError> {
    let mut walk = Walk::new(partitions, account, container_id, &query.prefix, query.marker.as_deref())?;
    let key_of = |name: &str| {
        let mut key = container_start(account, container_id);
        put_text(&mut key, name);
        Bytes::from(key)
    };
    if let Some(name) = &query.start_from {
        walk.range.start = walk.range.start.max(key_of(name));
    }
    if let Some(name) = &query.end_before {
        let end = key_of(name);
        walk.range.end = Some(walk.range.end.map_or(end.clone(), |at| at.min(end)));
    }
    if walk.range.is_empty() {
        return Ok(ListPage::default());
    }
    let now_at =
        |name: &str| partitions.now(ObjectTable::Blob, &RowKey::new(account, container_id, name, HEAD));
    let now = now_at(&query.prefix)?;
    let collector = CollectPage { query, now, entries: Vec::new(), last_version: None };
    let (mut collector, marker) = walk.run(collector).await?;
    // Few are leased, and each range has a time of its own.
    for entry in &mut collector.entries {
        if let ListEntry::Blob { name, lease, now, .. } = entry
            && *lease != Lease::None
        {
            *now = now_at(name)?;
        }
    }
    Ok(ListPage { entries: collector.entries, marker })
}

/// A blob that was found by its tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBlob {
    /// Its container.
    pub container: String,
    /// Its name.
    pub name: String,
    /// Those tags that were asked for.
    pub tags: Vec<(String, String)>,
}

struct CollectTagged {
    filter: TagFilter,
    /// The tags that the filter speaks of: they are shown.
    asked: BTreeSet<String>,
    container: String,
    max: usize,
    found: Vec<FoundBlob>,
}

impl Collect for CollectTagged {
    fn head(&mut self, name: &str, head: Head) -> Taken {
        let Some(record) = head.live() else { return Taken::Next };
        if record.tags.is_empty() || !self.filter.matches(&record.tags, Some(&self.container)) {
            return Taken::Next;
        }
        if self.found.len() >= self.max {
            return Taken::Full;
        }
        let tags = record.tags.iter().filter(|(key, _)| self.asked.contains(key)).cloned().collect();
        self.found.push(FoundBlob { container: self.container.clone(), name: name.to_owned(), tags });
        Taken::Next
    }

    fn snapshot(&mut self, _name: &str, _snapshot: u64, _record: BlobRecord) -> Taken {
        Taken::Next
    }

    fn wants_snapshots(&self) -> bool {
        false
    }
}

/// Blobs of one container with such tags, and where the search goes on: it ends early after `rows_left` rows,
/// from which it takes those that it walked over.
pub(crate) async fn find_in_container(
    partitions: &Partitions,
    account: &str,
    container: (&str, u64),
    filter: &TagFilter,
    marker: Option<&str>,
    max: usize,
    rows_left: &mut usize,
) -> Result<(Vec<FoundBlob>, Option<String>), BlobError> {
    let walk = Walk::new(partitions, account, container.1, "", marker)?;
    let collector = CollectTagged {
        filter: filter.clone(),
        asked: filter.names().into_iter().map(str::to_owned).collect(),
        container: container.0.to_owned(),
        max,
        found: Vec::new(),
    };
    let (collector, marker) = walk.run_within(collector, rows_left).await?;
    Ok((collector.found, marker))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_come_back_and_others_are_refused() {
        let mut key = container_start("acct", 7);
        let skip = key.len();
        put_text(&mut key, "é\0");
        key.push(9);
        let marker = to_marker(&key, skip);
        assert_eq!(from_marker(&marker), Ok(key[skip..].to_vec()));
        for bad in ["1", "zz", "é"] {
            assert_eq!(from_marker(bad), Err(BlobError::InvalidMarker), "{bad}");
        }
    }
}
