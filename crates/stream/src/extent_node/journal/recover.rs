//! What the journal's files say after a stop of any kind: a pure function of their bytes.
//!
//! What always holds: a record that was begun and is not whole is cut off if nothing follows it, and that is
//! logged for the operator: it is unknown whether the record was ever acknowledged. Whatever else does not
//! read is damage, and logged as well: from then on every extent that took appends is in doubt until an entry
//! or a seal has its length, and never simply shorter.
//!
//! What helps where a file is damaged: the table of extents stands in the newest segment's header, twice in
//! files of its own (`table_copies.rs`), and follows from the segment before. After a clean stop it is all
//! that is needed.

use super::layout::{KIND_HEADER, KIND_HEADER_1, SEGMENT_COUNT, segment_path};
use super::replay::TableReplay;
use super::synced_mark::SyncPosition;
use super::table_copies::{ReadCopies, TABLE_PATHS, TableCopy, read_copies};
use crate::error::StreamError;
use crate::extent_node::state::ExtentTable;
use crate::ids::ExtentId;
use crate::record::{self, END_MARK_SIZE, End, Record, RecordBuilder, Run, SearchScope};
use base::codec::{Decoder, Encode};
use bytes::Bytes;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The journal's files as they were found; `None`: there is no such file.
#[derive(Clone, Debug)]
pub(crate) struct JournalContents {
    pub(crate) segments: [Option<Bytes>; SEGMENT_COUNT],
    pub(crate) copies: [Option<Bytes>; 2],
    /// The note of how far it was synced.
    pub(crate) synced: Option<Bytes>,
    /// The folder is of a format that has copies of the table.
    pub(crate) has_copies: bool,
}

/// Something that is wrong with the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The file.
    pub(crate) place: String,
    pub(crate) problem: String,
    /// Nothing is lost: what is there elsewhere takes its place.
    pub(crate) is_mended: bool,
}

/// The node's state at the last acknowledged record, as far as the journal has it.
///
/// 15 fields because one pure function has all of them as its outcome, and a start acts on each.
#[derive(Debug)]
pub(crate) struct JournalRecovery {
    /// Every extent's facts.
    pub(crate) table: ExtentTable,
    /// Extents that may have had appends that are lost.
    pub(crate) in_doubt: BTreeSet<ExtentId>,
    /// The node was stopped, and everything is in its extent.
    pub(crate) is_clean: bool,
    /// Entries are missing: there may be extents that the table does not know.
    pub(crate) has_gaps: bool,
    /// Journaled bytes that may be missing in their extents' files, in order.
    pub(crate) appends: Appends,
    /// Index of the first of them that the newest segment holds; those before are in the segment before it.
    pub(crate) newest_appends_from: usize,
    /// Generation of the newest segment.
    pub(crate) generation: u64,
    /// Sequence number of the newest record.
    pub(crate) sequence: u64,
    /// Bytes that each journal file should have, if that is known.
    pub(crate) segment_size_bytes: Option<u64>,
    /// Files that no recovery needs, once the newest segment is on the disk.
    pub(crate) free_files: Vec<usize>,
    /// The newest segment's file and header, if nothing follows that, which would have been written after it
    /// was synced.
    pub(crate) unconfirmed: Option<(usize, Bytes)>,
    /// The newest segment, if the journal may go on in it.
    pub(crate) open_segment: Option<OpenSegment>,
    /// That the record after the last one is there and is not whole, in words for the operator: whether it
    /// was never finished or was damaged since is unknown.
    pub(crate) torn: Option<String>,
    /// Whether it is unknown where the journal ended: large appends whose lengths were in its last record may
    /// have been acknowledged.
    pub(crate) is_end_unsure: bool,
    /// What is damaged.
    pub(crate) findings: Vec<Finding>,
}

/// A segment that is whole, as is all that is needed beside it.
#[derive(Clone, Debug)]
pub(crate) struct OpenSegment {
    pub(crate) file: usize,
    /// All its records.
    pub(crate) records: Bytes,
    /// The page behind the last one, where the next one goes.
    pub(crate) end_mark: Bytes,
    pub(crate) oldest_generation: u64,
    /// Of the header, and its table.
    pub(crate) first_sequence: u64,
    pub(crate) table: ExtentTable,
}

/// A segment's header record, read.
struct SegmentHeader {
    oldest: u64,
    /// Whether its table has digests.
    digests: bool,
    table: ExtentTable,
}

struct Segment {
    file: usize,
    generation: u64,
    head: Option<SegmentHeader>,
    run: Run,
}

