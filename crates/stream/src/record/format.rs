//! Encodes and decodes one record; `record.rs` draws its bytes.

use base::checksum::{crc64, flipped_bit};
use base::codec::Decoder;
use bytes::{Bytes, BytesMut};

/// Records start at multiples of this many bytes.
pub(crate) const RECORD_ALIGNMENT: usize = 4096;
/// Bytes of a record before its body.
pub(crate) const RECORD_HEADER_SIZE: usize = 40;
/// Bytes that are written behind a record, where the next one goes.
pub(crate) const END_MARK_SIZE: usize = RECORD_ALIGNMENT;

pub(super) const HEADER_SIZE_1: usize = 32;
pub(super) const END_MARK_FIELDS_SIZE: usize = 32;

pub(super) const MAGIC_1: u32 = u32::from_le_bytes(*b"LRC1");
pub(super) const MAGIC: u32 = u32::from_le_bytes(*b"LRC2");
pub(super) const MAGIC_END: u32 = u32::from_le_bytes(*b"LRE2");

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
    pub(super) has_end_mark: bool,
    /// A flipped bit was undone.
    pub(crate) is_mended: bool,
}

/// A record as it is written.
#[derive(Clone, Debug)]
pub(crate) struct EncodedRecord {
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

/// Collects a body behind space for the header, so that finishing copies nothing.
pub(crate) struct RecordBuilder {
    buffer: BytesMut,
}

impl RecordBuilder {
    pub(crate) fn new() -> Self {
        Self::with_capacity(0)
    }

    /// With space for a body of this many bytes, so that a large group is not moved while it grows.
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
    pub(crate) fn finish(mut self, generation: u64, sequence: u64) -> EncodedRecord {
        let body_len = self.buffer.len() - RECORD_HEADER_SIZE;
        let body_checksum = crc64(&[&self.buffer[RECORD_HEADER_SIZE..]]);
        let header = header_bytes(body_len as u32, generation, sequence, body_checksum);
        self.buffer[..RECORD_HEADER_SIZE].copy_from_slice(&header);
        let len = padded_size(body_len);
        self.buffer.resize(len, 0);
        self.buffer.extend_from_slice(&end_mark_bytes(generation, sequence));
        self.buffer.resize(len + END_MARK_SIZE, 0);
        EncodedRecord { bytes: self.buffer.freeze(), len }
    }
}

pub(super) fn header_bytes(
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

pub(super) fn end_mark_bytes(generation: u64, sequence: u64) -> [u8; END_MARK_FIELDS_SIZE] {
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
pub(super) struct Header {
    /// Bytes before the body.
    pub(super) size: usize,
    pub(super) body_len: usize,
    pub(super) generation: u64,
    pub(super) sequence: u64,
    pub(super) checksum: u64,
    pub(super) is_mended: bool,
}

impl Header {
    pub(super) fn is(&self, generation: u64, sequence: u64) -> bool {
        self.generation == generation && self.sequence == sequence
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
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
pub(super) fn header_at(file: &[u8], at: usize) -> Option<Header> {
    let end = at.saturating_add(RECORD_HEADER_SIZE).min(file.len());
    Header::parse(file.get(at..end)?)
}

/// The header at `at` with one bit flipped back, if that makes it the one that is expected there.
pub(super) fn mended_header_at(file: &[u8], at: usize, generation: u64, sequence: u64) -> Option<Header> {
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

pub(super) fn differing_bits(one: &[u8], other: &[u8]) -> u32 {
    one.iter().zip(other).map(|(one, other)| (one ^ other).count_ones()).sum()
}

/// The record of the header at `at`, if it is valid or would be but for one bit. Hashes the whole body: first
/// look whether it is wanted.
pub(super) fn read_body(file: &Bytes, at: usize, header: Header) -> Option<Record> {
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

/// What a record would be read back as at its file's start.
pub(crate) fn decoded(record: RecordBuilder, generation: u64, sequence: u64) -> Record {
    let body = record.buffer.freeze().slice(RECORD_HEADER_SIZE..);
    let end = padded_size(body.len());
    Record { generation, sequence, body, at: 0, end, has_end_mark: true, is_mended: false }
}
