//! The facade's methods that change blobs, and those that show what a blob is made of.

use crate::append_block::{AppendBlock, Appended, SealBlob};
use crate::blob::delete_blob::{DeleteBlob, DeleteSnapshots, TakeSnapshot, TierConditions, Undelete};
use crate::blob::put_blob::{NewBlob, NewContent, PutBlob, Written};
use crate::blob::read_blob::{FoundRecord, LOOK_UP_COUNT_MAX, find};
use crate::blob::replacement::{ReplaceConditions, Replacement};
use crate::blob::set_blob::{
    LeaseBlob, SequenceAction, SetMetadata, SetProperties, SetTags, SetTier, check_tier,
};
use crate::blob_service::{BlobAt, BlobService};
use crate::block::put_block::PutBlock;
use crate::block::put_block_list::{BlockSource, PutBlockList};
use crate::condition::Conditions;
use crate::content::upload::{Upload, Uploaded};
use crate::content::{Block, Content, decode_block_row};
use crate::encryption::Encryption;
use crate::error::BlobError;
use crate::lease::{Lease, LeaseAction, LeaseOutcome};
use crate::limits::{PAGE_BLOB_SIZE_BYTES_MAX, PAGE_SIZE_BYTES};
use crate::name::{Pairs, check_metadata, check_tags};
use crate::page::pages::{PageRange, Region, Spans, cleared_since, decode_region, difference, joined};
use crate::page::put_pages::{PagesWritten, PutPages, SequenceConditions, region_in};
use crate::rows::chunk_row::{chunk_row, chunks_prefix};
use crate::rows::former_row::{SNAPSHOT_PREFIX, decode_snapshot, snapshot_in};
use crate::rows::head_row::{HEAD, Head};
use crate::rows::record::{BlobRecord, BlobType, ContentProperties};
use crate::rows::region_row::regions_prefix;
use crate::rows::revision::Revision;
use crate::rows::staged_row::STAGED_PREFIX;
use bytes::Bytes;
use partition::{ObjectTable, Span};

/// Blocks of a blob: those of its list, and the staged ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockLists {
    /// The blob; `None`: there are only staged blocks.
    pub record: Option<BlobRecord>,
    /// Id and size.
    pub committed: Vec<(Bytes, u64)>,
    /// Id and size.
    pub staged: Vec<(Bytes, u64)>,
}

/// Bytes of a page blob, each `(start, end)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageLists {
    /// The blob.
    pub found: FoundRecord,
    /// Written, or written since.
    pub written: Vec<(u64, u64)>,
    /// Cleared since.
    pub cleared: Vec<(u64, u64)>,
}

fn pairs(blocks: Vec<Block>) -> Vec<(Bytes, u64)> {
    blocks.into_iter().map(|block| (block.id, block.size)).collect()
}

impl BlobService {
    /// Begins to take bytes for a blob.
    pub fn upload(&self, at: &BlobAt, may_be_inline: bool, with_md5: bool) -> Upload {
        Upload::new(self.partitions.clone(), at.address.clone(), &self.uploads, may_be_inline, with_md5)
    }

    /// Makes uploaded bytes the blob.
    pub async fn put_blob(
        &self,
        at: &BlobAt,
        blob_type: BlobType,
        uploaded: Uploaded,
        new: NewBlob,
        demands: ReplaceConditions,
    ) -> Result<Written, BlobError> {
        let Uploaded { inline, pieces, pins, size, .. } = uploaded;
        let content = match inline {
            Some(bytes) => NewContent::Inline(bytes),
            None => NewContent::Pieces(pieces),
        };
        let written = self.put(at, blob_type, size, content, new, demands).await;
        // Until here nobody else names the pieces.
        drop(pins);
        written
    }

    pub(crate) async fn put(
        &self,
        at: &BlobAt,
        blob_type: BlobType,
        size: u64,
        content: NewContent,
        new: NewBlob,
        demands: ReplaceConditions,
    ) -> Result<Written, BlobError> {
        let replacement = self.replacement(at, blob_type, &new, demands).await?;
        self.run(at, PutBlob { blob_type, size, content, new, replacement }).await
    }

