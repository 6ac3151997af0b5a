//! What the headers of a reply say of a blob or container.

use crate::error::ApiError;
use crate::reply::Reply;
use base::Ticks;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blob::{BlobRecord, BlobType, Encryption, Lease, LeaseState, Written, etag_text};
use hyper::header::{ETAG, HeaderName, HeaderValue, LAST_MODIFIED};
use std::cell::RefCell;
use std::time::UNIX_EPOCH;

/// RFC 1123.
pub(crate) fn http_date(at: Ticks) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + at.since_unix())
}

thread_local! {
    /// The last date that this thread wrote, by its second: what is written at the same time has the same.
    static LAST_DATE: RefCell<Option<(u64, HeaderValue)>> = const { RefCell::new(None) };
}

/// The same as a header's value.
fn http_date_value(at: Ticks) -> Option<HeaderValue> {
    let second = at.since_unix().as_secs();
    LAST_DATE.with_borrow_mut(|last| match last {
        Some((of, value)) if *of == second => Some(value.clone()),
        _ => {
            let value = HeaderValue::try_from(http_date(at)).ok()?;
            *last = Some((second, value.clone()));
            Some(value)
        }
    })
}

/// A snapshot's time.
pub(crate) fn snapshot_text(at: u64) -> String {
    service::seven_digits_text(Ticks(at))
}

/// Adds a header with a text; left out if a header can't hold it.
pub(crate) fn put(reply: &mut Reply, name: &'static str, value: &str) {
    reply.header_bytes(HeaderName::from_static(name), value.as_bytes().to_vec());
}

/// Adds a header that is always the same.
pub(crate) fn put_static(reply: &mut Reply, name: &'static str, value: &'static str) {
    reply.header(HeaderName::from_static(name), HeaderValue::from_static(value));
}

/// Adds a header if there is a text.
pub(crate) fn put_some(reply: &mut Reply, name: &'static str, value: Option<&str>) {
    if let Some(value) = value {
        put(reply, name, value);
    }
}

/// Adds ETag and date.
pub(crate) fn put_version(reply: &mut Reply, etag: u64, modified_at: Ticks) {
    reply.header_bytes(ETAG, ["\"", &etag_text(etag), "\""].concat().into_bytes());
    if let Some(date) = http_date_value(modified_at) {
        reply.header(LAST_MODIFIED, date);
    }
}

/// Adds the headers of a write.
pub(crate) fn put_written(reply: &mut Reply, written: &Written) {
    put_version(reply, written.etag, written.modified_at);
    put_some(reply, "x-ms-version-id", written.version.map(snapshot_text).as_deref());
    put_encryption(reply, &written.encryption);
}

/// Adds the headers of a write that brought something to encrypt.
pub(crate) fn put_written_encrypted(reply: &mut Reply, written: &Written) {
    put_written(reply, written);
    put_static(reply, "x-ms-request-server-encrypted", "true");
}

/// Adds what a blob is encrypted with.
pub(crate) fn put_encryption(reply: &mut Reply, encryption: &Encryption) {
    put_some(reply, "x-ms-encryption-key-sha256", encryption.key_sha256.as_deref());
    put_some(reply, "x-ms-encryption-scope", encryption.scope.as_deref());
}

/// Where a blob of this tier is now, if the service chooses.
pub(crate) fn smart_tier(tier: &str) -> Option<&'static str> {
    (tier == "Smart").then_some("Hot")
}

/// Adds the headers of a lease.
pub(crate) fn put_lease(reply: &mut Reply, lease: &Lease, now: Ticks) {
    let state = lease.state(now);
    put(reply, "x-ms-lease-status", lease_status(state));
    put(reply, "x-ms-lease-state", state.as_str());
    put_some(reply, "x-ms-lease-duration", lease.is_infinite(now).map(lease_duration));
}

/// `locked` or `unlocked`.
pub(crate) fn lease_status(state: LeaseState) -> &'static str {
    if state.is_locked() { "locked" } else { "unlocked" }
}

/// `infinite` or `fixed`.
pub(crate) fn lease_duration(is_infinite: bool) -> &'static str {
    if is_infinite { "infinite" } else { "fixed" }
}

/// A CRC-64 as the protocol writes it.
pub(crate) fn crc64_text(crc64: u64) -> String {
    STANDARD.encode(crc64.to_le_bytes())
}

