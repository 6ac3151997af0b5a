//! The offline check of a node: what its journal says, and whether every block of every extent reads.
//!
//! Nothing is changed: what only the journal holds is laid over the files' bytes in memory. What always
//! holds: a torn tail of the journal is not damage, because nothing in it was acknowledged.

use super::damaged_part::DamagedPart;
use super::walk::{WalkStep, walk};
use crate::error::StreamError;
use crate::extent_node::extent_path;
use crate::extent_node::journal::{Finding, JournalRecovery, recover};
use crate::extent_node::recovery::forgotten::forget_deleted;
use crate::extent_node::recovery::open::read_journal;
use crate::extent_node::recovery::settle::{ListedExtent, settle};
use crate::extent_node::state::{ExtentState, ExtentTable};
use crate::ids::ExtentId;
use crate::sealed::{ExtentDigest, exchanged};
use base::{Disk, Environment, OpenMode};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Bytes of a file that are read at a time.
const READ_SIZE_BYTES: u64 = 8 << 20;

/// What the journal says.
pub(crate) struct NodeFacts {
    pub(crate) table: ExtentTable,
    /// Journaled bytes that may be missing in their files.
    appends: BTreeMap<ExtentId, Vec<(u64, Bytes)>>,
    /// That its last record is not whole.
    pub(crate) torn: Option<String>,
    is_end_unsure: bool,
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
    /// Bytes that the journal has, and the file not or not so.
    pub(crate) journaled_bytes: u64,
}

/// Reads the journal. `listed` are the extents that streams have, if that is known.
pub(crate) async fn read_node(
    env: &Environment,
    listed: &[ListedExtent],
    has_copies: bool,
) -> Result<NodeFacts, StreamError> {
    let mut recovered = recover(&read_journal(&*env.disk, has_copies).await?)?;
    settle(&mut recovered, listed);
    forget_deleted(&*env.disk, &mut recovered, listed).await?;
    let mut appends: BTreeMap<ExtentId, Vec<(u64, Bytes)>> = BTreeMap::new();
    for (extent, offset, bytes) in recovered.appends {
        appends.entry(extent).or_default().push((offset, bytes));
    }
    let JournalRecovery { table, torn, is_end_unsure, findings, .. } = recovered;
    Ok(NodeFacts { table, appends, torn, is_end_unsure, findings })
}

impl NodeFacts {
    /// Bytes behind the extent's length that the next start takes if they are whole blocks.
    pub(crate) async fn unsure_bytes(&self, disk: &dyn Disk, extent: ExtentId, state: ExtentState) -> u64 {
        if !self.is_end_unsure || state.frozen || state.in_doubt {
            return 0;
        }
        let Ok(file) = disk.open(&extent_path(extent), OpenMode::Read).await else { return 0 };
        file.size().await.unwrap_or_default().saturating_sub(state.length)
    }

    /// Reads every block of an extent; `read` is called with the bytes that were read.
    pub(crate) async fn check_extent(
        &self,
        disk: &dyn Disk,
        extent: ExtentId,
        state: ExtentState,
        read: &mut (dyn FnMut(u64) + Send),
    ) -> CheckedExtent {
        match self.content(disk, extent, state, read).await {
            Ok((content, journaled_bytes)) if state.in_doubt => {
                let mut checked = judge(&content, extent, None);
                checked.journaled_bytes = journaled_bytes;
                let problem = "the journal was damaged: blocks that were appended behind its end may be lost";
                let problem = problem.to_owned();
                checked.damages.push(ExtentDamage { part: DamagedPart::End { extent }, problem });
                checked
            }
            Ok((content, journaled_bytes)) => {
                CheckedExtent { journaled_bytes, ..judge(&content, extent, state.digest) }
            }
            Err(problem) => CheckedExtent {
                damages: vec![ExtentDamage { part: DamagedPart::File, problem }],
                ..CheckedExtent::default()
            },
        }
    }

    /// The extent's bytes: those of its file, and over them those that are only journaled; how many these
    /// are.
    async fn content(
        &self,
        disk: &dyn Disk,
        extent: ExtentId,
        state: ExtentState,
        read: &mut (dyn FnMut(u64) + Send),
    ) -> Result<(Bytes, u64), String> {
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
        let mut journaled_bytes = 0;
        for (offset, bytes) in self.appends.get(&extent).into_iter().flatten() {
            let end = offset + bytes.len() as u64;
            if end <= state.length {
                if (content.len() as u64) < end {
                    content.resize(end as usize, 0);
                }
                let place = &mut content[*offset as usize..end as usize];
                if place != bytes {
                    journaled_bytes += bytes.len() as u64;
                    place.copy_from_slice(bytes);
                }
            }
        }
        if (content.len() as u64) < state.length {
            return Err(format!("the file has {size} bytes; it should hold {}", state.length));
        }
        Ok((content.into(), journaled_bytes))
    }
}

/// Judges all blocks of an extent. If all read, they must have the digest that was recorded.
fn judge(content: &Bytes, extent: ExtentId, recorded: Option<ExtentDigest>) -> CheckedExtent {
    let mut checked = CheckedExtent::default();
    let mut digest = ExtentDigest::EMPTY;
    let mut is_complete = true;
    for walked in walk(content, extent) {
        match walked {
            WalkStep::Whole { checksum, .. } => {
                digest = digest.then(checksum);
                checked.block_count += 1;
            }
            WalkStep::Flipped { location, checksum, .. } => {
                digest = digest.then(checksum);
                checked.block_count += 1;
                let part = DamagedPart::Flipped { extent, offset: location.offset };
                let problem = format!("extent {extent}, block at {}: a bit was flipped", location.offset);
                checked.damages.push(ExtentDamage { part, problem });
            }
            WalkStep::Unread { from, to, error } => {
                is_complete = false;
                let problem = format!("{error}; {} bytes from there on can't be used", to - from);
                let part = DamagedPart::Block { extent, offset: from };
                checked.damages.push(ExtentDamage { part, problem });
            }
        }
    }
    if let Some(recorded) = recorded.filter(|recorded| is_complete && *recorded != digest) {
        let problem = exchanged(recorded, digest);
        checked.damages.push(ExtentDamage { part: DamagedPart::Exchanged, problem });
    }
    checked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block;

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
    fn blocks_that_read_but_are_others_are_named_unless_no_digest_is_known() {
        let digest = ExtentDigest::EMPTY.then_blocks(EXTENT, 0, &content(&[b"one", b"two"])).ok();
        let others: Bytes = content(&[b"two", b"one"]).into();
        let found = judge(&others, EXTENT, digest);
        assert_eq!((found.block_count, found.damages.len()), (2, 1));
        assert_eq!(found.damages[0].part, DamagedPart::Exchanged);
        assert_eq!(judge(&others, EXTENT, None).damages, []);
    }
}
