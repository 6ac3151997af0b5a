//! What the headers of a request mean: conditions, metadata, properties, ranges, tags, times.

use crate::error::ApiError;
use crate::error_code::ErrorCode;
use base::Ticks;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blob::{Conditions, ContentProperties, ETags, Pairs, TagFilter, parse_lease_id};
use hyper::header::HeaderMap;
use percent_encoding::percent_decode_str;
use std::time::UNIX_EPOCH;

/// A header's text; `None`: it is not there or is empty.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get(name)
        .and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
        .filter(|text| !text.is_empty())
}

/// A refusal that names the header.
pub(crate) fn invalid(name: &str, value: &str) -> ApiError {
    ApiError::with_facts(
        ErrorCode::InvalidHeaderValue,
        vec![("HeaderName", name.to_owned()), ("HeaderValue", value.to_owned())],
    )
}

/// A header that must be there.
pub(crate) fn required<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, ApiError> {
    text(headers, name).ok_or_else(|| {
        ApiError::with_facts(ErrorCode::MissingRequiredHeader, vec![("HeaderName", name.to_owned())])
    })
}

/// A number in a header.
pub(crate) fn number(headers: &HeaderMap, name: &str) -> Result<Option<u64>, ApiError> {
    match text(headers, name) {
        None => Ok(None),
        Some(value) => value.trim().parse().map(Some).map_err(|_| invalid(name, value)),
    }
}

/// `true` or `false` in a header.
pub(crate) fn flag(headers: &HeaderMap, name: &str) -> Result<bool, ApiError> {
    match text(headers, name) {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
        Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
        Some(value) => Err(invalid(name, value)),
    }
}

fn date(headers: &HeaderMap, name: &str) -> Result<Option<Ticks>, ApiError> {
    let Some(value) = text(headers, name) else { return Ok(None) };
    let parsed = httpdate::parse_http_date(value).ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    parsed.map(|at| Some(Ticks::from_unix(at))).ok_or_else(|| invalid(name, value))
}

/// The lease's id.
pub(crate) fn lease_id(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    match text(headers, "x-ms-lease-id") {
        None => Ok(None),
        Some(value) => parse_lease_id(value).map(Some).ok_or_else(|| invalid("x-ms-lease-id", value)),
    }
}

/// Conditions on the blob that the request is about.
pub(crate) fn conditions(headers: &HeaderMap) -> Result<Conditions, ApiError> {
    let if_tags = text(headers, "x-ms-if-tags").map(|text| TagFilter::parse(text, false));
    Ok(Conditions {
        if_match: text(headers, "if-match").map(ETags::parse),
        if_none_match: text(headers, "if-none-match").map(ETags::parse),
        if_modified_since: date(headers, "if-modified-since")?,
        if_unmodified_since: date(headers, "if-unmodified-since")?,
        if_tags: if_tags.transpose().map_err(super::errors::from_blob)?,
        lease_id: lease_id(headers)?,
    })
}

/// Conditions on the source of a copy.
pub(crate) fn source_conditions(headers: &HeaderMap) -> Result<Conditions, ApiError> {
    let if_tags = text(headers, "x-ms-source-if-tags").map(|text| TagFilter::parse(text, false));
    Ok(Conditions {
        if_match: text(headers, "x-ms-source-if-match").map(ETags::parse),
        if_none_match: text(headers, "x-ms-source-if-none-match").map(ETags::parse),
        if_modified_since: date(headers, "x-ms-source-if-modified-since")?,
        if_unmodified_since: date(headers, "x-ms-source-if-unmodified-since")?,
        if_tags: if_tags.transpose().map_err(super::errors::from_blob)?,
        lease_id: None,
    })
}

const METADATA_PREFIX: &str = "x-ms-meta-";

/// Metadata.
pub(crate) fn metadata(headers: &HeaderMap) -> Result<Pairs, ApiError> {
    let mut pairs = Pairs::new();
    for (name, value) in headers {
        if let Some(name) = name.as_str().strip_prefix(METADATA_PREFIX) {
            let value = std::str::from_utf8(value.as_bytes());
            let value = value.map_err(|_| ApiError::new(ErrorCode::InvalidMetadata))?;
            pairs.push((name.to_owned(), value.trim().to_owned()));
        } else if name.as_str() == "x-ms-meta" {
            return Err(ErrorCode::EmptyMetadataKey.into());
        }
    }
    Ok(pairs)
}

/// What HTTP shall say of the content, from `x-ms-blob-…` headers.
pub(crate) fn blob_properties(headers: &HeaderMap) -> Result<ContentProperties, ApiError> {
    let own = |name: &str| text(headers, name).map(str::to_owned);
    let content_md5 = own("x-ms-blob-content-md5");
    if let Some(md5) = &content_md5 {
        parse_md5(md5)?;
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
pub(crate) fn new_properties(headers: &HeaderMap) -> Result<ContentProperties, ApiError> {
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

/// An MD5 in Base64.
pub(crate) fn parse_md5(text: &str) -> Result<[u8; 16], ApiError> {
    let bytes = STANDARD.decode(text.trim()).ok();
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| ErrorCode::InvalidMd5.into())
}

/// A CRC-64 in Base64, least byte first.
pub(crate) fn parse_crc64(name: &str, text: &str) -> Result<u64, ApiError> {
    let bytes: Option<[u8; 8]> = STANDARD.decode(text.trim()).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.map(u64::from_le_bytes).ok_or_else(|| invalid(name, text))
}

/// First byte, and end if there is one.
pub(crate) type ByteRange = (u64, Option<u64>);

/// The range that is asked for; one that is written otherwise is none.
pub(crate) fn range(headers: &HeaderMap) -> Option<ByteRange> {
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
pub(crate) fn tags(headers: &HeaderMap) -> Result<Pairs, ApiError> {
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

    #[test]
    fn ranges() {
        assert_eq!(parse_range("bytes=0-511"), Some((0, Some(512))));
        assert_eq!(parse_range("bytes=5-"), Some((5, None)));
        for other in ["bytes=-5", "bytes=5-4", "bytes=a-b", "items=0-1", ""] {
            assert_eq!(parse_range(other), None, "{other}");
        }
    }

    #[test]
    fn tags_are_decoded() {
        let mut headers = HeaderMap::new();
        headers.insert("x-ms-tags", "a%2Fb=1+2&c=".parse().unwrap());
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(tags(&headers), Ok(vec![pair("a/b", "1 2"), pair("c", "")]));
    }
}
