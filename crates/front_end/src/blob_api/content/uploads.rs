//! Operations whose bodies become bytes of blobs: they are streamed, and checked while they are.
//!
//! What always holds: a body that is too large is refused before any of it is kept, and one whose checksum
//! differs is never named by a row.

use crate::blob_api::blob_request::BlobRequest;
use crate::blob_api::content::structured::{
    STRUCTURED_BODY, STRUCTURED_V1, Unframer, content_size, is_structured,
};
use crate::blob_api::errors::from_blob;
use crate::blob_api::headers::Headers;
use crate::blob_api::headers::reply_headers::{
    crc64_text, put, put_encryption, put_version, put_written_encrypted,
};
use crate::blob_api::headers::request_headers::{
    BLOB_CONTENT_MD5, blob_properties, invalid, lease_id, metadata, missing, new_properties, number,
    parse_crc64, range, required, sequence_number, tags, text, write_conditions,
};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::pipeline::{IncomingBody, RequestBody, WholeBody};
use crate::reply::Reply;
use crate::request::content_md5::{CONTENT_MD5, announced_md5, compare_md5, parse_md5};
use crate::xml::{MALFORMED, referenced_char};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blob::limits::{
    APPEND_SIZE_BYTES_MAX, BLOCK_SIZE_BYTES_MAX, COMMITTED_BLOCKS_MAX, PAGE_BLOB_SIZE_BYTES_MAX,
    PAGE_SIZE_BYTES, PAGES_SIZE_BYTES_MAX, PUT_BLOB_SIZE_BYTES_MAX,
};
use blob::{
    BLOCK_TIERS, BlobAt, BlobType, BlockSource, NewBlob, PAGE_TIERS, ReplaceConditions, SequenceConditions,
    Upload, Uploaded, check_tier,
};
use bytes::Bytes;
use futures_util::future::{Either, select};
use hyper::StatusCode;
use md5::{Digest, Md5};
use quick_xml::Reader;
use quick_xml::events::Event;
use std::pin::pin;

/// Bytes of a document with a block list at most: 50,000 ids of 88 characters and their tags.
const BLOCK_LIST_SIZE_BYTES_MAX: usize = 8 << 20;

/// The checksums that a body must have.
struct ExpectedChecksums {
    md5: Option<[u8; 16]>,
    crc64: Option<u64>,
    /// Bytes of the body, if its content is in segments.
    structured: Option<u64>,
}

impl ExpectedChecksums {
    fn of(context: &BlobRequest<'_>) -> Result<Self, ApiError> {
        let headers = context.headers();
        let md5 = announced_md5(headers.get(CONTENT_MD5))?;
        const CRC64: &str = "x-ms-content-crc64";
        let crc64 = text(headers, CRC64).map(|text| parse_crc64(CRC64, text)).transpose()?;
        if md5.is_some() && crc64.is_some() {
            return Err(ErrorCode::BothCrc64AndMd5HeaderPresent.into());
        }
        Ok(ExpectedChecksums { md5, crc64, structured: None })
    }

    fn check(&self, uploaded: &Uploaded) -> Result<(), ApiError> {
        if let Some(md5) = self.md5 {
            compare_md5(md5, uploaded.md5)?;
        }
        compare_crc64(self.crc64, uploaded.crc64)
    }
}

/// Refuses bytes whose CRC-64 is not the announced one, and names both.
pub(crate) fn compare_crc64(announced: Option<u64>, found: u64) -> Result<(), ApiError> {
    let Some(announced) = announced.filter(|announced| *announced != found) else { return Ok(()) };
    let facts = [("UserSpecifiedCrc", announced), ("ServerCalculatedCrc", found)];
    let facts = facts.map(|(name, crc64)| (name, crc64_text(crc64)));
    Err(ApiError::with_facts(ErrorCode::Crc64Mismatch, facts))
}

