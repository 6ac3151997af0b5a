//! Append blobs and page blobs.

use super::blob_client::BlobClient;
use super::properties::BlobWrite;
use crate::error::Error;
use bytes::Bytes;
use hyper::Method;
use std::ops::Range;

impl BlobClient {
    /// Makes an empty append blob in place of what is there; its ETag.
    pub async fn create_append_blob(&self, write: &BlobWrite) -> Result<String, Error> {
        let operation =
            self.operation("create append blob", Method::PUT).fixed("x-ms-blob-type", "AppendBlob");
        Ok(self.client.send(&write.apply(operation)?).await?.header("etag").to_owned())
    }

    /// Appends to an append blob; where the bytes begin. With `at` the blob must have that size: then a
    /// repeated attempt cannot append twice. Without it the append is not repeated after a failure that
    /// leaves open whether it was done, unless the retry policy says so.
    pub async fn append(&self, content: impl Into<Bytes>, at: Option<u64>) -> Result<u64, Error> {
        let mut operation =
            self.operation("append block", Method::PUT).query("comp", "appendblock").body(content);
        operation = match at {
            Some(at) => operation.header("x-ms-blob-condition-appendpos", &at.to_string())?,
            None => operation.unrepeatable(),
        };
        let answer = self.client.send(&operation).await?;
        let offset = answer.header("x-ms-blob-append-offset").parse();
        offset.map_err(|_| Error::unreadable(operation.name, "it has no offset"))
    }

    /// Makes a page blob of zeros in place of what is there; `size_bytes` is a multiple of 512.
    pub async fn create_page_blob(&self, size_bytes: u64, write: &BlobWrite) -> Result<String, Error> {
        let operation = self
            .operation("create page blob", Method::PUT)
            .fixed("x-ms-blob-type", "PageBlob")
            .header("x-ms-blob-content-length", &size_bytes.to_string())?;
        Ok(self.client.send(&write.apply(operation)?).await?.header("etag").to_owned())
    }

    /// Writes whole pages of 512 bytes, at most 4 MiB.
    pub async fn put_pages(&self, offset: u64, content: impl Into<Bytes>) -> Result<(), Error> {
        let content: Bytes = content.into();
        if content.is_empty() {
            return Ok(());
        }
        let last = offset + content.len() as u64 - 1;
        let operation = self
            .operation("put page", Method::PUT)
            .query("comp", "page")
            .fixed("x-ms-page-write", "update")
            .header("x-ms-range", &format!("bytes={offset}-{last}"))?
            .body(content);
        self.client.send(&operation).await.map(drop)
    }

    /// Makes whole pages zero again.
    pub async fn clear_pages(&self, range: Range<u64>) -> Result<(), Error> {
        if range.is_empty() {
            return Ok(());
        }
        let operation = self
            .operation("clear page", Method::PUT)
            .query("comp", "page")
            .fixed("x-ms-page-write", "clear")
            .header("x-ms-range", &format!("bytes={}-{}", range.start, range.end - 1))?;
        self.client.send(&operation).await.map(drop)
    }
}
