//! All that is stored under one blob's name, and how one operation sees and changes it.
//!
//! ```text
//! row key = (account, container id, blob name, row name)       row name sorts: snapshots, versions, head, chunks, …
//!   0g OWNER                 a mark, no pieces: the pages of OWNER are those of a deleted blob, and are being removed
//!   1s SNAPSHOT              a snapshot's record; SNAPSHOT is its time, 16 hexadecimal digits
//!   1v VERSION               a former version's record; VERSION is its id, a time, likewise
//!   2h                       the head: lease, counts, and the base blob's record
//!   3c GENERATION INDEX      a chunk of a list of blocks
//!   4p OWNER REGION          ranges of pages, see `pages.rs`; OWNER is 0, a snapshot, or a version with its highest bit set
//!   5u ID                    a staged block; ID is its id in hexadecimal
//! head = start, u8 format (1, and 1 more with the time, and 2 more with versions), varint staged blocks, [varint ticks
//!        when the last one was staged,] u8 length of their ids, varint snapshots, varint deleted snapshots,
//!        [varint versions], lease, u8 record is there, [record]
//! ```
//!
//! What always holds: if anything but pages that are being removed is stored under a name, its head is there.
//! So most operations read one row; those that must see more say which, and are run again. What was not asked
//! for is never taken for absent. A decision runs while others wait: it looks at each row a bounded number of
//! times, however much it removes.

mod asked;

use crate::content::Content;
use crate::error::{BlobError, LeaseError};
use crate::lease::Lease;
use crate::rows::record::BlobRecord;
use base::Ticks;
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;
use partition::{
    Decision, KeyRange, ObjectTable, Operation, PartitionError, Read, RowChange, RowKey, RowStart,
    RowVersion, Rows, put_pieces,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

pub(crate) use asked::{Asked, ROUND_COUNT_MAX};
use asked::{Seen, Sight};

/// Row name of the head.
pub(crate) const HEAD: &str = "2h";
/// Start of the row names of marks that pages are garbage. They come first, where a walk over all names sees
/// them.
pub(crate) const GARBAGE_PREFIX: &str = "0g";
/// Start of the row names of snapshots.
pub(crate) const SNAPSHOT_PREFIX: &str = "1s";
/// Start of the row names of former versions.
pub(crate) const VERSION_PREFIX: &str = "1v";
/// Start of the row names of staged blocks.
pub(crate) const STAGED_PREFIX: &str = "5u";

const HEAD_FORMAT: u8 = 1;
/// What the format of a head is higher by that says since when its staged blocks are idle.
const WITH_TIME: u8 = 1;
/// What the format of a head is higher by that counts versions.
const WITH_VERSIONS: u8 = 2;

/// Which of the blobs of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Revision {
    /// The base blob.
    #[default]
    Current,
    /// The snapshot of this time.
    Snapshot(u64),
    /// The version with this id, be it the base blob or a former one.
    Version(u64),
}

impl Revision {
    /// The row of its own that it has, or may have.
    pub(crate) fn row(self) -> Option<String> {
        match self {
            Revision::Current => None,
            Revision::Snapshot(snapshot) => Some(snapshot_row(snapshot)),
            Revision::Version(version) => Some(version_row(version)),
        }
    }

    /// The same, with a version that is the base blob as such.
    pub(crate) fn resolve(self, head: &Head) -> Revision {
        match (self, head.live()) {
            (Revision::Version(version), Some(live)) if live.version == Some(version) => Revision::Current,
            _ => self,
        }
    }
}

/// Where a blob's rows are; each step of a request has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlobAddress {
    pub(crate) account: Arc<str>,
    pub(crate) container_id: u64,
    pub(crate) name: Arc<str>,
}

impl BlobAddress {
    /// Keys of the rows whose names start so.
    pub(crate) fn rows_with_prefix(&self, prefix: &str) -> KeyRange {
        let all = KeyRange::partition(&self.account, self.container_id, &self.name);
        // A key ends with its text's terminator; without it the key is the start of all rows whose names
        // start so.
        let first = self.key(prefix);
        let bytes = first.as_bytes();
        KeyRange::prefix(bytes[..bytes.len() - 2].to_vec()).intersect(&all)
    }

