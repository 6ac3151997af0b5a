//! Records of a log file: the unit of a group commit in the journal and of a command in the stream manager's log.
//!
//! ```text
//! offset  size  field                          (each record starts at a multiple of 4096 in its file)
//!      0     4  magic "LRC1"
//!      4     4  body length n, little-endian
//!      8     8  generation of the file's use (a recycled file gets a higher one)
//!     16     8  sequence number: one higher than the record before it
//!     24     8  CRC-64/NVME of bytes 0..24 and the body
//!     32     n  body
//!   32+n        zeros up to the next multiple of 4096
//! ```
//!
//! Why the alignment: a record never shares a disk page with an earlier one, so a torn write cannot touch what was
//! acknowledged. Why the sequence numbers: a record is written only after its predecessor was synced. So an invalid
//! record with a valid successor is damage, never a torn tail, and opening fails instead of forgetting it.

use crate::error::StreamError;
use base::checksum::crc64;
use base::codec::Decoder;
use bytes::{Bytes, BytesMut};

/// Records start at multiples of this many bytes.
pub(crate) const RECORD_ALIGNMENT: usize = 4096;
/// Bytes of a record before its body.
pub(crate) const RECORD_HEADER_SIZE: usize = 32;

/// Generations that a folder can have seen: one for each start, and for each segment, of which so many would hold more than
/// 100 TB. One that is further from another is not of the same folder, whose first was drawn by chance.
const GENERATION_COUNT_MAX: u64 = 1 << 32;

const MAGIC: u32 = u32::from_le_bytes(*b"LRC1");

/// A record read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) generation: u64,
    pub(crate) sequence: u64,
    pub(crate) body: Bytes,
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
        Self::in_buffer(BytesMut::with_capacity(padded_size(body_len)))
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

    /// Fills in the header and pads.
    pub(crate) fn finish(mut self, generation: u64, sequence: u64) -> Bytes {
        let body_len = self.buffer.len() - RECORD_HEADER_SIZE;
        self.buffer[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        self.buffer[4..8].copy_from_slice(&(body_len as u32).to_le_bytes());
        self.buffer[8..16].copy_from_slice(&generation.to_le_bytes());
        self.buffer[16..24].copy_from_slice(&sequence.to_le_bytes());
        let checksum = crc64(&[&self.buffer[..24], &self.buffer[RECORD_HEADER_SIZE..]]);
        self.buffer[24..32].copy_from_slice(&checksum.to_le_bytes());
        self.buffer.resize(padded_size(body_len), 0);
        self.buffer.freeze()
    }
}

/// Bytes in the file of a record with `body_len` bytes of body.
pub(crate) fn padded_size(body_len: usize) -> usize {
    (RECORD_HEADER_SIZE + body_len).next_multiple_of(RECORD_ALIGNMENT)
}

/// What a header says, before its checksum is looked at.
#[derive(Clone, Copy)]
struct Header {
    body_len: usize,
    generation: u64,
    sequence: u64,
    checksum: u64,
}

fn header_at(file: &[u8], at: usize) -> Option<Header> {
    let mut header = Decoder::new(file.get(at..at + RECORD_HEADER_SIZE)?);
    (header.u32("magic").ok()? == MAGIC).then_some(())?;
    let body_len = header.u32("length").ok()? as usize;
    let generation = header.u64("generation").ok()?;
    let sequence = header.u64("sequence").ok()?;
    let checksum = header.u64("checksum").ok()?;
    Some(Header { body_len, generation, sequence, checksum })
}

/// The record of the header at `at`, if it is valid. Hashes the whole body: first look whether it is wanted.
fn read_body(file: &Bytes, at: usize, header: Header) -> Option<Record> {
    let Header { body_len, generation, sequence, checksum } = header;
    let start = at + RECORD_HEADER_SIZE;
    let end = start.checked_add(body_len)?;
    let body = file.get(start..end)?;
    (crc64(&[&file[at..at + 24], body]) == checksum).then(|| Record {
        generation,
        sequence,
        body: file.slice(start..end),
    })
}

/// The records of one use of a file: from its start to the last valid one. An invalid record that has a valid
/// successor of the same generation is damage. `what` names the file in the error.
pub(crate) fn scan(file: &Bytes, what: &str) -> Result<Vec<Record>, StreamError> {
    let records = scan_prefix(file);
    check_tail(file, &records, what)?;
    Ok(records)
}

/// The valid records from the start of the file, without a look at what follows.
pub(crate) fn scan_prefix(file: &Bytes) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let mut at = 0;
    while let Some(header) = header_at(file, at) {
        let continues = records
            .last()
            .is_none_or(|last| header.generation == last.generation && header.sequence == last.sequence + 1);
        let Some(record) = continues.then(|| read_body(file, at, header)).flatten() else { break };
        at += padded_size(record.body.len());
        records.push(record);
    }
    records
}

/// An error if a record that came after `records` is found behind them.
pub(crate) fn check_tail(file: &Bytes, records: &[Record], what: &str) -> Result<(), StreamError> {
    let at = size_of(records);
    let wanted = match records.last() {
        Some(last) => Wanted::Behind { generation: last.generation, sequence: last.sequence },
        None => Wanted::Any,
    };
    match find_successor(file, at, wanted) {
        None => Ok(()),
        Some(lost) => Err(StreamError::Corrupt(format!(
            "{what}: the record at byte {at} is unreadable, but record {} of the same run follows it",
            lost.sequence
        ))),
    }
}

/// Where a record begins that follows `records`, as its header says, and is not whole.
pub(crate) fn torn_behind(file: &[u8], records: &[Record]) -> Option<usize> {
    let last = records.last()?;
    let at = size_of(records);
    let header = header_at(file, at)?;
    (header.generation == last.generation && header.sequence == last.sequence + 1).then_some(at)
}

