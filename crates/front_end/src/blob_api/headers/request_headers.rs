//! What the headers of a request mean: conditions, metadata, properties, ranges, tags, times.

use crate::blob_api::errors::from_blob;
use crate::blob_api::headers::Headers;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::request::header_case::METADATA_PREFIX;
use base::Ticks;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blob::{
    BlobError, Conditions, ContentProperties, ETags, Encryption, Pairs, TagFilter, TierConditions,
    check_metadata, parse_lease_id,
};
use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};
use std::time::UNIX_EPOCH;

/// A header's text; `None`: it is not there or is empty.
pub(crate) fn text<'a>(headers: Headers<'a>, name: &str) -> Option<&'a str> {
    headers
        .get(name)
        .and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
        .filter(|text| !text.is_empty())
}

/// A refusal that names the header.
pub(crate) fn invalid(name: &str, value: &str) -> ApiError {
    ApiError::new(ErrorCode::InvalidHeaderValue).and_facts(header_facts(name, value))
}

fn header_facts(name: &str, value: &str) -> [(&'static str, String); 2] {
    [("HeaderName", header_name(name)), ("HeaderValue", value.to_owned())]
}

/// A header's name as the service writes it: the protocol's own in small letters, those of HTTP with
/// capitals.
fn header_name(name: &str) -> String {
    if name.starts_with("x-ms-") {
        return name.to_owned();
    }
    let words = name.split('-').map(|word| match word.split_at_checked(1) {
        Some((first, rest)) => first.to_ascii_uppercase() + rest,
        None => String::new(),
    });
    words.collect::<Vec<_>>().join("-")
}

/// The refusal of a request that lacks a header.
pub(crate) fn missing(name: &str) -> ApiError {
    ApiError::with_facts(ErrorCode::MissingRequiredHeader, vec![("HeaderName", name.to_owned())])
}

/// A header that must be there.
pub(crate) fn required<'a>(headers: Headers<'a>, name: &str) -> Result<&'a str, ApiError> {
    text(headers, name).ok_or_else(|| missing(name))
}

/// A number in a header.
pub(crate) fn number(headers: Headers<'_>, name: &str) -> Result<Option<u64>, ApiError> {
    match text(headers, name) {
        None => Ok(None),
        Some(value) => value.trim().parse().map(Some).map_err(|_| invalid(name, value)),
    }
}

/// A page blob's sequence number, for which clients have 63 bits.
pub(crate) fn sequence_number(headers: Headers<'_>) -> Result<Option<u64>, ApiError> {
    const NAME: &str = "x-ms-blob-sequence-number";
    match number(headers, NAME)? {
        Some(number) if number > i64::MAX as u64 => Err(invalid(NAME, &number.to_string())),
        number => Ok(number),
    }
}

/// `true` or `false` in a header.
pub(crate) fn flag(headers: Headers<'_>, name: &str) -> Result<bool, ApiError> {
    match text(headers, name) {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
        Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
        Some(value) => Err(invalid(name, value)),
    }
}

fn date(headers: Headers<'_>, name: &str) -> Result<Option<Ticks>, ApiError> {
    let Some(value) = text(headers, name) else { return Ok(None) };
    let parsed = httpdate::parse_http_date(value).ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    parsed.map(|at| Some(Ticks::from_unix(at))).ok_or_else(|| invalid(name, value))
}

/// A condition on tags.
fn tag_filter(headers: Headers<'_>, name: &str) -> Result<Option<TagFilter>, ApiError> {
    let parse = |text| TagFilter::parse(text, false).map_err(|_| invalid(name, text));
    text(headers, name).map(parse).transpose()
}

/// The lease's id.
pub(crate) fn lease_id(headers: Headers<'_>) -> Result<Option<String>, ApiError> {
    match text(headers, "x-ms-lease-id") {
        None => Ok(None),
        Some(value) => parse_lease_id(value).map(Some).ok_or_else(|| invalid("x-ms-lease-id", value)),
    }
}

/// Conditions on the blob that the request is about.
pub(crate) fn conditions(headers: Headers<'_>) -> Result<Conditions, ApiError> {
    let if_tags = tag_filter(headers, "x-ms-if-tags")?;
    Ok(Conditions {
        if_match: text(headers, "if-match").map(ETags::parse),
        if_none_match: text(headers, "if-none-match").map(ETags::parse),
        if_modified_since: date(headers, "if-modified-since")?,
        if_unmodified_since: date(headers, "if-unmodified-since")?,
        if_tags,
        lease_id: lease_id(headers)?,
        encryption: encryption(headers)?,
    })
}