/// Adds all that a read of a blob returns besides its bytes. `is_ranged`: `content-md5` is that of the bytes
/// that are sent, and the MD5 that is stored for the whole has a name of its own.
pub(crate) fn put_record(reply: &mut Reply, record: &BlobRecord, is_ranged: bool) -> Result<(), ApiError> {
    put_version(reply, record.version.etag, record.version.modified_at);
    put_some(reply, "x-ms-version-id", record.version.id.map(snapshot_text).as_deref());
    let properties = &record.properties;
    put_some(reply, "content-type", properties.content_type.as_deref());
    put_some(reply, "content-encoding", properties.content_encoding.as_deref());
    put_some(reply, "content-language", properties.content_language.as_deref());
    put_some(reply, "content-disposition", properties.content_disposition.as_deref());
    put_some(reply, "cache-control", properties.cache_control.as_deref());
    let md5_name = if is_ranged { "x-ms-blob-content-md5" } else { "content-md5" };
    put_some(reply, md5_name, properties.content_md5.as_deref());
    put(reply, "accept-ranges", "bytes");
    put(reply, "x-ms-blob-type", record.blob_type.as_str());
    put(reply, "x-ms-creation-time", &http_date(record.version.created_at));
    put(reply, "x-ms-server-encrypted", "true");
    put_encryption(reply, &record.encryption);
    reply.metadata(&record.metadata);
    if !record.tags.is_empty() {
        put(reply, "x-ms-tag-count", &record.tags.len().to_string());
    }
    match record.blob_type {
        BlobType::Block => {}
        BlobType::Append => {
            put(reply, "x-ms-blob-committed-block-count", &record.by_type.appended_blocks.to_string());
            if record.by_type.sealed {
                put(reply, "x-ms-blob-sealed", "true");
            }
        }
        BlobType::Page => {
            put(reply, "x-ms-blob-sequence-number", &record.by_type.sequence_number.to_string())
        }
    }
    if let Some(tier) = &record.tier.name {
        put(reply, "x-ms-access-tier", tier);
        put_some(reply, "x-ms-smart-access-tier", smart_tier(tier));
        if record.tier.inferred {
            put(reply, "x-ms-access-tier-inferred", "true");
        }
        put_some(reply, "x-ms-access-tier-change-time", record.tier.changed_at.map(http_date).as_deref());
        put_some(reply, "x-ms-archive-status", record.tier.archive_status.as_deref());
        put_some(reply, "x-ms-rehydrate-priority", record.tier.rehydrate_priority.as_deref());
    }
    if let Some(copy) = &record.copy {
        put(reply, "x-ms-copy-id", &copy.id);
        put(reply, "x-ms-copy-source", &without_signature(&copy.source));
        put(reply, "x-ms-copy-status", &copy.status);
        put(reply, "x-ms-copy-progress", &format!("{}/{}", copy.done, copy.total));
        put_some(reply, "x-ms-copy-completion-time", copy.completed_at.map(http_date).as_deref());
        put_some(reply, "x-ms-copy-status-description", copy.description.as_deref());
    }
    Ok(())
}

/// A source's address as readers of the copy may see it: without the signature that lets them read the
/// source. It is not stored either; early builds did.
pub(crate) fn without_signature(url: &str) -> String {
    let Some((address, query)) = url.split_once('?') else { return url.to_owned() };
    let is_signature = |parameter: &&str| {
        let name = parameter.split_once('=').map_or(*parameter, |(name, _)| name);
        percent_encoding::percent_decode_str(name).decode_utf8_lossy().eq_ignore_ascii_case("sig")
    };
    let kept: Vec<&str> = query.split('&').filter(|parameter| !is_signature(parameter)).collect();
    if kept.is_empty() { address.to_owned() } else { format!("{address}?{}", kept.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_left_out_of_addresses() {
        for (url, shown) in [
            ("http://h/a/b", "http://h/a/b"),
            ("http://h/a/b?sig=x", "http://h/a/b"),
            ("http://h/a/b?sv=1&sig=x%2B&se=2", "http://h/a/b?sv=1&se=2"),
            ("http://h/a/b?SIG=x&s%69g=y&sv=1&signature=z", "http://h/a/b?sv=1&signature=z"),
            ("http://h/a/b?snapshot=1", "http://h/a/b?snapshot=1"),
        ] {
            assert_eq!(without_signature(url), shown);
        }
    }
}