    /// Checks a new blob, and adds what its account keeps to the demands on the one that it replaces. The new
    /// blob is checked before the account's settings are read: a request with two faults gets the error of
    /// the first.
    async fn replacement(
        &self,
        at: &BlobAt,
        blob_type: BlobType,
        new: &NewBlob,
        demands: ReplaceConditions,
    ) -> Result<Replacement, BlobError> {
        check_metadata(&new.metadata)?;
        check_tags(&new.tags)?;
        check_tier(blob_type, new.tier.as_deref())?;
        let retention_days = self.retention_days(at).await?;
        Ok(Replacement { demands, retention_days, versioned: self.is_versioned(at) })
    }

    /// Makes a blob without bytes: of an append blob, or `size` bytes of zeros of a page blob.
    pub async fn create_empty(
        &self,
        at: &BlobAt,
        blob_type: BlobType,
        size: u64,
        sequence_number: u64,
        new: NewBlob,
        demands: ReplaceConditions,
    ) -> Result<Written, BlobError> {
        let content = match blob_type {
            BlobType::Page if !size.is_multiple_of(PAGE_SIZE_BYTES) || size > PAGE_BLOB_SIZE_BYTES_MAX => {
                return Err(BlobError::InvalidPageRange);
            }
            BlobType::Page => NewContent::Pages { size, sequence_number, ranges: Vec::new() },
            _ => NewContent::Pieces(Vec::new()),
        };
        self.put(at, blob_type, 0, content, new, demands).await
    }

    /// Stages a block.
    pub async fn put_block(
        &self,
        at: &BlobAt,
        id: Bytes,
        uploaded: Uploaded,
        lease: Option<String>,
        encryption: Encryption,
        create_only: bool,
    ) -> Result<(), BlobError> {
        let Uploaded { pieces, pins, size, .. } = uploaded;
        let put = self.run(at, PutBlock { id, size, pieces, lease, encryption, create_only }).await;
        drop(pins);
        put
    }

    /// Commits a list of blocks.
    pub async fn put_block_list(
        &self,
        at: &BlobAt,
        list: Vec<(BlockSource, Bytes)>,
        new: NewBlob,
        demands: ReplaceConditions,
    ) -> Result<Written, BlobError> {
        let replacement = self.replacement(at, BlobType::Block, &new, demands).await?;
        self.run(at, PutBlockList { list, new, replacement }).await
    }

    /// All blocks of a blob's list.
    pub(crate) async fn blocks_of(&self, at: &BlobAt, record: &BlobRecord) -> Result<Vec<Block>, BlobError> {
        let Content::Blocks(content) = &record.content else { return Ok(Vec::new()) };
        let mut blocks = Vec::new();
        for index in 0..content.chunks.len() {
            let key = at.address.key(&chunk_row(content.generation, index));
            let row = self.partitions.get(ObjectTable::Blob, &key).await?;
            let row = row.ok_or(partition::PartitionError::Busy)?;
            blocks.extend(decode_block_row(&row.value)?);
        }
        blocks.extend(content.tail.iter().cloned());
        Ok(blocks)
    }

    /// A blob's head, the blocks of its list and those that are staged, all of one moment: a list that is
    /// committed meanwhile would let blocks vanish from both.
    async fn head_and_blocks(&self, at: &BlobAt) -> Result<(Head, Vec<Block>, Vec<Block>), BlobError> {
        let mut chunks = None;
        for _ in 0..LOOK_UP_COUNT_MAX {
            let mut spans = vec![Span::Point(at.address.key(HEAD))];
            let prefixes = chunks.as_deref().into_iter().chain([STAGED_PREFIX]);
            spans.extend(prefixes.map(|prefix| Span::Range(at.address.rows_with_prefix(prefix))));
            let mut rows = self.rows_in(spans).await?.into_iter();
            let head = match rows.next() {
                Some((name, value)) if name == HEAD => Head::decode(&value)?,
                _ => return Err(BlobError::BlobNotFound),
            };
            let content = head.live().and_then(|live| match &live.content {
                Content::Blocks(content) => Some(content),
                _ => None,
            });
            let long = content.filter(|content| !content.chunks.is_empty());
            let wanted = long.map(|content| chunks_prefix(content.generation));
            if wanted != chunks {
                chunks = wanted;
                continue;
            }
            let (mut committed, mut staged) = (Vec::new(), Vec::new());
            for (name, value) in rows {
                let blocks = if name.starts_with(STAGED_PREFIX) { &mut staged } else { &mut committed };
                blocks.extend(decode_block_row(&value)?);
            }
            committed.extend(content.into_iter().flat_map(|content| content.tail.iter().cloned()));
            return Ok((head, committed, staged));
        }
        Err(partition::PartitionError::Busy.into())
    }