/// Conditions on what the request writes.
pub(crate) fn write_conditions(headers: Headers<'_>) -> Result<Conditions, ApiError> {
    refuse_lists(headers, ["if-match", "if-none-match"])?;
    check_together(conditions(headers)?)
}

/// Refuses several ETags where there may be one.
fn refuse_lists(headers: Headers<'_>, names: [&str; 2]) -> Result<(), ApiError> {
    let list = |name| text(headers, name).filter(|etags| etags.contains(',')).map(|etags| (name, etags));
    names.into_iter().find_map(list).map_or(Ok(()), |(name, etags)| Err(invalid(name, etags)))
}

/// Refuses conditions that a write, or a copy's source, can't have together: beside an ETag it may only have
/// the date that the ETag decides over (source: the reference's page on conditional headers; reads take any
/// combination).
pub(crate) fn check_together(conditions: Conditions) -> Result<Conditions, ApiError> {
    let wants_unchanged = conditions.if_match.is_some() || conditions.if_unmodified_since.is_some();
    let wants_changed = conditions.if_none_match.is_some() || conditions.if_modified_since.is_some();
    match wants_unchanged && wants_changed {
        true => Err(ErrorCode::MultipleConditionHeadersNotSupported.into()),
        false => Ok(conditions),
    }
}

/// Whether a condition is there and is no ETag of the service, nor stands for any.
pub(crate) fn has_foreign_etag(headers: Headers<'_>, name: &str) -> bool {
    let is_own = |etag: &str| {
        let etag = etag.trim();
        let etag = etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"');
        let digits = etag.get(..2).filter(|start| start.eq_ignore_ascii_case("0x")).map(|_| &etag[2..]);
        etag == "*"
            || digits.is_some_and(|digits| {
                !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
            })
    };
    text(headers, name).is_some_and(|etags| !etags.split(',').any(is_own))
}

/// Conditions on a blob whose tags are read or written, which have names of their own beside the usual ones.
pub(crate) fn tag_conditions(headers: Headers<'_>) -> Result<Conditions, ApiError> {
    let usual = conditions(headers)?;
    Ok(Conditions {
        if_match: text(headers, "x-ms-blob-if-match").map(ETags::parse).or(usual.if_match),
        if_none_match: text(headers, "x-ms-blob-if-none-match").map(ETags::parse).or(usual.if_none_match),
        if_modified_since: date(headers, "x-ms-blob-if-modified-since")?.or(usual.if_modified_since),
        if_unmodified_since: date(headers, "x-ms-blob-if-unmodified-since")?.or(usual.if_unmodified_since),
        ..usual
    })
}

/// Conditions on when the tier was set.
pub(crate) fn tier_conditions(headers: Headers<'_>) -> Result<TierConditions, ApiError> {
    Ok(TierConditions {
        if_modified_since: date(headers, "x-ms-access-tier-if-modified-since")?,
        if_unmodified_since: date(headers, "x-ms-access-tier-if-unmodified-since")?,
    })
}

/// The customer's key in three headers, of which only the hash goes further.
fn customer_key(headers: Headers<'_>, [key, hash, algorithm]: [&str; 3]) -> Result<Option<String>, ApiError> {
    if ![key, hash, algorithm].into_iter().any(|name| headers.contains_key(name)) {
        return Ok(None);
    }
    let (key_text, hash_text) = (required(headers, key)?, required(headers, hash)?);
    match required(headers, algorithm)? {
        "AES256" => {}
        other => return Err(invalid(algorithm, other)),
    }
    // Nothing of the key is returned, not even that which is wrong.
    let bytes = STANDARD.decode(key_text).ok().filter(|bytes| bytes.len() == 32);
    let bytes = bytes.ok_or_else(|| invalid(key, "not 256 bits in Base64"))?;
    if STANDARD.encode(Sha256::digest(&bytes)) != hash_text {
        return Err(invalid(hash, hash_text));
    }
    Ok(Some(hash_text.to_owned()))
}

