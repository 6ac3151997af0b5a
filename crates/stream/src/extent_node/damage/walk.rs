//! Walks over the blocks of an extent, behind a damaged one from the next that reads: for check and repair,
//! not for readers.

use crate::block::{self, BLOCK_HEADER_SIZE};
use crate::error::StreamError;
use crate::ids::{ExtentId, Location};
use bytes::Bytes;

/// What the search for the next whole block looks for.
const BLOCK_MAGIC: &[u8] = b"LBK1";

/// What was found at a place of an extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WalkStep {
    /// A block that reads.
    Whole { location: Location, checksum: u64, payload: Bytes },
    /// A block that does not, but for one flipped bit.
    Flipped {
        location: Location,
        checksum: u64,
        /// Header and payload as they were.
        block: Bytes,
    },
    /// Bytes that no block reads from.
    Unread { from: u64, to: u64, error: StreamError },
}

/// All of `content`, which is an extent's from its start.
pub(crate) fn walk(content: &Bytes, extent: ExtentId) -> Vec<WalkStep> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < content.len() {
        let walked = block_at(content, extent, at).unwrap_or_else(|error| {
            flipped_at(content, extent, at).unwrap_or_else(|| {
                let to = next_block(content, extent, at + 1).unwrap_or(content.len());
                WalkStep::Unread { from: at as u64, to: to as u64, error }
            })
        });
        at = match &walked {
            WalkStep::Whole { location, .. } | WalkStep::Flipped { location, .. } => location.end() as usize,
            WalkStep::Unread { to, .. } => *to as usize,
        };
        found.push(walked);
    }
    found
}

/// The block at `at`, verified.
fn block_at(content: &Bytes, extent: ExtentId, at: usize) -> Result<WalkStep, StreamError> {
    let offset = at as u64;
    let header = content.get(at..(at + BLOCK_HEADER_SIZE).min(content.len())).unwrap_or_default();
    let len = block::payload_len(header, extent, offset)?;
    let end = (at + BLOCK_HEADER_SIZE + len as usize).min(content.len());
    let block = content.slice(at..end);
    let location = Location { extent, offset, len };
    let payload = block::verify(&block, location)?;
    let (_, checksum) = block::step(&block, extent, offset)?;
    Ok(WalkStep::Whole { location, checksum, payload })
}

fn flipped_at(content: &Bytes, extent: ExtentId, at: usize) -> Option<WalkStep> {
    let offset = at as u64;
    let header = content.get(at..at + BLOCK_HEADER_SIZE)?;
    block::possible_lengths(header, extent, offset).into_iter().find_map(|len| {
        let found = content.get(at..at + BLOCK_HEADER_SIZE + len as usize)?;
        let location = Location { extent, offset, len };
        let block = block::mended(&content.slice_ref(found), location)?;
        let (_, checksum) = block::step(&block, extent, offset).ok()?;
        Some(WalkStep::Flipped { location, checksum, block })
    })
}

fn next_block(content: &Bytes, extent: ExtentId, from: usize) -> Option<usize> {
    let starts = content[from..].windows(BLOCK_MAGIC.len()).enumerate();
    let mut starts = starts.filter(|(_, window)| *window == BLOCK_MAGIC).map(|(index, _)| from + index);
    starts.find(|start| block_at(content, extent, *start).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: ExtentId = ExtentId(3);
    const PAYLOADS: [&[u8]; 3] = [b"one", &[7; 500], b"three"];

    fn content() -> Vec<u8> {
        let mut out = Vec::new();
        for payload in PAYLOADS {
            let offset = out.len() as u64;
            block::put_block(&mut out, EXTENT, offset, payload);
        }
        out
    }

    /// Which of the payloads were found whole, and which but for one bit.
    fn kinds(content: Vec<u8>) -> String {
        let kind = |walked: &WalkStep| match walked {
            WalkStep::Whole { .. } => 'w',
            WalkStep::Flipped { .. } => 'f',
            WalkStep::Unread { .. } => '-',
        };
        walk(&content.into(), EXTENT).iter().map(kind).collect()
    }

    #[test]
    fn the_walk_goes_on_behind_a_damaged_block() {
        assert_eq!(kinds(content()), "www");
        // In the payload, and in the length field of the header, of the second block.
        for at in [35 + BLOCK_HEADER_SIZE + 100, 35 + 4] {
            let mut damaged = content();
            damaged[at] ^= 4;
            assert_eq!(kinds(damaged.clone()), "wfw");
            let walked = walk(&damaged.clone().into(), EXTENT);
            assert!(matches!(&walked[1], WalkStep::Flipped { block, .. } if block[..] == content()[35..567]));
            damaged[at + 1] ^= 4;
            assert_eq!(kinds(damaged), "w-w");
        }
        let mut cut = content();
        cut.truncate(cut.len() - 1);
        assert_eq!(kinds(cut), "ww-");
    }
}
