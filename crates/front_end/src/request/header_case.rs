//! The case of metadata names. HTTP's header names have none, but Azure gives a name of metadata back as it
//! was created, and clients look it up so.
//!
//! The HTTP library keeps the case of a request's names in an extension that only itself can read; its
//! documented use is that a response which is given this extension writes its names in that case. So to learn
//! the case of a request's names, the library writes a response with them; and for a response whose names
//! have capitals it reads a request with them. Both happen in memory, and only where there is metadata. Over
//! HTTP/2 all names are in lower case.
//!
//! What always holds: case is all that can differ. Names and values are those that the library read or was
//! given.

use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::Empty;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::Extensions;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use std::convert::Infallible;
use std::future::ready;

/// What headers of metadata begin with.
pub(crate) const METADATA_PREFIX: &str = "x-ms-meta-";

/// The metadata names of a request that were not sent in lower case, without their prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CasedNames(Vec<String>);

impl CasedNames {
    /// Replaces what the HTTP library noted of a request by what is of use here.
    pub(crate) fn note<B>(request: &mut Request<B>) {
        let names = request.headers().keys().filter(|name| name.as_str().starts_with(METADATA_PREFIX));
        let mut headers = HeaderMap::new();
        for name in names {
            headers.insert(name.clone(), HeaderValue::from_static(""));
        }
        let noted = std::mem::take(request.extensions_mut());
        if !headers.is_empty() {
            let cased = Self::of(&headers, &noted);
            request.extensions_mut().insert(cased);
        }
    }

    fn of(headers: &HeaderMap, noted: &Extensions) -> Self {
        let written = exchange(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n", |_| {
            let mut response = Response::new(Empty::new());
            *response.headers_mut() = headers.clone();
            *response.extensions_mut() = noted.clone();
            response
        });
        let lines = written.split(|byte| *byte == b'\n');
        let names =
            lines.filter_map(|line| std::str::from_utf8(line).ok()?.split_once(':')).map(|(name, _)| name);
        let cased = names.filter_map(|name| {
            let (prefix, rest) = name.split_at_checked(METADATA_PREFIX.len())?;
            (prefix.eq_ignore_ascii_case(METADATA_PREFIX) && has_capitals(rest)).then(|| rest.to_owned())
        });
        CasedNames(cased.collect())
    }

    /// A metadata name, which is in lower case, as a request has it, in whose extensions these names are.
    pub(crate) fn as_sent(cased: Option<&CasedNames>, name: &str) -> String {
        let mut cased = cased.into_iter().flat_map(|names| &names.0);
        cased.find(|cased| cased.eq_ignore_ascii_case(name)).map_or(name, String::as_str).to_owned()
    }

    /// Notes a name for a response, if that makes a difference to it.
    pub(crate) fn add(&mut self, name: &str) {
        if has_capitals(name) {
            self.0.push(name.to_owned());
        }
    }

    /// Has the response that is given `extensions` write these names as they are.
    pub(crate) fn put_into(&self, extensions: &mut Extensions) {
        if self.0.is_empty() {
            return;
        }
        let mut request = b"GET / HTTP/1.1\r\nconnection: close\r\n".to_vec();
        for name in &self.0 {
            // What is no header name can't be said, and must not become another header.
            if HeaderName::from_bytes(name.as_bytes()).is_ok() {
                for part in [METADATA_PREFIX, name, ":\r\n"] {
                    request.extend_from_slice(part.as_bytes());
                }
            }
        }
        request.extend_from_slice(b"\r\n");
        let noted = RefCell::new(Extensions::new());
        exchange(&request, |request| {
            noted.replace(request.into_parts().0.extensions);
            Response::new(Empty::new())
        });
        extensions.extend(noted.into_inner());
    }
}

fn has_capitals(name: &str) -> bool {
    name.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Has the HTTP library serve one request from memory, and returns what it wrote.
fn exchange(
    request: &[u8],
    answer: impl Fn(Request<hyper::body::Incoming>) -> Response<Empty<Bytes>>,
) -> Vec<u8> {
    let mut written = Vec::new();
    let memory = TokioIo::new(tokio::io::join(request, &mut written));
    let service = service_fn(|request| ready(Ok::<_, Infallible>(answer(request))));
    let mut http1 = http1::Builder::new();
    // The request's end is no reason not to answer.
    http1.preserve_header_case(true).half_close(true);
    // Memory never makes wait. If the library ends otherwise, names stay in lower case.
    let _ = http1.serve_connection(memory, service).now_or_never();
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// What a connection that preserves case makes of a request with these header lines.
    fn received(lines: &str) -> Request<()> {
        let taken = Mutex::new(None);
        let request = format!("PUT / HTTP/1.1\r\nconnection: close\r\n{lines}\r\n");
        exchange(request.as_bytes(), |request| {
            *taken.lock().expect("lock") = Some(request.map(|_| ()));
            Response::new(Empty::new())
        });
        taken.into_inner().expect("lock").expect("a request")
    }

    #[test]
    fn names_are_read_as_sent() {
        let mut request = received(
            "Host: a\r\nX-Ms-Meta-docType: x-ms-meta-Other: 1\r\nx-ms-meta-plain: 2\r\nx-ms-meta-_UP: 3\r\nX-Other: 4\r\n",
        );
        CasedNames::note(&mut request);
        let extensions = request.extensions();
        assert_eq!(extensions.get(), Some(&CasedNames(vec!["docType".to_owned(), "_UP".to_owned()])));
        assert_eq!(CasedNames::as_sent(extensions.get(), "doctype"), "docType");
        assert_eq!(CasedNames::as_sent(extensions.get(), "plain"), "plain");
        assert_eq!(CasedNames::as_sent(extensions.get(), "other"), "other");
        let mut request = received("Host: a\r\nX-Ms-Date: 1\r\n");
        CasedNames::note(&mut request);
        assert!(request.extensions().is_empty());
        assert_eq!(CasedNames::as_sent(request.extensions().get(), "a"), "a");
    }

    #[test]
    fn names_are_written_as_they_are() {
        let mut names = CasedNames::default();
        for name in ["docType", "plain", "_UP", "no name: \r\nInjected"] {
            names.add(name);
        }
        let mut headers = HeaderMap::new();
        for name in ["x-ms-meta-doctype", "x-ms-meta-_up", "x-ms-meta-plain", "etag"] {
            headers.insert(name, HeaderValue::from_static("1"));
        }
        let written = exchange(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n", |_| {
            let mut response = Response::new(Empty::new());
            *response.headers_mut() = headers.clone();
            names.put_into(response.extensions_mut());
            response
        });
        let written = String::from_utf8(written).expect("text");
        for line in ["x-ms-meta-docType: 1", "x-ms-meta-_UP: 1", "x-ms-meta-plain: 1", "etag: 1"] {
            assert!(written.lines().any(|one| one == line), "{line} in {written}");
        }
        let mut none = Extensions::new();
        CasedNames::default().put_into(&mut none);
        assert!(none.is_empty());
    }
}
