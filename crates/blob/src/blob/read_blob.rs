//! Reading a blob's bytes, in constant memory but for the rows that say where those of a long list of blocks
//! are.
//!
//! What always holds: the bytes are those of one version of a block or append blob, whatever is written
//! meanwhile; its pieces stay until the reader is dropped. The ranges of a page blob are looked up region by
//! region.

use crate::content::{Block, Content, decode_block_row};
use crate::error::BlobError;
use crate::lease::Lease;
use crate::limits::PAGE_REGION_SIZE_BYTES;
use crate::page::pages::{decode_region, region_of};
use crate::rows::blob_address::BlobAddress;
use crate::rows::chunk_row::chunk_row;
use crate::rows::former_row::decode_snapshot;
use crate::rows::head_row::{HEAD, Head};
use crate::rows::record::BlobRecord;
use crate::rows::region_row::region_row;
use crate::rows::revision::Revision;
use base::Ticks;
use bytes::Bytes;
use partition::{DataPin, ObjectTable, PartitionError, Partitions, Piece, Row};
use std::collections::VecDeque;
use std::sync::Arc;

/// Times that a blob is looked up again because it was replaced meanwhile.
pub(crate) const LOOK_UP_COUNT_MAX: usize = 8;
/// Bytes of zeros at a time.
const ZEROS_SIZE_BYTES: usize = 64 << 10;

/// What is known of a blob that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRecord {
    /// The blob or snapshot.
    pub record: BlobRecord,
    /// Its lease.
    pub lease: Lease,
    /// Which one it is: a version that is the base blob counts as such.
    pub revision: Revision,
    /// The time in its range after it was read. Leases are decided by that time, so they are reported by it.
    pub now: Ticks,
}

/// Finds a blob; its pieces stay while the pin is held.
pub(crate) async fn find(
    partitions: &Partitions,
    address: &BlobAddress,
    revision: Revision,
) -> Result<(FoundRecord, DataPin), BlobError> {
    let get = |row: String| async move {
        let key = address.key(&row);
        let (row, pin) =
            partitions.get_with_data(ObjectTable::Blob, &key).await?.ok_or(BlobError::BlobNotFound)?;
        Ok((row, pin, partitions.now(ObjectTable::Blob, &key)?))
    };
    find_by(get, revision).await
}

/// Finds a blob, of which nobody reads the bytes: its content may be [`Content::Unread`].
pub(crate) async fn find_head(
    partitions: &Partitions,
    address: &BlobAddress,
    revision: Revision,
) -> Result<FoundRecord, BlobError> {
    let get = |row: String| async move {
        let key = address.key(&row);
        let row = partitions.get_head(ObjectTable::Blob, &key).await?.ok_or(BlobError::BlobNotFound)?;
        Ok((row, (), partitions.now(ObjectTable::Blob, &key)?))
    };
    Ok(find_by(get, revision).await?.0)
}

/// Finds a blob in the rows that `get` reads, with what comes with its row and the time in the row's range.
async fn find_by<P, G: Future<Output = Result<(Row, P, Ticks), BlobError>>>(
    get: impl Fn(String) -> G,
    revision: Revision,
) -> Result<(FoundRecord, P), BlobError> {
    // A snapshot is never the base blob, a version may be.
    let head = match revision {
        Revision::Snapshot(_) => None,
        _ => {
            let (row, pin, now) = get(HEAD.to_owned()).await?;
            Some((Head::decode(&row.value)?, pin, now))
        }
    };
    let revision = head.as_ref().map_or(revision, |(head, ..)| revision.resolve(head));
    let (found, pin) = match (revision.row(), head) {
        (None, Some((head, pin, now))) => {
            let record = head.current.ok_or(BlobError::BlobNotFound)?;
            (FoundRecord { record, lease: head.lease, revision, now }, pin)
        }
        (row, _) => {
            let (row, pin, now) = get(row.unwrap_or_default()).await?;
            (FoundRecord { record: decode_snapshot(&row.value)?, lease: Lease::None, revision, now }, pin)
        }
    };
    if found.record.deleted.is_some() { Err(BlobError::BlobNotFound) } else { Ok((found, pin)) }
}

/// A part of what is to be read.
enum Part {
    Bytes(Bytes),
    Zeros(u64),
    /// From and to, in the piece; the pin's index.
    Piece(Piece, u64, u64, usize),
    /// A row of blocks that is unpacked when its turn comes, and where it begins in the blob; the pin's
    /// index. Unpacked it is several times as large.
    Chunk(Bytes, u64, usize),
    /// Regions of pages that were not looked up yet: from and to, in the blob.
    Pages(u64, u64, u64),
}

/// Reads bytes of one blob.
pub struct BlobReader {
    partitions: Arc<Partitions>,
    address: BlobAddress,
    revision: Revision,
    /// Pages that are looked up later must still be those of the blob that was found.
    created_at: Ticks,
    /// What is read of the blob.
    start: u64,
    end: u64,
    parts: VecDeque<Part>,
    pins: Vec<DataPin>,
}

