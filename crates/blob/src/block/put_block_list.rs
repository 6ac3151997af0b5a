//! Committing a list of blocks: one decision over rows, no byte is copied.

use crate::blob::put_blob::{NewBlob, Written, set_tier};
use crate::blob::replacement::Replacement;
use crate::block::block_list::{committed, store_list};
use crate::content::{Content, decode_staged_row};
use crate::error::BlobError;
use crate::limits::{COMMITTED_BLOCKS_MAX, PIECES_OF_A_BLOB_MAX};
use crate::rows::decision::blob_change::BlobChange;
use crate::rows::decision::blob_rows::BlobRows;
use crate::rows::decision::stop::Stop;
use crate::rows::record::{BlobRecord, BlobType};
use crate::rows::staged_row::{STAGED_PREFIX, staged_row};
use base::Ticks;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Where a block of a list is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names say it.
pub enum BlockSource {
    Committed,
    Staged,
    /// Staged first.
    Latest,
}

/// Commits a list of blocks.
pub(crate) struct PutBlockList {
    pub(crate) list: Vec<(BlockSource, Bytes)>,
    pub(crate) new: NewBlob,
    pub(crate) replacement: Replacement,
}

impl BlobChange for PutBlockList {
    type Reply = Written;

    fn more_prefixes(&self) -> Vec<String> {
        vec![STAGED_PREFIX.to_owned()]
    }

    fn keeps_content(&self) -> bool {
        self.replacement.keeps_former()
    }

