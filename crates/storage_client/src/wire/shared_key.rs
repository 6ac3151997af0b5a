//! The string that a client signs with its account's key (SharedKey).
//!
//! ```text
//! Table        VERB Content-MD5 Content-Type DATE RESOURCE
//! Blob, Queue  VERB, eleven standard headers, x-ms- headers, RESOURCE and all parameters
//! RESOURCE     /ACCOUNT and the primary's path, encoded as it is sent, whichever of the two it is sent to;
//!              for tables ?comp=VALUE, too, if there is one
//!
//! All parts are joined by newlines.
//! ```
//!
//! The front end has the same rules as a verifier: over received requests, in both schemes and both orders of
//! headers, on its hot path. This is the one form that a client writes; both are checked against the same
//! vectors. What always holds: `x-ms-` headers are sorted as the service's culture sorts them, which all
//! verifiers accept.

use crate::account::credentials::AccountKey;
pub(crate) use crate::account::credentials::SIGNATURE_LEN;
use crate::account::endpoint::Service;
use hyper::header::{
    CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE, RANGE,
};
use std::cmp::Ordering;

pub(crate) const X_MS_DATE: HeaderName = HeaderName::from_static("x-ms-date");
pub(crate) const X_MS_VERSION: HeaderName = HeaderName::from_static("x-ms-version");
const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");

/// A request before it is signed; its date is in `x-ms-date`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unsigned<'a> {
    pub(crate) service: Service,
    pub(crate) method: &'a str,
    pub(crate) account: &'a str,
    /// As it is sent to the primary; see [`crate::account::endpoint::AccountEndpoint::signed_path`].
    pub(crate) path: &'a str,
    /// Decoded names and values.
    pub(crate) query: &'a [(String, String)],
    pub(crate) headers: &'a HeaderMap,
}

/// The string to sign.
pub(crate) fn string_to_sign(request: &Unsigned<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    match request.service {
        Service::Table => {
            put_line(&mut out, request.method.as_bytes());
            put_line(&mut out, value(request.headers, CONTENT_MD5));
            put_line(&mut out, value(request.headers, CONTENT_TYPE));
            put_line(&mut out, value(request.headers, X_MS_DATE));
            put_path(&mut out, request);
            if let Some((_, comp)) = request.query.iter().find(|(name, _)| name == "comp") {
                out.extend_from_slice(b"?comp=");
                out.extend_from_slice(comp.as_bytes());
            }
        }
        Service::Blob | Service::Queue => {
            put_standard_headers(&mut out, request);
            put_own_headers(&mut out, request.headers);
            put_path(&mut out, request);
            put_parameters(&mut out, request.query);
        }
    }
    out
}

/// A request to tables before it is signed, of a client that knows where its parts are. They are ASCII.
pub(crate) struct UnsignedTable<'a> {
    pub(crate) method: &'a [u8],
    pub(crate) content_type: &'a [u8],
    pub(crate) date: &'a [u8],
    pub(crate) account: &'a [u8],
    /// What is before all paths, as it is signed, and what is below it.
    pub(crate) path: [&'a [u8]; 2],
}

impl UnsignedTable<'_> {
    /// The signature of the string that [`string_to_sign`] makes of the same request, which is not put
    /// together for it.
    pub(crate) fn sign(&self, key: &AccountKey) -> [u8; SIGNATURE_LEN] {
        let UnsignedTable { method, content_type, date, account, path } = *self;
        key.sign_parts(&[method, b"\n\n", content_type, b"\n", date, b"\n/", account, path[0], path[1]])
    }
}

fn value(headers: &HeaderMap, name: HeaderName) -> &[u8] {
    headers.get(name).map_or(&[], |value| value.as_bytes())
}

/// The service reads header bytes as Latin-1 and signs them as UTF-8.
fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    if text.is_ascii() {
        out.extend_from_slice(text);
        return;
    }
    for byte in text {
        out.extend_from_slice(char::from(*byte).encode_utf8(&mut [0; 2]).as_bytes());
    }
}

fn put_line(out: &mut Vec<u8>, text: &[u8]) {
    put_text(out, text);
    out.push(b'\n');
}

fn put_path(out: &mut Vec<u8>, request: &Unsigned<'_>) {
    out.push(b'/');
    out.extend_from_slice(request.account.as_bytes());
    out.extend_from_slice(request.path.as_bytes());
}

