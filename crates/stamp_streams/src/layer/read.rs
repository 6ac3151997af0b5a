//! Single blocks and runs of them, read by ranges of objects; single ones from the cache, if they are there.
//!
//! What always holds: a block is returned if its checksum, which is also over its place, is right; one that
//! is not there is damage while the range is held, never an empty answer; a store that does not answer is
//! asked for some tries, and no longer than a lease time, then the read fails as unavailable.

use crate::cache::record::BlockKey;
use crate::layer::held::{Held, of_stamp};
use crate::range::range_stop::RangeStop;
use crate::settings::StampSettings;
use crate::stores::store_error::StoreError;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::iter;
use stamp::{ExtentName, PART_HEADER_SIZE};
use std::time::Duration;
use stream::{BLOCK_HEADER_SIZE, Location, StreamError, verify_block};

/// Tries without an answer that a read has: a client waits for it.
const READ_TRIES: u32 = 4;
/// How much of the time of a request one of these tries has, in fifths: blocks are small.
const READ_TRY_FIFTHS: u32 = 2;
/// Parts of a run that are read at a time.
const PARTS_AT_ONCE_MAX: usize = 8;

/// How long one try of a read may take.
fn read_try_for(settings: &StampSettings) -> Duration {
    settings.object_try_for * READ_TRY_FIFTHS / 5
}

/// How long a read is tried: a process that can't reach its store must not keep a range for longer.
fn read_for(settings: &StampSettings) -> Duration {
    (READ_TRIES * read_try_for(settings)).min(settings.ttl)
}

impl Held {
    /// The payload of the block at `location`. Only such blocks are kept in the cache: runs are read ahead in
    /// sizes that a store is good at, and most are those of compactions, whose input nobody reads again.
    pub(super) async fn read(&self, location: Location) -> Result<Bytes, StreamError> {
        let extent = self.ids.name(location.extent)?;
        let key = BlockKey { life: self.range.stamp_life(), extent, offset: location.offset };
        let cache = self.range.surroundings().cache.as_ref();
        if let Some(cache) = cache
            && let Some(block) = cache.get(&key).await
            && let Ok(payload) = verify_block(&block, location)
        {
            return Ok(payload);
        }
        let (start, _) = self.part_at(extent, location.offset).await?;
        let size = location.end().saturating_sub(location.offset);
        let block = self.read_range(extent, start, location.offset, size).await?;
        let payload = verify_block(&block, location)?;
        if let Some(cache) = cache {
            cache.offer(key, block);
        }
        Ok(payload)
    }

    /// The payloads of blocks of one extent that follow one another.
    pub(super) async fn read_run(&self, run: &[Location]) -> Result<Vec<Bytes>, StreamError> {
        let mut groups: Vec<&[Location]> = Vec::new();
        let mut rest = run;
        while let Some(first) = rest.first() {
            let extent = self.ids.name(first.extent)?;
            let (_, end) = self.part_at(extent, first.offset).await?;
            let count = rest.iter().take_while(|location| location.offset < end).count().max(1);
            let (group, behind) = rest.split_at(count);
            groups.push(group);
            rest = behind;
        }
        let mut reads = Vec::with_capacity(groups.len());
        for group in groups {
            reads.push(self.read_in_part(group));
        }
        let mut reads = iter(reads).buffered(PARTS_AT_ONCE_MAX);
        let mut payloads = Vec::with_capacity(run.len());
        while let Some(read) = reads.next().await {
            payloads.extend(read?);
        }
        Ok(payloads)
    }

    /// Blocks of one part, in order: one ranged read.
    async fn read_in_part(&self, blocks: &[Location]) -> Result<Vec<Bytes>, StreamError> {
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return Ok(Vec::new()) };
        let extent = self.ids.name(first.extent)?;
        let (start, _) = self.part_at(extent, first.offset).await?;
        let size = last.end().saturating_sub(first.offset);
        let bytes = self.read_range(extent, start, first.offset, size).await?;
        let payload = |location: &Location| {
            let from = (location.offset - first.offset) as usize;
            let to = from + BLOCK_HEADER_SIZE + location.len as usize;
            let is_within = location.offset >= first.offset && to <= bytes.len();
            let block = if is_within { bytes.slice(from..to) } else { Bytes::new() };
            verify_block(&block, *location)
        };
        blocks.iter().map(payload).collect()
    }

    /// Where the part that has the byte at `offset` begins and ends.
    async fn part_at(&self, extent: ExtentName, offset: u64) -> Result<(u64, u64), StreamError> {
        let listed = self.listing().extents.get(&extent).copied();
        let found = match listed.and_then(|listed| listed.length) {
            Some(length) => {
                let surroundings = self.range.surroundings();
                let until = surroundings.clock.monotonic() + read_for(&surroundings.settings);
                let may_go_on = || self.may_go_on() && surroundings.clock.monotonic() < until;
                let starts = self.starts.sealed(surroundings, extent, length, may_go_on);
                starts.await.map_err(of_stamp)?.part_at(offset)
            }
            // Of what is not listed any more a reader may still hold a place.
            None => self.starts.open_part_at(extent, offset),
        };
        found.ok_or_else(|| StreamError::Corrupt(format!("extent {extent} has no part at {offset}")))
    }

    /// Reads bytes of the part that begins at `start`, from `offset` of the extent on.
    async fn read_range(
        &self,
        extent: ExtentName,
        start: u64,
        offset: u64,
        size: u64,
    ) -> Result<Bytes, StreamError> {
        let surroundings = self.range.surroundings();
        let name = surroundings.part_name(extent, start);
        let from = PART_HEADER_SIZE as u64 + (offset - start);
        let settings = &surroundings.settings;
        let until = surroundings.clock.monotonic() + read_for(settings);
        let mut back_off = surroundings.back_off();
        loop {
            let read = surroundings.objects.read(&name, from, size);
            let read = surroundings.within(read_try_for(settings), read).await;
            let error = match read {
                Some(Ok(bytes)) if bytes.len() as u64 == size => return Ok(bytes),
                Some(Ok(bytes)) => {
                    Err(format!("object {name} ends {} bytes early", size - bytes.len() as u64))
                }
                Some(Err(StoreError::NotThere)) => Err(format!("object {name} is missing")),
                Some(Err(error)) => Ok(error.to_string()),
                None => Ok("no answer".to_owned()),
            };
            match error {
                // Whoever has the range now may have deleted it.
                Err(_) | Ok(_) if !self.may_go_on() => {
                    return Err(StreamError::Unavailable("the range is not held any more".to_owned()));
                }
                Err(damage) => return Err(StreamError::Corrupt(damage)),
                Ok(why) if surroundings.clock.monotonic() >= until => {
                    // Another process may reach the store. One object that is stuck is no reason.
                    if !self.range.reaches_store().await {
                        self.range.stop(RangeStop::Reload);
                    }
                    return Err(StreamError::Unavailable(format!("object {name} can't be read: {why}")));
                }
                Ok(_) => back_off.wait().await,
            }
        }
    }
}
