//! Reads the records of one use of a file, finds those behind an unreadable place, and derives from the end
//! mark whether a further record was begun.

use super::format::{
    END_MARK_FIELDS_SIZE, HEADER_SIZE_1, Header, RECORD_ALIGNMENT, Record, differing_bits, end_mark_bytes,
    first, header_at, mended_header_at, read_at, read_body,
};
use base::checksum::crc64;
use bytes::Bytes;

/// An end mark with so many flipped bits is still one: nothing else looks like it.
const END_MARK_FLIPPED_BITS_MAX: u32 = 8;
/// Generations that a folder can have seen: one for each start, and for each segment, of which so many would
/// hold more than 100 TB. One that is further from another is not of the same folder, whose first was drawn
/// by chance.
const GENERATION_COUNT_MAX: u64 = 1 << 32;

/// What stands behind a file's last record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Its end mark, or, in a format that has none, anything: no further record was begun.
    Sure,
    /// A record that was begun, and is not whole.
    Begun,
    /// Neither: a power loss kept the last record, but not all of what was written with it; or the next one
    /// was damaged.
    Unsure,
    /// Nothing, not even the zeros that the file was made with: its end is cut off.
    Cut,
}

/// The records of one use of a file.
#[derive(Debug)]
pub(crate) struct Run {
    /// All that read, in order.
    pub(crate) records: Vec<Record>,
    /// Indexes of the records before which others are missing; 0: the first one.
    pub(crate) gaps: Vec<usize>,
    pub(crate) end: End,
}

impl Run {
    /// Where the last record ends.
    pub(crate) fn size(&self) -> usize {
        self.records.last().map_or(0, |last| last.end)
    }

    /// Whether all records are there, from the file's start to the last that was begun.
    pub(crate) fn is_whole(&self) -> bool {
        self.gaps.is_empty() && self.end != End::Cut
    }
}

/// Reads the records of this generation. `stand_in` is taken for the first one if that does not read.
pub(crate) fn read_run(file: &Bytes, generation: u64, mut stand_in: Option<Record>) -> Run {
    let mut run = Run { records: Vec::new(), gaps: Vec::new(), end: End::Sure };
    loop {
        let at = run.size();
        let next = match run.records.last() {
            Some(last) => read_at(file, at, generation, last.sequence + 1),
            None => first(file).filter(|first| first.generation == generation).or_else(|| stand_in.take()),
        };
        if let Some(next) = next {
            run.records.push(next);
            continue;
        }
        let behind = run.records.last().map_or(0, |last| last.sequence + 2);
        let wanted = SearchScope::Behind { generation, sequence: behind };
        match find_successor(file, at + RECORD_ALIGNMENT, wanted) {
            Some(next) => {
                run.gaps.push(run.records.len());
                run.records.push(next);
            }
            None => break,
        }
    }
    if let Some(last) = run.records.last() {
        run.end = end_behind(file, last);
    }
    run
}

fn end_behind(file: &[u8], last: &Record) -> End {
    let is_next = |header: Header| header.is(last.generation, last.sequence + 1);
    if header_at(file, last.end).is_some_and(is_next)
        || mended_header_at(file, last.end, last.generation, last.sequence + 1).is_some()
    {
        return End::Begun;
    }
    if !last.has_end_mark {
        return End::Sure;
    }
    let mark = end_mark_bytes(last.generation, last.sequence);
    let found = file.get(last.end..last.end + END_MARK_FIELDS_SIZE);
    match found.map(|found| differing_bits(found, &mark)) {
        Some(0..=END_MARK_FLIPPED_BITS_MAX) => End::Sure,
        Some(_) => End::Unsure,
        None => End::Cut,
    }
}

/// Which records are looked for behind an unreadable place.
#[derive(Clone, Copy)]
pub(crate) enum SearchScope {
    /// Those of the same run that come later: from this sequence number on.
    Behind { generation: u64, sequence: u64 },
    /// Those of any use of the folder's files that is not far from this one.
    Near(u64),
    /// Any.
    Any,
}

impl SearchScope {
    fn covers(self, header: Header) -> bool {
        match self {
            SearchScope::Any => true,
            SearchScope::Behind { generation, sequence } => {
                header.generation == generation && header.sequence >= sequence
            }
            SearchScope::Near(_) => self.covers_generation(header.generation),
        }
    }

    /// Whether records of this generation may be wanted.
    pub(crate) fn covers_generation(self, other: u64) -> bool {
        match self {
            SearchScope::Any => true,
            SearchScope::Behind { generation, .. } => generation == other,
            SearchScope::Near(generation) => generation.abs_diff(other) <= GENERATION_COUNT_MAX,
        }
    }
}

/// A valid record at or after `from` that is in `wanted`. Stored user data may look like records, of any
/// length, but the generation can't be guessed: so none of that is hashed.
pub(crate) fn find_successor(file: &Bytes, from: usize, wanted: SearchScope) -> Option<Record> {
    let (at, header) =
        wanted_headers(file, from, wanted).find(|(at, header)| is_whole(file, *at, *header))?;
    read_body(file, at, header)
}

/// As [`read_body`], for records that are not known to be there: a flipped bit is not looked for.
fn is_whole(file: &[u8], at: usize, header: Header) -> bool {
    let start = at + header.size;
    let body = start.checked_add(header.body_len).and_then(|end| file.get(start..end));
    body.is_some_and(|body| match header.size {
        HEADER_SIZE_1 => crc64(&[&file[at..at + 24], body]) == header.checksum,
        _ => crc64(&[body]) == header.checksum,
    })
}

pub(super) fn wanted_headers(
    file: &[u8],
    from: usize,
    wanted: SearchScope,
) -> impl Iterator<Item = (usize, Header)> {
    let places = (from..file.len()).step_by(RECORD_ALIGNMENT);
    let headers = places.filter_map(move |at| header_at(file, at).map(|header| (at, header)));
    headers.filter(move |(_, header)| wanted.covers(*header))
}
