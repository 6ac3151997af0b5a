//! A damaged checkpoint is written anew from the row blocks of it that read.
//!
//! What always holds: rows come out in key order, each once, as they were; every row that does not is
//! reported, by its key if that is known, else by the keys between which it was.

use crate::checkpoint::MergedRow;
use crate::checkpoint::{
    Checkpoint, CheckpointWriter, Finished, OverflowPlace, RowBlock, RowOverflow, StoredOverflow,
};
use crate::error::PartitionError;
use crate::key::KeyRange;
use crate::operation::{ObjectTable, RowVersion};
use crate::range_partition::Shared;
use crate::tree::metadata::CheckpointReference;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use stream::{ExtentId, Location, Owner, Salvaged, StreamName};

/// Rows of a checkpoint that do not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LostRows {
    pub(super) keys: LostRowKeys,
    /// A row with a lower version than this is older than what is lost.
    pub(super) version: RowVersion,
    pub(super) reason: String,
}

/// Which rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LostRowKeys {
    Row(Bytes),
    Between(KeyRange),
}

/// What is wrong with a checkpoint: rows that do not read, or only what is derived from them.
pub(super) struct Examined {
    /// Its blocks and its root are whole, and fit together.
    pub(super) is_whole: bool,
    /// Keys of row blocks that do not read, and why; `None`: it is not known which they were.
    gaps: Option<Vec<(KeyRange, String)>>,
    highest_version: RowVersion,
    /// Extents with blocks of its own, as far as is known: its stream lists others, too, in which merges have
    /// left overflows beside row blocks that are no longer true. Empty: none is known.
    own_extents: BTreeSet<ExtentId>,
    /// Where its root was written.
    root: Location,
    /// Rows before this key are elsewhere by now, and what they name may have gone.
    start: Bytes,
}

/// Looks at everything in a checkpoint.
pub(super) async fn examine(shared: &Shared, reference: &CheckpointReference) -> Examined {
    let opened = Checkpoint::open(shared.streams.clone(), shared.cache.clone(), reference.root).await;
    let (root, start) = (reference.root, reference.limit.start.clone());
    let Ok(checkpoint) = opened else {
        let (own_extents, highest_version) = (BTreeSet::new(), RowVersion(u64::MAX));
        return Examined { is_whole: false, gaps: None, highest_version, own_extents, root, start };
    };
    let mut own_extents = BTreeSet::from([reference.root.extent]);
    for (at, part) in checkpoint.root.parts.iter().enumerate() {
        own_extents.extend([part.index.extent, part.filter.extent]);
        if let Ok(index) = checkpoint.index(at).await {
            own_extents.extend(index.entries.iter().map(|entry| entry.location.extent));
        }
    }
    let checked = checkpoint.check(&reference.limit.start).await;
    let is_whole = checked.damages.is_empty();
    let gaps = checked.damages.into_iter().map(|damage| (damage.keys, damage.problem)).collect();
    let highest_version = RowVersion(checkpoint.root.highest_version);
    Examined { is_whole, gaps: Some(gaps), highest_version, own_extents, root, start }
}

/// A row block that reads.
struct Candidate {
    location: Location,
    first_key: Bytes,
    last_key: Bytes,
    /// Where the walk was behind a place that does not read.
    is_behind_gap: bool,
}

/// Something in a checkpoint's stream does not read.
struct Problem {
    /// The first reason.
    why: String,
    /// Its own row blocks may be among it, and those that read may be others, in extents with overflows that
    /// were left by a compaction: without a root nothing tells them apart.
    is_unsure: bool,
}

/// Writes what reads of the checkpoint in `stream` to the new stream `to`. `None`: there is no row left.
pub(super) async fn rewrite(
    shared: &Shared,
    table: ObjectTable,
    stream: &StreamName,
    examined: &Examined,
    (to, owner): (&StreamName, Owner),
) -> Result<(Option<Finished>, Vec<LostRows>), PartitionError> {
    let (candidates, problem) = candidates(shared, (table, stream), examined).await?;
    let mut lost = lost_between(examined, &candidates, problem);
    let left = Arc::new(BTreeSet::new());
    let mut writer =
        CheckpointWriter::new(shared.streams.clone(), to.clone(), owner, left, table.has_data(), None);
    for candidate in candidates {
        let block = RowBlock::parse(shared.streams.read(candidate.location).await?)
            .map_err(|error| PartitionError::Storage(error.to_string()))?;
        let mut rows = block.rows();
        while let Some(position) = rows.step().map_err(|error| PartitionError::Storage(error.to_string()))? {
            if rows.key() < examined.start.as_ref() {
                continue;
            }
            let read = match position.overflow {
                None => None,
                Some(place) => match read_overflow(shared, place).await {
                    Ok(overflow) => Some(overflow),
                    Err(error) => {
                        let keys = LostRowKeys::Row(Bytes::copy_from_slice(rows.key()));
                        lost.push(LostRows { keys, version: position.version, reason: error.to_string() });
                        continue;
                    }
                },
            };
            let overflow = read.as_ref().map_or(RowOverflow::InValue, RowOverflow::Read);
            let (key, value) = (rows.key(), rows.value_ref(position));
            writer.add(MergedRow { key, version: position.version, value, overflow }).await?;
        }
    }
    Ok((writer.finish().await?, lost))
}