impl Segment {
    fn first_sequence(&self) -> Option<u64> {
        self.run.records.first().filter(|first| first.at == 0).map(|first| first.sequence)
    }

    fn last_sequence(&self) -> u64 {
        self.run.records.last().map_or(0, |last| last.sequence)
    }

    fn is_whole(&self) -> bool {
        self.head.is_some() && self.run.is_whole()
    }

    /// Adds its groups.
    fn replay(&self, to: &mut TableReplay) -> Result<(), StreamError> {
        for (index, record) in self.run.records.iter().enumerate() {
            if self.run.gaps.contains(&index) {
                to.gap();
            }
            if index > 0 || self.head.is_none() {
                to.add(record)?;
            }
        }
        if self.run.end == End::Cut {
            to.gap();
        }
        Ok(())
    }
}

/// Reads the journal back.
pub(crate) fn recover(files: &JournalContents) -> Result<JournalRecovery, StreamError> {
    let mut findings = Vec::new();
    let copies = read_copies(&files.copies);
    note_copies(&copies, files, &mut findings);
    let copy = copies.newest.as_ref();
    let mut segments = Vec::new();
    for (file, content) in files.segments.iter().enumerate() {
        if let Some(content) = content {
            segments.extend(read_segment(file, content, copy));
        }
    }
    keep_one_of_each_generation(&mut segments);
    let newest_read = segments.last().map(|segment| segment.generation);
    if let Some(copy) = copy.filter(|copy| copy.is_clean && Some(copy.generation) >= newest_read) {
        let mut found = after_clean_stop(copy, findings);
        found.torn = copies.torn.map(torn_copy);
        found.appends = known_appends(&segments, &found.table);
        return Ok(found);
    }
    let (generation, synced) = newest_generation(files, newest_read.max(copy.map(|copy| copy.generation)))?;
    let copy = copy.filter(|copy| copy.generation == generation);
    let newest = segments.pop_if(|segment| segment.generation == generation);
    let head = newest.as_ref().and_then(|newest| newest.head.as_ref());
    let oldest = match (head, copy) {
        (Some(head), _) => head.oldest,
        (None, Some(copy)) => copy.oldest_generation,
        (None, None) => segments.last().map_or(generation, |older| older.generation),
    };
    let older = if oldest == generation { None } else { segments.pop_if(|older| older.generation == oldest) };
    if oldest != generation {
        let next = newest.as_ref().and_then(Segment::first_sequence);
        note_older(older.as_ref(), (oldest, next), &mut findings);
    }
    let (older_appends, derived) = match &older {
        Some(older) => replay_older(older, newest.as_ref())?,
        None => (Vec::new(), None),
    };
    let table = newest_table(newest.as_ref(), copy, derived, &mut findings)?;
    let older_append_count = older_appends.len();
    let mut replayed = TableReplay::new(table);
    replayed.appends = older_appends;
    let JournalEnd { has_gaps, torn, is_end_unsure } = match &newest {
        Some(newest) => replay_newest(newest, synced, copies.torn, &mut replayed, &mut findings)?,
        None => {
            let problem = format!("the newest segment, of generation {generation}, is missing");
            findings.push(Finding { place: "journal".to_owned(), problem, is_mended: false });
            replayed.gap();
            JournalEnd { has_gaps: true, torn: None, is_end_unsure: false }
        }
    };
    let TableReplay { table, mut appends, in_doubt, .. } = replayed;
    let mut of_newest = appends.split_off(older_append_count);
    appends.retain(|(extent, _, _)| table.extents.contains_key(extent));
    let newest_appends_from = appends.len();
    of_newest.retain(|(extent, _, _)| table.extents.contains_key(extent));
    appends.append(&mut of_newest);
    let needed = [newest.as_ref(), older.as_ref()];
    let is_needed = |file: &usize| needed.iter().flatten().any(|segment| segment.file == *file);
    let free_files = (0..SEGMENT_COUNT).filter(|file| !is_needed(file)).collect();
    let unconfirmed = newest.as_ref().and_then(|newest| unconfirmed(newest, files));
    let is_whole = !has_gaps && findings.iter().all(|finding| TABLE_PATHS.contains(&finding.place.as_str()));
    let open_segment = newest
        .as_ref()
        .filter(|_| is_whole && files.has_copies)
        .and_then(|newest| open_segment(newest, files));
    Ok(JournalRecovery {
        table,
        in_doubt,
        is_clean: false,
        has_gaps,
        appends,
        newest_appends_from,
        generation,
        sequence: newest.as_ref().map_or(0, Segment::last_sequence).max(copy.map_or(0, |copy| copy.sequence)),
        segment_size_bytes: copies.newest.as_ref().map(|copy| copy.segment_size_bytes),
        free_files,
        unconfirmed,
        open_segment,
        torn,
        // Programs of older formats did not cut what was refused off for certain.
        is_end_unsure: is_end_unsure && files.has_copies,
        findings,
    })
}

