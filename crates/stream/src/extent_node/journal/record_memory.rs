//! Memory of the journal's large records, which is used again once the last reference to them is dropped.
//! Records wait in memory until they are drained, tens of mebibytes of them: memory that is allocated and
//! freed all the time costs the journal's thread more than copying a record.
//!
//! Records lie side by side in chunks, each at a page's start, from where the disk takes them without a copy.
//! What always holds: the bytes of a record stay what they are while a reference to them exists; unused
//! memory is freed when the journal is idle, but for one chunk; chunks in use are as many as their records
//! fill, and a few.

use crate::record::{END_MARK_SIZE, RECORD_ALIGNMENT, RecordBuilder, padded_size};
use base::disk::WRITE_ALIGNMENT;
use bytes::BytesMut;
use std::collections::VecDeque;

/// Bytes of a chunk; a larger record has memory of its own.
const CHUNK_SIZE_BYTES: usize = 4 << 20;
/// Smaller records have memory of their own: the disk copies them anyway, and there are few bytes of them.
const RECORD_SIZE_BYTES_MIN: usize = 64 << 10;
/// Chunks that are taken again, at most: what waits to be drained while much is written (48 MiB with the
/// default segments), and what is filled and written meanwhile. If more are in use, the oldest are freed by
/// the last holder.
const CHUNK_COUNT_MAX: usize = 16;

const _: () = assert!(RECORD_ALIGNMENT.is_multiple_of(WRITE_ALIGNMENT));

/// The chunks.
#[derive(Default)]
pub(crate) struct RecordMemory {
    /// What is free of the newest one.
    free: BytesMut,
    /// The first bytes of each, up to its first record; oldest first. Through them a chunk is taken again.
    chunks: VecDeque<BytesMut>,
}

impl RecordMemory {
    /// A record with space for a body of this many bytes.
    pub(crate) fn record(&mut self, body_len: usize) -> RecordBuilder {
        let size = padded_size(body_len);
        if !(RECORD_SIZE_BYTES_MIN..=CHUNK_SIZE_BYTES).contains(&size) {
            return RecordBuilder::with_capacity(body_len);
        }
        let size = size + END_MARK_SIZE;
        if self.free.capacity() < size {
            self.begin_chunk();
        }
        let rest = self.free.split_off(size);
        RecordBuilder::in_buffer(std::mem::replace(&mut self.free, rest))
    }

    /// Takes the oldest chunk that is not in use any more, or a new one.
    fn begin_chunk(&mut self) {
        const SIZE_BYTES: usize = CHUNK_SIZE_BYTES + END_MARK_SIZE + RECORD_ALIGNMENT;
        self.free = BytesMut::new();
        let unused = self.chunks.iter_mut().position(|chunk| chunk.try_reclaim(SIZE_BYTES));
        let chunk = unused.and_then(|at| self.chunks.remove(at));
        let mut chunk = chunk.unwrap_or_else(|| BytesMut::with_capacity(SIZE_BYTES));
        // At least a byte, by which it is held.
        let first = match chunk.as_ptr().align_offset(RECORD_ALIGNMENT) {
            0 => RECORD_ALIGNMENT,
            first => first,
        };
        self.free = chunk.split_off(first);
        if self.chunks.len() == CHUNK_COUNT_MAX {
            self.chunks.pop_front();
        }
        self.chunks.push_back(chunk);
    }

