//! Removes what of one name can't be read any more, and keeps the rest: for an offline repair.
//!
//! A snapshot, a former version or a staged block goes alone, with the rows that only it has. If the base
//! blob is among what can't be read, the name goes as a whole: snapshots of no blob could not be deleted by
//! anybody.

use crate::blob_service::{BlobAt, BlobService, VersionedAccounts};
use crate::content::Content;
use crate::encryption::ContainerEncryption;
use crate::rows::blob_address::BlobAddress;
use crate::rows::chunk_row::chunks_prefix;
use crate::rows::decision::blob_change::BlobChange;
use crate::rows::decision::blob_rows::BlobRows;
use crate::rows::decision::stop::Stop;
use crate::rows::former_row::{SNAPSHOT_PREFIX, VERSION_PREFIX, decode_snapshot};
use crate::rows::head_row::HEAD;
use crate::rows::region_row::regions_prefix;
use crate::rows::staged_row::STAGED_PREFIX;
use base::{BoxFuture, Clock, Ticks};
use partition::{ObjectTable, Partitions, RowKey};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a repair asks of names with blob data that does not read.
pub struct RemoveLostBlobs {
    /// Says when deletions are final.
    pub clock: Arc<dyn Clock>,
}

impl partition::RemoveLost for RemoveLostBlobs {
    fn remove<'a>(
        &'a self,
        partitions: &'a Arc<Partitions>,
        table: ObjectTable,
        rows: &'a [RowKey],
    ) -> BoxFuture<'a, Option<Vec<RowKey>>> {
        Box::pin(async move {
            if table != ObjectTable::Blob {
                return None;
            }
            let first = rows.first()?.parts()?;
            let address = BlobAddress {
                account: first.account.into(),
                container_id: first.container_id,
                name: first.partition_name.into(),
            };
            let names: Option<BTreeSet<String>> =
                rows.iter().map(|key| key.parts().map(|parts| parts.object_name)).collect();
            let (container, encryption) = (String::new(), ContainerEncryption::default());
            let at = BlobAt { address: address.clone(), container, encryption };
            let service =
                BlobService::new(partitions.clone(), self.clock.clone(), VersionedAccounts::default());
            // What the rows do not say, or too many of them, leaves the repair to remove the whole name.
            let removed = service.run(&at, RemoveLostParts { rows: names? }).await.ok()??;
            Some(removed.iter().map(|row| address.key(row)).collect())
        })
    }
}

/// Removes the snapshots, versions and staged blocks that these rows belong to.
struct RemoveLostParts {
    rows: BTreeSet<String>,
}

impl RemoveLostParts {
    /// Whether a row is one of a content's own.
    fn has_row_of(&self, content: &Content) -> bool {
        let prefix = match content {
            Content::Blocks(blocks) if !blocks.chunks.is_empty() => chunks_prefix(blocks.generation),
            Content::Pages(owner) => regions_prefix(*owner),
            Content::Blocks(_) | Content::Inline(_) | Content::Unread => return false,
        };
        self.rows.iter().any(|row| row.starts_with(&prefix))
    }
}

impl BlobChange for RemoveLostParts {
    /// The rows that what was removed is called by; `None`: nothing was changed, the name must go as a whole.
    type Reply = Option<Vec<String>>;

    fn gives_back(&self) -> bool {
        true
    }

