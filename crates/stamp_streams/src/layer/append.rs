//! Blocks become the body of a part.

use crate::layer::held::{Held, of_append};
use bytes::Bytes;
use stamp::{ExtentName, PART_BODY_SIZE_MAX};
use stream::{BLOCK_HEADER_SIZE, Location, Owner, StreamError, StreamName, put_block};

/// The body of a part of these blocks, at this place.
fn body(blocks: &[Bytes], extent: ExtentName, offset: u64, size: u64) -> Bytes {
    let mut body = Vec::with_capacity(size as usize);
    for block in blocks {
        let at = offset + body.len() as u64;
        put_block(&mut body, extent.short(), at, block);
    }
    body.into()
}

/// Where these blocks lie.
fn locations(blocks: &[Bytes], extent: ExtentName, offset: u64) -> Vec<Location> {
    let mut next = offset;
    let place = |block: &Bytes| {
        let location = Location { extent: extent.short(), offset: next, len: block.len() as u32 };
        next = location.end();
        location
    };
    blocks.iter().map(place).collect()
}

impl Held {
    /// Appends all of `blocks` as one part; durable when it returns.
    pub(super) async fn append(
        &self,
        stream: &StreamName,
        owner: Owner,
        blocks: Vec<Bytes>,
    ) -> Result<Vec<Location>, StreamError> {
        self.check_owner(stream, owner)?;
        let log = self.log(stream)?;
        let size: u64 = blocks.iter().map(|block| (BLOCK_HEADER_SIZE + block.len()) as u64).sum();
        if size == 0 {
            return Ok(Vec::new());
        }
        if size > PART_BODY_SIZE_MAX {
            return Err(StreamError::TooLarge { size_bytes: size, size_bytes_max: PART_BODY_SIZE_MAX });
        }
        let make = |extent, offset| {
            // Under the log's lock, so that whoever sees the part sees where it begins.
            self.starts.appended(extent, offset);
            body(&blocks, extent, offset, size)
        };
        let appended = log.append_made(size, make).await.map_err(of_append)?;
        let header = *appended.header();
        let extent = header.place.extent;
        let is_known = self.ids.note(extent);
        appended.durable().await.map_err(of_append)?;
        if !is_known {
            // It is durable, but no place names it.
            return Err(StreamError::WritesStopped(format!("extent {extent} has the short name of another")));
        }
        Ok(locations(&blocks, extent, header.offset))
    }
}