impl BlobReader {
    /// Reads `start..end` of the blob that was found; the range lies inside. `None`: it was replaced
    /// meanwhile.
    pub(crate) async fn open(
        partitions: Arc<Partitions>,
        address: BlobAddress,
        found: &FoundRecord,
        pin: DataPin,
        start: u64,
        end: u64,
    ) -> Result<Option<Self>, BlobError> {
        let mut reader = BlobReader {
            partitions,
            address,
            revision: found.revision,
            created_at: found.record.version.created_at,
            start,
            end,
            parts: VecDeque::new(),
            pins: vec![pin],
        };
        if start >= end {
            return Ok(Some(reader));
        }
        match &found.record.content {
            Content::Inline(bytes) => {
                if end > bytes.len() as u64 {
                    return Err(base::codec::DecodeError("content").into());
                }
                reader.parts.push_back(Part::Bytes(bytes.slice(start as usize..end as usize)));
            }
            // Who reads bytes has found the blob with them.
            Content::Unread => return Err(base::codec::DecodeError("content that was not read").into()),
            Content::Pages(owner) => reader.parts.push_back(Part::Pages(*owner, start, end)),
            Content::Blocks(content) => {
                let mut at = 0;
                for (index, chunk) in content.chunks.iter().enumerate() {
                    if at < end && at + chunk.size > start {
                        let key = reader.address.key(&chunk_row(content.generation, index));
                        let row = reader.partitions.get_with_data(ObjectTable::Blob, &key).await?;
                        let Some((row, pin)) = row else { return Ok(None) };
                        reader.pins.push(pin);
                        reader.parts.push_back(Part::Chunk(row.value, at, reader.pins.len() - 1));
                    }
                    at += chunk.size;
                }
                let tail = reader.parts_of(&content.tail, at, 0);
                reader.parts.extend(tail);
            }
        }
        Ok(Some(reader))
    }

    /// What is read of blocks that begin at `at`.
    fn parts_of(&self, blocks: &[Block], mut at: u64, pin: usize) -> Vec<Part> {
        let mut parts = Vec::new();
        for piece in blocks.iter().flat_map(|block| &block.pieces) {
            let (from, to) = (self.start.max(at), self.end.min(at + piece.size_bytes()));
            if from < to {
                parts.push(Part::Piece(*piece, from - at, to - at, pin));
            }
            at += piece.size_bytes();
        }
        parts
    }

    /// Puts parts before the others.
    fn prepend(&mut self, parts: Vec<Part>) {
        parts.into_iter().rev().for_each(|part| self.parts.push_front(part));
    }

    /// The next bytes; `None`: that was all.
    pub async fn next(&mut self) -> Result<Option<Bytes>, BlobError> {
        loop {
            match self.parts.pop_front() {
                None => return Ok(None),
                Some(Part::Bytes(bytes)) => return Ok(Some(bytes)),
                Some(Part::Zeros(len)) => {
                    let now = len.min(ZEROS_SIZE_BYTES as u64);
                    if len > now {
                        self.parts.push_front(Part::Zeros(len - now));
                    }
                    return Ok(Some(Bytes::from(vec![0; now as usize])));
                }
                Some(Part::Piece(piece, from, to, pin)) => {
                    let pin_of = self.pins.get(pin).ok_or(PartitionError::Operation("a pin"))?;
                    let mut bytes = pin_of.read(&piece, from).await?;
                    bytes.truncate(usize::try_from(to - from).unwrap_or(usize::MAX));
                    let read = bytes.len() as u64;
                    if read == 0 {
                        return Err(base::codec::DecodeError("a piece that ends early").into());
                    }
                    if from + read < to {
                        self.parts.push_front(Part::Piece(piece, from + read, to, pin));
                    }
                    return Ok(Some(bytes));
                }
                Some(Part::Chunk(row, at, pin)) => {
                    let parts = self.parts_of(&decode_block_row(&row)?, at, pin);
                    self.prepend(parts);
                }
                Some(Part::Pages(owner, start, end)) => self.look_up_region(owner, start, end).await?,
            }
        }
    }

    /// Replaces the first region of what is left by its ranges and the zeros between them.
    async fn look_up_region(&mut self, owner: u64, start: u64, end: u64) -> Result<(), BlobError> {
        let region = region_of(start);
        let region_end = ((region + 1) * PAGE_REGION_SIZE_BYTES).min(end);
        let key = self.address.key(&region_row(owner, region));
        let mut parts = Vec::new();
        let mut at = start;
        if let Some((row, pin)) = self.partitions.get_with_data(ObjectTable::Blob, &key).await? {
            // Everything before was read: its pins are not needed any more.
            self.pins = vec![pin];
            for range in decode_region(region, &row.value)? {
                let Some(range) = range.cut(start, region_end) else { continue };
                if range.start > at {
                    parts.push(Part::Zeros(range.start - at));
                }
                parts.push(Part::Piece(range.piece, range.piece_offset, range.piece_offset + range.len, 0));
                at = range.start + range.len;
            }
        }
        // Pages of a blob that was deleted or replaced meanwhile would look like zeros, or be another's.
        let (now, _) = find(&self.partitions, &self.address, self.revision).await?;
        if now.record.version.created_at != self.created_at {
            return Err(PartitionError::Busy.into());
        }
        if at < region_end {
            parts.push(Part::Zeros(region_end - at));
        }
        if region_end < end {
            parts.push(Part::Pages(owner, region_end, end));
        }
        self.prepend(parts);
        Ok(())
    }
}