    pub(crate) fn key(&self, row: &str) -> RowKey {
        RowKey::new(&self.account, self.container_id, &self.name, row)
    }
}

/// Row name of a snapshot.
pub(crate) fn snapshot_row(snapshot: u64) -> String {
    format!("{SNAPSHOT_PREFIX}{snapshot:016x}")
}

/// Row name of a former version.
pub(crate) fn version_row(version: u64) -> String {
    format!("{VERSION_PREFIX}{version:016x}")
}

/// Row name of a chunk.
pub(crate) fn chunk_row(generation: u64, index: usize) -> String {
    format!("{}{index:08x}", chunks_prefix(generation))
}

/// Start of the row names of a generation's chunks.
pub(crate) fn chunks_prefix(generation: u64) -> String {
    format!("3c{generation:016x}")
}

/// Row name of a region of pages.
pub(crate) fn region_row(owner: u64, region: u64) -> String {
    format!("{}{region:016x}", regions_prefix(owner))
}

/// Start of the row names of an owner's regions.
pub(crate) fn regions_prefix(owner: u64) -> String {
    format!("4p{owner:016x}")
}

/// Row name of the mark that an owner's regions are garbage.
pub(crate) fn garbage_row(owner: u64) -> String {
    format!("{GARBAGE_PREFIX}{owner:016x}")
}

/// Row name of a staged block.
pub(crate) fn staged_row(id: &[u8]) -> String {
    let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{STAGED_PREFIX}{digits}")
}

/// The head row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) lease: Lease,
    pub(crate) staged: u32,
    /// When the last of them was staged; 0: nobody knows.
    pub(crate) staged_at: Ticks,
    pub(crate) staged_id_len: u8,
    pub(crate) snapshots: u32,
    pub(crate) deleted_snapshots: u32,
    /// Former ones, deleted or not.
    pub(crate) versions: u32,
    pub(crate) current: Option<BlobRecord>,
}

impl Head {
    pub(crate) fn encode(&self) -> Result<Vec<u8>, Stop> {
        let start = match &self.current {
            Some(current) => current.content.row_start().ok_or(Stop::NeedContent)?,
            None => RowStart::default(),
        };
        let mut out = Vec::with_capacity(256 + start.overflow_size_bytes);
        start.put(&mut out);
        let has_time = self.staged > 0 && self.staged_at.0 > 0;
        let has_versions = self.versions > 0;
        let with = |has: bool, part: u8| if has { part } else { 0 };
        out.put_u8_field(HEAD_FORMAT + with(has_time, WITH_TIME) + with(has_versions, WITH_VERSIONS));
        out.put_varint(u64::from(self.staged));
        if has_time {
            out.put_varint(self.staged_at.0);
        }
        out.put_u8_field(self.staged_id_len);
        out.put_varint(u64::from(self.snapshots));
        out.put_varint(u64::from(self.deleted_snapshots));
        if has_versions {
            out.put_varint(u64::from(self.versions));
        }
        self.lease.encode(&mut out);
        out.put_u8_field(u8::from(self.current.is_some()));
        if let Some(current) = &self.current {
            current.encode(&mut out);
        }
        Ok(out)
    }

    pub(crate) fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(value);
        let start = RowStart::take(&mut decoder)?;
        let format = decoder.u8("head format")?;
        if !(HEAD_FORMAT..=HEAD_FORMAT + WITH_TIME + WITH_VERSIONS).contains(&format) {
            return Err(DecodeError("head format"));
        }
        let count = |number: u64| u32::try_from(number).map_err(|_| DecodeError("head count"));
        let staged = count(decoder.varint("staged blocks")?)?;
        let has = |part: u8| (format - HEAD_FORMAT) & part != 0;
        let staged_at = if has(WITH_TIME) { decoder.varint("time of staging")? } else { 0 };
        let mut head = Head {
            staged,
            staged_at: Ticks(staged_at),
            staged_id_len: decoder.u8("length of ids")?,
            snapshots: count(decoder.varint("snapshots")?)?,
            deleted_snapshots: count(decoder.varint("deleted snapshots")?)?,
            versions: if has(WITH_VERSIONS) { count(decoder.varint("versions")?)? } else { 0 },
            lease: Lease::decode(&mut decoder)?,
            current: None,
        };
        if decoder.u8("record is there")? != 0 {
            head.current = Some(BlobRecord::decode(&mut decoder, start)?);
        }
        decoder.finish("head row")?;
        Ok(head)
    }

    fn is_empty(&self) -> bool {
        self.current.is_none()
            && self.staged == 0
            && self.snapshots == 0
            && self.deleted_snapshots == 0
            && self.versions == 0
            && self.lease == Lease::None
    }

    /// The base blob, unless it is deleted.
    pub(crate) fn live(&self) -> Option<&BlobRecord> {
        self.current.as_ref().filter(|current| current.deleted.is_none())
    }
}