/// How the newest segment ends.
struct JournalEnd {
    has_gaps: bool,
    /// As in [`JournalRecovery`].
    torn: Option<String>,
    /// The record that was written last is not whole, or not certain to be the last.
    is_end_unsure: bool,
}

/// The newest generation that was written, and how far the journal was synced. `near` is the newest
/// generation that a segment or a copy of the table has.
fn newest_generation(
    files: &JournalContents,
    near: Option<u64>,
) -> Result<(u64, Option<SyncPosition>), StreamError> {
    let synced = files.synced.as_deref().and_then(SyncPosition::decode);
    // One that is far from all others is of another folder.
    let synced = synced.filter(|synced| {
        near.is_none_or(|near| SearchScope::Near(near).covers_generation(synced.generation))
    });
    let generation = near.max(synced.map(|synced| synced.generation));
    let generation =
        generation.ok_or_else(|| damaged("neither a segment nor a table of extents is readable"))?;
    Ok((generation, synced))
}

/// Journaled bytes: extent, offset, bytes.
type Appends = Vec<(ExtentId, u64, Bytes)>;

/// What the segment before the newest one has: its appends, and the table that it ends with, if that is
/// certain to be the table which the newest one begins with.
fn replay_older(
    older: &Segment,
    newest: Option<&Segment>,
) -> Result<(Appends, Option<ExtentTable>), StreamError> {
    let table = older.head.as_ref().map(|head| head.table.clone());
    let is_known = table.is_some();
    let mut replayed = TableReplay::new(table.unwrap_or_default());
    if !is_known {
        replayed.gap();
    }
    older.replay(&mut replayed)?;
    let follows = newest.and_then(Segment::first_sequence) == Some(older.last_sequence() + 1);
    let is_certain = is_known && older.is_whole() && (follows || newest.is_none());
    Ok((replayed.appends, is_certain.then_some(replayed.table)))
}

/// The table at the start of the newest segment: its header's, else the copy's, else the `derived` one of the
/// segment before.
fn newest_table(
    newest: Option<&Segment>,
    copy: Option<&TableCopy>,
    derived: Option<ExtentTable>,
    findings: &mut Vec<Finding>,
) -> Result<ExtentTable, StreamError> {
    match (newest.and_then(|newest| newest.head.as_ref()), copy) {
        (Some(head), _) => {
            let differs = derived.as_ref().is_some_and(|derived| match head.digests {
                true => *derived != head.table,
                false => derived.without_digests() != head.table,
            });
            if differs {
                let problem =
                    "the table of extents differs from what the segment before adds up to".to_owned();
                findings.push(finding(newest, problem, false));
            }
            // In the older form it has no digests, which the segment before may know.
            Ok(derived.filter(|_| !head.digests && !differs).unwrap_or_else(|| head.table.clone()))
        }
        (None, Some(copy)) => Ok(copy.table.clone()),
        (None, None) => derived.ok_or_else(|| damaged("no table of extents is readable")),
    }
}

/// Adds the newest segment to the table, and judges its end. `torn_table` is the copy of the table that is
/// not whole.
fn replay_newest(
    newest: &Segment,
    synced: Option<SyncPosition>,
    torn_table: Option<&'static str>,
    replayed: &mut TableReplay,
    findings: &mut Vec<Finding>,
) -> Result<JournalEnd, StreamError> {
    note_newest(newest, findings);
    newest.replay(replayed)?;
    let count = missing_behind(newest, synced);
    if count > 0 {
        replayed.gap();
        let problem = format!(
            "{count} records from byte {} on were synced and do not read: what was journaled there is lost",
            newest.run.size()
        );
        findings.push(finding(Some(newest), problem, false));
        return Ok(JournalEnd { has_gaps: true, torn: None, is_end_unsure: false });
    }
    let behind = torn_behind(newest);
    Ok(JournalEnd {
        has_gaps: !newest.run.is_whole(),
        is_end_unsure: behind.is_some(),
        torn: behind.or(torn_table.map(torn_copy)),
    })
}

/// Sorts the segments by generation and keeps one of each. A start that a power loss cut off may have left
/// what looks like the header's end in another file than the one that a later start began the same generation
/// in: the segment that has more records is the one that was written to, and a header that reads counts more
/// than one that the table's copy stands in for.
fn keep_one_of_each_generation(segments: &mut Vec<Segment>) {
    let is_stand_in = |segment: &Segment| segment.run.records.first().is_some_and(|first| first.is_mended);
    segments.sort_by_key(|segment| {
        (segment.generation, Reverse(segment.run.records.len()), is_stand_in(segment))
    });
    segments.dedup_by_key(|segment| segment.generation);
}

