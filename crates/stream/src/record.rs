//! Records of a log file: the unit of a group commit in the journal and of a command in the stream manager's
//! log.
//!
//! ```text
//! offset  size  field                          (each record starts at a multiple of 4096 in its file)
//!      0     4  magic "LRC2"
//!      4     4  body length n, little-endian
//!      8     8  generation of the file's use (a recycled file gets a higher one)
//!     16     8  sequence number: one higher than the record before it
//!     24     8  CRC-64/NVME of the body
//!     32     8  CRC-64/NVME of bytes 0..32
//!     40     n  body
//!   40+n        zeros up to the next multiple of 4096
//! end mark, in the same write behind the record, where the next one goes:
//!      0     4  magic "LRE2"
//!      4     4  zeros
//!      8     8  generation of the record before it
//!     16     8  its sequence number
//!     24     8  CRC-64/NVME of bytes 0..24
//!     32        zeros up to the next multiple of 4096
//! ```
//!
//! Records of formats before 6 have magic "LRC1", 32 bytes of header whose last 8 are the CRC of bytes 0..24
//! and the body, and no end mark. They are read, not written.
//!
//! Why the alignment: a record never shares a disk page with an earlier one, so a torn write cannot touch
//! what was acknowledged. Why the sequence numbers: a record is written only after its predecessor was
//! synced. So an unreadable record with a valid successor is damage, never a torn write. Why the end mark:
//! behind a last record that was synced stands either it, or a record that was begun, because a disk writes a
//! sector of 512 bytes whole or not at all. So a damaged last record is never taken for bytes that were never
//! written. Why two checksums: whoever damages a body leaves the header, which says that there was a record;
//! and a flipped bit of either is found and undone (see [`flipped_bit`]).

use base::checksum::{crc64, flipped_bit};
use base::codec::Decoder;
use bytes::{Bytes, BytesMut};

/// Records start at multiples of this many bytes.
pub(crate) const RECORD_ALIGNMENT: usize = 4096;
/// Bytes of a record before its body.
pub(crate) const RECORD_HEADER_SIZE: usize = 40;
/// Bytes that are written behind a record, where the next one goes.
pub(crate) const END_MARK_SIZE: usize = RECORD_ALIGNMENT;

const HEADER_SIZE_1: usize = 32;
const END_MARK_FIELDS_SIZE: usize = 32;
/// An end mark with so many flipped bits is still one: nothing else looks like it.
const END_MARK_FLIPPED_BITS_MAX: u32 = 8;
/// Generations that a folder can have seen: one for each start, and for each segment, of which so many would
/// hold more than 100 TB. One that is further from another is not of the same folder, whose first was drawn
/// by chance.
const GENERATION_COUNT_MAX: u64 = 1 << 32;

const MAGIC_1: u32 = u32::from_le_bytes(*b"LRC1");
const MAGIC: u32 = u32::from_le_bytes(*b"LRC2");
const MAGIC_END: u32 = u32::from_le_bytes(*b"LRE2");

/// A record read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) generation: u64,
    pub(crate) sequence: u64,
    pub(crate) body: Bytes,
    /// Where it starts in its file, and where the next one does.
    pub(crate) at: usize,
    pub(crate) end: usize,
    /// It is of a format that has end marks.
    has_end_mark: bool,
    /// A flipped bit was undone.
    pub(crate) is_mended: bool,
}

/// A record as it is written.
#[derive(Clone, Debug)]
pub(crate) struct Encoded {
    /// The record and its end mark.
    pub(crate) bytes: Bytes,
    /// Where the end mark begins, which the next record takes the place of.
    pub(crate) len: usize,
}

impl Record {
    /// The page that stands behind it if it is the last one; `None`: its format has none.
    pub(crate) fn end_mark(&self) -> Option<[u8; END_MARK_SIZE]> {
        let mut page = [0; END_MARK_SIZE];
        page[..END_MARK_FIELDS_SIZE].copy_from_slice(&end_mark_bytes(self.generation, self.sequence));
        self.has_end_mark.then_some(page)
    }
}

/// Collects a body behind room for the header, so that finishing copies nothing.
pub(crate) struct RecordBuilder {
    buffer: BytesMut,
}

impl RecordBuilder {
    pub(crate) fn new() -> Self {
        Self::with_capacity(0)
    }

    /// With room for a body of this many bytes, so that a large group is not moved while it grows.
    pub(crate) fn with_capacity(body_len: usize) -> Self {
        Self::in_buffer(BytesMut::with_capacity(padded_size(body_len) + END_MARK_SIZE))
    }

