//! Texts of requests as a log may hold them: names of containers, and headers that clients choose.
//!
//! What always holds: a part of a path behind a container's name, where keys and signatures stand, is never
//! shown, however it is written; what looks like a signature or a key in a header is not either.

use hyper::header::{HeaderMap, HeaderName};

/// Letters of a container's name at most.
const CONTAINER_LEN_MAX: usize = 63;
/// Bytes of a header that are shown.
const HEADER_SIZE_BYTES_MAX: usize = 128;
/// What a header is not shown with, in lower case: parts of signatures and connection strings.
const SECRET_PARTS: [&str; 5] = ["sig=", "accountkey", "sharedaccesssignature", "bearer ", "sharedkey"];
/// What is shown in its place.
const HIDDEN: &str = "(hidden)";

/// The container in the raw path below an account: its leading letters that names of containers have.
pub(crate) fn container_of(resource: &str) -> Option<&str> {
    let rest = resource.strip_prefix('/').unwrap_or(resource);
    // One table as an entry of the list of tables.
    let rest = rest.strip_prefix("Tables('").unwrap_or(rest);
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'$');
    let end = rest.bytes().take_while(|byte| is_of_name(byte)).count();
    (1..=CONTAINER_LEN_MAX).contains(&end).then(|| &rest[..end])
}

/// A header as it may be shown.
pub(crate) fn shown_header(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let text = headers.get(name)?.to_str().ok()?;
    let lower = text.to_ascii_lowercase();
    if SECRET_PARTS.iter().any(|part| lower.contains(part)) {
        return Some(HIDDEN);
    }
    // Only visible ASCII is text here, so any byte ends a letter.
    Some(&text[..text.len().min(HEADER_SIZE_BYTES_MAX)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderValue, USER_AGENT};

    #[test]
    fn containers_are_named_and_what_is_behind_them_is_not() {
        for (resource, expected) in [
            ("/People", Some("People")),
            ("/People(PartitionKey='secret',RowKey='secret')", Some("People")),
            ("/People%28PartitionKey='secret'%29", Some("People")),
            ("/People()", Some("People")),
            ("/Tables('People')", Some("People")),
            ("/photos/2026/secret.jpg", Some("photos")),
            ("/$web/index.html", Some("$web")),
            ("/tasks/messages/id?popreceipt=secret", Some("tasks")),
            ("", None),
            ("/", None),
            ("/%73ecret", None),
            ("/'secret'", None),
        ] {
            assert_eq!(container_of(resource), expected, "{resource}");
        }
        assert_eq!(container_of(&format!("/{}", "a".repeat(64))), None, "no container has such a name");
    }

    #[test]
    fn headers_are_short_and_hold_no_secrets() {
        let shown = |text: &str| {
            let headers = HeaderMap::from_iter([(USER_AGENT, HeaderValue::from_str(text).unwrap())]);
            shown_header(&headers, USER_AGENT).map(str::to_owned)
        };
        assert_eq!(shown("azsdk-python").as_deref(), Some("azsdk-python"));
        assert_eq!(shown(&"x".repeat(1000)), Some("x".repeat(HEADER_SIZE_BYTES_MAX)));
        for text in ["?sv=1&Sig=abc", "AccountKey=abc", "Bearer eyJ", "SharedKey a:b"] {
            assert_eq!(shown(text).as_deref(), Some(HIDDEN), "{text}");
        }
        assert_eq!(shown_header(&HeaderMap::new(), USER_AGENT), None);
    }
}