    /// The blocks of a blob.
    pub async fn block_lists(
        &self,
        at: &BlobAt,
        revision: Revision,
        conditions: &Conditions,
    ) -> Result<BlockLists, BlobError> {
        let of_head = match revision {
            Revision::Snapshot(_) => None,
            _ => {
                let of_head = self.head_and_blocks(at).await?;
                (revision.resolve(&of_head.0) == Revision::Current).then_some(of_head)
            }
        };
        let (record, committed, staged) = match of_head {
            None => {
                let record = find(&self.partitions, &at.address, revision).await?.0.record;
                let blocks = self.blocks_of(at, &record).await?;
                (Some(record), blocks, Vec::new())
            }
            Some((head, committed, staged)) => {
                let now = self.partitions.now(ObjectTable::Blob, &at.address.key(HEAD))?;
                head.lease.check_read(conditions.lease(), now)?;
                if head.live().is_none() && head.staged == 0 {
                    return Err(BlobError::BlobNotFound);
                }
                (head.live().cloned(), committed, staged)
            }
        };
        if let Some(record) = &record {
            conditions.check_read(record.present())?;
            if record.blob_type != BlobType::Block {
                return Err(BlobError::InvalidBlobType);
            }
        }
        let named = committed.into_iter().filter(|block| !block.id.is_empty());
        Ok(BlockLists { record, committed: pairs(named.collect()), staged: pairs(staged) })
    }

    /// Appends to an append blob.
    pub async fn append_block(
        &self,
        at: &BlobAt,
        uploaded: Uploaded,
        position: Option<u64>,
        size_max: Option<u64>,
        conditions: Conditions,
    ) -> Result<Appended, BlobError> {
        let Uploaded { pieces, pins, size, .. } = uploaded;
        let appended = self.run(at, AppendBlock { size, pieces, conditions, position, size_max }).await;
        drop(pins);
        appended
    }

    /// Ends an append blob.
    pub async fn seal(
        &self,
        at: &BlobAt,
        position: Option<u64>,
        conditions: Conditions,
    ) -> Result<Written, BlobError> {
        self.run(at, SealBlob { conditions, position }).await
    }

    /// Writes pages (`uploaded`) or clears them.
    pub async fn put_pages(
        &self,
        at: &BlobAt,
        (start, len): (u64, u64),
        uploaded: Option<Uploaded>,
        sequence: SequenceConditions,
        conditions: Conditions,
    ) -> Result<PagesWritten, BlobError> {
        let (pieces, pins) = uploaded.map(|uploaded| (uploaded.pieces, uploaded.pins)).unwrap_or_default();
        let written = self.run(at, PutPages { start, len, pieces, conditions, sequence }).await;
        drop(pins);
        written
    }

    pub(crate) async fn ranges_of(
        &self,
        at: &BlobAt,
        record: &BlobRecord,
    ) -> Result<Vec<PageRange>, BlobError> {
        let Content::Pages(owner) = record.content else { return Err(BlobError::InvalidBlobType) };
        let mut ranges = Vec::new();
        for (name, value) in self.rows_of(at, &regions_prefix(owner)).await? {
            ranges.extend(decode_region(region_in(&name)?, &value)?);
        }
        Ok(ranges)
    }