/// The content of a body, structured or not, that is announced no larger than this; and what it must be.
fn announced<B: RequestBody>(
    context: &BlobRequest<'_>,
    body: &IncomingBody<'_, B>,
    size_max: u64,
) -> Result<(u64, ExpectedChecksums), ApiError> {
    let mut expected = ExpectedChecksums::of(context)?;
    if !is_structured(context.headers())? {
        return Ok((check_size(body, size_max)?, expected));
    }
    if expected.md5.is_some() || expected.crc64.is_some() {
        // It has its own checksums.
        return Err(invalid(STRUCTURED_BODY, STRUCTURED_V1));
    }
    let size = content_size(context.headers())?;
    if size > size_max {
        return Err(ApiError::body_too_large(size_max));
    }
    // The shortest segments have one byte of content and eighteen around it.
    expected.structured = Some(check_size(body, 64 + size.saturating_mul(19))?);
    Ok((size, expected))
}

/// A body that is announced no larger than this.
fn check_size<B: RequestBody>(body: &IncomingBody<'_, B>, size_max: u64) -> Result<u64, ApiError> {
    match body.announced_size() {
        None => Err(ApiError::missing_length()),
        Some(size) if size > size_max => Err(ApiError::body_too_large(size_max)),
        Some(size) => Ok(size),
    }
}

/// Streams a body into an upload and checks it.
async fn receive<B: RequestBody>(
    mut upload: Upload,
    body: IncomingBody<'_, B>,
    size: u64,
    expected: &ExpectedChecksums,
) -> Result<Uploaded, ApiError> {
    let mut portions = body.into_portions();
    let mut unframer = expected.structured.map(Unframer::new);
    loop {
        // A piece on its way goes on while the client is waited for: it holds memory that other uploads need.
        let next = {
            let next = pin!(portions.next());
            match select(next, pin!(upload.settle())).await {
                Either::Left((next, _)) => next?,
                Either::Right((settled, next)) => {
                    settled.map_err(from_blob)?;
                    next.await?
                }
            }
        };
        let Some(mut bytes) = next else { break };
        loop {
            let content = match &mut unframer {
                Some(unframer) => unframer.next(&mut bytes)?,
                None => Some(std::mem::take(&mut bytes)).filter(|bytes| !bytes.is_empty()),
            };
            let Some(content) = content else { break };
            if upload.size() + content.len() as u64 > size {
                return Err(ApiError::body_too_large(size));
            }
            upload.write(content).await.map_err(from_blob)?;
        }
    }
    if let Some(unframer) = &unframer {
        unframer.finish()?;
    }
    if upload.size() != size {
        return Err(ErrorCode::InvalidInput.into());
    }
    let uploaded = upload.finish().await.map_err(from_blob)?;
    expected.check(&uploaded)?;
    Ok(uploaded)
}

/// Bytes of a page blob.
const PAGE_BLOB_SIZE: &str = "x-ms-blob-content-length";

/// Bytes that a page blob shall have: whole pages, no more than there may be.
pub(crate) fn page_blob_size(headers: Headers<'_>) -> Result<Option<u64>, ApiError> {
    match number(headers, PAGE_BLOB_SIZE)? {
        Some(size) if !size.is_multiple_of(PAGE_SIZE_BYTES) || size > PAGE_BLOB_SIZE_BYTES_MAX => {
            Err(invalid(PAGE_BLOB_SIZE, &size.to_string()))
        }
        size => Ok(size),
    }
}

/// The tier that a request sets, of whatever type of blob.
pub(crate) fn tier(context: &BlobRequest<'_>) -> Result<Option<String>, ApiError> {
    match text(context.headers(), "x-ms-access-tier") {
        None => Ok(None),
        Some(tier) => match canonical(tier, BLOCK_TIERS.iter().chain(&PAGE_TIERS)) {
            Some(tier) => Ok(Some(tier.to_owned())),
            None => Err(invalid("x-ms-access-tier", tier)),
        },
    }
}

/// One of the known words, in whatever case it was sent: one client sends capitals.
pub(crate) fn canonical<'a>(
    sent: &str,
    known: impl IntoIterator<Item = &'a &'static str>,
) -> Option<&'static str> {
    known.into_iter().copied().find(|word| word.eq_ignore_ascii_case(sent))
}