    /// In this memory, which is empty. A record that outgrows it gets other memory.
    pub(crate) fn in_buffer(mut buffer: BytesMut) -> Self {
        buffer.resize(RECORD_HEADER_SIZE, 0);
        RecordBuilder { buffer }
    }

    /// The buffer; append body fields to it. Offsets in it are offsets in the finished record.
    pub(crate) fn body(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Fills in the header, pads, and adds the end mark.
    pub(crate) fn finish(mut self, generation: u64, sequence: u64) -> Encoded {
        let body_len = self.buffer.len() - RECORD_HEADER_SIZE;
        let body_checksum = crc64(&[&self.buffer[RECORD_HEADER_SIZE..]]);
        let header = header_bytes(body_len as u32, generation, sequence, body_checksum);
        self.buffer[..RECORD_HEADER_SIZE].copy_from_slice(&header);
        let len = padded_size(body_len);
        self.buffer.resize(len, 0);
        self.buffer.extend_from_slice(&end_mark_bytes(generation, sequence));
        self.buffer.resize(len + END_MARK_SIZE, 0);
        Encoded { bytes: self.buffer.freeze(), len }
    }
}

fn header_bytes(
    body_len: u32,
    generation: u64,
    sequence: u64,
    body_checksum: u64,
) -> [u8; RECORD_HEADER_SIZE] {
    let mut header = [0; RECORD_HEADER_SIZE];
    header[0..4].copy_from_slice(&MAGIC.to_le_bytes());
    header[4..8].copy_from_slice(&body_len.to_le_bytes());
    header[8..16].copy_from_slice(&generation.to_le_bytes());
    header[16..24].copy_from_slice(&sequence.to_le_bytes());
    header[24..32].copy_from_slice(&body_checksum.to_le_bytes());
    let checksum = crc64(&[&header[..32]]);
    header[32..40].copy_from_slice(&checksum.to_le_bytes());
    header
}

fn end_mark_bytes(generation: u64, sequence: u64) -> [u8; END_MARK_FIELDS_SIZE] {
    let mut mark = [0; END_MARK_FIELDS_SIZE];
    mark[0..4].copy_from_slice(&MAGIC_END.to_le_bytes());
    mark[8..16].copy_from_slice(&generation.to_le_bytes());
    mark[16..24].copy_from_slice(&sequence.to_le_bytes());
    let checksum = crc64(&[&mark[..24]]);
    mark[24..32].copy_from_slice(&checksum.to_le_bytes());
    mark
}

/// Bytes in the file of a record with `body_len` bytes of body, without its end mark.
pub(crate) fn padded_size(body_len: usize) -> usize {
    (RECORD_HEADER_SIZE + body_len).next_multiple_of(RECORD_ALIGNMENT)
}

/// What a header says, before the body is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    /// Bytes before the body.
    size: usize,
    body_len: usize,
    generation: u64,
    sequence: u64,
    checksum: u64,
    is_mended: bool,
}

impl Header {
    fn is(&self, generation: u64, sequence: u64) -> bool {
        self.generation == generation && self.sequence == sequence
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut header = Decoder::new(bytes);
        let size = match header.u32("magic").ok()? {
            MAGIC => RECORD_HEADER_SIZE,
            MAGIC_1 => HEADER_SIZE_1,
            _ => return None,
        };
        let body_len = header.u32("length").ok()? as usize;
        let generation = header.u64("generation").ok()?;
        let sequence = header.u64("sequence").ok()?;
        let checksum = header.u64("body checksum").ok()?;
        let has_own_checksum = size == RECORD_HEADER_SIZE;
        if has_own_checksum && header.u64("header checksum").ok()? != crc64(&[bytes.get(..32)?]) {
            return None;
        }
        Some(Header { size, body_len, generation, sequence, checksum, is_mended: false })
    }
}

/// The header at `at`, if it reads.
fn header_at(file: &[u8], at: usize) -> Option<Header> {
    let end = at.saturating_add(RECORD_HEADER_SIZE).min(file.len());
    Header::parse(file.get(at..end)?)
}

/// The header at `at` with one bit flipped back, if that makes it the one that is expected there.
fn mended_header_at(file: &[u8], at: usize, generation: u64, sequence: u64) -> Option<Header> {
    let damaged = file.get(at..at + RECORD_HEADER_SIZE)?;
    let expected = header_bytes(0, generation, sequence, 0);
    let differing = |range: std::ops::Range<usize>| differing_bits(&damaged[range.clone()], &expected[range]);
    if differing(0..4) + differing(8..24) > 1 {
        return None;
    }
    (0..RECORD_HEADER_SIZE * 8).find_map(|bit| {
        let mut mended = [0; RECORD_HEADER_SIZE];
        mended.copy_from_slice(damaged);
        mended[bit / 8] ^= 1 << (bit % 8);
        let header = Header::parse(&mended).filter(|header| header.is(generation, sequence))?;
        Some(Header { is_mended: true, ..header })
    })
}

