//! The table of extents besides the journal: twice, in files of their own, so that whatever becomes of the
//! journal's files, it stays known which extents there were.
//!
//! ```text
//! journal/table          one record (see record.rs) and zeros;
//!                        generation and sequence number of a segment's header
//! journal/table.second   the same
//! body = u8 kind, u64 oldest generation needed, u64 bytes of a journal file, table
//!   3 the table at the start of that segment, which is or was in use
//!   4 the table after a clean stop: no byte of the journal is needed
//! ```
//!
//! What always holds: the files are written one after the other, the second once the first is synced, and
//! both after the header of the segment: so one of them is whole at any moment, and neither is ahead of the
//! journal.

use crate::error::{StreamError, is_disk_full, not_made};
use crate::extent_node::state::ExtentTable;
use crate::record::{self, EncodedRecord, Record, RecordBuilder};
use base::codec::{Decoder, Encode};
use base::{Disk, DiskFile, OpenMode};
use bytes::Bytes;
use std::sync::Arc;

/// Their paths, in the order in which they are written.
pub(crate) const TABLE_PATHS: [&str; 2] = ["journal/table", "journal/table.second"];
const KIND_IN_USE: u8 = 3;
const KIND_CLEAN: u8 = 4;
/// The files grow by so many bytes, or by a journal file's size if that is less.
const GROWTH_BYTES: u64 = 256 << 10;

/// What a copy says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableCopy {
    pub(crate) generation: u64,
    /// Of the segment's header.
    pub(crate) sequence: u64,
    /// The node was stopped, and everything is in its extent.
    pub(crate) is_clean: bool,
    pub(crate) oldest_generation: u64,
    /// Bytes that each journal file has.
    pub(crate) segment_size_bytes: u64,
    pub(crate) table: ExtentTable,
}

impl TableCopy {
    pub(crate) fn encode(&self) -> EncodedRecord {
        let mut record = RecordBuilder::new();
        record.body().put_u8_field(if self.is_clean { KIND_CLEAN } else { KIND_IN_USE });
        record.body().put_u64_field(self.oldest_generation);
        record.body().put_u64_field(self.segment_size_bytes);
        self.table.encode(record.body());
        record.finish(self.generation, self.sequence)
    }

    fn decode(record: &Record) -> Option<Self> {
        let mut body = Decoder::new(&record.body);
        let is_clean = match body.u8("kind").ok()? {
            KIND_IN_USE => false,
            KIND_CLEAN => true,
            _ => return None,
        };
        let oldest_generation = body.u64("oldest generation").ok()?;
        let segment_size_bytes = body.u64("segment size").ok()?;
        let table = ExtentTable::decode(&mut body).ok()?;
        body.finish("table").ok()?;
        let Record { generation, sequence, .. } = *record;
        Some(TableCopy { generation, sequence, is_clean, oldest_generation, segment_size_bytes, table })
    }
}

/// What the two files hold.
#[derive(Debug, Default)]
pub(crate) struct ReadCopies {
    /// The newest that reads.
    pub(crate) newest: Option<TableCopy>,
    /// Which of them is damaged.
    pub(crate) damaged: Vec<&'static str>,
    /// The one that is not whole, as a power loss leaves it that comes while it is written.
    pub(crate) torn: Option<&'static str>,
}

/// Reads what the two files hold; `None`: there is no such file.
pub(crate) fn read_copies(contents: &[Option<Bytes>; 2]) -> ReadCopies {
    let read = contents.each_ref().map(|content| {
        let record = content.as_ref().and_then(record::first)?;
        TableCopy::decode(&record).map(|copy| (copy, record.is_mended))
    });
    let order = |copy: &TableCopy| (copy.generation, copy.is_clean);
    let newest = read.iter().flatten().map(|(copy, _)| copy).max_by_key(|copy| order(copy)).cloned();
    let Some(newest) = newest else { return ReadCopies::default() };
    let mut copies = ReadCopies { newest: Some(newest), ..ReadCopies::default() };
    for (index, path) in TABLE_PATHS.into_iter().enumerate() {
        match (&read[index], &contents[index]) {
            (Some((_, false)), _) => {}
            // A sector is written whole or not at all: the header is the new one or the old one.
            (None, Some(content)) if record::is_begun(content) && copies.torn.is_none() => {
                copies.torn = Some(path);
            }
            _ => copies.damaged.push(path),
        }
    }
    copies
}

/// The open files.
pub(crate) struct TableCopies {
    files: [Arc<dyn DiskFile>; 2],
    /// So many bytes each has at least.
    sizes_bytes: [u64; 2],
    growth_bytes: u64,
}