/// The value of a snapshot's row.
pub(crate) fn encode_snapshot(record: &BlobRecord) -> Result<Vec<u8>, Stop> {
    let start = record.content.row_start().ok_or(Stop::NeedContent)?;
    let mut out = Vec::with_capacity(256 + start.overflow_size_bytes);
    start.put(&mut out);
    record.encode(&mut out);
    Ok(out)
}

/// Reads a snapshot's row.
pub(crate) fn decode_snapshot(value: &[u8]) -> Result<BlobRecord, DecodeError> {
    let mut decoder = Decoder::new(value);
    let start = RowStart::take(&mut decoder)?;
    let record = BlobRecord::decode(&mut decoder, start)?;
    decoder.finish("snapshot row")?;
    Ok(record)
}

/// Why a decision was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It was: the answer is no.
    Refused(BlobError),
    /// All rows whose names start so must be seen.
    Need(String),
    /// The content of the base blob must be seen, which is in the head's row.
    NeedContent,
}

impl From<BlobError> for Stop {
    fn from(error: BlobError) -> Self {
        Stop::Refused(error)
    }
}

impl From<DecodeError> for Stop {
    fn from(error: DecodeError) -> Self {
        Stop::Refused(error.into())
    }
}

impl From<LeaseError> for Stop {
    fn from(error: LeaseError) -> Self {
        Stop::Refused(error.into())
    }
}

/// A change to what is stored under one name, as plain data with a pure decision.
pub(crate) trait BlobChange: Send + Sync + 'static {
    type Reply: Send + 'static;

    /// Rows besides the head that the decision looks at.
    fn more_rows(&self) -> Vec<String> {
        Vec::new()
    }

    /// Starts of the names of further rows that it always looks at. It may need more, and then says so.
    fn more_prefixes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether it is likely to keep a content of the base blob that lies in the head's row. What does not is
    /// shown the row without it; if it must see it after all, it is run again.
    fn keeps_content(&self) -> bool {
        true
    }

    /// See [`Operation::gives_back`].
    fn gives_back(&self) -> bool {
        false
    }

    /// Decides; what it has changed in `rows` is stored unless it stops.
    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<Self::Reply, Stop>;
}

/// The rows of one name during a decision.
pub(crate) struct BlobRows {
    pub(crate) head: Head,
    /// The head's row as it was found.
    head_before: Option<Bytes>,
    /// The others.
    found: BTreeMap<String, Bytes>,
    changed: BTreeMap<String, Option<Bytes>>,
    seen: Seen,
    /// How many snapshots and former versions name the chunks of a generation. `None`: not counted yet.
    generations: Option<BTreeMap<u64, usize>>,
}

/// Whether a row is that of a snapshot or of a former version.
fn is_former(row: &str) -> bool {
    row.starts_with(SNAPSHOT_PREFIX) || row.starts_with(VERSION_PREFIX)
}

/// The generation whose chunks a record names.
fn generation_of(record: &BlobRecord) -> Option<u64> {
    match &record.content {
        Content::Blocks(blocks) if !blocks.chunks.is_empty() => Some(blocks.generation),
        _ => None,
    }
}

impl BlobRows {
    fn open(
        head_before: Option<Bytes>,
        found: BTreeMap<String, Bytes>,
        seen: Seen,
    ) -> Result<Self, DecodeError> {
        let head = head_before.as_ref().map(|value| Head::decode(value)).transpose()?.unwrap_or_default();
        Ok(BlobRows { head, head_before, found, changed: BTreeMap::new(), seen, generations: None })
    }