/// What a request gives a new blob besides its bytes, and what it demands of the one that is there. Both are
/// read in one order, because a request with two faults gets the error of the first.
pub(crate) fn new_blob(context: &BlobRequest<'_>) -> Result<(NewBlob, ReplaceConditions), ApiError> {
    let headers = context.headers();
    let (properties, metadata) = (new_properties(headers)?, metadata(headers)?);
    let (tags, tier) = (tags(headers)?, tier(context)?);
    let conditions = write_conditions(headers)?;
    let encryption = context.encryption()?;
    let new = NewBlob { properties, metadata, tags, tier, copy: None, encryption, sealed: false };
    let create_only = context.is_create_only();
    Ok((new, ReplaceConditions { conditions, create_only, keeps_type: false }))
}

/// Gives a new blob what its container says of encryption.
pub(crate) fn encrypt(at: &BlobAt, new: &mut NewBlob) -> Result<(), ApiError> {
    let given = std::mem::take(&mut new.encryption);
    new.encryption = at.encryption.of_new_blob(given).map_err(from_blob)?;
    Ok(())
}

/// From this `x-ms-version` on an MD5 is returned only where one was sent.
const CRC64_SINCE: &str = "2019-02-02";

/// Whether the MD5 of what is sent is needed: to be compared, or for clients that know no other.
fn returns_md5(context: &BlobRequest<'_>, expected: &ExpectedChecksums) -> bool {
    let version = text(context.headers(), "x-ms-version");
    expected.md5.is_some() || version.is_some_and(|version| version < CRC64_SINCE)
}

fn put_checksums(reply: &mut Reply, expected: &ExpectedChecksums, uploaded: (Option<[u8; 16]>, u64)) {
    if expected.crc64.is_none()
        && let Some(md5) = uploaded.0
    {
        put(reply, "content-md5", &STANDARD.encode(md5));
    }
    put(reply, "x-ms-content-crc64", &crc64_text(uploaded.1));
    if expected.structured.is_some() {
        put(reply, STRUCTURED_BODY, STRUCTURED_V1);
    }
}

pub(crate) async fn put_blob<B: RequestBody>(
    context: &BlobRequest<'_>,
    body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    context.refuse_snapshot()?;
    let headers = context.headers();
    let kind = required(headers, "x-ms-blob-type")?;
    let sequence = sequence_number(headers)?;
    let blob_type = match kind {
        "BlockBlob" => BlobType::Block,
        "AppendBlob" => BlobType::Append,
        "PageBlob" => BlobType::Page,
        other => return Err(invalid("x-ms-blob-type", other)),
    };
    if let Some(number) = sequence.filter(|_| blob_type != BlobType::Page) {
        return Err(invalid("x-ms-blob-sequence-number", &number.to_string()));
    }
    let (size, mut expected) = announced(context, &body, PUT_BLOB_SIZE_BYTES_MAX)?;
    let (mut new, demands) = new_blob(context)?;
    // Before its bytes are taken.
    check_tier(blob_type, new.tier.as_deref()).map_err(from_blob)?;
    let at = context.blob().await?;
    encrypt(&at, &mut new)?;
    let mut reply = Reply::new(StatusCode::CREATED);
    if blob_type != BlobType::Block {
        if size != 0 {
            return Err(invalid("Content-Length", &size.to_string()));
        }
        let pages = page_blob_size(headers)?;
        if blob_type == BlobType::Page && pages.is_none() {
            return Err(missing(PAGE_BLOB_SIZE));
        }
        let pages = pages.unwrap_or(0);
        let sequence = sequence.unwrap_or(0);
        let written = context.service.create_empty(&at, blob_type, pages, sequence, new, demands).await;
        put_written_encrypted(&mut reply, &written.map_err(from_blob)?);
        return Ok(reply);
    }
    if new.properties.content_md5.is_some() {
        // The hash that is stored is the one that the bytes must have.
        expected.md5 = None;
    }
    let upload = context.service.upload(&at, true, true);
    let uploaded = receive(upload, body, size, &expected).await?;
    let checksums = (uploaded.md5, uploaded.crc64);
    match &new.properties.content_md5 {
        Some(stored) => compare_md5(parse_md5(BLOB_CONTENT_MD5, stored)?, uploaded.md5)?,
        None => new.properties.content_md5 = uploaded.md5.map(|md5| STANDARD.encode(md5)),
    }
    let written = context.service.put_blob(&at, blob_type, uploaded, new, demands).await;
    let written = written.map_err(from_blob)?;
    put_written_encrypted(&mut reply, &written);
    put_checksums(&mut reply, &expected, checksums);
    Ok(reply)
}