/// The segment as the journal may go on in it.
fn open_segment(newest: &Segment, files: &JournalContents) -> Option<OpenSegment> {
    let head = newest.head.as_ref().filter(|head| head.digests)?;
    let first_sequence = newest.first_sequence()?;
    let content = files.segments[newest.file].as_ref()?;
    let end = newest.run.size().min(content.len());
    Some(OpenSegment {
        file: newest.file,
        records: content.slice(..end),
        end_mark: Bytes::copy_from_slice(&newest.run.records.last()?.end_mark()?),
        oldest_generation: head.oldest,
        first_sequence,
        table: head.table.clone(),
    })
}

/// How many records behind the last one of the newest segment were synced, as far as is known.
fn missing_behind(newest: &Segment, synced: Option<SyncPosition>) -> u64 {
    let synced = synced.filter(|synced| synced.generation == newest.generation);
    synced.map_or(0, |synced| synced.sequence.saturating_sub(newest.last_sequence()))
}

/// The file and the header of a segment that has nothing else.
fn unconfirmed(newest: &Segment, files: &JournalContents) -> Option<(usize, Bytes)> {
    let [header] = newest.run.records.as_slice() else { return None };
    newest.head.as_ref().filter(|_| !header.is_mended)?;
    let content = files.segments[newest.file].as_ref()?;
    let end = (header.end + END_MARK_SIZE).min(content.len());
    // A copy: it must not keep the whole file.
    Some((newest.file, Bytes::copy_from_slice(content.get(..end)?)))
}

fn torn_copy(path: &str) -> String {
    format!(
        "the copy of the table of extents ({path}) is not whole: a power loss cut it short, or the disk has damaged it since; \
         nothing is lost, and it is written anew"
    )
}

/// What readable segments hold of extents that are there, though it is in them: a damaged block is restored
/// by it.
fn known_appends(segments: &[Segment], table: &ExtentTable) -> Appends {
    let mut appends = Vec::new();
    for segment in segments {
        let mut replayed = TableReplay::default();
        replayed.gap();
        // Nothing of it is needed: what is no segment of this journal has nothing to add.
        if segment.replay(&mut replayed).is_ok() {
            appends.append(&mut replayed.appends);
        }
    }
    appends.retain(|(extent, offset, bytes)| {
        table.extents.get(extent).is_some_and(|state| offset + bytes.len() as u64 <= state.length)
    });
    appends
}

fn after_clean_stop(copy: &TableCopy, findings: Vec<Finding>) -> JournalRecovery {
    JournalRecovery {
        table: copy.table.clone(),
        in_doubt: BTreeSet::new(),
        is_clean: true,
        has_gaps: false,
        appends: Vec::new(),
        generation: copy.generation,
        sequence: copy.sequence,
        segment_size_bytes: Some(copy.segment_size_bytes),
        newest_appends_from: 0,
        free_files: (0..SEGMENT_COUNT).collect(),
        unconfirmed: None,
        open_segment: None,
        torn: None,
        is_end_unsure: false,
        findings,
    }
}

fn note_copies(copies: &ReadCopies, files: &JournalContents, findings: &mut Vec<Finding>) {
    let damaged: Vec<&str> = match &copies.newest {
        Some(_) => copies.damaged.clone(),
        None if files.has_copies => TABLE_PATHS.to_vec(),
        None => Vec::new(),
    };
    for place in damaged {
        let problem = "the copy of the table of extents is missing or damaged".to_owned();
        findings.push(Finding { place: place.to_owned(), problem, is_mended: true });
    }
}

fn finding(segment: Option<&Segment>, problem: String, is_mended: bool) -> Finding {
    let place = segment.map_or("journal".to_owned(), |segment| segment_path(segment.file));
    Finding { place, problem, is_mended }
}

/// What is wrong with the segment before the newest one: only bytes that may be in their extents long since.
fn note_older(older: Option<&Segment>, (oldest, next): (u64, Option<u64>), findings: &mut Vec<Finding>) {
    // Its last record was synced before the next segment began.
    let is_damaged = older.is_none_or(|older| {
        let is_followed = next.is_none_or(|next| next == older.last_sequence() + 1);
        !older.is_whole() || older.run.end != End::Sure || !is_followed
    });
    if is_damaged {
        let problem = format!(
            "the segment of generation {oldest} is missing or damaged: appends that were not in their extents yet are lost, and \
             reading them fails"
        );
        findings.push(finding(older, problem, false));
    }
}

