//! A block blob made of bytes as they come.
//!
//! What always holds: at most one block is in memory; nothing of the blob is visible before
//! [`Upload::finish`] has returned; a small blob is put in one request; an upload of which a write failed or
//! was dropped is never committed, because a block of it may be missing.

use super::blob_client::BlobClient;
use super::properties::BlobWrite;
use crate::error::Error;
use bytes::{Buf, Bytes, BytesMut};

/// Bytes of a block by default: 50,000 blocks make a blob of 390 GiB at most.
pub(crate) const BLOCK_SIZE_BYTES: usize = 8 << 20;

/// Blocks of a blob, at most.
const BLOCKS_MAX: usize = 50_000;

/// An upload.
pub struct Upload {
    blob: BlobClient,
    write: BlobWrite,
    block_size_bytes: usize,
    gathered: BytesMut,
    /// Blocks of other uploads to the same blob must not be taken for this one's.
    id: [u8; 8],
    staged: Vec<Vec<u8>>,
    /// A block was taken out of `gathered` and may not be staged.
    is_broken: bool,
}

impl BlobClient {
    /// Takes bytes as they come and makes a block blob of them, in constant memory.
    pub fn upload(&self, write: BlobWrite) -> Upload {
        Upload::new(self.clone(), write, BLOCK_SIZE_BYTES)
    }

    /// The same with blocks of that size; a blob has 50,000 at most.
    pub fn upload_in_blocks(&self, write: BlobWrite, block_size_bytes: usize) -> Upload {
        Upload::new(self.clone(), write, block_size_bytes)
    }
}

impl Upload {
    pub(crate) fn new(blob: BlobClient, write: BlobWrite, block_size_bytes: usize) -> Self {
        let id = blob.client.surroundings.random.next_u64().to_be_bytes();
        let block_size_bytes = block_size_bytes.max(1);
        let (gathered, staged) = (BytesMut::new(), Vec::new());
        Upload { blob, write, block_size_bytes, gathered, id, staged, is_broken: false }
    }

    /// Takes the next bytes; returns once whole blocks among them are staged. After an error, or if its
    /// future is dropped while it stages a block, the upload is of no more use: begin a new one.
    pub async fn write(&mut self, mut content: impl Buf) -> Result<(), Error> {
        self.check()?;
        while content.has_remaining() {
            let free = self.block_size_bytes - self.gathered.len();
            let count = content.remaining().min(free);
            self.gathered.extend_from_slice(&content.copy_to_bytes(count));
            // The last bytes stay, so that one block alone is put without being staged.
            if self.gathered.len() == self.block_size_bytes && content.has_remaining() {
                self.stage().await?;
            }
        }
        Ok(())
    }

    /// The MD5, in Base64, that the service keeps for readers; it is known only once all bytes are.
    pub fn set_content_md5(&mut self, content_md5: String) {
        self.write.content_md5 = Some(content_md5);
    }

    /// Makes the blob; its ETag. An error if a write failed or was dropped.
    pub async fn finish(mut self) -> Result<String, Error> {
        self.check()?;
        if self.staged.is_empty() {
            return self.blob.put(self.gathered.freeze(), &self.write).await;
        }
        if !self.gathered.is_empty() {
            self.stage().await?;
        }
        self.blob.commit_blocks(&self.staged, &self.write).await
    }

    fn check(&self) -> Result<(), Error> {
        if self.is_broken {
            let why =
                "a write of this upload failed or was dropped, so a block may be missing: upload it anew";
            return Err(Error::invalid("upload blob", why));
        }
        Ok(())
    }

    async fn stage(&mut self) -> Result<(), Error> {
        if self.staged.len() == BLOCKS_MAX {
            let why = format!("a blob has {BLOCKS_MAX} blocks at most: upload it in larger ones");
            return Err(Error::invalid("put block", why));
        }
        let mut id = self.id.to_vec();
        id.extend_from_slice(&(self.staged.len() as u32).to_be_bytes());
        let content: Bytes = self.gathered.split().freeze();
        // Until it is known to be staged: the await may fail, or never come back.
        self.is_broken = true;
        self.blob.stage_block(&id, content).await?;
        self.is_broken = false;
        self.staged.push(id);
        Ok(())
    }
}