fn differing_bits(one: &[u8], other: &[u8]) -> u32 {
    one.iter().zip(other).map(|(one, other)| (one ^ other).count_ones()).sum()
}

/// The record of the header at `at`, if it is valid or would be but for one bit. Hashes the whole body: first
/// look whether it is wanted.
fn read_body(file: &Bytes, at: usize, header: Header) -> Option<Record> {
    let Header { size, body_len, generation, sequence, checksum, is_mended } = header;
    let start = at + size;
    let end = start.checked_add(body_len)?;
    let body = file.get(start..end)?;
    let has_end_mark = size == RECORD_HEADER_SIZE;
    let end_of_record = at + (size + body_len).next_multiple_of(RECORD_ALIGNMENT);
    let record = |body, is_mended| Record {
        generation,
        sequence,
        body,
        at,
        end: end_of_record,
        has_end_mark,
        is_mended,
    };
    if !has_end_mark {
        let is_whole = crc64(&[&file[at..at + 24], body]) == checksum;
        return is_whole.then(|| record(file.slice(start..end), false));
    }
    if crc64(&[body]) == checksum {
        return Some(record(file.slice(start..end), is_mended));
    }
    let bit = flipped_bit(body, checksum)?;
    let mut mended = BytesMut::from(body);
    mended[bit / 8] ^= 1 << (bit % 8);
    Some(record(mended.freeze(), true))
}

/// The record at `at`, if it reads and is this one.
pub(crate) fn read_at(file: &Bytes, at: usize, generation: u64, sequence: u64) -> Option<Record> {
    let header = match header_at(file, at) {
        Some(header) => Some(header).filter(|header| header.is(generation, sequence)),
        None => mended_header_at(file, at, generation, sequence),
    };
    read_body(file, at, header?)
}

/// The record at the file's start, if it reads.
pub(crate) fn first(file: &Bytes) -> Option<Record> {
    read_body(file, 0, header_at(file, 0)?)
}

/// Whether a record begins at the file's start, whole or not.
pub(crate) fn is_begun(file: &[u8]) -> bool {
    header_at(file, 0).is_some()
}

/// The generation of the record that begins at the file's start, whole or not.
pub(crate) fn begun_generation(file: &[u8]) -> Option<u64> {
    header_at(file, 0).map(|header| header.generation)
}

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