/// The block id in the parameters.
pub(crate) fn block_id(context: &BlobRequest<'_>) -> Result<Bytes, ApiError> {
    let text = context.query("blockid").ok_or_else(|| ApiError::missing_parameter("blockid"))?;
    let refused = |reason: &str| ApiError::invalid_parameter("blockid", text, reason);
    let id = STANDARD.decode(text).map_err(|_| refused("Not a valid base64 string."))?;
    if id.is_empty() || id.len() > blob::limits::BLOCK_ID_SIZE_BYTES_MAX {
        return Err(refused("A block ID has 1 to 64 bytes."));
    }
    Ok(id.into())
}

pub(crate) async fn put_block<B: RequestBody>(
    context: &BlobRequest<'_>,
    body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    let id = block_id(context)?;
    let (size, expected) = announced(context, &body, BLOCK_SIZE_BYTES_MAX)?;
    if size == 0 {
        return Err(invalid("Content-Length", "0"));
    }
    let lease = lease_id(context.headers())?;
    let at = context.blob().await?;
    let encryption = at.encryption.of_new_blob(context.encryption()?).map_err(from_blob)?;
    let upload = context.service.upload(&at, false, returns_md5(context, &expected));
    let uploaded = receive(upload, body, size, &expected).await?;
    let checksums = (uploaded.md5, uploaded.crc64);
    let create_only = context.is_create_only();
    let staged = context.service.put_block(&at, id, uploaded, lease, encryption.clone(), create_only).await;
    staged.map_err(from_blob)?;
    let mut reply = Reply::new(StatusCode::CREATED);
    put_checksums(&mut reply, &expected, checksums);
    put(&mut reply, "x-ms-request-server-encrypted", "true");
    put_encryption(&mut reply, &encryption);
    Ok(reply)
}

pub(crate) async fn put_block_list<B: RequestBody>(
    context: &BlobRequest<'_>,
    body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    if check_size(&body, BLOCK_LIST_SIZE_BYTES_MAX as u64)? == 0 {
        return Err(invalid("Content-Length", "0"));
    }
    let expected = ExpectedChecksums::of(context)?;
    // Its place is kept until the list that is made of it is committed.
    let WholeBody { bytes: document, memory: _memory } =
        body.read_document(BLOCK_LIST_SIZE_BYTES_MAX).await?;
    let crc64 = base::checksum::crc64(&[&document]);
    compare_crc64(expected.crc64, crc64)?;
    let list = read_block_list(&document)?;
    let (mut new, demands) = new_blob(context)?;
    // The headers of the document are not those of the blob.
    new.properties = blob_properties(context.headers())?;
    if new.properties.content_type.is_none() {
        new.properties.content_type = Some("application/octet-stream".to_owned());
    }
    let at = context.blob().await?;
    encrypt(&at, &mut new)?;
    let mut reply = Reply::new(StatusCode::CREATED);
    let written = context.service.put_block_list(&at, list, new, demands).await.map_err(from_blob)?;
    put_written_encrypted(&mut reply, &written);
    let md5 = returns_md5(context, &expected).then(|| Md5::digest(&document).into());
    put_checksums(&mut reply, &expected, (md5, crc64));
    Ok(reply)
}

