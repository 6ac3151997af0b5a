//! Uploads: bytes that arrive in whatever portions become pieces of blob data, in constant memory.
//!
//! While one piece is on its way to the disk the next one fills. The more uploads there are, the smaller
//! their pieces, so that very many clients fill a bounded part of memory. What always holds: nothing that an
//! upload wrote is visible before an operation names its pieces; one that is dropped leaves bytes that no row
//! names.

use crate::content::md5_together;
use crate::error::BlobError;
use crate::limits::INLINE_SIZE_BYTES_MAX;
use crate::rows::blob_address::BlobAddress;
use crate::rows::head_row::HEAD;
use bytes::{Bytes, BytesMut};
use md5::{Digest, Md5};
use partition::{DataPin, ObjectTable, PIECE_SIZE_BYTES_MAX, PartitionError, Partitions, Piece};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

type Append = Pin<Box<dyn Future<Output = Result<(Piece, DataPin), PartitionError>> + Send>>;

/// Bytes of all pieces that fill, as a part of the memory budget, as long as they need not be smaller than
/// [`PIECE_SIZE_BYTES_MIN`] for it.
const FILLING_OF_MEMORY: u64 = 8;
const FILLING_SIZE_BYTES_MIN: u64 = 16 << 20;
const FILLING_SIZE_BYTES_MAX: u64 = 256 << 20;
/// Bytes of a piece that is sent before its upload ends. What fits the journal costs no sync of its own.
const PIECE_SIZE_BYTES_MIN: usize = 256 << 10;
/// A piece that has outgrown this gets room for all of it at once.
const GROWS_UNTIL_BYTES: usize = 64 << 10;

