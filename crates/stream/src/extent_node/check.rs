//! The offline check of a node: what its journal says, and whether every block of every extent reads.
//!
//! Nothing is changed: what only the journal holds is laid over the files' bytes in memory. What always holds: a torn
//! tail of the journal is not damage, because nothing in it was acknowledged.

use super::extent_path;
use super::journal::{Finding, Recovered, recover};
use super::open::read_journal;
use super::settle::{ListedExtent, settle};
use super::state::{ExtentState, ExtentTable};
use crate::block::{self, BLOCK_HEADER_SIZE};
use crate::check::DamagedPart;
use crate::error::StreamError;
use crate::ids::{ExtentId, Location};
use crate::sealed::{ExtentDigest, exchanged};
use base::{Disk, Environment, OpenMode};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Bytes of a file that are read at a time.
const READ_SIZE_BYTES: u64 = 8 << 20;
/// What the search for the next whole block looks for.
const BLOCK_MAGIC: &[u8] = b"LBK1";

/// What the journal says.
pub(crate) struct NodeFacts {
    pub(crate) table: ExtentTable,
    /// Journaled bytes that may be missing in their files.
    appends: BTreeMap<ExtentId, Vec<(u64, Bytes)>>,
    /// That its last record is not whole.
    pub(crate) torn: Option<String>,
    /// What is wrong with it.
    pub(crate) findings: Vec<Finding>,
}

/// What is wrong in one extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExtentDamage {
    pub(crate) part: DamagedPart,
    pub(crate) problem: String,
}

/// What one extent turned out to be.
#[derive(Debug, Default)]
pub(crate) struct CheckedExtent {
    pub(crate) damages: Vec<ExtentDamage>,
    pub(crate) block_count: u64,
}

/// Reads the journal. `listed` are the extents that streams have, if that is known.
pub(crate) async fn read_node(
    env: &Environment,
    listed: &[ListedExtent],
    has_copies: bool,
) -> Result<NodeFacts, StreamError> {
    let mut recovered = recover(&read_journal(&*env.disk, has_copies).await?)?;
    settle(&mut recovered, listed);
    let mut appends: BTreeMap<ExtentId, Vec<(u64, Bytes)>> = BTreeMap::new();
    for (extent, offset, bytes) in recovered.appends {
        appends.entry(extent).or_default().push((offset, bytes));
    }
    let Recovered { table, torn, findings, .. } = recovered;
    Ok(NodeFacts { table, appends, torn, findings })
}

impl NodeFacts {
    /// Reads every block of an extent; `read` is told of bytes that were read.
    pub(crate) async fn check_extent(
        &self,
        disk: &dyn Disk,
        extent: ExtentId,
        state: ExtentState,
        read: &mut (dyn FnMut(u64) + Send),
    ) -> CheckedExtent {
        match self.content(disk, extent, state, read).await {
            Ok(content) if state.in_doubt => {
                let mut checked = walk(&content, extent, None);
                let problem = "the journal was damaged: blocks that were appended behind its end may be lost";
                let problem = problem.to_owned();
                checked.damages.push(ExtentDamage { part: DamagedPart::End { extent }, problem });
                checked
            }
            Ok(content) => walk(&content, extent, state.digest),
            Err(problem) => CheckedExtent {
                damages: vec![ExtentDamage { part: DamagedPart::File, problem }],
                block_count: 0,
            },
        }
    }

    /// The extent's bytes: those of its file, and over them those that are only journaled.
    async fn content(
        &self,
        disk: &dyn Disk,
        extent: ExtentId,
        state: ExtentState,
        read: &mut (dyn FnMut(u64) + Send),
    ) -> Result<Bytes, String> {
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("the file is missing; it should hold {} bytes", state.length)
            }
            _ => format!("the file can't be read: {error}"),
        };
        let file = disk.open(&extent_path(extent), OpenMode::Read).await.map_err(failed)?;
        let size = file.size().await.map_err(failed)?.min(state.length);
        let mut content = Vec::with_capacity(state.length as usize);
        while (content.len() as u64) < size {
            let at = content.len() as u64;
            let piece = file.read_at(at, READ_SIZE_BYTES.min(size - at) as usize).await.map_err(failed)?;
            read(piece.len() as u64);
            content.extend_from_slice(&piece);
        }
        for (offset, bytes) in self.appends.get(&extent).into_iter().flatten() {
            let end = offset + bytes.len() as u64;
            if end <= state.length {
                if (content.len() as u64) < end {
                    content.resize(end as usize, 0);
                }
                content[*offset as usize..end as usize].copy_from_slice(bytes);
            }
        }
        if (content.len() as u64) < state.length {
            return Err(format!("the file has {size} bytes; it should hold {}", state.length));
        }
        Ok(content.into())
    }
}