impl TableCopies {
    /// Opens the files, and makes those that are missing.
    pub(crate) async fn open(disk: &dyn Disk, segment_size_bytes: u64) -> Result<Self, StreamError> {
        let mut files = Vec::with_capacity(2);
        let mut sizes_bytes = [0; 2];
        let mut is_new = false;
        for (path, size_bytes) in TABLE_PATHS.into_iter().zip(&mut sizes_bytes) {
            let failed = |error: std::io::Error| StreamError::read(path, &error);
            let file = if disk.exists(path).await.map_err(failed)? {
                disk.open(path, OpenMode::Write).await.map_err(failed)?
            } else {
                is_new = true;
                disk.open(path, OpenMode::CreateNew).await.map_err(|error| not_made(path, &error))?
            };
            *size_bytes = file.size().await.map_err(failed)?;
            files.push(file);
        }
        if is_new {
            let failed = |error: std::io::Error| StreamError::write("folder journal", &error);
            disk.sync_folder("journal").await.map_err(failed)?;
        }
        let files = files.try_into().map_err(|_| StreamError::Folder("journal layout".to_owned()))?;
        Ok(TableCopies { files, sizes_bytes, growth_bytes: GROWTH_BYTES.min(segment_size_bytes) })
    }

    /// Whether the copy fits in one of the files.
    pub(crate) fn has_room_in_one(&self, copy: &TableCopy) -> bool {
        let size_bytes = copy.encode().bytes.len() as u64;
        self.sizes_bytes.iter().any(|has_bytes| size_bytes <= *has_bytes)
    }

    /// Makes sure that a copy of this size fits, also when the disk is full later. A full disk now is no more
    /// than a refusal: nothing depends on the new bytes yet.
    pub(crate) async fn make_room(&mut self, size_bytes: u64) -> Result<(), StreamError> {
        if self.sizes_bytes.iter().all(|has_bytes| size_bytes <= *has_bytes) {
            return Ok(());
        }
        // Twice what is needed now: the table grows by an extent at a time.
        let grown = (2 * size_bytes).next_multiple_of(self.growth_bytes);
        for ((file, path), has_bytes) in self.files.iter().zip(TABLE_PATHS).zip(&mut self.sizes_bytes) {
            let size = file.size().await.map_err(|error| StreamError::read(path, &error))?;
            if size >= grown {
                *has_bytes = size;
                continue;
            }
            let written = async {
                file.write_at(size, vec![0; (grown - size) as usize].into()).await?;
                file.sync_data().await
            };
            if let Err(error) = written.await {
                if !is_disk_full(&error) {
                    return Err(StreamError::write(path, &error));
                }
                // If zeros stay, the next growth goes on behind them.
                let _ = file.set_len(size).await;
                return Err(StreamError::DiskFull);
            }
            *has_bytes = grown;
        }
        Ok(())
    }

    /// Writes both, one after the other. The copy must fit; a file in which it does not, because that was
    /// damaged and the disk is full, is left out.
    pub(crate) async fn write(&self, copy: &TableCopy) -> Result<(), StreamError> {
        let bytes = copy.encode().bytes;
        for ((file, path), has_bytes) in self.files.iter().zip(TABLE_PATHS).zip(self.sizes_bytes) {
            if has_bytes < bytes.len() as u64 {
                continue;
            }
            let failed = |error: std::io::Error| StreamError::write(path, &error);
            file.write_at(0, bytes.clone()).await.map_err(failed)?;
            file.sync_data().await.map_err(failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(generation: u64, is_clean: bool) -> TableCopy {
        let table = ExtentTable::default();
        TableCopy { generation, sequence: 7, is_clean, oldest_generation: 3, segment_size_bytes: 9, table }
    }

    #[test]
    fn the_newest_that_reads_counts() {
        let content = |copy: &TableCopy| Some(copy.encode().bytes);
        let (old, new, clean) = (copy(4, false), copy(5, false), copy(5, true));
        let zeroed = || Some(Bytes::from(vec![0; 8192]));
        let torn = || {
            let mut content = copy(5, false).encode().bytes.to_vec();
            content[50..54].fill(7);
            Some(Bytes::from(content))
        };
        for (contents, newest, damaged) in [
            ([content(&new), content(&new)], &new, 0),
            ([content(&new), content(&old)], &new, 0),
            ([content(&clean), content(&new)], &clean, 0),
            ([zeroed(), content(&old)], &old, 1),
            ([content(&new), zeroed()], &new, 1),
            ([None, content(&new)], &new, 1),
            ([torn(), content(&old)], &old, 0),
            ([content(&new), torn()], &new, 0),
        ] {
            let read = read_copies(&contents);
            assert_eq!((read.newest.as_ref(), read.damaged.len()), (Some(newest), damaged));
        }
        assert_eq!(read_copies(&[content(&new), torn()]).torn, Some(TABLE_PATHS[1]));
        assert_eq!(read_copies(&[None, zeroed()]).newest, None);
    }
}