fn note_newest(newest: &Segment, findings: &mut Vec<Finding>) {
    if newest.head.is_none() && newest.run.gaps.first() != Some(&0) {
        findings.push(finding(Some(newest), "the segment's header is damaged".to_owned(), true));
    }
    for record in newest.run.records.iter().filter(|record| record.is_mended) {
        let problem = format!("a bit of record {} at byte {} was flipped", record.sequence, record.at);
        findings.push(finding(Some(newest), problem, true));
    }
    for gap in &newest.run.gaps {
        let from = gap.checked_sub(1).map_or(0, |before| newest.run.records[before].end);
        let problem = format!(
            "bytes {from} to {} are damaged: what was journaled there is lost",
            newest.run.records[*gap].at
        );
        findings.push(finding(Some(newest), problem, false));
    }
    if newest.run.end == End::Cut {
        let problem =
            format!("the file is cut off at byte {}: what was journaled last may be lost", newest.run.size());
        findings.push(finding(Some(newest), problem, false));
    }
}

/// The message about the end of the newest segment, if that is not sure.
fn torn_behind(newest: &Segment) -> Option<String> {
    let (place, at) = (segment_path(newest.file), newest.run.size());
    match newest.run.end {
        End::Sure | End::Cut => None,
        End::Begun => Some(format!(
            "the journal's last record ({place}, byte {at}) is not whole and is left out: a crash cut it short, and then nobody \
             was told that it is stored; or the disk has damaged it since, and then writes of the last moment are lost"
        )),
        End::Unsure => Some(format!(
            "the journal's end ({place}, byte {at}) is not as it was written: a power loss cut it short, and then nothing is \
             lost; or the disk has damaged it since, and then writes of the last moment may be lost"
        )),
    }
}

fn read_segment(file: usize, content: &Bytes, copy: Option<&TableCopy>) -> Option<Segment> {
    let near = copy.map_or(SearchScope::Any, |copy| SearchScope::Near(copy.generation));
    // A file of another folder's journal is no segment of this one.
    let first = record::first(content).filter(|first| near.covers_generation(first.generation));
    if first.is_none()
        && let Some(copy) = copy
    {
        // The header of the segment that the copy was made with: the copy stands in for it, if this is its
        // file.
        let run = record::read_run(content, copy.generation, Some(stand_in(copy)));
        if run.records.len() > 1 || matches!(run.end, End::Sure | End::Begun) {
            let head =
                SegmentHeader { oldest: copy.oldest_generation, digests: true, table: copy.table.clone() };
            let mut segment = Segment { file, generation: copy.generation, head: Some(head), run };
            segment.run.records[0].is_mended = true;
            return Some(segment);
        }
    }
    let generation = match first {
        Some(first) => Some(first.generation),
        None => record::find_successor(content, 0, near).map(|record| record.generation),
    };
    let generation = generation?;
    let run = record::read_run(content, generation, None);
    let head = match run.records.first().filter(|first| first.at == 0) {
        Some(first) => match read_head(first) {
            Some(head) => Some(head),
            // It is no segment: another file was put in its place.
            None => return None,
        },
        None => None,
    };
    Some(Segment { file, generation, head, run })
}

/// The header record of the segment that a copy was made with.
fn stand_in(copy: &TableCopy) -> Record {
    let mut header = RecordBuilder::new();
    put_header(&mut header, copy.oldest_generation, &copy.table);
    record::decoded(header, copy.generation, copy.sequence)
}

/// Puts the body of a segment's header.
pub(super) fn put_header(header: &mut RecordBuilder, oldest_generation: u64, table: &ExtentTable) {
    header.body().put_u8_field(KIND_HEADER);
    header.body().put_u64_field(oldest_generation);
    table.encode(header.body());
}

/// The header in a file's first record; `None`: it is no segment's.
fn read_head(first: &Record) -> Option<SegmentHeader> {
    let mut header = Decoder::new(&first.body);
    let digests = match header.u8("kind").ok()? {
        KIND_HEADER => true,
        KIND_HEADER_1 => false,
        _ => return None,
    };
    let oldest = header.u64("oldest generation").ok()?;
    let table = ExtentTable::decode(&mut header).ok()?;
    header.finish("segment header").ok()?;
    Some(SegmentHeader { oldest, digests, table })
}

fn damaged(why: &str) -> StreamError {
    StreamError::Corrupt(format!("journal: {why}"))
}

#[cfg(test)]
mod tests;