/// Bytes that `records` take in their file.
pub(crate) fn size_of(records: &[Record]) -> usize {
    records.iter().map(|record| padded_size(record.body.len())).sum()
}

/// Which records are looked for behind an unreadable place.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    /// Any.
    Any,
    /// Those of the same run that come later.
    Behind { generation: u64, sequence: u64 },
    /// Those of a later use of the folder's files.
    NewerThan(u64),
}

impl Wanted {
    fn covers(self, header: Header) -> bool {
        match self {
            Wanted::Any => true,
            Wanted::Behind { generation, sequence } => {
                header.generation == generation && header.sequence > sequence
            }
            Wanted::NewerThan(generation) => {
                let newer = header.generation.checked_sub(generation);
                newer.is_some_and(|by| (1..=GENERATION_COUNT_MAX).contains(&by))
            }
        }
    }
}

/// A valid record at or after `from` that is wanted. What users store may look like records, of any length: but they can't
/// know the generation, so that none of it is hashed.
pub(crate) fn find_successor(file: &Bytes, from: usize, wanted: Wanted) -> Option<Record> {
    wanted_headers(file, from, wanted).find_map(|(at, header)| read_body(file, at, header))
}

fn wanted_headers(file: &[u8], from: usize, wanted: Wanted) -> impl Iterator<Item = (usize, Header)> {
    let places = (from..file.len()).step_by(RECORD_ALIGNMENT);
    let headers = places.filter_map(move |at| header_at(file, at).map(|header| (at, header)));
    headers.filter(move |(_, header)| wanted.covers(*header))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(generation: u64, bodies: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for (index, body) in bodies.iter().enumerate() {
            let mut builder = RecordBuilder::new();
            builder.body().extend_from_slice(body);
            out.extend_from_slice(&builder.finish(generation, 10 + index as u64));
        }
        out
    }

    #[test]
    fn records_come_back_and_a_torn_tail_is_cut() {
        let mut bytes = file(3, &[b"one", &[7; 5000], b"three"]);
        let whole = scan(&bytes.clone().into(), "f").unwrap();
        assert_eq!(whole.len(), 3);
        assert_eq!(whole[1].body, vec![7u8; 5000]);
        let last = bytes.len() - RECORD_ALIGNMENT;
        assert_eq!(torn_behind(&bytes, &whole), None);
        bytes[last + 33] ^= 1;
        assert_eq!(scan(&bytes.clone().into(), "f").unwrap(), whole[..2]);
        assert_eq!(torn_behind(&bytes, &whole[..2]), Some(last));
        // What is left of a former use of the file.
        bytes[last + 8] ^= 1;
        assert_eq!(torn_behind(&bytes, &whole[..2]), None);
    }

    #[test]
    fn a_damaged_record_with_a_successor_is_an_error() {
        let mut bytes = file(3, &[b"one", b"two", b"three"]);
        bytes[RECORD_ALIGNMENT + 33] ^= 1;
        assert!(matches!(scan(&bytes.into(), "f"), Err(StreamError::Corrupt(_))));
    }

    /// An append whose pages look like records made each start hash the rest of the file for each of them.
    #[test]
    fn what_only_looks_like_records_is_not_hashed() {
        const PAGE_COUNT: usize = 4000;
        let generation = 1 << 40;
        let mut bytes = file(generation, &[b"one", b"two"]);
        let from = bytes.len();
        bytes.resize(from + PAGE_COUNT * RECORD_ALIGNMENT, 0);
        for page in 0..PAGE_COUNT {
            let at = from + page * RECORD_ALIGNMENT;
            let body_len = (PAGE_COUNT - page) * RECORD_ALIGNMENT - RECORD_HEADER_SIZE;
            let guessed = [0, 1, page as u64, u64::MAX - page as u64, 1 << 62][page % 5];
            bytes[at..at + 4].copy_from_slice(&MAGIC.to_le_bytes());
            bytes[at + 4..at + 8].copy_from_slice(&(body_len as u32).to_le_bytes());
            bytes[at + 8..at + 16].copy_from_slice(&guessed.to_le_bytes());
            bytes[at + 16..at + 24].copy_from_slice(&u64::MAX.to_le_bytes());
        }
        let wanted = [Wanted::Behind { generation, sequence: 11 }, Wanted::NewerThan(generation)];
        for wanted in wanted {
            let hashed: usize = wanted_headers(&bytes, from, wanted).map(|(_, header)| header.body_len).sum();
            assert_eq!(hashed, 0);
        }
        assert_eq!(scan(&bytes.clone().into(), "f").unwrap().len(), 2);
        // Among them the true ones are still found.
        let at = from + 3000 * RECORD_ALIGNMENT;
        for (lost, wanted) in [(generation, wanted[0]), (generation + 2, wanted[1])] {
            let mut builder = RecordBuilder::new();
            builder.body().extend_from_slice(b"lost");
            bytes[at..at + RECORD_ALIGNMENT].copy_from_slice(&builder.finish(lost, 15));
            let found = find_successor(&bytes.clone().into(), from, wanted).map(|record| record.generation);
            assert_eq!(found, Some(lost));
        }
    }

    #[test]
    fn older_content_of_a_recycled_file_is_not_a_successor() {
        let mut bytes = file(3, &[b"one", b"two", b"three"]);
        let newer = file(4, &[b"new"]);
        bytes[..newer.len()].copy_from_slice(&newer);
        let records = scan(&bytes.into(), "f").unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].generation, 4);
    }
}
