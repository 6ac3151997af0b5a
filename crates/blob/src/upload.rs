//! Uploads: bytes that arrive in whatever portions become pieces of blob data, in constant memory.
//!
//! While one piece is on its way to the disk the next one fills. What always holds: nothing that an upload wrote is
//! visible before an operation names its pieces; one that is dropped leaves bytes that no row names.

use crate::blob_rows::{BlobAddress, HEAD};
use crate::error::BlobError;
use crate::limits::INLINE_SIZE_BYTES_MAX;
use bytes::{Bytes, BytesMut};
use md5::{Digest, Md5};
use partition::{DataPin, ObjectTable, PIECE_SIZE_BYTES_MAX, PartitionError, Partitions, Piece};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

type Append = Pin<Box<dyn Future<Output = Result<(Piece, DataPin), PartitionError>> + Send>>;

/// Bytes on their way into a blob.
pub struct Upload {
    partitions: Arc<Partitions>,
    address: BlobAddress,
    /// Bytes may end up in the row.
    may_be_inline: bool,
    buffer: BytesMut,
    on_its_way: Option<Append>,
    pieces: Vec<Piece>,
    pins: Vec<DataPin>,
    size: u64,
    md5: Option<Md5>,
    crc64: crc_fast::Digest,
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
        may_be_inline: bool,
        with_md5: bool,
    ) -> Self {
        Upload {
            partitions,
            address,
            may_be_inline,
            buffer: BytesMut::new(),
            on_its_way: None,
            pieces: Vec::new(),
            pins: Vec::new(),
            size: 0,
            md5: with_md5.then(Md5::new),
            crc64: crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme),
        }
    }

    /// Bytes so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Takes the next bytes.
    pub async fn write(&mut self, mut bytes: Bytes) -> Result<(), BlobError> {
        self.size += bytes.len() as u64;
        if let Some(md5) = &mut self.md5 {
            md5.update(&bytes);
        }
        self.crc64.update(&bytes);
        while !bytes.is_empty() {
            let room = PIECE_SIZE_BYTES_MAX - self.buffer.len();
            let taken = bytes.split_to(bytes.len().min(room));
            self.buffer.extend_from_slice(&taken);
            if self.buffer.len() == PIECE_SIZE_BYTES_MAX {
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

    /// Waits for the piece that is on its way, if there is one. May be dropped and called again: nothing is lost.
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
        let mut inline = None;
        if self.may_be_inline && self.size <= INLINE_SIZE_BYTES_MAX as u64 {
            inline = Some(Bytes::copy_from_slice(&self.buffer));
        } else if !self.buffer.is_empty() {
            self.send().await?;
        }
        self.settle().await?;
        Ok(Uploaded {
            inline,
            pieces: self.pieces,
            pins: self.pins,
            size: self.size,
            md5: self.md5.map(|md5| md5.finalize().into()),
            crc64: self.crc64.finalize(),
        })
    }
}