/// What a record would be read back as at its file's start.
pub(crate) fn decoded(record: RecordBuilder, generation: u64, sequence: u64) -> Record {
    let body = record.buffer.freeze().slice(RECORD_HEADER_SIZE..);
    let end = padded_size(body.len());
    Record { generation, sequence, body, at: 0, end, has_end_mark: true, is_mended: false }
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
        let wanted = Wanted::Behind { generation, sequence: behind };
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
pub(crate) enum Wanted {
    /// Those of the same run that come later: from this sequence number on.
    Behind { generation: u64, sequence: u64 },
    /// Those of any use of the folder's files that is not far from this one.
    Near(u64),
    /// Any.
    Any,
}

impl Wanted {
    fn covers(self, header: Header) -> bool {
        match self {
            Wanted::Any => true,
            Wanted::Behind { generation, sequence } => {
                header.generation == generation && header.sequence >= sequence
            }
            Wanted::Near(_) => self.covers_generation(header.generation),
        }
    }

    /// Whether records of this generation may be wanted.
    pub(crate) fn covers_generation(self, other: u64) -> bool {
        match self {
            Wanted::Any => true,
            Wanted::Behind { generation, .. } => generation == other,
            Wanted::Near(generation) => generation.abs_diff(other) <= GENERATION_COUNT_MAX,
        }
    }
}

/// A valid record at or after `from` that is wanted. What users store may look like records, of any length:
/// but they can't know the generation, so that none of it is hashed.
pub(crate) fn find_successor(file: &Bytes, from: usize, wanted: Wanted) -> Option<Record> {
    let (at, header) =
        wanted_headers(file, from, wanted).find(|(at, header)| is_whole(file, *at, *header))?;
    read_body(file, at, header)
}

/// As [`read_body`], for records of which nobody knows that they are there: a flipped bit is not looked for.
fn is_whole(file: &[u8], at: usize, header: Header) -> bool {
    let start = at + header.size;
    let body = start.checked_add(header.body_len).and_then(|end| file.get(start..end));
    body.is_some_and(|body| match header.size {
        HEADER_SIZE_1 => crc64(&[&file[at..at + 24], body]) == header.checksum,
        _ => crc64(&[body]) == header.checksum,
    })
}

fn wanted_headers(file: &[u8], from: usize, wanted: Wanted) -> impl Iterator<Item = (usize, Header)> {
    let places = (from..file.len()).step_by(RECORD_ALIGNMENT);
    let headers = places.filter_map(move |at| header_at(file, at).map(|header| (at, header)));
    headers.filter(move |(_, header)| wanted.covers(*header))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A record as formats before 6 wrote it.
    pub(crate) fn record_of_format_1(body: &[u8], generation: u64, sequence: u64) -> Vec<u8> {
        let mut record = Vec::new();
        record.extend_from_slice(&MAGIC_1.to_le_bytes());
        record.extend_from_slice(&(body.len() as u32).to_le_bytes());
        record.extend_from_slice(&generation.to_le_bytes());
        record.extend_from_slice(&sequence.to_le_bytes());
        let checksum = crc64(&[&record, body]);
        record.extend_from_slice(&checksum.to_le_bytes());
        record.extend_from_slice(body);
        record.resize(record.len().next_multiple_of(RECORD_ALIGNMENT), 0);
        record
    }

    fn encoded(generation: u64, sequence: u64, body: &[u8]) -> Encoded {
        let mut builder = RecordBuilder::new();
        builder.body().extend_from_slice(body);
        builder.finish(generation, sequence)
    }

    /// A file as it is after these were written one after the other; zeros behind them.
    pub(crate) fn file(generation: u64, bodies: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for (index, body) in bodies.iter().enumerate() {
            let Encoded { bytes, len } = encoded(generation, 10 + index as u64, body);
            out.truncate(out.len().saturating_sub(END_MARK_SIZE));
            assert_eq!(bytes.len(), len + END_MARK_SIZE);
            out.extend_from_slice(&bytes);
        }
        out.resize(out.len() + 4 * RECORD_ALIGNMENT, 0);
        out
    }

    fn bodies(run: &Run) -> Vec<Bytes> {
        run.records.iter().map(|record| record.body.clone()).collect()
    }

    const BODIES: [&[u8]; 3] = [b"one", &[7; 5000], b"three"];

    #[test]
    fn records_come_back() {
        let run = read_run(&file(3, &BODIES).into(), 3, None);
        assert_eq!(bodies(&run), BODIES);
        assert_eq!((run.is_whole(), run.end), (true, End::Sure));
        assert_eq!(read_run(&file(3, &BODIES).into(), 4, None).records, []);
    }

    /// Whatever single bit is flipped: every record comes back.
    #[test]
    fn a_flipped_bit_is_undone() {
        let whole = file(3, &BODIES);
        let end = read_run(&whole.clone().into(), 3, None).size();
        for byte in (0..200).chain(4096..4200).chain(9000..9100).chain(end - 4096..end + 40) {
            let mut flipped = whole.clone();
            flipped[byte] ^= 1 << (byte % 8);
            let run = read_run(&flipped.into(), 3, None);
            // The header of the first record could be of any generation.
            if byte >= RECORD_HEADER_SIZE {
                assert_eq!(bodies(&run), BODIES, "byte {byte}");
                assert_eq!((run.is_whole(), run.end), (true, End::Sure), "byte {byte}");
            } else {
                assert_eq!(
                    (bodies(&run), run.gaps.clone()),
                    (BODIES[1..].iter().map(|body| Bytes::from_static(body)).collect(), vec![0])
                );
            }
        }
    }

    /// A record of which any sector is lost is never taken for one that was not written.
    #[test]
    fn a_zeroed_sector_is_seen_wherever_it_lies() {
        let whole = file(3, &BODIES);
        let end = read_run(&whole.clone().into(), 3, None).size();
        for sector in (0..end + 512).step_by(512) {
            let mut zeroed = whole.clone();
            zeroed[sector..sector + 512].fill(0);
            if zeroed == whole {
                continue;
            }
            let run = read_run(&zeroed.into(), 3, None);
            let is_seen = !run.is_whole() || run.end != End::Sure;
            assert!(is_seen, "sector {sector}: {run:?}");
        }
        for pages in [1, 2, 4] {
            let mut zeroed = whole.clone();
            zeroed[end - 4096..end - 4096 + pages * 4096].fill(0);
            assert_eq!(read_run(&zeroed.into(), 3, None).end, End::Unsure);
        }
        let cut = whole[..end - 4096].to_vec();
        assert_eq!(read_run(&cut.into(), 3, None).end, End::Cut, "the end is cut off");
    }

    #[test]
    fn a_torn_record_is_told_from_damage() {
        let before = file(3, &BODIES[..1]);
        let after = file(3, &BODIES);
        let at = read_run(&before.clone().into(), 3, None).size();
        // Sectors of the second record were written up to this one; of the first one it has none.
        for written in (512..8192).step_by(512) {
            let mut torn = before.clone();
            torn.resize(after.len(), 0);
            torn[at..at + written].copy_from_slice(&after[at..at + written]);
            let run = read_run(&torn.clone().into(), 3, None);
            if written < 5120 {
                assert_eq!((run.records.len(), run.end), (1, End::Begun), "{written}");
            }
            torn[at..at + 512].copy_from_slice(&before[at..at + 512]);
            let run = read_run(&torn.into(), 3, None);
            assert_eq!((run.records.len(), run.end), (1, End::Sure), "all but its first sector, {written}");
        }
    }

    #[test]
    fn what_follows_a_damaged_record_is_read() {
        let mut bytes = file(3, &BODIES);
        bytes[4096 + 512..4096 + 1024].fill(0);
        let run = read_run(&bytes.into(), 3, None);
        assert_eq!(
            (bodies(&run), run.gaps.clone(), run.end),
            (vec![Bytes::from("one"), Bytes::from("three")], vec![1], End::Sure)
        );
    }

    #[test]
    fn records_of_older_formats_are_read() {
        let mut bytes = record_of_format_1(b"one", 3, 1);
        bytes.extend(record_of_format_1(b"two", 3, 2));
        bytes.resize(bytes.len() + RECORD_ALIGNMENT, 0);
        let run = read_run(&bytes.clone().into(), 3, None);
        assert_eq!((bodies(&run), run.end), (vec![Bytes::from("one"), Bytes::from("two")], End::Sure));
        bytes[4096 + 33] ^= 1;
        let run = read_run(&bytes.into(), 3, None);
        assert_eq!((run.records.len(), run.end), (1, End::Begun));
    }

    /// An append whose pages look like records made each start hash the rest of the file for each of them.
    #[test]
    fn what_only_looks_like_records_is_not_hashed() {
        const PAGE_COUNT: usize = 4000;
        let generation = 1 << 40;
        let mut bytes = file(generation, &[b"one", b"two"]);
        let from = read_run(&bytes.clone().into(), generation, None).size();
        bytes.resize(from + PAGE_COUNT * RECORD_ALIGNMENT, 0);
        for page in 1..PAGE_COUNT {
            let at = from + page * RECORD_ALIGNMENT;
            let body_len = (PAGE_COUNT - page) * RECORD_ALIGNMENT - RECORD_HEADER_SIZE;
            let guessed = [0, 1, page as u64, u64::MAX - page as u64, 1 << 62][page % 5];
            let header = header_bytes(body_len as u32, guessed, u64::MAX, 0);
            bytes[at..at + RECORD_HEADER_SIZE].copy_from_slice(&header);
        }
        let wanted = [Wanted::Behind { generation, sequence: 11 }, Wanted::Near(generation)];
        for wanted in wanted {
            let hashed: usize = wanted_headers(&bytes, from, wanted).map(|(_, header)| header.body_len).sum();
            assert_eq!(hashed, 0);
        }
        assert_eq!(read_run(&bytes.clone().into(), generation, None).records.len(), 2);
        // Among them the true ones are still found.
        let at = from + 3000 * RECORD_ALIGNMENT;
        for (lost, wanted) in [(generation, wanted[0]), (generation + 2, wanted[1])] {
            let Encoded { bytes: record, len } = encoded(lost, 15, b"lost");
            bytes[at..at + len].copy_from_slice(&record[..len]);
            let found = find_successor(&bytes.clone().into(), from, wanted).map(|record| record.generation);
            assert_eq!(found, Some(lost));
        }
    }

    #[test]
    fn older_content_of_a_recycled_file_is_not_a_successor() {
        let mut bytes = file(3, &[b"one", b"two", b"three"]);
        let newer = encoded(4, 10, b"new").bytes;
        bytes[..newer.len()].copy_from_slice(&newer);
        let run = read_run(&bytes.into(), 4, None);
        assert_eq!((run.records.len(), run.is_whole()), (1, true));
    }
}