    fn decide(&self, rows: &mut BlobRows, _now: Ticks) -> Result<Self::Reply, Stop> {
        let base = rows.head.current.as_ref();
        if self.rows.contains(HEAD) || base.is_some_and(|base| self.has_row_of(&base.content)) {
            return Ok(None);
        }
        let mut removed = Vec::new();
        for prefix in [SNAPSHOT_PREFIX, VERSION_PREFIX] {
            for name in rows.names(prefix)? {
                let Some(row) = rows.row(&name)? else { continue };
                let record = decode_snapshot(row)?;
                if !self.rows.contains(&name) && !self.has_row_of(&record.content) {
                    continue;
                }
                let count = match (prefix, record.deleted) {
                    (VERSION_PREFIX, _) => &mut rows.head.versions,
                    (_, Some(_)) => &mut rows.head.deleted_snapshots,
                    (_, None) => &mut rows.head.snapshots,
                };
                *count = count.saturating_sub(1);
                rows.delete(&name);
                rows.release(&record.content)?;
                removed.push(name);
            }
        }
        for name in self.rows.iter().filter(|name| name.starts_with(STAGED_PREFIX)) {
            rows.delete(name);
            rows.head.staged = rows.head.staged.saturating_sub(1);
            removed.push(name.clone());
        }
        if rows.head.staged == 0 {
            (rows.head.staged_at, rows.head.staged_id_len) = (Ticks(0), 0);
        }
        Ok(Some(removed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::delete_blob::TakeSnapshot;
    use crate::blob::put_blob::{NewContent, PutBlob};
    use crate::block::put_block::PutBlock;
    use crate::condition::Conditions;
    use crate::rows::decision::memory_blob::MemoryBlob;
    use crate::rows::former_row::snapshot_row;
    use crate::rows::record::BlobType;
    use crate::rows::region_row::region_row;
    use crate::rows::staged_row::staged_row;
    use bytes::Bytes;

    fn remove(blob: &mut MemoryBlob, rows: &[String]) -> Option<Vec<String>> {
        blob.run(RemoveLostParts { rows: rows.iter().cloned().collect() }, 9).unwrap()
    }

    fn snapshot() -> TakeSnapshot {
        TakeSnapshot { metadata: None, conditions: Conditions::default(), versioned: false }
    }

    fn put(content: NewContent) -> PutBlob {
        let blob_type = match content {
            NewContent::Pages { .. } => BlobType::Page,
            _ => BlobType::Block,
        };
        let (new, replacement) = Default::default();
        PutBlob { blob_type, size: 1, content, new, replacement }
    }

    #[test]
    fn only_the_snapshot_or_staged_block_goes_that_a_row_is_of() {
        let mut blob = MemoryBlob::default();
        blob.run(put(NewContent::Inline(Bytes::from_static(b"x"))), 1).unwrap();
        blob.run(snapshot(), 2).unwrap();
        blob.run(snapshot(), 3).unwrap();
        for id in [b"a", b"b"] {
            let (pieces, encryption) = Default::default();
            let id = Bytes::from_static(id);
            let stage = PutBlock { id, size: 0, pieces, lease: None, encryption, create_only: false };
            blob.run(stage, 4).unwrap();
        }
        let gone = [snapshot_row(2), staged_row(b"a")];
        assert_eq!(remove(&mut blob, &gone), Some(gone.to_vec()));
        assert_eq!((blob.head().snapshots, blob.head().staged, blob.rows.len()), (1, 1, 3));
        assert_eq!(remove(&mut blob, &[staged_row(b"b")]), Some(vec![staged_row(b"b")]));
        assert_eq!((blob.head().staged_id_len, blob.head().live().is_some()), (0, true));
        let before = blob.rows.clone();
        assert_eq!(remove(&mut blob, &[HEAD.to_owned()]), None);
        assert!(blob.rows == before, "whoever removes the name does so");
    }

    #[test]
    fn a_snapshot_goes_for_pages_that_only_it_names() {
        let mut blob = MemoryBlob::default();
        let content = || NewContent::Pages { size: 1 << 30, sequence_number: 0, ranges: Vec::new() };
        blob.run(put(content()), 1).unwrap();
        let region: Bytes = crate::page::pages::encode_region(0, &[]).into();
        blob.rows.insert(region_row(0, 0), region);
        blob.run(snapshot(), 2).unwrap();
        blob.run(snapshot(), 3).unwrap();
        assert_eq!(blob.count("4p"), 3);
        assert_eq!(remove(&mut blob, &[region_row(2, 0)]), Some(vec![snapshot_row(2)]));
        assert_eq!((blob.count("4p"), blob.count("1s"), blob.head().snapshots), (2, 1, 1));
        assert_eq!(remove(&mut blob, &[region_row(0, 0)]), None, "the base blob's");
    }
}