fn put_standard_headers(out: &mut Vec<u8>, request: &Unsigned<'_>) {
    let headers = request.headers;
    let length = value(headers, CONTENT_LENGTH);
    put_line(out, request.method.as_bytes());
    put_line(out, value(headers, CONTENT_ENCODING));
    put_line(out, value(headers, CONTENT_LANGUAGE));
    put_line(out, if length == b"0" { &[] } else { length });
    put_line(out, value(headers, CONTENT_MD5));
    put_line(out, value(headers, CONTENT_TYPE));
    // Date: empty, because x-ms-date is there.
    put_line(out, &[]);
    put_line(out, value(headers, IF_MODIFIED_SINCE));
    put_line(out, value(headers, IF_MATCH));
    put_line(out, value(headers, IF_NONE_MATCH));
    put_line(out, value(headers, IF_UNMODIFIED_SINCE));
    put_line(out, value(headers, RANGE));
}

fn put_own_headers(out: &mut Vec<u8>, headers: &HeaderMap) {
    let mut own: Vec<(&str, &[u8])> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .filter(|(name, _)| name.starts_with("x-ms-"))
        .collect();
    own.sort_by(|(a, _), (b, _)| collate(a, b));
    for (name, value) in own {
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        put_line(out, value.trim_ascii());
    }
}

fn put_parameters(out: &mut Vec<u8>, query: &[(String, String)]) {
    let mut parameters: Vec<(String, &str)> =
        query.iter().map(|(name, value)| (name.to_lowercase(), value.as_str())).collect();
    parameters.sort_unstable();
    for values in parameters.chunk_by(|(a, _), (b, _)| a == b) {
        out.push(b'\n');
        out.extend_from_slice(values[0].0.as_bytes());
        for (index, (_, value)) in values.iter().enumerate() {
            out.push(if index == 0 { b':' } else { b',' });
            out.extend_from_slice(value.as_bytes());
        }
    }
}

/// As the service's culture compares names: hyphens have no weight at first, `_` is before digits, digits
/// before letters; hyphens decide between names that are otherwise equal.
fn collate(a: &str, b: &str) -> Ordering {
    let weighed = |name: &str| -> Vec<(u8, u8)> {
        name.bytes().filter(|byte| *byte != b'-').map(|byte| (class(byte), byte)).collect()
    };
    // Equal but for hyphens: where they first differ, the name with the hyphen is the later one, and the end
    // of a name is between a hyphen and any other character.
    let hyphens = |name: &str, at: usize| match name.as_bytes().get(at) {
        Some(b'-') => 2,
        Some(_) => 0,
        None => 1,
    };
    weighed(a).cmp(&weighed(b)).then_with(|| {
        let first = (0..a.len().max(b.len())).find(|at| hyphens(a, *at) != hyphens(b, *at));
        first.map_or(Ordering::Equal, |at| hyphens(a, at).cmp(&hyphens(b, at)))
    })
}

