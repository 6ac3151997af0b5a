//! What is known of a blob, and what a write sets of it.

use super::super::queue::message::ticks_of;
use crate::client::Operation;
use crate::error::Error;
use crate::table::entity::IfMatch;
use crate::wire::header_text::{metadata_of, text};
use base::Ticks;
use hyper::header::HeaderMap;
use std::collections::BTreeMap;

/// Properties of a blob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobProperties {
    /// Bytes of the whole blob.
    pub size_bytes: u64,
    /// Its version.
    pub etag: String,
    /// When it was last changed.
    pub modified_at: Ticks,
    /// `BlockBlob`, `AppendBlob` or `PageBlob`.
    pub kind: String,
    /// Its content type.
    pub content_type: String,
    /// Its stored MD5 in Base64; empty without one.
    pub content_md5: String,
    /// Names in lower case.
    pub metadata: BTreeMap<String, String>,
}

/// What a blob must be for a write to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BlobCondition {
    /// Anything.
    #[default]
    None,
    /// It must not be there.
    Absent,
    /// It must be there, in that version.
    Match(IfMatch),
}

/// What a write sets of a blob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobWrite {
    /// The service's `application/octet-stream` without one.
    pub content_type: Option<String>,
    /// The MD5 that the service keeps for readers, in Base64; of a blob that is put in one request it
    /// computes one without it.
    pub content_md5: Option<String>,
    /// Replaces all metadata.
    pub metadata: BTreeMap<String, String>,
    /// When it is done.
    pub condition: BlobCondition,
}

impl BlobWrite {
    /// The operation with these headers.
    pub(crate) fn apply(&self, mut operation: Operation) -> Result<Operation, Error> {
        if let Some(content_type) = &self.content_type {
            operation = operation.header("x-ms-blob-content-type", content_type)?;
        }
        if let Some(content_md5) = &self.content_md5 {
            operation = operation.header("x-ms-blob-content-md5", content_md5)?;
        }
        self.condition.apply(operation.metadata(&self.metadata)?)
    }
}

impl BlobCondition {
    pub(crate) fn apply(&self, operation: Operation) -> Result<Operation, Error> {
        match self {
            BlobCondition::None => Ok(operation),
            BlobCondition::Absent => Ok(operation.fixed("if-none-match", "*")),
            BlobCondition::Match(if_match) => operation.header("if-match", if_match.header()),
        }
    }
}

/// The properties that an answer's headers have; of a part, the size is that of the whole blob.
pub(crate) fn read_properties(headers: &HeaderMap) -> Option<BlobProperties> {
    let whole = text(headers, "content-range").rsplit('/').next().filter(|size| !size.is_empty());
    let size = whole.unwrap_or_else(|| text(headers, "content-length"));
    let md5 = text(headers, "x-ms-blob-content-md5");
    Some(BlobProperties {
        size_bytes: size.parse().ok()?,
        etag: text(headers, "etag").to_owned(),
        modified_at: ticks_of(text(headers, "last-modified")).unwrap_or_default(),
        kind: text(headers, "x-ms-blob-type").to_owned(),
        content_type: text(headers, "content-type").to_owned(),
        content_md5: if md5.is_empty() { text(headers, "content-md5") } else { md5 }.to_owned(),
        metadata: metadata_of(headers),
    })
}