/// The key or scope that a request names.
pub(crate) fn encryption(headers: Headers<'_>) -> Result<Encryption, ApiError> {
    const SCOPE: &str = "x-ms-encryption-scope";
    let names = ["x-ms-encryption-key", "x-ms-encryption-key-sha256", "x-ms-encryption-algorithm"];
    let key_sha256 = customer_key(headers, names)?;
    let scope = text(headers, SCOPE).map(str::to_owned);
    match (&key_sha256, &scope) {
        (Some(_), Some(scope)) => Err(invalid(SCOPE, scope)),
        _ => Ok(Encryption { key_sha256, scope }),
    }
}

/// Conditions on the source of a copy.
pub(crate) fn source_conditions(headers: Headers<'_>) -> Result<Conditions, ApiError> {
    let if_tags = tag_filter(headers, "x-ms-source-if-tags")?;
    refuse_lists(headers, ["x-ms-source-if-match", "x-ms-source-if-none-match"])?;
    check_together(Conditions {
        if_match: text(headers, "x-ms-source-if-match").map(ETags::parse),
        if_none_match: text(headers, "x-ms-source-if-none-match").map(ETags::parse),
        if_modified_since: date(headers, "x-ms-source-if-modified-since")?,
        if_unmodified_since: date(headers, "x-ms-source-if-unmodified-since")?,
        if_tags,
        lease_id: None,
        encryption: Encryption {
            key_sha256: customer_key(
                headers,
                [
                    "x-ms-source-encryption-key",
                    "x-ms-source-encryption-key-sha256",
                    "x-ms-source-encryption-algorithm",
                ],
            )?,
            scope: None,
        },
    })
}

/// Metadata.
pub(crate) fn metadata(headers: Headers<'_>) -> Result<Pairs, ApiError> {
    let mut pairs = Pairs::new();
    for (name, value) in headers.iter() {
        if let Some(name) = name.as_str().strip_prefix(METADATA_PREFIX) {
            let value = value.to_str().map_err(|_| ApiError::new(ErrorCode::InvalidMetadata))?;
            pairs.push((headers.as_sent(name), value.trim().to_owned()));
        } else if name.as_str() == "x-ms-meta" {
            let error = ApiError::new(ErrorCode::EmptyMetadataKey);
            return Err(error.and_facts([("HeaderName", name.to_string())]));
        }
    }
    check_metadata(&pairs).map_err(|error| metadata_error(error, &pairs))?;
    Ok(pairs)
}

/// The refusal of metadata, which names the header if there is one that is at fault.
fn metadata_error(error: BlobError, pairs: &Pairs) -> ApiError {
    if error == BlobError::MetadataTooLarge {
        return from_blob(error);
    }
    // Of two that have one name it is the later.
    let is_at_fault = |count: &usize| check_metadata(&pairs[..*count].to_vec()).is_err();
    match (1..=pairs.len()).find(is_at_fault).map(|count| &pairs[count - 1]) {
        Some((name, value)) => {
            from_blob(error).and_facts(header_facts(&format!("{METADATA_PREFIX}{name}"), value))
        }
        None => from_blob(error),
    }
}

/// The MD5 that is stored with a blob.
pub(crate) const BLOB_CONTENT_MD5: &str = "x-ms-blob-content-md5";

/// What HTTP shall say of the content, from `x-ms-blob-…` headers.
pub(crate) fn blob_properties(headers: Headers<'_>) -> Result<ContentProperties, ApiError> {
    let own = |name: &str| text(headers, name).map(str::to_owned);
    let content_md5 = own(BLOB_CONTENT_MD5);
    // It is kept and returned unread: any bytes in Base64 will do.
    if let Some(md5) = content_md5.as_ref().filter(|md5| STANDARD.decode(md5).is_err()) {
        return Err(ApiError::of_header(ErrorCode::InvalidMd5, BLOB_CONTENT_MD5, md5.as_bytes()));
    }
    Ok(ContentProperties {
        content_type: own("x-ms-blob-content-type"),
        content_encoding: own("x-ms-blob-content-encoding"),
        content_language: own("x-ms-blob-content-language"),
        content_disposition: own("x-ms-blob-content-disposition"),
        cache_control: own("x-ms-blob-cache-control"),
        content_md5,
    })
}