    /// Frees what is not in use, and the rest once it is not; but the newest chunk stays. Records that come
    /// one by one would begin a chunk each, and hold it until they are drained.
    pub(crate) fn release_unused(&mut self) {
        let newest = self.chunks.pop_back();
        self.chunks.clear();
        self.chunks.extend(newest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{EncodedRecord, RECORD_HEADER_SIZE};
    use bytes::Bytes;

    /// A record with a body of `len` times `byte`, in as much space as that.
    fn record(memory: &mut RecordMemory, len: usize, byte: u8) -> Bytes {
        let mut builder = memory.record(len);
        builder.body().resize(RECORD_HEADER_SIZE + len, byte);
        let EncodedRecord { bytes, len } = builder.finish(1, 1);
        bytes.slice(..len)
    }

    fn has(record: &Bytes, byte: u8) -> bool {
        record.ends_with(&[byte]) && record[RECORD_HEADER_SIZE..].iter().all(|one| *one == byte)
    }

    /// A body that fills its record.
    const fn full(pages: usize) -> usize {
        pages * RECORD_ALIGNMENT - RECORD_HEADER_SIZE
    }

    #[test]
    fn records_start_at_pages_side_by_side() {
        let mut memory = RecordMemory::default();
        let records: Vec<Bytes> =
            (16..60).map(|pages| record(&mut memory, full(pages), pages as u8)).collect();
        for (record, pages) in records.iter().zip(16..) {
            assert_eq!(
                (record.as_ptr() as usize % RECORD_ALIGNMENT, record.len()),
                (0, pages * RECORD_ALIGNMENT)
            );
            assert!(has(record, pages as u8));
        }
        let is_next =
            |pair: &[Bytes]| pair[0].as_ptr_range().end as usize + END_MARK_SIZE == pair[1].as_ptr() as usize;
        assert!(records.windows(2).filter(|pair| is_next(pair)).count() >= records.len() - 4);
    }

    #[test]
    fn memory_is_used_again_when_nobody_has_its_records_and_not_before() {
        let mut memory = RecordMemory::default();
        let mut held = VecDeque::new();
        let mut places = std::collections::BTreeSet::new();
        // Forty chunks, of which three are in use at a time.
        for number in 0..40 * (CHUNK_SIZE_BYTES / (64 * RECORD_ALIGNMENT)) {
            let record = record(&mut memory, full(64), number as u8);
            places.insert(record.as_ptr() as usize);
            held.push_back((record, number as u8));
            if held.len() > 32 {
                let (record, number) = held.pop_front().expect("there are some");
                assert!(has(&record, number), "record {number} was written over");
            }
        }
        assert!(places.len() <= 6 * 16, "{} places", places.len());
        assert!(held.iter().all(|(record, number)| has(record, *number)));
        assert!(memory.chunks.len() <= 6);
    }

    #[test]
    fn no_more_than_its_share_is_kept_and_one_chunk_when_idle() {
        let mut memory = RecordMemory::default();
        let held: Vec<Bytes> =
            (0..3 * CHUNK_COUNT_MAX).map(|number| record(&mut memory, full(1024), number as u8)).collect();
        assert_eq!(memory.chunks.len(), CHUNK_COUNT_MAX);
        memory.release_unused();
        assert_eq!(memory.chunks.len(), 1);
        assert!(held.iter().enumerate().all(|(number, record)| has(record, number as u8)));
    }

    /// An idle compaction journals an index and a filter some times a second. Each of them once began a chunk
    /// of its own, because the journal was idle before it: 400 MiB were held for 40 MiB.
    #[test]
    fn records_between_which_it_is_idle_share_chunks() {
        let mut memory = RecordMemory::default();
        let in_chunk = CHUNK_SIZE_BYTES / (32 * RECORD_ALIGNMENT + END_MARK_SIZE);
        let mut held: Vec<Bytes> = Vec::new();
        let mut starts = std::collections::BTreeSet::new();
        for number in 0..4 * in_chunk {
            held.push(record(&mut memory, full(32), number as u8));
            starts.extend(memory.chunks.iter().map(|chunk| chunk.as_ptr() as usize));
            memory.release_unused();
            assert_eq!(memory.chunks.len(), 1);
        }
        assert!(starts.len() <= 5, "{} chunks", starts.len());
        assert!(held.iter().enumerate().all(|(number, record)| has(record, number as u8)));
    }

    #[test]
    fn others_have_memory_of_their_own_and_one_that_outgrows_its_room_is_whole() {
        let mut memory = RecordMemory::default();
        for len in [0, 1, full(15), full(1025), full(2000)] {
            assert!(record(&mut memory, len, 7)[RECORD_HEADER_SIZE..][..len].iter().all(|byte| *byte == 7));
            assert!(memory.chunks.is_empty());
        }
        let mut builder = memory.record(full(16));
        let next = record(&mut memory, full(16), 8);
        let len = 3 * full(16);
        builder.body().resize(RECORD_HEADER_SIZE + len, 7);
        assert!(builder.finish(1, 1).bytes[RECORD_HEADER_SIZE..][..len].iter().all(|byte| *byte == 7));
        assert!(has(&next, 8));
    }
}
