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
    /// Its content encoding; empty without one, as those below.
    pub content_encoding: String,
    /// Its content language.
    pub content_language: String,
    /// Its content disposition.
    pub content_disposition: String,
    /// How long caches may keep it.
    pub cache_control: String,
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
    /// Its content encoding, as those below none without one.
    pub content_encoding: Option<String>,
    /// Its content language.
    pub content_language: Option<String>,
    /// Its content disposition.
    pub content_disposition: Option<String>,
    /// How long caches may keep it.
    pub cache_control: Option<String>,
    /// The MD5 that the service keeps for readers, in Base64; of a blob that is put in one request it
    /// computes one without it.
    pub content_md5: Option<String>,
    /// Replaces all metadata.
    pub metadata: BTreeMap<String, String>,
    /// When it is done.
    pub condition: BlobCondition,
}

impl BlobWrite {
    /// What sets a blob's properties and metadata to those of another one, but for its MD5: what a blob that
    /// is put anew must have to be its copy.
    pub fn like(properties: &BlobProperties) -> Self {
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        BlobWrite {
            content_type: given(&properties.content_type),
            content_encoding: given(&properties.content_encoding),
            content_language: given(&properties.content_language),
            content_disposition: given(&properties.content_disposition),
            cache_control: given(&properties.cache_control),
            content_md5: None,
            metadata: properties.metadata.clone(),
            condition: BlobCondition::None,
        }
    }

    /// The operation with these headers.
    pub(crate) fn apply(&self, operation: Operation) -> Result<Operation, Error> {
        self.condition.apply(self.apply_properties(operation)?.metadata(&self.metadata)?)
    }

    /// The operation with the headers of properties.
    pub(crate) fn apply_properties(&self, mut operation: Operation) -> Result<Operation, Error> {
        for (name, value) in [
            ("x-ms-blob-content-type", &self.content_type),
            ("x-ms-blob-content-encoding", &self.content_encoding),
            ("x-ms-blob-content-language", &self.content_language),
            ("x-ms-blob-content-disposition", &self.content_disposition),
            ("x-ms-blob-cache-control", &self.cache_control),
            ("x-ms-blob-content-md5", &self.content_md5),
        ] {
            if let Some(value) = value {
                operation = operation.header(name, value)?;
            }
        }
        Ok(operation)
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
        content_encoding: text(headers, "content-encoding").to_owned(),
        content_language: text(headers, "content-language").to_owned(),
        content_disposition: text(headers, "content-disposition").to_owned(),
        cache_control: text(headers, "cache-control").to_owned(),
        content_md5: if md5.is_empty() { text(headers, "content-md5") } else { md5 }.to_owned(),
        metadata: metadata_of(headers),
    })
}
