//! Reading blobs: bytes, properties, block lists, ranges of pages.

use crate::auth::grant::Grant;
use crate::blob_api::blob_request::{BlobRequest, parse_snapshot};
use crate::blob_api::content::structured::{
    Framer, STRUCTURED_BODY, STRUCTURED_LENGTH, STRUCTURED_V1, is_structured,
};
use crate::blob_api::errors::from_blob;
use crate::blob_api::headers::reply_headers::{
    crc64_text, put, put_lease, put_record, put_version, snapshot_text,
};
use crate::blob_api::headers::request_headers::{conditions, flag, has_foreign_etag, invalid, range, text};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::reply::Reply;
use crate::reply::body::ReplyStream;
use crate::request::query_string::QueryParameters;
use crate::xml::{XML_DECLARATION, put_xml_element, put_xml_tag};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blob::{BlobAt, BlobError, BlobReader, FoundRecord, PageLists, Revision};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use hyper::StatusCode;
use md5::{Digest, Md5};
use std::collections::VecDeque;
use std::io;

/// Whether the MD5 of a range is returned.
const RANGE_MD5: &str = "x-ms-range-get-content-md5";
/// Whether its CRC-64 is.
const RANGE_CRC64: &str = "x-ms-range-get-content-crc64";

/// Bytes of a range whose checksum is returned at most.
const CHECKED_RANGE_SIZE_BYTES_MAX: u64 = 4 << 20;

pub(crate) async fn read(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let headers = context.headers();
    let revision = context.revision()?;
    let conditions = conditions(headers)?;
    let at = context.blob().await?;
    let refused = |error| match error {
        // Text that no blob has for an ETag is looked at before the blob (observed).
        BlobError::BlobNotFound if has_foreign_etag(headers, "if-match") => ErrorCode::ConditionNotMet.into(),
        other => from_blob(other),
    };
    if context.is_head() {
        let found = context.service.find(&at, revision, &conditions).await.map_err(refused)?;
        conditions.encryption.check_key(&found.record.encryption).map_err(from_blob)?;
        let mut reply = Reply::new(StatusCode::OK);
        put_found(&mut reply, &found, false)?;
        put(&mut reply, "content-length", &found.record.size.to_string());
        return Ok(reply);
    }
    let range = range(headers);
    let (with_md5, with_crc64) = (flag(headers, RANGE_MD5)?, flag(headers, RANGE_CRC64)?);
    let structured = is_structured(headers)?;
    let checksums =
        [with_md5, with_crc64, structured].into_iter().filter(|is_requested| *is_requested).count();
    if (with_md5 || with_crc64) && range.is_none() || checksums > 1 {
        return Err(invalid(if with_md5 { RANGE_MD5 } else { RANGE_CRC64 }, "true"));
    }
    let opened = context.service.read(&at, revision, &conditions, range).await.map_err(refused)?;
    let (found, (start, end), mut reader) = opened;
    let status = if range.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let mut reply = Reply::new(status);
    put_found(&mut reply, &found, range.is_some())?;
    if range.is_some() {
        let text = format!("bytes {start}-{}/{}", end.saturating_sub(1), found.record.size);
        put(&mut reply, "content-range", &text);
    }
    let size = end - start;
    if with_md5 || with_crc64 {
        if size > CHECKED_RANGE_SIZE_BYTES_MAX {
            return Err(ErrorCode::OutOfRangeInput.into());
        }
        let mut bytes = Vec::with_capacity(size as usize);
        while let Some(part) = next_part(&mut reader, &at).await.map_err(from_blob)? {
            bytes.extend_from_slice(&part);
        }
        match with_md5 {
            true => put(&mut reply, "content-md5", &STANDARD.encode(Md5::digest(&bytes))),
            false => put(&mut reply, "x-ms-content-crc64", &crc64_text(base::checksum::crc64(&[&bytes]))),
        }
        reply.body = bytes;
        return Ok(reply);
    }
    if structured {
        let framer = Framer::new(size);
        put(&mut reply, STRUCTURED_BODY, STRUCTURED_V1);
        put(&mut reply, STRUCTURED_LENGTH, &size.to_string());
        put(&mut reply, "content-length", &framer.message_size().to_string());
        reply.stream = Some(to_structured_stream(begin(reader, at).await?, framer));
        return Ok(reply);
    }
    put(&mut reply, "content-length", &size.to_string());
    match found.record.inline() {
        Some(bytes) => reply.body = bytes.get(start as usize..end as usize).unwrap_or_default().to_vec(),
        None => reply.stream = Some(to_stream(begin(reader, at).await?, size)),
    }
    Ok(reply)
}

