//! Appending blocks to an extent, through the journal or straight to the file.

use super::ExtentNode;
use super::extent::Extent;
use super::journal::Request;
use super::large_run::{LargeRun, Place};
use crate::block::{BLOCK_HEADER_SIZE, BLOCK_PAYLOAD_SIZE_MAX, put_block};
use crate::error::{StreamError, is_disk_full};
use crate::ids::{ExtentId, Location};
use crate::owner::Owner;
use crate::sealed::ExtentDigest;
use base::disk::write_buffer;
use bytes::Bytes;
use std::sync::Arc;

/// Bytes one append may have, blocks and headers together.
pub(super) const APPEND_SIZE_BYTES_MAX: u64 = 256 << 20;

impl ExtentNode {
    /// Appends all of `blocks` or none; durable when it returns.
    pub(crate) async fn append(
        &self,
        extent: ExtentId,
        owner: Owner,
        blocks: Vec<Bytes>,
    ) -> Result<Vec<Location>, StreamError> {
        self.stop.check()?;
        let extent = self.extent(extent)?;
        let size_bytes: u64 = blocks.iter().map(|block| (BLOCK_HEADER_SIZE + block.len()) as u64).sum();
        let size_bytes_max = APPEND_SIZE_BYTES_MAX;
        if size_bytes > size_bytes_max || blocks.iter().any(|block| block.len() > BLOCK_PAYLOAD_SIZE_MAX) {
            return Err(StreamError::TooLarge { size_bytes, size_bytes_max });
        }
        if size_bytes <= self.settings.journaled_append_size_bytes_max {
            let tail = loop {
                let tail = extent.tail.clone().read_owned().await;
                if !extent.is_written_beyond() {
                    break tail;
                }
                drop(tail);
                self.settle_tail(&extent).await?;
            };
            let request = |reply| Request::Append { extent: extent.clone(), owner, blocks, tail, reply };
            return self.ask(request).await;
        }
        loop {
            let place = self.place(&extent, owner, size_bytes).await?;
            if let Some(locations) = self.append_at(place, &extent, owner, &blocks, size_bytes).await? {
                return Ok(locations);
            }
            self.stop.check()?;
        }
    }

    /// A place for a large append: behind others that are under way, or at the extent's end.
    async fn place(&self, extent: &Arc<Extent>, owner: Owner, size_bytes: u64) -> Result<Place, StreamError> {
        let is_taken = || extent.state().check_append(extent.id, owner);
        is_taken()?;
        let too_large = || StreamError::TooLarge { size_bytes, size_bytes_max: APPEND_SIZE_BYTES_MAX };
        // One begins the next run; those that wait behind it have part in that.
        let mut run = extent.large_run.lock().await;
        if let Some(place) = run.upgrade().and_then(|run| run.place(size_bytes)) {
            return Ok(place);
        }
        let tail = extent.tail.clone().write_owned().await;
        if extent.is_written_beyond() {
            self.cut(extent).await?;
        }
        is_taken()?;
        // Nothing but the run extends the extent from here on.
        let begun = LargeRun::begin(tail, extent.state().length);
        *run = Arc::downgrade(&begun);
        begun.place(size_bytes).ok_or_else(too_large)
    }

    /// Writes and syncs `blocks` at their place, and has the length journaled when the place's turn has come.
    /// `None`: an append before it failed, so that they need another place.
    async fn append_at(
        &self,
        mut place: Place,
        extent: &Arc<Extent>,
        owner: Owner,
        blocks: &[Bytes],
        size_bytes: u64,
    ) -> Result<Option<Vec<Location>>, StreamError> {
        let offset = place.offset;
        let (mut encoded, start) = write_buffer(offset, size_bytes as usize);
        let mut locations = Vec::with_capacity(blocks.len());
        let mut checksums = Vec::with_capacity(blocks.len());
        for block in blocks {
            let offset = offset + (encoded.len() - start) as u64;
            locations.push(Location { extent: extent.id, offset, len: block.len() as u32 });
            checksums.push(put_block(&mut encoded, extent.id, offset, block));
        }
        let what = format!("extent {}", extent.id);
        let given_up = self.space.given_up();
        extent.note_written_to(offset.saturating_add(size_bytes));
        if let Err(error) = extent.file.write_at(offset, Bytes::from(encoded).slice(start..)).await {
            if !is_disk_full(&error) {
                return Err(self.stopped(StreamError::write(&what, &error)));
            }
            // Beyond the length nothing exists, so a write that failed for want of space has changed nothing.
            drop(place);
            self.settle_tail(extent).await?;
            // The reserve may not be meant for this append: the requester tries again, or reports the
            // failure.
            self.space.give_up(given_up).await;
            return Err(StreamError::DiskFull);
        }
        self.stop.sync(extent).await?;
        if !place.turn().await {
            return Ok(None);
        }
        let digest = extent.state().digest;
        let digest = digest.map(|digest| checksums.into_iter().fold(digest, ExtentDigest::then));
        let (size, run) = (size_bytes, place.run());
        let length =
            |reply| Request::Length { extent: extent.clone(), owner, offset, size, digest, run, reply };
        let asked = self.ask(length).await;
        if let Err(StreamError::DiskFull | StreamError::Sealed(_) | StreamError::OldEpoch { .. }) = asked {
            // Refused, so the journal for certain has nothing of these bytes.
            drop(place);
            self.settle_tail(extent).await?;
            return asked.map(|()| None);
        }
        asked?;
        place.end_durable();
        Ok(Some(locations))
    }

    /// Cuts off what an unfinished large append has left beyond the length.
    async fn settle_tail(&self, extent: &Extent) -> Result<(), StreamError> {
        let _tail = extent.tail.clone().write_owned().await;
        if extent.is_written_beyond() { self.cut(extent).await } else { Ok(()) }
    }

    /// Cuts off what lies beyond the extent's length, for certain: it is never read, it would occupy the
    /// disk's last free bytes, and a start that does not know where the journal ended takes whole blocks that
    /// lie there for appends that were not refused. To be called while no large append is under way; the
    /// drain writes below the length only.
    ///
    /// If that fails, writing stops: the append may not be refused as one that left nothing. Once writing has
    /// stopped nothing is cut: the length may be longer than it shows, because the journal's last record may
    /// be on the disk although its sync failed.
    async fn cut(&self, extent: &Extent) -> Result<(), StreamError> {
        self.stop.check()?;
        let length = extent.state().length;
        let cut = async {
            if extent.file.size().await? > length {
                extent.file.set_len(length).await?;
            }
            Ok(())
        };
        let failed = |error| self.stopped(StreamError::write(&format!("extent {}", extent.id), &error));
        cut.await.map_err(failed)?;
        // Also if it was short enough: another may have cut it and gone before its sync.
        self.stop.sync(extent).await?;
        extent.note_cut();
        Ok(())
    }

    fn stopped(&self, error: StreamError) -> StreamError {
        self.stop.writes(error.clone());
        error
    }
}