async fn read_overflow(shared: &Shared, place: OverflowPlace) -> Result<StoredOverflow, PartitionError> {
    let payload = shared.streams.read(place.location).await?;
    Ok(StoredOverflow::at(place, place.location, payload))
}

/// The stream's row blocks, in key order, and the first reason why something does not read.
async fn candidates(
    shared: &Shared,
    (table, stream): (ObjectTable, &StreamName),
    examined: &Examined,
) -> Result<(Vec<Candidate>, Option<Problem>), PartitionError> {
    let own_extents = &examined.own_extents;
    let mut found: Vec<Candidate> = Vec::new();
    let mut overflows = BTreeSet::new();
    let mut problem = None;
    let mut is_behind_gap = false;
    let mut hides_blocks = false;
    let mut visit = |salvaged| match salvaged {
        Salvaged::Missing { extent, from, problem: why, .. } => {
            is_behind_gap = true;
            hides_blocks |= !is_root_alone(examined.root, extent, from);
            problem.get_or_insert(why);
        }
        Salvaged::Block(location, payload) => {
            let Some((first_key, last_key, places)) = keys_of(payload) else { return };
            overflows.extend(places.into_iter().map(|place| place.location));
            found.push(Candidate { location, first_key, last_key, is_behind_gap });
            is_behind_gap = false;
        }
    };
    shared.streams.salvage(stream, &mut visit).await?;
    // What users store is an overflow, and may look like a row block.
    found.retain(|candidate| !overflows.contains(&candidate.location));
    if own_extents.is_empty() {
        keep_last_run(&mut found);
    } else {
        found.retain(|candidate| own_extents.contains(&candidate.location.extent));
    }
    // An append that was tried again may be there twice.
    let mut last: Option<Bytes> = None;
    found.retain(|candidate| {
        let follows = last.as_ref().is_none_or(|last| candidate.first_key > *last);
        if follows {
            last = Some(candidate.last_key.clone());
        }
        follows
    });
    // Only rows with overflows have some left where they are.
    let has_others = table.has_data() && shared.streams.stat(stream)?.extents.len() > 1;
    let is_unsure = own_extents.is_empty() && hides_blocks && has_others;
    Ok((found, problem.map(|why| Problem { why, is_unsure })))
}

/// Whether what does not read from this byte on is the root and nothing before it, as far as its place is
/// known.
fn is_root_alone(root: Location, extent: ExtentId, from: u64) -> bool {
    root.len > 0 && extent == root.extent && from >= root.offset
}

/// Without a root: extents with overflows that were left come first in the stream. The checkpoint's own are
/// the last ones whose keys rise from each to the next.
fn keep_last_run(found: &mut Vec<Candidate>) {
    let mut first: Option<usize> = None;
    for at in (0..found.len()).rev() {
        let is_of_other_extent =
            first.is_some_and(|first| found[first].location.extent != found[at].location.extent);
        let is_before = first.is_none_or(|first| found[at].last_key < found[first].first_key);
        if is_of_other_extent && !is_before {
            break;
        }
        if is_before {
            first = Some(at);
        }
    }
    found.drain(..first.unwrap_or(0));
}

/// First and last key of a row block and where its overflows are; `None`: it is none.
fn keys_of(payload: Bytes) -> Option<(Bytes, Bytes, Vec<OverflowPlace>)> {
    let block = RowBlock::parse(payload).ok()?;
    let mut rows = block.rows();
    let mut places = Vec::new();
    let mut first = None;
    let mut last = Bytes::new();
    while let Some(position) = rows.step().ok()? {
        places.extend(position.overflow);
        last = Bytes::copy_from_slice(rows.key());
        first.get_or_insert_with(|| last.clone());
    }
    Some((first?, last, places))
}