/// Reads a list of block ids, element by element: it may have fifty thousand.
fn read_block_list(document: &[u8]) -> Result<Vec<(BlockSource, Bytes)>, ApiError> {
    let malformed = |at| ApiError::invalid_document(document, at, MALFORMED);
    let empty = |at| ApiError::invalid_document(document, at, "Block ID cannot be empty");
    let text = std::str::from_utf8(document).map_err(|error| malformed(error.valid_up_to()))?;
    let without_mark = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mark_len = text.len() - without_mark.len();
    let mut reader = Reader::from_str(without_mark);
    let (mut list, mut depth, mut open) = (Vec::new(), 0, None);
    let mut id = String::new();
    let mut has_root = false;
    loop {
        let at = mark_len + reader.buffer_position() as usize;
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(_) => return Err(malformed(mark_len + reader.error_position() as usize)),
        };
        match event {
            Event::Start(start) => {
                depth += 1;
                let name = start.local_name();
                match (depth, AsRef::<str>::as_ref(&name)) {
                    (1, "BlockList") => has_root = true,
                    (2, "Committed") => open = Some(BlockSource::Committed),
                    (2, "Uncommitted") => open = Some(BlockSource::Staged),
                    (2, "Latest") => open = Some(BlockSource::Latest),
                    _ => return Err(malformed(at)),
                }
            }
            Event::End(_) => {
                depth -= 1;
                if let Some(source) = open.take() {
                    if id.is_empty() {
                        return Err(empty(at));
                    }
                    let decoded = STANDARD.decode(id.trim());
                    let decoded = decoded.map_err(|_| ApiError::new(ErrorCode::InvalidBlockId))?;
                    list.push((source, Bytes::from(decoded)));
                    id.clear();
                    if list.len() > COMMITTED_BLOCKS_MAX {
                        return Err(ErrorCode::BlockListTooLong.into());
                    }
                }
            }
            Event::Empty(start) => {
                let name = start.local_name();
                match (depth, AsRef::<str>::as_ref(&name)) {
                    (0, "BlockList") => has_root = true,
                    (1, "Committed" | "Uncommitted" | "Latest") => return Err(empty(at)),
                    _ => return Err(malformed(at)),
                }
            }
            Event::Text(text) if open.is_some() => id.push_str(&text),
            Event::CData(text) if open.is_some() => id.push_str(&text),
            Event::GeneralRef(reference) if open.is_some() => {
                id.push(referenced_char(&reference).ok_or_else(|| malformed(at))?);
            }
            Event::Text(text) if text.trim().is_empty() => {}
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof if has_root && depth == 0 => return Ok(list),
            _ => return Err(malformed(at)),
        }
    }
}

pub(crate) async fn append_block<B: RequestBody>(
    context: &BlobRequest<'_>,
    body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    let (size, expected) = announced(context, &body, APPEND_SIZE_BYTES_MAX)?;
    if size == 0 {
        return Err(invalid("Content-Length", "0"));
    }
    let at = context.blob().await?;
    let upload = context.service.upload(&at, false, returns_md5(context, &expected));
    let uploaded = receive(upload, body, size, &expected).await?;
    let checksums = (uploaded.md5, uploaded.crc64);
    let mut reply = append(context, &at, uploaded).await?;
    put_checksums(&mut reply, &expected, checksums);
    Ok(reply)
}

/// Appends what was uploaded.
pub(crate) async fn append(
    context: &BlobRequest<'_>,
    at: &BlobAt,
    uploaded: Uploaded,
) -> Result<Reply, ApiError> {
    let headers = context.headers();
    let position = number(headers, "x-ms-blob-condition-appendpos")?;
    let size_max = number(headers, "x-ms-blob-condition-maxsize")?;
    let conditions = context.write_conditions(at)?;
    let mut reply = Reply::new(StatusCode::CREATED);
    let appended = context.service.append_block(at, uploaded, position, size_max, conditions).await;
    let appended = appended.map_err(from_blob)?;
    put_version(&mut reply, appended.etag, appended.modified_at);
    put_encryption(&mut reply, &appended.encryption);
    put(&mut reply, "x-ms-blob-append-offset", &appended.offset.to_string());
    put(&mut reply, "x-ms-blob-committed-block-count", &appended.blocks.to_string());
    put(&mut reply, "x-ms-request-server-encrypted", "true");
    Ok(reply)
}

pub(crate) async fn put_pages<B: RequestBody>(
    context: &BlobRequest<'_>,
    body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    let headers = context.headers();
    let (size, expected) = announced(context, &body, PAGES_SIZE_BYTES_MAX)?;
    let action = required(headers, "x-ms-page-write")?;
    let (start, len) = page_range(context)?;
    let at = context.blob().await?;
    let (uploaded, checksums) = match action.to_ascii_lowercase().as_str() {
        "update" => {
            if size != len {
                return Err(invalid("Content-Length", &size.to_string()));
            }
            let upload = context.service.upload(&at, false, returns_md5(context, &expected));
            let uploaded = receive(upload, body, size, &expected).await?;
            let checksums = (uploaded.md5, uploaded.crc64);
            (Some(uploaded), Some(checksums))
        }
        "clear" if size == 0 => (None, None),
        "clear" => return Err(invalid("Content-Length", &size.to_string())),
        other => return Err(invalid("x-ms-page-write", other)),
    };
    let mut reply = write_pages(context, &at, (start, len), uploaded).await?;
    if let Some(checksums) = checksums {
        put_checksums(&mut reply, &expected, checksums);
    }
    Ok(reply)
}