/// A blob on its way to a client.
struct Begun {
    /// Its first bytes, until they are sent.
    first: Option<Bytes>,
    /// `None`: it broke off.
    reader: Option<BlobReader>,
    at: BlobAt,
}

/// Reads the first bytes: if they can't be read there is still time for an error.
async fn begin(mut reader: BlobReader, at: BlobAt) -> Result<Begun, ApiError> {
    let first = next_part(&mut reader, &at).await.map_err(from_blob)?;
    Ok(Begun { first, reader: Some(reader), at })
}

/// The next bytes. What can't be read is logged with the blob's name: the operator has to upload it again.
async fn next_part(reader: &mut BlobReader, at: &BlobAt) -> Result<Option<Bytes>, BlobError> {
    let part = reader.next().await;
    part.inspect_err(|error| tracing::error!("blob {at} can't be read: {error}"))
}

fn to_structured_stream(begun: Begun, mut framer: Framer) -> ReplyStream {
    let size = framer.message_size();
    let content = to_stream(begun, size).bytes;
    let mut begun = VecDeque::new();
    framer.begin(&mut begun);
    let bytes = stream::unfold((content, framer, begun), |(mut content, mut framer, mut ready)| async move {
        loop {
            if let Some(bytes) = ready.pop_front() {
                return Some((Ok(bytes), (content, framer, ready)));
            }
            match content.next().await? {
                Ok(bytes) => framer.put(bytes, &mut ready),
                Err(error) => return Some((Err(error), (content, framer, ready))),
            }
        }
    });
    ReplyStream { bytes: Box::pin(bytes), size }
}

fn to_stream(begun: Begun, size: u64) -> ReplyStream {
    let bytes = stream::unfold(begun, |mut begun| async move {
        if let Some(first) = begun.first.take() {
            return Some((Ok(first), begun));
        }
        match next_part(begun.reader.as_mut()?, &begun.at).await {
            Ok(Some(bytes)) => Some((Ok(bytes), begun)),
            Ok(None) => None,
            Err(error) => {
                begun.reader = None;
                Some((Err::<Bytes, _>(io::Error::other(error)), begun))
            }
        }
    });
    ReplyStream { bytes: Box::pin(bytes), size }
}

fn put_found(reply: &mut Reply, found: &FoundRecord, is_ranged: bool) -> Result<(), ApiError> {
    put_record(reply, &found.record, is_ranged)?;
    // Only the current blob can be leased (recorded).
    match found.revision {
        Revision::Current => {
            put_lease(reply, &found.lease, found.now);
            if found.record.version.id.is_some() {
                put(reply, "x-ms-is-current-version", "true");
            }
        }
        Revision::Snapshot(time) => put(reply, "x-ms-snapshot", &snapshot_text(time)),
        Revision::Version(_) => {}
    }
    Ok(())
}

pub(crate) async fn read_metadata(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let at = context.blob().await?;
    let conditions = conditions(context.headers())?;
    let found = context.service.find(&at, context.revision()?, &conditions).await.map_err(from_blob)?;
    conditions.encryption.check_key(&found.record.encryption).map_err(from_blob)?;
    let mut reply = Reply::new(StatusCode::OK);
    put_version(&mut reply, found.record.version.etag, found.record.version.modified_at);
    reply.metadata(&found.record.metadata);
    Ok(reply)
}

