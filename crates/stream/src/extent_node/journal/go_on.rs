//! Going on in the newest segment: where a full disk has no room for journaled bytes, no segment can be begun, because that
//! would need the file that holds them sooner or later.
//!
//! What always holds: the bytes stay pending in memory, at most two segments of them, until the drain has written them; the
//! segments that hold them stay, because the next one waits for the drain as ever; and a start that goes on writes nothing new
//! to the journal, so that the next start finds what this one did.

use super::super::extent::Extent;
use super::super::extent_files::Journaled;
use super::recover::OpenSegment;
use super::table_copies::TableCopy;
use super::writer::JournalWriter;
use crate::error::StreamError;
use crate::ids::ExtentId;
use std::collections::BTreeMap;
use std::sync::Arc;

impl JournalWriter {
    /// Goes on behind the last record of a segment. A former process may have ended before its sync of what was read there, or
    /// that may have failed: it is written again, so that it is on the disk for certain before anything is acted upon.
    pub(crate) async fn go_on(&mut self, segment: &OpenSegment) -> Result<(), StreamError> {
        let failed = |error: std::io::Error| StreamError::write("journal", &error);
        let file = &self.files[self.file];
        let end = segment.records.len() as u64;
        file.write_at(0, segment.records.clone()).await.map_err(failed)?;
        file.write_at(end, segment.end_mark.clone()).await.map_err(failed)?;
        file.sync_data().await.map_err(failed)?;
        self.offset = end;
        self.oldest_generation = segment.oldest_generation;
        // As they were written behind the header, if they were.
        let copy = TableCopy {
            sequence: segment.first_sequence,
            table: segment.table.clone(),
            ..self.table_copy(false)
        };
        self.copies.write(&copy).await
    }

    /// These bytes are journaled and not in their extents.
    pub(crate) fn add_pending(
        &mut self,
        extents: &BTreeMap<ExtentId, Arc<Extent>>,
        pending: BTreeMap<ExtentId, Vec<Journaled>>,
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