/// The range of pages that is written.
pub(crate) fn page_range(context: &BlobRequest<'_>) -> Result<(u64, u64), ApiError> {
    match range(context.headers()) {
        Some((start, Some(end))) => Ok((start, end - start)),
        Some((_, None)) => Err(ErrorCode::InvalidPageRange.into()),
        None if context.headers().contains_key("range") || context.headers().contains_key("x-ms-range") => {
            Err(ErrorCode::InvalidPageRange.into())
        }
        None => Err(missing("x-ms-range")),
    }
}

/// The condition on the sequence number, of which there may be one.
fn sequence_conditions(headers: Headers<'_>) -> Result<SequenceConditions, ApiError> {
    const NAMES: [&str; 3] =
        ["x-ms-if-sequence-number-lt", "x-ms-if-sequence-number-le", "x-ms-if-sequence-number-eq"];
    let mut given = NAMES.into_iter().filter_map(|name| Some((name, text(headers, name)?)));
    if let (Some(_), Some((name, value))) = (given.next(), given.next()) {
        return Err(invalid(name, value));
    }
    // One below zero is no matter of form to the service (recorded).
    let is_negative =
        |name| text(headers, name).is_some_and(|text| text.trim().parse().is_ok_and(|n: i64| n < 0));
    if NAMES.into_iter().any(is_negative) {
        return Err(ErrorCode::InvalidInput.into());
    }
    let [lt, le, eq] = NAMES.map(|name| number(headers, name));
    Ok(SequenceConditions { le: le?, lt: lt?, eq: eq? })
}

/// Writes or clears pages.
pub(crate) async fn write_pages(
    context: &BlobRequest<'_>,
    at: &BlobAt,
    range: (u64, u64),
    uploaded: Option<Uploaded>,
) -> Result<Reply, ApiError> {
    let headers = context.headers();
    let sequence = sequence_conditions(headers)?;
    let conditions = context.write_conditions(at)?;
    let is_update = uploaded.is_some();
    let mut reply = Reply::new(StatusCode::CREATED);
    let written = context.service.put_pages(at, range, uploaded, sequence, conditions).await;
    let written = written.map_err(from_blob)?;
    put_version(&mut reply, written.etag, written.modified_at);
    put_encryption(&mut reply, &written.encryption);
    put(&mut reply, "x-ms-blob-sequence-number", &written.sequence_number.to_string());
    if is_update {
        put(&mut reply, "x-ms-request-server-encrypted", "true");
    }
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_lists() {
        let list = read_block_list(
            b"<?xml version='1.0' encoding='utf-8'?>\n<BlockList><Committed>YQ==</Committed>\n\
              <Latest> Yg== </Latest><Uncommitted>Yw==</Uncommitted></BlockList>",
        );
        let id = |text: &'static str| Bytes::from_static(text.as_bytes());
        let expected = vec![
            (BlockSource::Committed, id("a")),
            (BlockSource::Latest, id("b")),
            (BlockSource::Staged, id("c")),
        ];
        assert_eq!(list, Ok(expected));
        assert_eq!(read_block_list(b"<BlockList/>"), Ok(vec![]));
        let other = b"<BlockList><Latest>Y&#81;&#x3d;&#x3D;</Latest><Latest><![CDATA[Yg==]]></Latest>\
                      <Latest>Y<![CDATA[w=]]>=</Latest></BlockList>";
        let latest = ["a", "b", "c"].map(|text| (BlockSource::Latest, id(text)));
        assert_eq!(read_block_list(other), Ok(latest.to_vec()));
        for bad in [
            "",
            "<BlockList>",
            "<Other/>",
            "<BlockList><X>YQ==</X></BlockList>",
            "<BlockList>a</BlockList>",
            "<BlockList><Latest>&other;</Latest></BlockList>",
            "<BlockList>&#81;</BlockList>",
            "<!DOCTYPE a []><BlockList/>",
        ] {
            assert!(read_block_list(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
