//! Going on in the newest segment: where a full disk has no space for journaled bytes, no segment can be
//! begun, because that would need the file that holds them sooner or later.
//!
//! What always holds: the bytes stay pending in memory, at most two segments of them, until the drain has
//! written them; the segments that hold them stay, because the next one waits for the drain as ever; and a
//! start that goes on writes nothing new to the journal, so that the next start finds what this one did. Only
//! what it took from behind a record that is not whole is written, in that record's place: whatever a crash
//! leaves of the two shows that the end is not sure, as before.

use super::layout::KIND_GROUP;
use super::recover::OpenSegment;
use super::table_copies::TableCopy;
use super::writer::JournalWriter;
use crate::error::StreamError;
use crate::extent_node::extent::Extent;
use crate::extent_node::recovery::extent_files::JournaledBytes;
use crate::extent_node::state::Entry;
use crate::ids::ExtentId;
use crate::record::{END_MARK_SIZE, RECORD_HEADER_SIZE, RecordBuilder, padded_size};
use base::codec::Encode;
use std::collections::BTreeMap;
use std::sync::Arc;

impl JournalWriter {
    /// Goes on behind the last record of a segment. A former process may have ended before its sync of what
    /// was read there, or that may have failed: it is written again, so that it is on the disk for certain
    /// before anything is acted upon. Then comes what is known besides, the `changes`.
    pub(crate) async fn go_on(
        &mut self,
        segment: &OpenSegment,
        changes: &[Entry<'_>],
    ) -> Result<(), StreamError> {
        let failed = |error: std::io::Error| StreamError::write("journal", &error);
        let file = &self.files.segments[self.newest.file];
        let end = segment.records.len() as u64;
        file.write_at(0, segment.records.clone()).await.map_err(failed)?;
        if changes.is_empty() {
            // Else the next start finds the changes from what stands there, until they are written over it.
            file.write_at(end, segment.end_mark.clone()).await.map_err(failed)?;
        }
        file.sync_data().await.map_err(failed)?;
        self.newest.offset = end;
        self.newest.oldest_generation = segment.oldest_generation;
        // As they were written behind the header, if they were.
        let copy = TableCopy {
            sequence: segment.first_sequence,
            table: segment.table.clone(),
            ..self.table_copy(false)
        };
        self.files.table_copies.write(&copy).await?;
        self.put_changes(changes).await
    }

    /// Writes these as a group. The record that they were left out of has almost always left space enough:
    /// one page holds some 80 of them, and there is one for each large append that the crash cut off. Else
    /// the disk must have space for a segment.
    async fn put_changes(&mut self, changes: &[Entry<'_>]) -> Result<(), StreamError> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut record = RecordBuilder::new();
        record.body().put_u8_field(KIND_GROUP);
        changes.iter().for_each(|change| change.encode(record.body()));
        let size = padded_size(record.body().len() - RECORD_HEADER_SIZE) + END_MARK_SIZE;
        if self.newest.offset + size as u64 > self.files.segment_size_bytes {
            return Err(StreamError::DiskFull);
        }
        self.write_group(record, false).await?;
        // It may stand where only a mark had space.
        let has_room_for_mark =
            self.newest.offset + (padded_size(0) + END_MARK_SIZE) as u64 <= self.files.segment_size_bytes;
        self.unmarked = has_room_for_mark;
        Ok(())
    }

    /// These bytes are journaled and not in their extents.
    pub(crate) fn add_pending(
        &mut self,
        extents: &BTreeMap<ExtentId, Arc<Extent>>,
        pending: BTreeMap<ExtentId, Vec<JournaledBytes>>,
    ) {
        let bytes: usize = pending.values().flatten().map(|chunk| chunk.bytes.len()).sum();
        tracing::info!(
            bytes,
            "there is no space for what is journaled: it stays in the journal and in memory"
        );
        for is_newest in [false, true] {
            self.position += 1;
            for (id, chunks) in &pending {
                let Some(extent) = extents.get(id) else { continue };
                for chunk in chunks.iter().filter(|chunk| chunk.is_newest == is_newest) {
                    extent.publish(extent.state(), Some((chunk.offset, chunk.bytes.clone())));
                    self.drain.add(extent, chunk.offset + chunk.bytes.len() as u64, self.position);
                }
            }
            if !is_newest && !self.drain.owes_nothing() {
                // The next segment waits for what the one before this one holds.
                self.owed = self.drain.request();
            }
        }
    }
}