/// Finds a blob and reads `range_of(record)` of it.
pub(crate) async fn open_reader(
    partitions: &Arc<Partitions>,
    address: &BlobAddress,
    revision: Revision,
    range_of: impl Fn(&FoundRecord) -> Result<(u64, u64), BlobError>,
) -> Result<(FoundRecord, (u64, u64), BlobReader), BlobError> {
    for _ in 0..LOOK_UP_COUNT_MAX {
        let (found, pin) = find(partitions, address, revision).await?;
        let (start, end) = range_of(&found)?;
        let reader = BlobReader::open(partitions.clone(), address.clone(), &found, pin, start, end).await?;
        if let Some(reader) = reader {
            return Ok((found, (start, end), reader));
        }
    }
    Err(PartitionError::Busy.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::put_blob::NewBlob;
    use crate::blob_service::{BlobService, VersionedAccounts};
    use crate::block::put_block_list::BlockSource;
    use crate::condition::Conditions;
    use crate::container::container_row::PublicAccess;
    use crate::name::Pairs;
    use partition::PartitionSettings;
    use sim::World;
    use stream::{StreamSettings, Streams};

    async fn rest(reader: &mut BlobReader) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(bytes) = reader.next().await.unwrap() {
            all.extend_from_slice(&bytes);
        }
        all
    }

    /// All pieces of a long list were unpacked before the first byte was read: up to a million for each
    /// reader.
    #[test]
    fn chunks_are_unpacked_when_their_turn_comes() {
        const CHUNKS: u64 = 3;
        World::new(1).run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::tiny()).await.unwrap();
            let partitions = Partitions::open(&env, streams, PartitionSettings::tiny()).await.unwrap();
            let partitions = Arc::new(partitions);
            let service =
                BlobService::new(partitions.clone(), env.clock.clone(), VersionedAccounts::default());
            let access = PublicAccess::None;
            service.create_container("acct", "box", Pairs::new(), access, Default::default()).await.unwrap();
            let container = service.container("acct", "box").await.unwrap();
            let at = service.blob("acct", &container, "a").unwrap();
            let blocks: [&'static [u8]; 3] = [b"a", b"bc", b"def"];
            for (number, block) in blocks.into_iter().enumerate() {
                let mut upload = service.upload(&at, false, false);
                upload.write(Bytes::from_static(block)).await.unwrap();
                let (id, uploaded) = (Bytes::from(vec![number as u8]), upload.finish().await.unwrap());
                service.put_block(&at, id, uploaded, None, Default::default(), false).await.unwrap();
            }
            let ids = (0..CHUNKS * 1000).map(|number| Bytes::from(vec![(number % 3) as u8]));
            let list = ids.map(|id| (BlockSource::Latest, id)).collect();
            service.put_block_list(&at, list, NewBlob::default(), Default::default()).await.unwrap();
            let whole = b"abcdef".repeat(CHUNKS as usize * 1000 / 3);
            let any = Conditions::default();
            let open = |range| service.read(&at, Revision::Current, &any, range);

            let (_, _, mut reader) = open(None).await.unwrap();
            let mut unpacked_max = 0;
            let mut read = Vec::new();
            while let Some(bytes) = reader.next().await.unwrap() {
                unpacked_max = unpacked_max.max(reader.parts.len());
                read.extend_from_slice(&bytes);
            }
            assert_eq!(read, whole);
            assert!(unpacked_max <= 1000 + CHUNKS as usize, "{unpacked_max} parts");

            for (from, to) in [(0, 1), (1, 3), (1998, 2003), (2000, 4001), (5998, 6000), (3, 5998)] {
                let (_, _, mut reader) = open(Some((from, Some(to)))).await.unwrap();
                assert_eq!(rest(&mut reader).await, whole[from as usize..to as usize], "{from}..{to}");
            }

            // The rows of a list that is replaced meanwhile are gone; its bytes are read all the same.
            let (_, _, mut reader) = open(None).await.unwrap();
            let first = reader.next().await.unwrap().unwrap();
            service.put_block_list(&at, Vec::new(), NewBlob::default(), Default::default()).await.unwrap();
            let others = rest(&mut reader).await;
            assert_eq!([&first[..], &others].concat(), whole);
            partitions.close().await;
        });
    }
}