    /// Stops if pages of a deleted blob are still to be removed where those of a new one would lie.
    pub(crate) fn check_no_garbage(&self, owner: u64) -> Result<(), Stop> {
        let mark = garbage_row(owner);
        match self.row(&mark)? {
            // Of the blob that this one would replace: deleting that comes first.
            Some(_) if self.changed.contains_key(&mark) => Err(BlobError::TooManyRows.into()),
            Some(_) => Err(BlobError::Partition(PartitionError::Busy).into()),
            None => Ok(()),
        }
    }

    /// Stops unless all rows whose names start so are seen.
    pub(crate) fn need_rows(&self, prefix: &str) -> Result<(), Stop> {
        match self.seen.sight(prefix) {
            Sight::Whole => Ok(()),
            Sight::CutOff => Err(BlobError::TooManyRows.into()),
            Sight::Unasked => Err(Stop::Need(prefix.to_owned())),
        }
    }

    /// A row as it is now; stops if nobody has looked whether it is there.
    pub(crate) fn row(&self, name: &str) -> Result<Option<&Bytes>, Stop> {
        let row = self.known(name);
        if row.is_none() && !self.sees_row(name) {
            self.need_rows(name)?;
        }
        Ok(row)
    }

    /// Whether it is known that a row is there or not.
    fn sees_row(&self, name: &str) -> bool {
        self.changed.contains_key(name) || self.found.contains_key(name) || self.seen.shows(name)
    }

    /// A row as it is now, if it is there and seen.
    fn known(&self, name: &str) -> Option<&Bytes> {
        match self.changed.get(name) {
            Some(changed) => changed.as_ref(),
            None => self.found.get(name),
        }
    }

    /// Names of the rows that start so, in order; all must be seen.
    pub(crate) fn names(&self, prefix: &str) -> Result<Vec<String>, Stop> {
        self.need_rows(prefix)?;
        Ok(self.present(prefix).map(|(name, _)| name.to_owned()).collect())
    }

    /// As [`Self::names`], or the first of them if there are too many to see.
    pub(crate) fn first_names(&self, prefix: &str) -> Result<Vec<String>, Stop> {
        match self.seen.sight(prefix) {
            Sight::Unasked => Err(Stop::Need(prefix.to_owned())),
            Sight::Whole | Sight::CutOff => {
                Ok(self.present(prefix).map(|(name, _)| name.to_owned()).collect())
            }
        }
    }