    /// A page blob, its ranges and what was cleared of it, all of one moment.
    async fn found_ranges(
        &self,
        at: &BlobAt,
        revision: Revision,
        conditions: &Conditions,
    ) -> Result<(FoundRecord, Region), BlobError> {
        for _ in 0..LOOK_UP_COUNT_MAX {
            // It tells which rows there are to read; what they are is read again with them.
            let before = self.find(at, revision, conditions).await?;
            let Content::Pages(owner) = before.record.content else { return Err(BlobError::InvalidBlobType) };
            let row = before.revision.row().unwrap_or_else(|| HEAD.to_owned());
            let regions = at.address.rows_with_prefix(&regions_prefix(owner));
            let spans = vec![Span::Point(at.address.key(&row)), Span::Range(regions)];
            let mut rows = self.rows_in(spans).await?.into_iter();
            let Some((_, value)) = rows.next().filter(|(name, _)| *name == row) else { continue };
            let (record, lease) = if row == HEAD {
                let head = Head::decode(&value)?;
                let is_same = revision.resolve(&head) == Revision::Current;
                let Some(live) = head.live().filter(|_| is_same) else { continue };
                (live.clone(), head.lease)
            } else {
                (decode_snapshot(&value)?, Lease::None)
            };
            if record.deleted.is_some() || record.content != before.record.content {
                continue;
            }
            let now = self.partitions.now(ObjectTable::Blob, &at.address.key(&row))?;
            let found = FoundRecord { record, lease, revision: before.revision, now };
            self.check_read(&found, conditions)?;
            let mut all = Region::default();
            for (name, value) in rows {
                let region = Region::decode(region_in(&name)?, &value)?;
                all.ranges.extend(region.ranges);
                all.cleared.extend(region.cleared);
            }
            return Ok((found, all));
        }
        Err(partition::PartitionError::Busy.into())
    }

    /// Pages that snapshots between these two have.
    async fn pages_between(&self, at: &BlobAt, after: u64, before: Option<u64>) -> Result<Spans, BlobError> {
        let mut spans = Spans::new();
        for (name, value) in self.rows_of(at, SNAPSHOT_PREFIX).await? {
            let snapshot = snapshot_in(&name)?;
            let record = decode_snapshot(&value)?;
            let is_page = matches!(record.content, Content::Pages(_)) && record.deleted.is_none();
            if is_page && snapshot > after && before.is_none_or(|before| snapshot < before) {
                let ranges = self.ranges_of(at, &record).await?;
                spans.extend(joined(ranges.iter().map(PageRange::span)));
            }
        }
        Ok(spans)
    }

    /// Ranges of pages inside `range`; with `previous`, a snapshot, what has changed since.
    pub async fn page_ranges(
        &self,
        at: &BlobAt,
        revision: Revision,
        previous: Option<u64>,
        range: Option<(u64, Option<u64>)>,
        conditions: &Conditions,
    ) -> Result<PageLists, BlobError> {
        let (found, Region { ranges, cleared }) = self.found_ranges(at, revision, conditions).await?;
        let snapshot = match revision {
            Revision::Snapshot(snapshot) => Some(snapshot),
            _ => None,
        };
        let (written, cleared) = match previous {
            None => (joined(ranges.iter().map(PageRange::span)), Vec::new()),
            Some(previous) => {
                let old = self.found_ranges(at, Revision::Snapshot(previous), &Conditions::default()).await;
                let (old, Region { ranges: old_ranges, .. }) = old.map_err(|error| match error {
                    BlobError::BlobNotFound => BlobError::PreviousSnapshotNotFound,
                    other => other,
                })?;
                if snapshot.is_some_and(|snapshot| snapshot < previous) {
                    return Err(BlobError::PreviousSnapshotCannotBeNewer);
                }
                if old.record.version.created_at != found.record.version.created_at {
                    return Err(BlobError::BlobOverwritten);
                }
                let since = cleared.iter().filter(|cleared| cleared.at.0 > previous);
                let since: Spans = since.map(|cleared| (cleared.start, cleared.end)).collect();
                let (written, cleared) = difference(&old_ranges, &ranges);
                // What was cleared by an early build shows only if a snapshot in between has it.
                let mut between = self.pages_between(at, previous, snapshot).await?;
                between.extend(since);
                (written, cleared_since(cleared, between, ranges.iter().map(PageRange::span)))
            }
        };
        let size = found.record.size;
        let (from, to) = match range {
            None => (0, size),
            Some((start, _)) if start >= size && size > 0 => return Err(BlobError::InvalidRange { size }),
            // Whole pages, as they are written.
            Some((start, end)) => (
                start - start % PAGE_SIZE_BYTES,
                end.unwrap_or(size).min(size).next_multiple_of(PAGE_SIZE_BYTES),
            ),
        };
        let cut = |ranges: Vec<(u64, u64)>| {
            let inside = ranges.into_iter().map(|(start, end)| (start.max(from), end.min(to)));
            inside.filter(|(start, end)| start < end).collect()
        };
        Ok(PageLists { found, written: cut(written), cleared: cut(cleared) })
    }

