//! Metadata in headers: `x-ms-meta-NAME: value`.
//!
//! Names are compared without case and keep the one they were sent in. What always holds: a name is an
//! identifier, no name occurs twice, and what was taken can be returned.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::request::header_case::{CasedNames, METADATA_PREFIX};
use hyper::http::request::Parts;
use queue::Metadata;

/// The metadata in a request's headers, in the order of names in lower case. A header `x-ms-meta` is one
/// client's mistake, and is left out.
pub(crate) fn read_metadata(parts: &Parts) -> Result<Metadata, ApiError> {
    let headers = &parts.headers;
    let invalid = || ApiError::new(ErrorCode::InvalidMetadata);
    let mut metadata = Metadata::new();
    for key in headers.keys() {
        let Some(name) = key.as_str().strip_prefix(METADATA_PREFIX) else {
            continue;
        };
        if name.is_empty() {
            return Err(ErrorCode::EmptyMetadataKey.into());
        }
        let mut values = headers.get_all(key).iter();
        let (value, another) = (values.next(), values.next());
        // ASCII only, as documented; what was stored before with other characters is still returned.
        let text = value.and_then(|value| value.to_str().ok());
        match text {
            Some(text) if is_identifier(name) && another.is_none() => {
                metadata.push((name.to_owned(), text.trim().to_owned()));
            }
            _ => return Err(invalid()),
        }
    }
    metadata.sort_unstable();
    for (name, _) in &mut metadata {
        *name = CasedNames::as_sent(parts.extensions.get(), name);
    }
    Ok(metadata)
}

fn is_identifier(name: &str) -> bool {
    let fits = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    name.bytes().all(fits) && !name.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Reply;
    use hyper::header::{HeaderName, HeaderValue};
    use hyper::{Request, StatusCode};

    fn read(pairs: &[(&'static str, &'static str)]) -> Result<Metadata, ErrorCode> {
        let (mut parts, ()) = Request::new(()).into_parts();
        for (name, value) in pairs {
            let name: HeaderName = name.parse().expect("name");
            parts.headers.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("value"));
        }
        read_metadata(&parts).map_err(|error| error.code)
    }

    #[test]
    fn names_are_identifiers_that_occur_once() {
        let metadata =
            read(&[("x-ms-meta-b", " two "), ("x-ms-meta-A_1", "one"), ("x-ms-meta", "{}"), ("other", "x")])
                .expect("metadata");
        assert_eq!(metadata, [("a_1".to_owned(), "one".to_owned()), ("b".to_owned(), "two".to_owned())]);
        let mut reply = Reply::new(StatusCode::OK);
        reply.metadata(&metadata);
        assert_eq!(reply.headers.len(), 2);
        assert_eq!(read(&[("x-ms-meta-a", "1"), ("x-ms-meta-a", "2")]), Err(ErrorCode::InvalidMetadata));
        assert_eq!(read(&[("x-ms-meta-a", "\u{e4}")]), Err(ErrorCode::InvalidMetadata));
        assert_eq!(read(&[("x-ms-meta-1a", "1")]), Err(ErrorCode::InvalidMetadata));
        assert_eq!(read(&[("x-ms-meta-a-b", "1")]), Err(ErrorCode::InvalidMetadata));
        assert_eq!(read(&[("x-ms-meta-a", "1"), ("x-ms-meta-", "1")]), Err(ErrorCode::EmptyMetadataKey));
        assert_eq!(read(&[]), Ok(vec![]));
    }
}
