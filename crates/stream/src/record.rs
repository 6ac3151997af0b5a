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
//! written. Why two checksums: damage of a body leaves the header, which shows that there was a record; and a
//! flipped bit of either is found and undone (see [`flipped_bit`](base::checksum::flipped_bit)).

mod format;
mod run;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use format::{
    END_MARK_SIZE, EncodedRecord, RECORD_ALIGNMENT, RECORD_HEADER_SIZE, Record, RecordBuilder,
    begun_generation, decoded, first, is_begun, padded_size, read_at,
};
pub(crate) use run::{End, Run, SearchScope, find_successor, read_run};
