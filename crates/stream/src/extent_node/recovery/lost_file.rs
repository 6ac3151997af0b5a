//! Stands in for the file of an extent that can't be used: reads and writes of it fail with the reason.

use async_trait::async_trait;
use base::DiskFile;
use bytes::Bytes;
use std::io;

/// Why the file can't be used.
pub(crate) struct LostFile(pub(crate) String);

impl LostFile {
    fn error<T>(&self) -> io::Result<T> {
        Err(io::Error::new(io::ErrorKind::NotFound, self.0.clone()))
    }
}

#[async_trait]
impl DiskFile for LostFile {
    async fn read_at(&self, _offset: u64, _len: usize) -> io::Result<Bytes> {
        self.error()
    }
    async fn write_at(&self, _offset: u64, _bytes: Bytes) -> io::Result<()> {
        self.error()
    }
    async fn sync_data(&self) -> io::Result<()> {
        self.error()
    }
    async fn size(&self) -> io::Result<u64> {
        self.error()
    }
    async fn set_len(&self, _len: u64) -> io::Result<()> {
        self.error()
    }
}