    /// Replaces what HTTP says of a blob; changes a page blob's size or sequence number.
    pub async fn set_properties(
        &self,
        at: &BlobAt,
        properties: Option<ContentProperties>,
        size: Option<u64>,
        sequence: Option<SequenceAction>,
        conditions: Conditions,
    ) -> Result<(Written, Option<u64>), BlobError> {
        self.run(at, SetProperties { properties, size, sequence, conditions }).await
    }

    /// Replaces a blob's metadata.
    pub async fn set_metadata(
        &self,
        at: &BlobAt,
        metadata: Pairs,
        conditions: Conditions,
    ) -> Result<Written, BlobError> {
        check_metadata(&metadata)?;
        let versioned = self.is_versioned(at);
        self.run(at, SetMetadata { metadata, conditions, versioned }).await
    }

    /// Replaces a blob's tags.
    pub async fn set_tags(
        &self,
        at: &BlobAt,
        revision: Revision,
        tags: Pairs,
        conditions: Conditions,
    ) -> Result<(), BlobError> {
        check_tags(&tags)?;
        self.run(at, SetTags { tags, revision, conditions }).await
    }

    /// Sets a blob's tier; true: it takes effect later.
    pub async fn set_tier(
        &self,
        at: &BlobAt,
        revision: Revision,
        tier: String,
        rehydrate_priority: Option<String>,
        conditions: Conditions,
    ) -> Result<bool, BlobError> {
        self.run(at, SetTier { tier, rehydrate_priority, revision, conditions }).await
    }

    /// Does something with a blob's lease. `None`: of the blob there are only staged blocks.
    pub async fn lease(
        &self,
        at: &BlobAt,
        action: LeaseAction,
        conditions: Conditions,
    ) -> Result<(LeaseOutcome, Option<Written>), BlobError> {
        self.run(at, LeaseBlob { action, conditions }).await
    }

    /// Takes a snapshot and says its time.
    pub async fn snapshot(
        &self,
        at: &BlobAt,
        metadata: Option<Pairs>,
        conditions: Conditions,
    ) -> Result<(u64, Written), BlobError> {
        if let Some(metadata) = &metadata {
            check_metadata(metadata)?;
        }
        let versioned = self.is_versioned(at);
        self.run(at, TakeSnapshot { metadata, conditions, versioned }).await
    }

    /// Deletes a blob, snapshot or version. False: it can come back.
    pub async fn delete(
        &self,
        at: &BlobAt,
        revision: Revision,
        snapshots: DeleteSnapshots,
        tier: TierConditions,
        conditions: Conditions,
    ) -> Result<bool, BlobError> {
        let retention_days = self.retention_days(at).await?;
        let versioned = self.is_versioned(at);
        let delete = DeleteBlob { revision, snapshots, conditions, tier, retention_days, versioned };
        self.run(at, delete).await?;
        Ok(retention_days.is_none() && !(versioned && revision == Revision::Current))
    }

    /// Brings back a deleted blob.
    pub async fn undelete(&self, at: &BlobAt) -> Result<(), BlobError> {
        self.run(at, Undelete).await
    }
}