    fn decide(&self, rows: &mut BlobRows, now: Ticks) -> Result<Written, Stop> {
        if self.list.len() > COMMITTED_BLOCKS_MAX {
            return Err(BlobError::BlockListTooLong.into());
        }
        self.replacement.check(rows, now)?;
        if rows.head.live().is_some_and(|live| live.blob_type != BlobType::Block) {
            return Err(BlobError::InvalidBlobType.into());
        }
        self.replacement.check_type(rows, BlobType::Block)?;
        let old = rows.head.live().cloned();
        let mut by_id = BTreeMap::new();
        if let Some(old) = &old {
            for block in committed(rows, old)? {
                by_id.insert(block.id.clone(), block);
            }
        }
        let mut blocks = Vec::with_capacity(self.list.len());
        let mut piece_count = 0;
        for (source, id) in &self.list {
            let staged = match (source, rows.row(&staged_row(id))?) {
                (BlockSource::Staged | BlockSource::Latest, Some(row)) => {
                    let (mut blocks, encryption) = decode_staged_row(row)?;
                    self.new.encryption.check_write(&encryption)?;
                    blocks.pop()
                }
                _ => None,
            };
            let block = match (source, staged) {
                (_, Some(block)) => Some(block),
                (BlockSource::Committed | BlockSource::Latest, None) if !id.is_empty() => {
                    if let Some(old) = &old {
                        self.new.encryption.check_write(&old.encryption)?;
                    }
                    by_id.get(id).cloned()
                }
                _ => None,
            };
            let block = block.ok_or(BlobError::InvalidBlockList)?;
            // A short list can name one large block again and again.
            piece_count += block.pieces.len();
            if piece_count > PIECES_OF_A_BLOB_MAX {
                return Err(BlobError::BlockListTooLong.into());
            }
            blocks.push(block);
        }
        rows.clear_staged()?;
        self.replacement.retire_current(rows, now)?;
        let mut record = BlobRecord::new(BlobType::Block, now);
        record.size = blocks.iter().map(|block| block.size).sum();
        record.content = Content::Blocks(store_list(rows, blocks, now));
        record.properties = self.new.properties.clone();
        record.metadata = self.new.metadata.clone();
        record.tags = self.new.tags.clone();
        record.encryption = self.new.encryption.clone();
        if let Some(old) = old {
            record.version.created_at = old.version.created_at;
            record.tier.name = old.tier.name;
            record.tier.inferred = old.tier.inferred;
            record.tier.changed_at = old.tier.changed_at;
        }
        set_tier(&mut record, self.new.tier.as_deref(), now);
        record.version.id = self.replacement.versioned.then_some(now.0);
        let written = Written::of(&record);
        rows.head.current = Some(record);
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::put_block::PutBlock;
    use crate::content::{Block, decode_block_row, encode_block_row};
    use crate::encryption::Encryption;
    use crate::rows::chunk_row::chunk_row;
    use crate::rows::decision::memory_blob::MemoryBlob;
    use partition::Piece;

    fn stage(id: &str, at: u64) -> PutBlock {
        let pieces = vec![Piece::for_tests(1, at, 10)];
        let id = Bytes::copy_from_slice(id.as_bytes());
        PutBlock { id, size: 10, pieces, lease: None, encryption: Encryption::default(), create_only: false }
    }

    fn commit(list: &[(BlockSource, &str)]) -> PutBlockList {
        let list = list.iter().map(|(source, id)| (*source, Bytes::copy_from_slice(id.as_bytes()))).collect();
        PutBlockList { list, new: NewBlob::default(), replacement: Replacement::default() }
    }

    fn places(blob: &MemoryBlob) -> Vec<Piece> {
        match blob.head().current.unwrap().content {
            Content::Blocks(blocks) => blocks.tail.into_iter().flat_map(|block| block.pieces).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lists_take_committed_staged_or_latest_blocks() {
        use BlockSource::{Committed, Latest, Staged};
        let mut blob = MemoryBlob::default();
        let piece = |at| Piece::for_tests(1, at, 10);
        blob.run(stage("a", 1), 1).unwrap();
        blob.run(stage("b", 2), 2).unwrap();
        assert_eq!(blob.run(stage("long", 3), 3), Err(BlobError::InvalidBlobOrBlock));
        assert_eq!(blob.run(commit(&[(Committed, "a")]), 4), Err(BlobError::InvalidBlockList));
        assert_eq!(blob.head().staged, 2, "a refusal changes nothing");
        blob.run(commit(&[(Latest, "b"), (Staged, "a"), (Latest, "b")]), 5).unwrap();
        assert_eq!(places(&blob), [piece(2), piece(1), piece(2)]);
        assert_eq!((blob.head().staged, blob.count("5u")), (0, 0));
        assert_eq!(blob.head().current.unwrap().size, 30);

        blob.run(stage("a", 7), 6).unwrap();
        let mixed = commit(&[(Committed, "a"), (Latest, "a"), (Staged, "a")]);
        blob.run(mixed, 7).unwrap();
        assert_eq!(places(&blob), [piece(1), piece(7), piece(7)]);
        assert_eq!(blob.run(commit(&[(Staged, "a")]), 8), Err(BlobError::InvalidBlockList));
        blob.run(commit(&[]), 9).unwrap();
        assert_eq!(blob.head().current.unwrap().size, 0);
    }

    /// A list that named one large block a thousand times had all of its pieces in one row, a million.
    #[test]
    fn a_large_block_that_is_named_often_lies_in_many_chunks() {
        let mut blob = MemoryBlob::default();
        let pieces: Vec<Piece> = (0..1000).map(|at| Piece::for_tests(1, at, 10)).collect();
        blob.run(PutBlock { size: 10_000, pieces: pieces.clone(), ..stage("a", 0) }, 1).unwrap();
        blob.run(commit(&[(BlockSource::Latest, "a"); 22]), 2).unwrap();
        let Content::Blocks(content) = blob.head().current.unwrap().content else { panic!("blocks") };
        assert_eq!(content.chunks.iter().map(|chunk| chunk.blocks).collect::<Vec<_>>(), [4, 4, 4, 4, 4, 2]);
        let mut all = Vec::new();
        for (index, chunk) in content.chunks.iter().enumerate() {
            let blocks = decode_block_row(&blob.rows[&chunk_row(content.generation, index)]).unwrap();
            assert_eq!(blocks.iter().map(|block| block.size).sum::<u64>(), chunk.size);
            all.extend(blocks.into_iter().flat_map(|block| block.pieces));
        }
        assert_eq!(all, pieces.repeat(22));
        blob.run(commit(&[(BlockSource::Committed, "a"); 3]), 3).unwrap();
        assert_eq!(blob.count("3c"), 1, "what was committed is found in chunks");
    }

    #[test]
    fn blocks_are_committed_with_the_key_they_were_staged_with() {
        let mut blob = MemoryBlob::default();
        let key = Encryption { key_sha256: Some("hash".into()), scope: None };
        let list = || vec![(BlockSource::Latest, Bytes::from_static(b"a"))];
        let with = |encryption: &Encryption| {
            let new = NewBlob { encryption: encryption.clone(), ..NewBlob::default() };
            PutBlockList { list: list(), new, replacement: Replacement::default() }
        };
        blob.run(PutBlock { encryption: key.clone(), ..stage("a", 1) }, 1).unwrap();
        let refused = blob.run(with(&Encryption::default()), 2);
        assert_eq!(refused, Err(BlobError::EncryptionKeyMissing));
        assert_eq!(blob.run(with(&key), 3).unwrap().encryption, key);
        let refused = blob.run(with(&Encryption::default()), 4);
        assert_eq!(refused, Err(BlobError::EncryptionKeyMissing), "a committed block has the blob's key");
    }

    #[test]
    fn fifty_thousand_blocks_lie_in_chunks_that_go_with_their_blob() {
        let mut blob = MemoryBlob::default();
        let ids: Vec<String> = (0..COMMITTED_BLOCKS_MAX).map(|index| format!("{index:05}")).collect();
        for id in &ids[1..] {
            // As `PutBlock` does, without reading the head fifty thousand times.
            let row = encode_block_row(&[Block {
                id: Bytes::copy_from_slice(id.as_bytes()),
                size: 10,
                pieces: vec![Piece::for_tests(1, 1, 10)],
            }]);
            blob.rows.insert(staged_row(id.as_bytes()), row.into());
        }
        // One that is counted; the rest goes with it.
        blob.run(stage("00000", 1), 1).unwrap();
        let list: Vec<_> = ids.iter().map(|id| (BlockSource::Latest, id.as_str())).collect();
        blob.run(commit(&list), 2).unwrap();
        assert_eq!((blob.count("3c"), blob.count("5u")), (50, 0));
        assert_eq!(blob.head().current.unwrap().size, 500_000);
        let one_more: Vec<_> = list.iter().copied().chain([list[0]]).collect();
        assert_eq!(blob.run(commit(&one_more), 3), Err(BlobError::BlockListTooLong));
        blob.run(commit(&list[..300]), 4).unwrap();
        assert_eq!(blob.count("3c"), 1, "the old chunks are gone");
    }
}
