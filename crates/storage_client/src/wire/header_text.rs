//! Headers of answers as texts.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use std::collections::BTreeMap;

/// A header's value as text; empty without one.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The metadata among headers.
pub(crate) fn metadata_of(headers: &HeaderMap) -> BTreeMap<String, String> {
    let pair = |(name, value): (&HeaderName, &HeaderValue)| {
        let name = name.as_str().strip_prefix("x-ms-meta-")?;
        Some((name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
    };
    headers.iter().filter_map(pair).collect()
}
