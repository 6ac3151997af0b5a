//! The strings-to-sign of SharedKey and SharedKeyLite.
//!
//! ```text
//! Table       SharedKey      VERB Content-MD5 Content-Type DATE RESOURCE
//!             SharedKeyLite  DATE RESOURCE
//! Blob, Queue SharedKey      VERB, eleven standard headers, x-ms- headers, resource with all parameters
//!             SharedKeyLite  VERB Content-MD5 Content-Type Date, x-ms- headers, RESOURCE
//! RESOURCE    /ACCOUNT, the raw path, and ?comp=VALUE if there is one
//!
//! All parts are joined by newlines.
//! ```
//!
//! What always holds: the path is signed exactly as sent, and any request has a string-to-sign.

use super::signature::SignSink;
use crate::request::addressing::SignedPath;
use crate::request::query_string::QueryParameters;
use hyper::header::{
    CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderMap, HeaderName,
    HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE, RANGE,
};
use std::cmp::Ordering;

/// Whose rules of signing apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedService {
    /// The Table service: a short string.
    Table,
    /// The Blob and Queue services: all `x-ms-` headers and query parameters.
    BlobOrQueue,
}

/// The two schemes of the `Authorization` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedKeyScheme {
    /// `SharedKey`
    Full,
    /// `SharedKeyLite`
    Lite,
}

/// How `x-ms-` headers are sorted. Clients differ for unusual names; a verifier accepts both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderOrder {
    /// As a culture-aware comparison does: `-` without weight, `_` before digits before letters.
    Collation,
    /// By bytes.
    Ordinal,
}

/// A request as its signature sees it.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequest<'a> {
    /// Whose rules.
    pub service: SignedService,
    /// The verb as sent; a tunnelled request is a `POST`.
    pub method: &'a str,
    /// The account whose key signs.
    pub account: &'a str,
    /// The raw path.
    pub path: SignedPath<'a>,
    /// The decoded parameters.
    pub query: &'a QueryParameters<'a>,
    /// All headers.
    pub headers: &'a HeaderMap,
}

/// The header that replaces `Date` where a client cannot set that one.
pub(crate) const X_MS_DATE: HeaderName = HeaderName::from_static("x-ms-date");
/// The version of the protocol that a request names.
pub(crate) const X_MS_VERSION: HeaderName = HeaderName::from_static("x-ms-version");
const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");

/// From this `x-ms-version` on, an empty body's `Content-Length` is signed as nothing.
const EMPTY_LENGTH_SINCE: &[u8] = b"2015-02-21";

/// From this `x-ms-version` on, `x-ms-` headers without value are signed.
const EMPTY_HEADERS_SINCE: &[u8] = b"2016-05-31";

/// Writes the string that a client signs for this request.
pub fn write_string_to_sign(
    request: &SignedRequest<'_>,
    scheme: SharedKeyScheme,
    order: HeaderOrder,
    sink: &mut impl SignSink,
) {
    match (request.service, scheme) {
        (SignedService::Table, SharedKeyScheme::Full) => {
            put_line(sink, request.method.as_bytes());
            put_line(sink, value(request.headers, CONTENT_MD5));
            put_line(sink, value(request.headers, CONTENT_TYPE));
            put_line(sink, table_date(request.headers));
            put_short_resource(request, sink);
        }
        (SignedService::Table, SharedKeyScheme::Lite) => {
            put_line(sink, table_date(request.headers));
            put_short_resource(request, sink);
        }
        (SignedService::BlobOrQueue, SharedKeyScheme::Full) => {
            put_blob_headers(request, sink);
            put_canonical_headers(request.headers, order, sink);
            put_long_resource(request, sink);
        }
        (SignedService::BlobOrQueue, SharedKeyScheme::Lite) => {
            put_line(sink, request.method.as_bytes());
            put_line(sink, value(request.headers, CONTENT_MD5));
            put_line(sink, value(request.headers, CONTENT_TYPE));
            put_line(sink, blob_date(request.headers));
            put_canonical_headers(request.headers, order, sink);
            put_short_resource(request, sink);
        }
    }
}