fn class(byte: u8) -> u8 {
    match byte {
        b'+' => 1,
        b'0'..=b'9' => 2,
        b'a'..=b'z' => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::endpoint::AccountEndpoint;
    use http_client::Endpoint;
    use hyper::Uri;
    use hyper::header::HeaderValue;
    use percent_encoding::percent_decode_str;
    use serde_json::Value;

    const SHARED_KEY: &str = include_str!("../../../front_end/tests/vectors/shared-key.json");
    const CLIENT_REQUESTS: &str = include_str!("../../../front_end/tests/vectors/client-requests.json");

    fn headers(of: &Value) -> HeaderMap {
        let mut map = HeaderMap::new();
        for pair in of["headers"].as_array().expect("headers") {
            let name: HeaderName = pair[0].as_str().expect("name").parse().expect("name");
            map.append(
                name,
                HeaderValue::from_bytes(pair[1].as_str().expect("value").as_bytes()).expect("value"),
            );
        }
        map
    }

    fn query(uri: &Uri) -> Vec<(String, String)> {
        let decode = |text: &str| {
            percent_decode_str(&text.replace('+', "%20")).decode_utf8().expect("UTF-8").into_owned()
        };
        let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        pairs
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(a, b)| (decode(a), decode(b)))
            .collect()
    }

    /// The path that is signed for a request to this path. The client whose request to a secondary is among
    /// the vectors has the account twice in it; ours has not.
    fn signed_path(account: &str, sent: &str) -> String {
        let secondary = format!("/{account}-secondary");
        let Some(below) = sent.strip_prefix(&secondary) else { return sent.to_owned() };
        let endpoint = Endpoint::parse(&format!("http://127.0.0.1{secondary}")).expect("an endpoint");
        let below = below.strip_prefix(&format!("/{account}")).unwrap_or(below);
        format!("{}{below}", endpoint.signed_path(account))
    }

    /// The signature over what this file makes of the request.
    fn sign(
        key: &AccountKey,
        service: Service,
        account: &str,
        method: &str,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> (String, String) {
        let (query, path) = (query(uri), signed_path(account, uri.path()));
        let request = Unsigned { service, method, account, path: &path, query: &query, headers };
        let string = string_to_sign(&request);
        let signature = key.sign(&string);
        let is_plain = !headers.contains_key(CONTENT_MD5) && query.iter().all(|(name, _)| name != "comp");
        if service == Service::Table && is_plain {
            let (base, below) = path.split_at(path.len() / 2);
            let unsigned = UnsignedTable {
                method: method.as_bytes(),
                content_type: value(headers, CONTENT_TYPE),
                date: value(headers, X_MS_DATE),
                account: account.as_bytes(),
                path: [base.as_bytes(), below.as_bytes()],
            };
            assert_eq!(unsigned.sign(key), signature.as_bytes(), "in parts");
        }
        (String::from_utf8(string).expect("text"), signature)
    }

    fn is_of_this_client(headers: &HeaderMap) -> bool {
        headers.contains_key(X_MS_DATE) && value(headers, X_MS_VERSION) >= b"2016-05-31".as_slice()
    }

    #[test]
    fn worked_examples_are_signed_alike() {
        let vectors: Value = serde_json::from_str(SHARED_KEY).expect("JSON");
        let (mut count, mut secondaries) = (0, 0);
        for vector in vectors["vectors"].as_array().expect("vectors") {
            let text = |name: &str| vector[name].as_str().unwrap_or_default();
            let headers = headers(vector);
            // The other order of headers, which this client does not write.
            let is_ordinal = text("id") == "blob-sk-header-ordinal";
            if text("scheme") != "SharedKey" || !is_of_this_client(&headers) || is_ordinal {
                continue;
            }
            let service = match text("service") {
                "table" => Service::Table,
                "queue" => Service::Queue,
                _ => Service::Blob,
            };
            let account = text("account");
            let key = vectors["accounts"][account].as_str().expect("a key");
            let key = AccountKey::from_base64(key).expect("a key");
            let uri: Uri = text("url").parse().expect("a URL");
            let (string, signature) = sign(&key, service, account, text("method"), &uri, &headers);
            assert_eq!(string, text("string_to_sign"), "{}", text("id"));
            assert_eq!(signature, text("signature"), "{}", text("id"));
            count += 1;
            secondaries += usize::from(text("url").contains("-secondary"));
        }
        assert!(count >= 10 && secondaries > 0, "{count} examples, {secondaries} of secondaries");
    }

    #[test]
    fn requests_of_official_clients_are_signed_alike() {
        let vectors: Value = serde_json::from_str(CLIENT_REQUESTS).expect("JSON");
        let key = crate::account::connection_string::DEVELOPMENT_ACCOUNT_KEY;
        let key = AccountKey::from_base64(key).expect("a key");
        let (mut count, mut secondaries) = (0, 0);
        for vector in vectors["requests"].as_array().expect("requests") {
            let text = |name: &str| vector[name].as_str().unwrap_or_default();
            let headers = headers(vector);
            let sent = headers.get("authorization").map_or("", |value| value.to_str().expect("text"));
            let Some(sent) = sent.strip_prefix("SharedKey devstoreaccount1:") else { continue };
            if !headers.contains_key(X_MS_DATE) {
                continue;
            }
            let service = if text("client").ends_with("-table") || text("client").contains("table") {
                Service::Table
            } else if text("client").contains("queue") {
                Service::Queue
            } else {
                Service::Blob
            };
            let uri: Uri = text("target").parse().expect("a target");
            let (string, signature) = sign(&key, service, "devstoreaccount1", text("method"), &uri, &headers);
            assert_eq!(
                (string.as_str(), signature.as_str()),
                (text("string_to_sign"), sent),
                "{}",
                text("target")
            );
            count += 1;
            secondaries += usize::from(text("target").contains("-secondary"));
        }
        assert!(count >= 60 && secondaries > 0, "{count} requests, {secondaries} to secondaries");
    }

    #[test]
    fn names_are_sorted_as_the_service_sorts_them() {
        let mut names =
            ["t_a-_", "t__", "t-_", "t-", "t+", "t1", "t~", "t_-", "t", "t--", "t_a_", "t_a_-", "t-a"];
        names.sort_by(|a, b| collate(a, b));
        assert_eq!(
            names,
            ["t", "t-", "t--", "t_-", "t-_", "t__", "t_a_", "t_a_-", "t_a-_", "t~", "t+", "t1", "t-a"]
        );
    }
}
