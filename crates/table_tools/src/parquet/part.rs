//! The bytes of a row group, which the library asks for by their offsets in the file.
//!
//! What always holds: what is elsewhere is an error.

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

/// A part of the file, by the offsets of all of it.
pub(super) struct Part {
    start: u64,
    bytes: Bytes,
}

impl Part {
    /// What begins at this offset.
    pub(super) fn new(start: u64, bytes: Bytes) -> Self {
        Part { start, bytes }
    }

    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let at = start.checked_sub(self.start).filter(|at| *at <= self.bytes.len() as u64);
        let at = at.ok_or_else(|| ParquetError::EOF(format!("offset {start} is elsewhere")))?;
        Ok(self.bytes.slice(at as usize..))
    }
}

impl Length for Part {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Part {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(bytes::Buf::reader(self.from(start)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let rest = self.from(start)?;
        if length > rest.len() {
            return Err(ParquetError::EOF(format!("{length} bytes at offset {start} are elsewhere")));
        }
        Ok(rest.slice(..length))
    }
}
