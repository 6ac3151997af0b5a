//! A blob: put, staged in blocks, read, deleted.

use super::properties::{BlobCondition, BlobProperties, BlobWrite, read_properties};
use crate::account::endpoint::Service;
use crate::client::{Client, Operation};
use crate::error::Error;
use crate::wire::address_text::{encode, encode_path};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_client::xml::{Element, escaped, parse};
use hyper::Method;
use std::sync::Arc;

/// A blob of a container. Cheap to clone.
#[derive(Clone)]
pub struct BlobClient {
    pub(crate) client: Arc<Client>,
    pub(crate) container: String,
    pub(crate) name: String,
}

/// A block of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobBlock {
    /// Its id, decoded.
    pub id: Vec<u8>,
    /// Its bytes.
    pub size_bytes: u64,
}

/// The blocks of a blob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockList {
    /// Those that make the blob, in order.
    pub committed: Vec<BlobBlock>,
    /// Those that are staged.
    pub uncommitted: Vec<BlobBlock>,
}

impl BlobClient {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn operation(&self, name: &'static str, method: Method) -> Operation {
        let path = format!("/{}/{}", encode(&self.container), encode_path(&self.name));
        Operation::new(name, Service::Blob, method, path)
    }

    /// Puts a block blob in one request; its ETag. [`BlobClient::upload`] is for large ones.
    pub async fn put(&self, content: impl Into<Bytes>, write: &BlobWrite) -> Result<String, Error> {
        let operation = self.operation("put blob", Method::PUT).fixed("x-ms-blob-type", "BlockBlob");
        let operation = write.apply(operation)?.body(content);
        Ok(self.client.send(&operation).await?.header("etag").to_owned())
    }

    /// Stages a block; ids of one blob are equally long, at most 64 bytes.
    pub async fn stage_block(&self, id: &[u8], content: impl Into<Bytes>) -> Result<(), Error> {
        let operation = self
            .operation("put block", Method::PUT)
            .query("comp", "block")
            .query("blockid", STANDARD.encode(id))
            .body(content);
        self.client.send(&operation).await.map(drop)
    }

    /// Makes the blob of these blocks, staged or of its former content, in this order; its ETag.
    pub async fn commit_blocks(&self, ids: &[Vec<u8>], write: &BlobWrite) -> Result<String, Error> {
        let mut body = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>".to_owned();
        for id in ids {
            body.push_str(&format!("<Latest>{}</Latest>", escaped(&STANDARD.encode(id))));
        }
        body.push_str("</BlockList>");
        let operation = self
            .operation("put block list", Method::PUT)
            .query("comp", "blocklist")
            .fixed("content-type", "application/xml")
            .body(body);
        Ok(self.client.send(&write.apply(operation)?).await?.header("etag").to_owned())
    }

    /// Its blocks, committed and staged.
    pub async fn block_list(&self) -> Result<BlockList, Error> {
        let operation = self
            .operation("get block list", Method::GET)
            .query("comp", "blocklist")
            .query("blocklisttype", "all");
        let answer = self.client.send(&operation).await?;
        let unreadable = |why| Error::unreadable(operation.name, why);
        let root = parse(&answer.body).map_err(unreadable)?;
        Ok(BlockList {
            committed: blocks(root.child("CommittedBlocks")).map_err(unreadable)?,
            uncommitted: blocks(root.child("UncommittedBlocks")).map_err(unreadable)?,
        })
    }

    /// Its properties.
    pub async fn properties(&self) -> Result<BlobProperties, Error> {
        let operation = self.operation("get blob properties", Method::HEAD);
        let answer = self.client.send(&operation).await?;
        read_properties(&answer.headers).ok_or_else(|| Error::unreadable(operation.name, "it has no size"))
    }

    /// Replaces all its properties by those of `write`, which are lost where it has none; its ETag. Metadata
    /// stays as it is.
    pub async fn set_properties(&self, write: &BlobWrite) -> Result<String, Error> {
        let operation = self.operation("set blob properties", Method::PUT).query("comp", "properties");
        let operation = write.condition.apply(write.apply_properties(operation)?)?;
        Ok(self.client.send(&operation).await?.header("etag").to_owned())
    }

    /// Deletes the blob; with `with_snapshots` its snapshots, too, which it must not have otherwise.
    pub async fn delete(&self, condition: &BlobCondition, with_snapshots: bool) -> Result<(), Error> {
        let mut operation = self.operation("delete blob", Method::DELETE);
        if with_snapshots {
            operation = operation.fixed("x-ms-delete-snapshots", "include");
        }
        self.client.send(&condition.apply(operation)?).await.map(drop)
    }
}

fn blocks(list: Option<&Element>) -> Result<Vec<BlobBlock>, String> {
    let blocks = list.map(|list| list.children.as_slice()).unwrap_or_default();
    let block = |block: &Element| {
        let id = STANDARD.decode(block.text_of("Name").trim()).map_err(|_| "a block's name is no Base64")?;
        let size_bytes = block.text_of("Size").trim().parse().map_err(|_| "a block has no size")?;
        Ok(BlobBlock { id, size_bytes })
    };
    blocks.iter().map(block).collect()
}