pub(crate) async fn read_block_list(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let (committed, staged) = match context.query("blocklisttype").unwrap_or("committed") {
        kind if kind.eq_ignore_ascii_case("committed") => (true, false),
        kind if kind.eq_ignore_ascii_case("uncommitted") => (false, true),
        kind if kind.eq_ignore_ascii_case("all") => (true, true),
        other => {
            let reason = "It is none of committed, uncommitted and all.";
            return Err(ApiError::invalid_parameter("blocklisttype", other, reason));
        }
    };
    let is_anonymous = *context.request.grant == Grant::Anonymous;
    if staged && is_anonymous {
        // What is public is what was committed.
        return Err(ErrorCode::NoAuthenticationInformation.into());
    }
    let at = context.blob().await?;
    let conditions = conditions(context.headers())?;
    if is_anonymous {
        // Also not from the state of a lease whether there is a blob that only waits.
        context.service.find(&at, context.revision()?, &conditions).await.map_err(from_blob)?;
    }
    let lists =
        context.service.block_lists(&at, context.revision()?, &conditions).await.map_err(from_blob)?;
    let mut out = XML_DECLARATION.to_vec();
    put_xml_tag(&mut out, "<", "BlockList");
    let parts =
        [("CommittedBlocks", committed, &lists.committed), ("UncommittedBlocks", staged, &lists.staged)];
    for (name, wanted, blocks) in parts {
        if wanted {
            put_xml_tag(&mut out, "<", name);
            for (id, size) in blocks {
                put_xml_tag(&mut out, "<", "Block");
                put_xml_element(&mut out, "Name", &STANDARD.encode(id));
                put_xml_element(&mut out, "Size", &size.to_string());
                put_xml_tag(&mut out, "</", "Block");
            }
            put_xml_tag(&mut out, "</", name);
        }
    }
    put_xml_tag(&mut out, "</", "BlockList");
    let mut reply = Reply::xml(StatusCode::OK, out);
    if let Some(record) = &lists.record {
        put_version(&mut reply, record.version.etag, record.version.modified_at);
        put(&mut reply, "x-ms-blob-content-length", &record.size.to_string());
    }
    Ok(reply)
}

/// From this `x-ms-version` on lists of page ranges come in pages, on request.
const PAGES_OF_RANGES_SINCE: &str = "2020-10-02";

pub(crate) async fn read_page_ranges(context: &BlobRequest<'_>) -> Result<Reply, ApiError> {
    let headers = context.headers();
    let at = context.blob().await?;
    const PREVIOUS_URL: &str = "x-ms-previous-snapshot-url";
    let previous = match text(headers, PREVIOUS_URL) {
        Some(url) => {
            let query = url.split_once('?').map(|(_, query)| query);
            let query = QueryParameters::parse(query).map_err(|_| invalid(PREVIOUS_URL, url))?;
            let snapshot = query.find("snapshot").ok_or_else(|| invalid(PREVIOUS_URL, url))?;
            parse_snapshot("snapshot", Some(snapshot))?
        }
        None => parse_snapshot("prevsnapshot", context.query("prevsnapshot"))?,
    };
    let conditions = conditions(headers)?;
    let lists = context.service.page_ranges(&at, context.revision()?, previous, range(headers), &conditions);
    let PageLists { found, written, cleared } = lists.await.map_err(from_blob)?;
    let mut all: Vec<(u64, u64, bool)> = written.into_iter().map(|(start, end)| (start, end, true)).collect();
    all.extend(cleared.into_iter().map(|(start, end)| (start, end, false)));
    all.sort_unstable();
    let max = crate::blob_api::lists::page_size(context, usize::MAX)?;
    let from: u64 = match context.query("marker") {
        Some(marker) => {
            let invalid = |_| ApiError::invalid_parameter("marker", marker, "It is none of this list.");
            marker.parse().map_err(invalid)?
        }
        None => 0,
    };
    let mut left = all.into_iter().filter(|(start, _, _)| *start >= from);
    let mut out = XML_DECLARATION.to_vec();
    put_xml_tag(&mut out, "<", "PageList");
    for (start, end, is_written) in left.by_ref().take(max) {
        let name = if is_written { "PageRange" } else { "ClearRange" };
        put_xml_tag(&mut out, "<", name);
        put_xml_element(&mut out, "Start", &start.to_string());
        put_xml_element(&mut out, "End", &(end - 1).to_string());
        put_xml_tag(&mut out, "</", name);
    }
    let next = left.next().map(|(start, _, _)| start.to_string());
    // Clients of older versions take every element for a range.
    let knows_pages = text(headers, "x-ms-version") >= Some(PAGES_OF_RANGES_SINCE)
        || ["marker", "maxresults"].iter().any(|name| context.query(name).is_some());
    if knows_pages {
        put_xml_element(&mut out, "NextMarker", next.as_deref().unwrap_or_default());
    }
    put_xml_tag(&mut out, "</", "PageList");
    let mut reply = Reply::xml(StatusCode::OK, out);
    put_version(&mut reply, found.record.version.etag, found.record.version.modified_at);
    put(&mut reply, "x-ms-blob-content-length", &found.record.size.to_string());
    Ok(reply)
}