    /// The rows whose names start so, as they are now, in order.
    fn present<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Bytes)> {
        let start = (Bound::Included(prefix), Bound::Unbounded);
        let found = self.found.range::<str, _>(start).map(|(name, _)| name.as_str());
        let changed = self.changed.range::<str, _>(start).map(|(name, _)| name.as_str());
        let starts_so = move |name: &&str| name.starts_with(prefix);
        let names: BTreeSet<&str> =
            found.take_while(starts_so).chain(changed.take_while(starts_so)).collect();
        #[cfg(test)]
        memory::LOOKED_AT.with(|count| count.set(count.get() + names.len()));
        names.into_iter().filter_map(|name| Some((name, self.known(name)?)))
    }

    pub(crate) fn put(&mut self, name: String, value: Vec<u8>) {
        self.change(name, Some(value.into()));
    }

    pub(crate) fn delete(&mut self, name: &str) {
        self.change(name.to_owned(), None);
    }

    fn change(&mut self, name: String, value: Option<Bytes>) {
        if let Some(mut generations) = self.generations.take_if(|_| is_former(&name)) {
            let named = |row: Option<&Bytes>| row.map(|row| decode_snapshot(row)).transpose();
            // What can't be read has them counted anew, which tells.
            if let (Ok(before), Ok(after)) = (named(self.known(&name)), named(value.as_ref())) {
                if let Some(generation) = before.as_ref().and_then(generation_of)
                    && let Some(count) = generations.get_mut(&generation)
                {
                    *count = count.saturating_sub(1);
                }
                if let Some(generation) = after.as_ref().and_then(generation_of) {
                    *generations.entry(generation).or_default() += 1;
                }
                self.generations = Some(generations);
            }
        }
        self.changed.insert(name, value);
    }

    /// How many snapshots and former versions name the chunks of a generation. They are looked at once for
    /// it.
    fn count_named(&mut self, generation: u64) -> Result<usize, Stop> {
        if self.generations.is_none() {
            let mut generations = BTreeMap::new();
            for prefix in [SNAPSHOT_PREFIX, VERSION_PREFIX] {
                self.need_rows(prefix)?;
                for (_, row) in self.present(prefix) {
                    if let Some(generation) = generation_of(&decode_snapshot(row)?) {
                        *generations.entry(generation).or_default() += 1;
                    }
                }
            }
            self.generations = Some(generations);
        }
        let count = self.generations.as_ref().and_then(|generations| generations.get(&generation));
        Ok(count.copied().unwrap_or_default())
    }

    /// The base blob.
    pub(crate) fn live(&self) -> Result<&BlobRecord, BlobError> {
        self.head.live().ok_or(BlobError::BlobNotFound)
    }

    /// The base blob, to be changed.
    pub(crate) fn live_mut(&mut self) -> Result<&mut BlobRecord, BlobError> {
        self.head.current.as_mut().filter(|current| current.deleted.is_none()).ok_or(BlobError::BlobNotFound)
    }

    /// The record of a snapshot or former version; `row` is its row's name.
    pub(crate) fn former(&self, row: &str) -> Result<BlobRecord, Stop> {
        let row = self.row(row)?.ok_or(BlobError::BlobNotFound)?;
        let record = decode_snapshot(row)?;
        if record.deleted.is_some() { Err(BlobError::BlobNotFound.into()) } else { Ok(record) }
    }

    /// Forgets staged blocks.
    pub(crate) fn clear_staged(&mut self) -> Result<(), Stop> {
        if self.head.staged > 0 {
            for name in self.names(STAGED_PREFIX)? {
                self.delete(&name);
            }
        }
        self.head.staged = 0;
        self.head.staged_at = Ticks(0);
        self.head.staged_id_len = 0;
        Ok(())
    }

    /// Removes the rows of a content that no record here names any more.
    pub(crate) fn release(&mut self, content: &Content) -> Result<(), Stop> {
        match content {
            Content::Inline(_) | Content::Unread => Ok(()),
            Content::Blocks(blocks) if blocks.chunks.is_empty() => Ok(()),
            Content::Blocks(blocks) => {
                let of_head = self.head.current.as_ref().and_then(generation_of);
                if of_head == Some(blocks.generation) || self.count_named(blocks.generation)? > 0 {
                    return Ok(());
                }
                for name in self.names(&chunks_prefix(blocks.generation))? {
                    self.delete(&name);
                }
                Ok(())
            }
            Content::Pages(owner) => {
                let prefix = regions_prefix(*owner);
                if self.seen.sight(&prefix) == Sight::CutOff {
                    // Too many for one operation: they are removed bit by bit.
                    let mut mark = Vec::new();
                    put_pieces(&mut mark, &[]);
                    self.put(garbage_row(*owner), mark);
                    return Ok(());
                }
                for name in self.names(&prefix)? {
                    self.delete(&name);
                }
                Ok(())
            }
        }
    }

    fn into_changes(self, address: &BlobAddress) -> Result<Vec<RowChange>, Stop> {
        let mut changes = Vec::with_capacity(self.changed.len() + 1);
        for (name, value) in self.changed {
            let key = address.key(&name);
            match value {
                Some(value) if self.found.get(&name) != Some(&value) => {
                    changes.push(RowChange::Put { key, value });
                }
                // What nobody has looked for may be there.
                None if self.found.contains_key(&name) || !self.seen.shows(&name) => {
                    changes.push(RowChange::Delete { key });
                }
                _ => {}
            }
        }
        let key = address.key(HEAD);
        if self.head.is_empty() {
            if self.head_before.is_some() {
                changes.push(RowChange::Delete { key });
            }
        } else {
            let value = Bytes::from(self.head.encode()?);
            if self.head_before.as_ref() != Some(&value) {
                changes.push(RowChange::Put { key, value });
            }
        }
        Ok(changes)
    }
}