/// The string-to-sign as text, for error details.
pub fn string_to_sign(request: &SignedRequest<'_>, scheme: SharedKeyScheme) -> String {
    let mut text = Vec::new();
    write_string_to_sign(request, scheme, HeaderOrder::Collation, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn put_line(sink: &mut impl SignSink, line: &[u8]) {
    put_text(sink, line);
    sink.put(b"\n");
}

/// What a header says, as the service reads it: each byte is a character of Latin-1, and the string is signed
/// in UTF-8. So sign clients whose HTTP library writes headers in Latin-1; the signature of one that writes
/// UTF-8 is refused by Azure, too.
fn put_text(sink: &mut impl SignSink, value: &[u8]) {
    if value.is_ascii() {
        return sink.put(value);
    }
    for byte in value {
        sink.put(char::from(*byte).encode_utf8(&mut [0; 2]).as_bytes());
    }
}

fn value(headers: &HeaderMap, name: impl hyper::header::AsHeaderName) -> &[u8] {
    headers.get(name).map_or(&[], |value| value.as_bytes())
}

/// `x-ms-date` if present, else `Date`.
pub(crate) fn table_date(headers: &HeaderMap) -> &[u8] {
    headers.get(X_MS_DATE).or_else(|| headers.get(DATE)).map_or(&[], |value| value.as_bytes())
}

/// `Date`, but empty if `x-ms-date` is present: that one is signed among the `x-ms-` headers.
fn blob_date(headers: &HeaderMap) -> &[u8] {
    if headers.contains_key(X_MS_DATE) {
        return &[];
    }
    value(headers, DATE)
}

fn put_path(request: &SignedRequest<'_>, sink: &mut impl SignSink) {
    sink.put(b"/");
    sink.put(request.account.as_bytes());
    if let Some(account) = request.path.account {
        sink.put(b"/");
        sink.put(account.as_bytes());
    }
    sink.put(request.path.rest.as_bytes());
}

fn put_short_resource(request: &SignedRequest<'_>, sink: &mut impl SignSink) {
    put_path(request, sink);
    if let Some(comp) = request.query.find("comp") {
        sink.put(b"?comp=");
        sink.put(comp.as_bytes());
    }
}

fn put_blob_headers(request: &SignedRequest<'_>, sink: &mut impl SignSink) {
    let headers = request.headers;
    let mut length = value(headers, CONTENT_LENGTH);
    if length == b"0" && value(headers, X_MS_VERSION) >= EMPTY_LENGTH_SINCE {
        length = &[];
    }
    put_line(sink, request.method.as_bytes());
    put_line(sink, value(headers, CONTENT_ENCODING));
    put_line(sink, value(headers, CONTENT_LANGUAGE));
    put_line(sink, length);
    put_line(sink, value(headers, CONTENT_MD5));
    put_line(sink, value(headers, CONTENT_TYPE));
    put_line(sink, blob_date(headers));
    put_line(sink, value(headers, IF_MODIFIED_SINCE));
    put_line(sink, value(headers, IF_MATCH));
    put_line(sink, value(headers, IF_NONE_MATCH));
    put_line(sink, value(headers, IF_UNMODIFIED_SINCE));
    put_line(sink, value(headers, RANGE));
}

fn put_canonical_headers(headers: &HeaderMap, order: HeaderOrder, sink: &mut impl SignSink) {
    let signs_empty = value(headers, X_MS_VERSION) >= EMPTY_HEADERS_SINCE;
    let signed = |header: &(&HeaderName, &HeaderValue)| header.0.as_str().starts_with("x-ms-");
    let mut signed: Vec<(&HeaderName, &HeaderValue)> = headers.iter().filter(signed).collect();
    // Stable: a header's values keep their order.
    signed.sort_by(|(a, _), (b, _)| match order {
        HeaderOrder::Ordinal => a.as_str().cmp(b.as_str()),
        HeaderOrder::Collation => collate(a.as_str(), b.as_str()),
    });
    for values in signed.chunk_by(|(a, _), (b, _)| a == b) {
        let (name, first) = values[0];
        if first.as_bytes().trim_ascii().is_empty() && !signs_empty {
            continue;
        }
        sink.put(name.as_str().as_bytes());
        for (index, (_, value)) in values.iter().enumerate() {
            sink.put(if index == 0 { b":" } else { b"," });
            put_text(sink, value.as_bytes().trim_ascii());
        }
        sink.put(b"\n");
    }
}

fn put_long_resource(request: &SignedRequest<'_>, sink: &mut impl SignSink) {
    put_path(request, sink);
    let mut parameters: Vec<(String, &str)> =
        request.query.iter().map(|(name, value)| (name.to_lowercase(), value)).collect();
    parameters.sort_unstable();
    let mut previous: Option<&str> = None;
    for (name, value) in &parameters {
        if previous == Some(name) {
            sink.put(b",");
        } else {
            sink.put(b"\n");
            sink.put(name.as_bytes());
            sink.put(b":");
        }
        sink.put(value.as_bytes());
        previous = Some(name);
    }
}

/// Compares header names as the service's culture does.
fn collate(a: &str, b: &str) -> Ordering {
    weights_of(a).cmp(weights_of(b)).then_with(|| compare_hyphens(a.as_bytes(), b.as_bytes()))
}

fn weights_of(name: &str) -> impl Iterator<Item = (u8, u8)> {
    name.bytes().filter(|&byte| byte != b'-').map(weight)
}

/// Hyphens decide only between names that are otherwise equal: where they first differ, another character
/// comes before the end, and the end before a hyphen.
fn compare_hyphens(a: &[u8], b: &[u8]) -> Ordering {
    let rank = |name: &[u8], at: usize| match name.get(at) {
        Some(b'-') => 2,
        Some(_) => 0,
        None => 1,
    };
    let differ = (0..a.len().max(b.len())).find(|&at| rank(a, at) != rank(b, at));
    differ.map_or(Ordering::Equal, |at| rank(a, at).cmp(&rank(b, at)))
}

fn weight(byte: u8) -> (u8, u8) {
    let class = match byte {
        b'+' => 1,
        b'0'..=b'9' => 2,
        b'a'..=b'z' => 3,
        _ => 0,
    };
    (class, byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;
    use proptest::prelude::*;

    #[test]
    fn collation_ignores_hyphens_and_puts_the_underscore_first() {
        let mut names = ["a-b", "aa", "a1", "a_b", "ab"];
        names.sort_by(|a, b| collate(a, b));
        assert_eq!(names, ["a_b", "a1", "aa", "ab", "a-b"]);
        // As an official client sorts them.
        let mut names =
            ["t_a-_", "t__", "t-_", "t-", "t+", "t1", "t~", "t_-", "t", "t--", "t_a_", "t_a_-", "t-a"];
        names.sort_by(|a, b| collate(a, b));
        let sorted =
            ["t", "t-", "t--", "t_-", "t-_", "t__", "t_a_", "t_a_-", "t_a-_", "t~", "t+", "t1", "t-a"];
        assert_eq!(names, sorted);
    }

    /// The string that is signed of these headers.
    fn canonical(headers: &[(&'static str, &'static str)], order: HeaderOrder) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let mut signed = Vec::new();
        put_canonical_headers(&map, order, &mut signed);
        String::from_utf8(signed).unwrap()
    }

    #[test]
    fn a_header_that_comes_several_times_is_signed_once_with_all_its_values() {
        let headers = [
            ("x-ms-meta-b", " second"),
            ("x-ms-version", "2021-12-02"),
            ("x-ms-meta-b", "first "),
            ("date", "today"),
            ("x-ms-meta-a", ""),
        ];
        let signed = "x-ms-meta-a:\nx-ms-meta-b:second,first\nx-ms-version:2021-12-02\n";
        for order in [HeaderOrder::Ordinal, HeaderOrder::Collation] {
            assert_eq!(canonical(&headers, order), signed, "{order:?}");
        }
        let mut latin = HeaderMap::new();
        latin.insert("x-ms-meta-a", HeaderValue::from_bytes(b"\xe4b").unwrap());
        let mut signed = Vec::new();
        put_canonical_headers(&latin, HeaderOrder::Ordinal, &mut signed);
        assert_eq!(signed, "x-ms-meta-a:\u{e4}b\n".as_bytes());
        // Empty ones were not signed at first.
        let old = [("x-ms-meta-a", ""), ("x-ms-version", "2015-12-11")];
        assert_eq!(canonical(&old, HeaderOrder::Ordinal), "x-ms-version:2015-12-11\n");
    }

    proptest! {
        #[test]
        fn any_request_has_a_string_to_sign(
            method in "[A-Z]{0,8}", account in any::<String>(), path in any::<String>(), query in any::<String>(),
            headers in proptest::collection::vec(("x-ms-[a-z0-9_-]{0,6}", any::<Vec<u8>>()), 0..8),
            full: bool, table: bool, ordinal: bool,
        ) {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_bytes(&value)) {
                    map.append(name, value);
                }
            }
            if let Ok(query) = QueryParameters::parse(Some(&query)) {
                let request = SignedRequest {
                    service: if table { SignedService::Table } else { SignedService::BlobOrQueue },
                    method: &method,
                    account: &account,
                    path: SignedPath { account: None, rest: &path },
                    query: &query,
                    headers: &map,
                };
                let scheme = if full { SharedKeyScheme::Full } else { SharedKeyScheme::Lite };
                let order = if ordinal { HeaderOrder::Ordinal } else { HeaderOrder::Collation };
                let mut text = Vec::new();
                write_string_to_sign(&request, scheme, order, &mut text);
                prop_assert!(text.windows(account.len().max(1)).any(|window| window == account.as_bytes()) || account.is_empty());
            }
        }
    }
}
