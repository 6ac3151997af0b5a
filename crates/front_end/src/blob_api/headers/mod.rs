//! The headers of a request, with a sketch of their names.
//!
//! The protocol has some fifty headers that say something of a blob, and a request has few of them: most
//! look-ups find nothing, and the sketch shows that without a look-up.

pub(crate) mod reply_headers;
pub(crate) mod request_headers;

use crate::request::header_case::CasedNames;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;

/// A request's headers.
#[derive(Clone, Copy)]
pub(crate) struct Headers<'a> {
    map: &'a HeaderMap,
    /// A bit for each name; other names may have the same.
    names: u128,
    cased: Option<&'a CasedNames>,
}

impl<'a> Headers<'a> {
    pub(crate) fn of(map: &'a HeaderMap) -> Self {
        let names = map.keys().fold(0, |names, name| names | bit(name.as_str()));
        Headers { map, names, cased: None }
    }

    /// Those of a request, with the case of its metadata names.
    pub(crate) fn of_request(parts: &'a Parts) -> Self {
        Headers { cased: parts.extensions.get(), ..Headers::of(&parts.headers) }
    }

    /// A metadata name, which is in lower case, as it was sent.
    pub(crate) fn as_sent(self, name: &str) -> String {
        CasedNames::as_sent(self.cased, name)
    }

    /// The first header of that name, which is in lower case.
    pub(crate) fn get(self, name: &str) -> Option<&'a HeaderValue> {
        if self.names & bit(name) == 0 { None } else { self.map.get(name) }
    }

    /// Whether there is a header of that name, which is in lower case.
    pub(crate) fn contains_key(self, name: &str) -> bool {
        self.names & bit(name) != 0 && self.map.contains_key(name)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)> {
        self.map.iter()
    }
}

/// Names of the protocol begin and end alike, so length and middle tell them apart, too.
fn bit(name: &str) -> u128 {
    let name = name.as_bytes();
    let at = |index: usize| name.get(index).map_or(0, |byte| u32::from(*byte));
    let (len, last) = (name.len(), at(name.len().wrapping_sub(1)));
    1 << ((len as u32 + 3 * last + 7 * at(len / 2) + 13 * at(len.wrapping_sub(4))) % u128::BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found() {
        let names = ["a", "host", "content-md5", "if-match", "x-ms-blob-type", "x-ms-meta-a", "x-ms-version"];
        for (index, name) in names.into_iter().enumerate() {
            let mut map = HeaderMap::new();
            for name in &names[..=index] {
                map.append(*name, HeaderValue::from_static("first"));
                map.append(*name, HeaderValue::from_static("second"));
            }
            let headers = Headers::of(&map);
            assert_eq!(headers.get(name).map(HeaderValue::as_bytes), Some(&b"first"[..]), "{name}");
            assert!(headers.contains_key(name));
            assert_eq!(headers.iter().count(), 2 * (index + 1));
            for missing in &names[index + 1..] {
                assert_eq!(headers.get(missing), None, "{missing}");
                assert!(!headers.contains_key(missing));
            }
        }
        assert_eq!(Headers::of(&HeaderMap::new()).get(""), None);
    }

    #[test]
    fn most_names_are_known_to_be_missing() {
        let mut map = HeaderMap::new();
        for name in [
            "host",
            "user-agent",
            "accept",
            "content-length",
            "content-type",
            "authorization",
            "x-ms-date",
            "x-ms-version",
            "x-ms-client-request-id",
            "x-ms-blob-type",
        ] {
            map.insert(name, HeaderValue::from_static("value"));
        }
        let headers = Headers::of(&map);
        let absent = [
            "if-match",
            "if-none-match",
            "if-modified-since",
            "if-unmodified-since",
            "x-ms-if-tags",
            "x-ms-lease-id",
            "x-ms-encryption-key",
            "x-ms-encryption-key-sha256",
            "x-ms-encryption-algorithm",
            "x-ms-encryption-scope",
            "x-ms-source-encryption-key",
            "x-ms-default-encryption-scope",
            "x-ms-blob-content-type",
            "x-ms-blob-content-encoding",
            "x-ms-blob-content-language",
            "x-ms-blob-content-disposition",
            "x-ms-blob-cache-control",
            "x-ms-blob-content-md5",
            "content-encoding",
            "content-language",
            "cache-control",
            "content-md5",
            "x-ms-content-crc64",
            "x-ms-access-tier",
            "x-ms-tags",
            "x-ms-copy-source",
            "x-ms-structured-body",
            "x-ms-legal-hold",
            "x-ms-immutability-policy-until-date",
        ];
        let looked_for = absent.iter().filter(|name| headers.names & bit(name) != 0).count();
        assert!(looked_for <= 4, "{looked_for} of {}", absent.len());
    }
}