/// A change that was made.
pub(crate) struct Done<R> {
    pub(crate) reply: R,
    /// Owners of pages that are to be removed now.
    pub(crate) garbage: Vec<u64>,
}

/// The owner in the name of a mark.
pub(crate) fn garbage_owner(row: &str) -> Option<u64> {
    row.strip_prefix(GARBAGE_PREFIX).and_then(|digits| u64::from_str_radix(digits, 16).ok())
}

/// Rows of pages that are removed together.
const REMOVED_TOGETHER_MAX: usize = 4096;

/// Removes the first of the pages that are garbage, and with the last of them their mark.
pub(crate) struct RemovePages {
    pub(crate) address: BlobAddress,
    pub(crate) owner: u64,
}

impl Operation for RemovePages {
    /// Whether none is left.
    type Reply = bool;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Blob
    }

    fn reads(&self) -> Vec<Read> {
        let range = self.address.rows_with_prefix(&regions_prefix(self.owner));
        let mark = self.address.key(&garbage_row(self.owner));
        vec![Read::Range { range, limit: REMOVED_TOGETHER_MAX }, Read::Point(mark)]
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<bool> {
        let Some(mark) = rows.point(1) else { return Decision::unchanged(true) };
        let regions = rows.range(0);
        let mut changes: Vec<RowChange> =
            regions.iter().map(|row| RowChange::Delete { key: row.key.clone() }).collect();
        let is_last = regions.len() < REMOVED_TOGETHER_MAX;
        if is_last {
            changes.push(RowChange::Delete { key: mark.key.clone() });
        }
        Decision { changes, reply: is_last }
    }
}

/// A change at its address, as the partition layer runs it.
pub(crate) struct BlobOperation<C> {
    pub(crate) address: BlobAddress,
    pub(crate) change: Arc<C>,
    pub(crate) asked: Asked,
}

impl<C: BlobChange> BlobOperation<C> {
    fn open_rows(&self, rows: &Rows) -> Result<BlobRows, Stop> {
        let head = rows.point(0).map(|row| row.value.clone());
        let mut found = BTreeMap::new();
        let mut index = 1;
        for name in &self.asked.points {
            if let Some(row) = rows.point(index) {
                found.insert(name.clone(), row.value.clone());
            }
            index += 1;
        }
        let mut seen = Seen { points: self.asked.points.clone(), prefixes: BTreeMap::new() };
        for prefix in &self.asked.prefixes {
            let in_order = rows.range(index);
            let mut last = None;
            for row in in_order {
                let name = row.key.parts().ok_or(DecodeError("blob key"))?.object_name;
                last = Some(name.clone());
                found.insert(name, row.value.clone());
            }
            let is_cut_off = in_order.len() >= self.asked.rows_max;
            seen.prefixes.insert(prefix.clone(), last.filter(|_| is_cut_off));
            index += 1;
        }
        Ok(BlobRows::open(head, found, seen)?)
    }
}

impl<C: BlobChange> Operation for BlobOperation<C> {
    type Reply = Result<Done<C::Reply>, Stop>;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Blob
    }

    fn reads(&self) -> Vec<Read> {
        let points = self.asked.points.iter().map(|row| Read::Point(self.address.key(row)));
        let ranges = self.asked.prefixes.iter().map(|prefix| Read::Range {
            range: self.address.rows_with_prefix(prefix),
            limit: self.asked.rows_max,
        });
        let head = self.address.key(HEAD);
        let head = if self.asked.content { Read::Point(head) } else { Read::Head(head) };
        std::iter::once(head).chain(points).chain(ranges).collect()
    }

    fn gives_back(&self) -> bool {
        self.change.gives_back()
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply> {
        let mut rows = match self.open_rows(rows) {
            Ok(rows) => rows,
            Err(stop) => return Decision::unchanged(Err(stop)),
        };
        let decided = self.change.decide(&mut rows, Ticks(version.0)).and_then(|reply| {
            let garbage = rows.changed.keys().filter_map(|name| garbage_owner(name)).collect();
            Ok((Done { reply, garbage }, rows.into_changes(&self.address)?))
        });
        match decided {
            Ok((done, changes)) => Decision { changes, reply: Ok(done) },
            Err(stop) => Decision::unchanged(Err(stop)),
        }
    }
}