/// The same for an operation with a body, whose own headers count where the others are missing.
pub(crate) fn new_properties(headers: Headers<'_>) -> Result<ContentProperties, ApiError> {
    let mut properties = blob_properties(headers)?;
    let standard = |own: &mut Option<String>, name: &str| {
        if own.is_none() {
            *own = text(headers, name).map(str::to_owned);
        }
    };
    standard(&mut properties.content_type, "content-type");
    standard(&mut properties.content_encoding, "content-encoding");
    standard(&mut properties.content_language, "content-language");
    standard(&mut properties.cache_control, "cache-control");
    if properties.content_type.is_none() {
        properties.content_type = Some("application/octet-stream".to_owned());
    }
    Ok(properties)
}

/// A CRC-64 in Base64, least byte first.
pub(crate) fn parse_crc64(name: &str, text: &str) -> Result<u64, ApiError> {
    let bytes: Option<[u8; 8]> = STANDARD.decode(text.trim()).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.map(u64::from_le_bytes).ok_or_else(|| invalid(name, text))
}

/// First byte, and end if there is one.
pub(crate) type ByteRange = (u64, Option<u64>);

/// The requested range; one that is written otherwise is none.
pub(crate) fn range(headers: Headers<'_>) -> Option<ByteRange> {
    let text = text(headers, "x-ms-range").or_else(|| text(headers, "range"))?;
    parse_range(text)
}

/// `bytes=a-b` or `bytes=a-`.
pub(crate) fn parse_range(text: &str) -> Option<ByteRange> {
    let (start, end) = text.trim().strip_prefix("bytes=")?.split_once('-')?;
    let start: u64 = start.trim().parse().ok()?;
    match end.trim() {
        "" => Some((start, None)),
        end => {
            let end: u64 = end.parse().ok()?;
            (end >= start).then(|| (start, end.checked_add(1)))
        }
    }
}

/// Tags in a header, as `a=1&b=2`, percent-encoded.
pub(crate) fn tags(headers: Headers<'_>) -> Result<Pairs, ApiError> {
    let Some(text) = text(headers, "x-ms-tags") else { return Ok(Pairs::new()) };
    let decode = |part: &str| {
        let part = part.replace('+', " ");
        let decoded = percent_decode_str(&part).decode_utf8().map(|text| text.into_owned());
        decoded.map_err(|_| invalid("x-ms-tags", text))
    };
    text.split('&')
        .map(|pair| {
            let (key, value) = pair.split_once('=').ok_or_else(|| invalid("x-ms-tags", text))?;
            Ok((decode(key)?, decode(value)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderMap;

    #[test]
    fn ranges() {
        assert_eq!(parse_range("bytes=0-511"), Some((0, Some(512))));
        assert_eq!(parse_range("bytes=5-"), Some((5, None)));
        for other in ["bytes=-5", "bytes=5-4", "bytes=a-b", "items=0-1", ""] {
            assert_eq!(parse_range(other), None, "{other}");
        }
    }

    #[test]
    fn a_customers_key_is_known_by_its_hash() {
        let mut headers = HeaderMap::new();
        let mut put = |name: &'static str, value: &str| drop(headers.insert(name, value.parse().unwrap()));
        put("x-ms-encryption-key", "MDEyMzQ1NjcwMTIzNDU2NzAxMjM0NTY3MDEyMzQ1Njc=");
        put("x-ms-encryption-algorithm", "AES256");
        let hash = "3QFFFpRA5+XANHqwwbT4yXDmrT/2JaLt/FKHjzhOdoE=";
        put("x-ms-encryption-key-sha256", hash);
        assert_eq!(encryption(Headers::of(&headers)).unwrap().key_sha256.as_deref(), Some(hash));
        for (name, bad) in [
            ("x-ms-encryption-key", "MDEy"),
            ("x-ms-encryption-key-sha256", "3QFFFpRA5+XANHqwwbT4yXDmrT/2JaLt/FKHjzhOdo0="),
            ("x-ms-encryption-algorithm", "AES128"),
            ("x-ms-encryption-scope", "both"),
        ] {
            let mut headers = headers.clone();
            headers.insert(name, bad.parse().unwrap());
            assert!(encryption(Headers::of(&headers)).is_err(), "{name}");
            headers.remove(name);
            assert_eq!(encryption(Headers::of(&headers)).is_err(), name != "x-ms-encryption-scope", "{name}");
        }
    }

    #[test]
    fn tags_are_decoded() {
        let mut headers = HeaderMap::new();
        headers.insert("x-ms-tags", "a%2Fb=1+2&c=".parse().unwrap());
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(tags(Headers::of(&headers)), Ok(vec![pair("a/b", "1 2"), pair("c", "")]));
    }
}