/// Bytes of all pieces that fill, with such a memory budget.
fn choose_filling_size(budget_bytes: u64) -> usize {
    let size = (budget_bytes / FILLING_OF_MEMORY).clamp(FILLING_SIZE_BYTES_MIN, FILLING_SIZE_BYTES_MAX);
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// Bytes of a piece when so many uploads are under way, and all may fill so many bytes.
fn choose_piece_size(filling_size_bytes_max: usize, upload_count: usize) -> usize {
    (filling_size_bytes_max / upload_count.max(1)).clamp(PIECE_SIZE_BYTES_MIN, PIECE_SIZE_BYTES_MAX)
}

/// Counts the uploads under way.
#[derive(Clone)]
pub(crate) struct UploadCount {
    count: Arc<AtomicUsize>,
    filling_size_bytes_max: usize,
}

/// One of them.
struct Counted(UploadCount);

impl UploadCount {
    /// With such a memory budget.
    pub(crate) fn new(budget_bytes: u64) -> Self {
        UploadCount { count: Arc::default(), filling_size_bytes_max: choose_filling_size(budget_bytes) }
    }

    fn enter(&self) -> Counted {
        self.count.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }
}

impl Counted {
    fn piece_size(&self) -> usize {
        choose_piece_size(self.0.filling_size_bytes_max, self.0.count.load(Ordering::Relaxed))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Bytes on their way into a blob.
pub struct Upload {
    partitions: Arc<Partitions>,
    address: BlobAddress,
    /// Bytes may end up in the row.
    may_be_inline: bool,
    /// The only portion so far, of a body that may end up in the row: it need not be copied, nor hashed
    /// alone.
    first: Bytes,
    buffer: BytesMut,
    on_its_way: Option<Append>,
    pieces: Vec<Piece>,
    pins: Vec<DataPin>,
    size: u64,
    md5: Option<Md5>,
    crc64: crc_fast::Digest,
    counted: Counted,
}

/// Bytes that are durable, or small.
pub struct Uploaded {
    /// All bytes, if they are few and may lie in the row.
    pub(crate) inline: Option<Bytes>,
    pub(crate) pieces: Vec<Piece>,
    /// Held until a row names the pieces.
    pub(crate) pins: Vec<DataPin>,
    /// How many.
    pub size: u64,
    /// Their MD5, if it was asked for.
    pub md5: Option<[u8; 16]>,
    /// Their CRC-64/NVME.
    pub crc64: u64,
}

impl Upload {
    pub(crate) fn new(
        partitions: Arc<Partitions>,
        address: BlobAddress,
        count: &UploadCount,
        may_be_inline: bool,
        with_md5: bool,
    ) -> Self {
        Upload {
            partitions,
            address,
            may_be_inline,
            first: Bytes::new(),
            buffer: BytesMut::new(),
            on_its_way: None,
            pieces: Vec::new(),
            pins: Vec::new(),
            size: 0,
            md5: with_md5.then(Md5::new),
            crc64: crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme),
            counted: count.enter(),
        }
    }

    /// Bytes so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Takes the next bytes.
    pub async fn write(&mut self, mut bytes: Bytes) -> Result<(), BlobError> {
        let is_first = self.size == 0;
        self.size += bytes.len() as u64;
        self.crc64.update(&bytes);
        if is_first && self.may_be_inline && bytes.len() <= INLINE_SIZE_BYTES_MAX {
            self.first = bytes;
            return Ok(());
        }
        let first = std::mem::take(&mut self.first);
        if let Some(md5) = &mut self.md5 {
            md5.update(&first);
            md5.update(&bytes);
        }
        self.buffer.extend_from_slice(&first);
        while !bytes.is_empty() {
            let piece_size = self.counted.piece_size();
            let room = piece_size.saturating_sub(self.buffer.len());
            let taken = bytes.split_to(bytes.len().min(room));
            if self.buffer.len() + taken.len() > GROWS_UNTIL_BYTES {
                self.buffer.reserve(room);
            }
            self.buffer.extend_from_slice(&taken);
            // Others may have begun meanwhile: then it is larger than it would be now.
            if self.buffer.len() >= piece_size {
                self.send().await?;
            }
        }
        Ok(())
    }

    /// Starts to append what is in the buffer, once the piece before it is there.
    async fn send(&mut self) -> Result<(), BlobError> {
        self.settle().await?;
        let bytes = std::mem::take(&mut self.buffer).freeze();
        let (partitions, key) = (self.partitions.clone(), self.address.key(HEAD));
        let append = async move { partitions.append_data(ObjectTable::Blob, &key, bytes).await };
        let mut append: Append = Box::pin(append);
        match poll_fn(|context| Poll::Ready(append.as_mut().poll(context))).await {
            Poll::Ready(done) => self.keep(done?),
            Poll::Pending => self.on_its_way = Some(append),
        }
        Ok(())
    }

    /// Waits for the piece that is on its way, if there is one. May be dropped and called again: nothing is
    /// lost.
    pub async fn settle(&mut self) -> Result<(), BlobError> {
        if let Some(append) = &mut self.on_its_way {
            let done = append.await;
            self.on_its_way = None;
            self.keep(done?);
        }
        Ok(())
    }

    fn keep(&mut self, (piece, pin): (Piece, DataPin)) {
        self.pieces.push(piece);
        self.pins.push(pin);
    }

    /// All bytes were written: they are durable, or few enough for the row.
    pub async fn finish(mut self) -> Result<Uploaded, BlobError> {
        let md5 = match self.md5.take() {
            Some(_) if !self.first.is_empty() => Some(md5_together::md5_of(self.first.clone()).await),
            md5 => md5.map(|md5| md5.finalize().into()),
        };
        let mut inline = None;
        if self.may_be_inline && self.size <= INLINE_SIZE_BYTES_MAX as u64 {
            let first = std::mem::take(&mut self.first);
            inline = Some(if self.buffer.is_empty() { first } else { self.buffer.split().freeze() });
        } else if !self.buffer.is_empty() {
            self.send().await?;
        }
        self.settle().await?;
        Ok(Uploaded {
            inline,
            pieces: self.pieces,
            pins: self.pins,
            size: self.size,
            md5,
            crc64: self.crc64.finalize(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use partition::PartitionSettings;
    use sim::World;
    use stream::{StreamSettings, Streams};

    #[test]
    fn pieces_shrink_with_the_number_of_uploads() {
        let of_large_budget = |upload_count| choose_piece_size(choose_filling_size(4 << 30), upload_count);
        assert_eq!(of_large_budget(1), PIECE_SIZE_BYTES_MAX);
        assert_eq!(of_large_budget(64), PIECE_SIZE_BYTES_MAX);
        assert_eq!(of_large_budget(512), 512 << 10);
        assert_eq!(of_large_budget(100_000), PIECE_SIZE_BYTES_MIN);
        for (budget_mib, filling_mib) in
            [(0, 16), (64, 16), (256, 32), (1024, 128), (2048, 256), (1 << 20, 256)]
        {
            assert_eq!(choose_filling_size(budget_mib << 20) >> 20, filling_mib, "{budget_mib} MiB");
        }
    }

    #[test]
    fn portions_of_a_small_body_become_one() {
        World::new(1).run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::default()).await.unwrap();
            let partitions = Partitions::open(&env, streams, PartitionSettings::default()).await.unwrap();
            let (partitions, count) = (Arc::new(partitions), UploadCount::new(1 << 30));
            let large = vec![b'x'; INLINE_SIZE_BYTES_MAX];
            let cases: [&[&[u8]]; 7] = [
                &[],
                &[b"ab"],
                &[b"ab", b"cd"],
                &[b"", b"ab"],
                &[b"ab", b"", b"c"],
                &[&large],
                &[b"a", &large],
            ];
            for portions in cases {
                for may_be_inline in [true, false] {
                    let address = BlobAddress { account: "a".into(), container_id: 1, name: "b".into() };
                    let mut upload = Upload::new(partitions.clone(), address, &count, may_be_inline, true);
                    for portion in portions {
                        upload.write(Bytes::copy_from_slice(portion)).await.unwrap();
                    }
                    let (uploaded, whole) = (upload.finish().await.unwrap(), portions.concat());
                    assert_eq!(uploaded.size, whole.len() as u64);
                    assert_eq!(uploaded.md5, Some(Md5::digest(&whole).into()));
                    let in_pieces: u64 = uploaded.pieces.iter().map(Piece::size_bytes).sum();
                    match may_be_inline && whole.len() <= INLINE_SIZE_BYTES_MAX {
                        true => assert_eq!((uploaded.inline.as_deref(), in_pieces), (Some(&whole[..]), 0)),
                        false => assert_eq!((uploaded.inline, in_pieces), (None, whole.len() as u64)),
                    }
                }
            }
            partitions.close().await;
        });
    }

    /// Each upload once filled 4 MiB, however many there were: a thousand clients took 4 GiB.
    #[test]
    fn many_uploads_fill_a_bounded_part_of_memory() {
        World::new(1).run(|env, _| async move {
            let streams = Streams::open(&env, StreamSettings::default()).await.unwrap();
            let partitions = Partitions::open(&env, streams, PartitionSettings::default()).await.unwrap();
            let (partitions, count) = (Arc::new(partitions), UploadCount::new(1 << 30));
            let mut uploads: Vec<Upload> = (0..1024)
                .map(|number| {
                    let name = number.to_string();
                    let address = BlobAddress { account: "a".into(), container_id: 1, name: name.into() };
                    Upload::new(partitions.clone(), address, &count, false, false)
                })
                .collect();
            let bytes = Bytes::from(vec![7; 300 << 10]);
            for upload in &mut uploads {
                upload.write(bytes.clone()).await.unwrap();
                // As the front end does while it waits for the client.
                upload.settle().await.unwrap();
            }
            let filled: usize = uploads.iter().map(|upload| upload.buffer.capacity()).sum();
            assert!(filled as u64 <= FILLING_SIZE_BYTES_MAX, "{filled} bytes");
            let last = uploads.pop().unwrap();
            drop(uploads);
            assert_eq!(last.counted.piece_size(), PIECE_SIZE_BYTES_MAX);
            let uploaded = last.finish().await.unwrap();
            assert_eq!(uploaded.pieces.iter().map(Piece::size_bytes).sum::<u64>(), 300 << 10);
            partitions.close().await;
        });
    }
}