/// A blob's rows in memory, for table tests of operations.
#[cfg(test)]
pub(crate) mod memory {
    use super::*;
    use partition::Row;
    use std::cell::Cell;

    thread_local! {
        /// Rows that decisions of this thread have looked at by their names' start.
        pub(crate) static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
    }

    #[derive(Default)]
    pub(crate) struct MemoryBlob {
        pub(crate) rows: BTreeMap<String, Bytes>,
        /// Rows that all operations so far have read.
        pub(crate) rows_read: usize,
    }

    impl MemoryBlob {
        fn address() -> BlobAddress {
            BlobAddress { account: "acct".into(), container_id: 1, name: "blob".into() }
        }

        /// Runs a change as the service does: with few rows first, then with those that it needs.
        pub(crate) fn run<C: BlobChange>(&mut self, change: C, now: u64) -> Result<C::Reply, BlobError> {
            let change = Arc::new(change);
            let mut asked = Asked::by(&*change);
            for _ in 0..ROUND_COUNT_MAX {
                LOOKED_AT.set(0);
                let (address, change) = (Self::address(), change.clone());
                match self.execute(&BlobOperation { address, change, asked: asked.clone() }, now) {
                    Ok(done) => return Ok(done.reply),
                    Err(Stop::Refused(error)) => return Err(error),
                    Err(Stop::Need(prefix)) => asked.add(prefix),
                    Err(Stop::NeedContent) => asked.content = true,
                }
            }
            panic!("it needs more and more rows: {asked:?}")
        }

        fn execute<O: Operation>(&mut self, operation: &O, now: u64) -> O::Reply {
            let found: Vec<Vec<Row>> = operation.reads().iter().map(|read| self.read(read)).collect();
            self.rows_read += found.iter().map(Vec::len).sum::<usize>();
            let decision = operation.decide(&Rows::new(found), RowVersion(now));
            for row in decision.changes {
                let name = row.key().parts().unwrap().object_name;
                match row {
                    RowChange::Put { value, .. } => {
                        let start = RowStart::take(&mut Decoder::new(&value));
                        assert!(start.is_ok(), "the layer below refuses a row without pieces: {name}");
                        self.rows.insert(name, value);
                    }
                    RowChange::Delete { .. } => {
                        self.rows.remove(&name);
                    }
                }
            }
            decision.reply
        }

        /// Removes pages that are garbage; says how many operations it took.
        pub(crate) fn remove_pages(&mut self, owner: u64, now: u64) -> usize {
            let operation = RemovePages { address: Self::address(), owner };
            (1..).find(|_| self.execute(&operation, now)).unwrap()
        }

        fn read(&self, read: &Read) -> Vec<Row> {
            let row = |(name, value): (&String, &Bytes)| Row {
                key: Self::address().key(name),
                version: RowVersion(1),
                value: value.clone(),
            };
            let all = self.rows.iter().map(row);
            match read {
                Read::Point(key) => all.filter(|row| row.key == *key).collect(),
                Read::Head(key) => all.filter(|row| row.key == *key).map(Self::without_tail).collect(),
                Read::Range { range, limit } => {
                    all.filter(|row| range.contains(row.key.as_bytes())).take(*limit).collect()
                }
            }
        }

        /// As most rows come from checkpoints.
        fn without_tail(row: Row) -> Row {
            let start = RowStart::take(&mut Decoder::new(&row.value)).unwrap();
            let head_len = row.value.len() - start.overflow_size_bytes;
            Row { value: row.value.slice(..head_len), ..row }
        }

        pub(crate) fn head(&self) -> Head {
            self.rows.get(HEAD).map(|value| Head::decode(value).unwrap()).unwrap_or_default()
        }

        pub(crate) fn count(&self, prefix: &str) -> usize {
            self.rows.keys().filter(|name| name.starts_with(prefix)).count()
        }
    }
}

#[cfg(test)]
mod tests;