/// Reads blocks from the start to the end; behind a damaged one it goes on at the next that reads. If all read, they must
/// have the digest that was recorded.
fn walk(content: &Bytes, extent: ExtentId, recorded: Option<ExtentDigest>) -> CheckedExtent {
    let mut checked = CheckedExtent::default();
    let mut digest = ExtentDigest::EMPTY;
    let mut at = 0;
    while at < content.len() {
        match block_at(content, extent, at) {
            Ok((size, checksum)) => {
                digest = digest.then(checksum);
                checked.block_count += 1;
                at += size;
            }
            Err(error) => {
                let next = next_block(content, extent, at + 1);
                let unread = next.unwrap_or(content.len()) - at;
                let problem = format!("{error}; {unread} bytes from there on can't be used");
                let part = DamagedPart::Block { extent, offset: at as u64 };
                checked.damages.push(ExtentDamage { part, problem });
                at += unread;
            }
        }
    }
    if let Some(recorded) = recorded.filter(|recorded| checked.damages.is_empty() && *recorded != digest) {
        let problem = exchanged(recorded, digest);
        checked.damages.push(ExtentDamage { part: DamagedPart::Exchanged, problem });
    }
    checked
}

/// The size, header included, and the checksum of the block at `at`, which is verified.
fn block_at(content: &Bytes, extent: ExtentId, at: usize) -> Result<(usize, u64), StreamError> {
    let offset = at as u64;
    let header = content.get(at..(at + BLOCK_HEADER_SIZE).min(content.len())).unwrap_or_default();
    let len = block::payload_len(header, extent, offset)?;
    let end = (at + BLOCK_HEADER_SIZE + len as usize).min(content.len());
    let block = content.slice(at..end);
    block::verify(&block, Location { extent, offset, len })?;
    block::step(&block, extent, offset)
}

fn next_block(content: &Bytes, extent: ExtentId, from: usize) -> Option<usize> {
    let starts = content[from..].windows(BLOCK_MAGIC.len()).enumerate();
    let starts = starts.filter(|(_, window)| *window == BLOCK_MAGIC).map(|(index, _)| from + index);
    starts.into_iter().find(|start| block_at(content, extent, *start).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: ExtentId = ExtentId(3);

    fn content(payloads: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for payload in payloads {
            let offset = out.len() as u64;
            block::put_block(&mut out, EXTENT, offset, payload);
        }
        out
    }

    #[test]
    fn the_walk_goes_on_behind_a_damaged_block() {
        let whole = content(&[b"one", &[7; 500], b"three"]);
        let digest = ExtentDigest::EMPTY.then_blocks(EXTENT, 0, &whole).ok();
        let healthy = walk(&whole.clone().into(), EXTENT, digest);
        assert_eq!((healthy.block_count, healthy.damages.len()), (3, 0));
        // In the payload, and in the length field of the header, of the second block.
        for at in [35 + BLOCK_HEADER_SIZE + 100, 35 + 4] {
            let mut flipped = whole.clone();
            flipped[at] ^= 4;
            let found = walk(&flipped.into(), EXTENT, digest);
            assert_eq!(found.block_count, 2);
            assert_eq!(found.damages.len(), 1);
            assert_eq!(found.damages[0].part, DamagedPart::Block { extent: EXTENT, offset: 35 });
        }
        let mut last = whole.clone();
        let end = last.len() - 1;
        last[end] ^= 1;
        assert_eq!(walk(&last.into(), EXTENT, digest).damages.len(), 1);
    }

    #[test]
    fn blocks_that_read_but_are_others_are_named_unless_no_digest_is_known() {
        let digest = ExtentDigest::EMPTY.then_blocks(EXTENT, 0, &content(&[b"one", b"two"])).ok();
        let others: Bytes = content(&[b"two", b"one"]).into();
        let found = walk(&others, EXTENT, digest);
        assert_eq!((found.block_count, found.damages.len()), (2, 1));
        assert_eq!(found.damages[0].part, DamagedPart::Exchanged);
        assert_eq!(walk(&others, EXTENT, None).damages, []);
    }
}