/// The keys of row blocks that do not read.
fn lost_between(examined: &Examined, found: &[Candidate], problem: Option<Problem>) -> Vec<LostRows> {
    let lost = |keys, reason| LostRows {
        keys: LostRowKeys::Between(keys),
        version: examined.highest_version,
        reason,
    };
    if let Some(gaps) = &examined.gaps {
        // Row blocks of these keys may read all the same, where only an index or a filter did not.
        let rest = gaps
            .iter()
            .flat_map(|(keys, why)| uncovered(keys, found).into_iter().map(|keys| (keys, why.clone())));
        return rest.map(|(keys, why)| lost(keys, why)).collect();
    }
    let is_unsure = problem.as_ref().is_some_and(|problem| problem.is_unsure);
    let reason = problem.map_or_else(|| "the root does not read".to_owned(), |problem| problem.why);
    if is_unsure {
        return vec![lost(KeyRange { start: Bytes::new(), end: None }, reason)];
    }
    let mut between = Vec::new();
    let mut start = Bytes::new();
    for candidate in found {
        if candidate.is_behind_gap {
            let keys = KeyRange { start: start.clone(), end: Some(candidate.first_key.clone()) };
            between.push(lost(keys, reason.clone()));
        }
        start = [&candidate.last_key[..], &[0]].concat().into();
    }
    // What came last was the root: the number of row blocks before it is unknown.
    between.push(lost(KeyRange { start, end: None }, reason));
    between
}

/// The parts of `keys` that no row block found has: its keys are those after the one before it, up to its
/// last.
fn uncovered(keys: &KeyRange, found: &[Candidate]) -> Vec<KeyRange> {
    let mut parts = Vec::new();
    let mut start = keys.start.clone();
    for candidate in found {
        if candidate.last_key < start {
            continue;
        }
        if keys.end.as_ref().is_some_and(|end| candidate.first_key >= *end) {
            break;
        }
        if candidate.is_behind_gap && candidate.first_key > start {
            parts.push(KeyRange { start, end: Some(candidate.first_key.clone()) });
        }
        start = [&candidate.last_key[..], &[0]].concat().into();
    }
    if keys.end.as_ref().is_none_or(|end| start < *end) {
        parts.push(KeyRange { start, end: keys.end.clone() });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(blocks: &[(&'static str, &'static str, bool)]) -> Vec<Candidate> {
        let location = Location { extent: ExtentId(1), offset: 0, len: 1 };
        let candidate = |(first, last, is_behind_gap): &(&'static str, &'static str, bool)| Candidate {
            location,
            first_key: Bytes::from_static(first.as_bytes()),
            last_key: Bytes::from_static(last.as_bytes()),
            is_behind_gap: *is_behind_gap,
        };
        blocks.iter().map(candidate).collect()
    }

    fn keys(start: &'static str, end: Option<&'static str>) -> KeyRange {
        KeyRange { start: Bytes::from_static(start.as_bytes()), end: end.map(Bytes::from) }
    }

    #[test]
    fn what_other_blocks_have_is_not_lost() {
        let blocks = found(&[("a", "c", false), ("h", "k", true), ("l", "p", false)]);
        let rest = |start, end| uncovered(&keys(start, end), &blocks);
        assert_eq!(rest("c\0", Some("g\0")), [keys("c\0", Some("g\0"))], "the block between them");
        assert_eq!(rest("", Some("p\0")), [keys("c\0", Some("h"))], "only the index does not read");
        assert_eq!(rest("k\0", Some("p\0")), [] as [KeyRange; 0]);
        assert_eq!(rest("p\0", None), [keys("p\0", None)]);
    }

    #[test]
    fn without_a_root_whatever_is_behind_a_gap_or_at_the_end_may_be_lost() {
        let examined = Examined {
            is_whole: false,
            gaps: None,
            highest_version: RowVersion(9),
            own_extents: BTreeSet::new(),
            root: Location { extent: ExtentId(1), offset: 0, len: 0 },
            start: Bytes::new(),
        };
        let lost = lost_between(&examined, &found(&[("a", "c", false), ("h", "k", true)]), None);
        let ranges: Vec<LostRowKeys> = lost.into_iter().map(|lost| lost.keys).collect();
        let between = |start, end| LostRowKeys::Between(keys(start, end));
        assert_eq!(ranges, [between("c\0", Some("h")), between("k\0", None)]);
        // The row blocks that read may be of another checkpoint, whose overflows were left where they are.
        let unsure = Some(Problem { why: "zeros".to_owned(), is_unsure: true });
        let lost = lost_between(&examined, &found(&[("a", "c", false)]), unsure);
        assert_eq!(lost.into_iter().map(|lost| lost.keys).collect::<Vec<_>>(), [between("", None)]);
        let root = Location { extent: ExtentId(7), offset: 500, len: 90 };
        let is_root_alone = |extent, from| is_root_alone(root, ExtentId(extent), from);
        assert_eq!(
            [(7, 500), (7, 499), (6, 500)].map(|(extent, from)| is_root_alone(extent, from)),
            [true, false, false]
        );
    }
}
