//! The answer to an entity group: a part for each operation, or one for the operation that failed.
//!
//! ```text
//! --batchresponse_…                    boundary of the Content-Type header
//! Content-Type: multipart/mixed; boundary=changesetresponse_…
//!
//! --changesetresponse_…
//! Content-Type: application/http
//!
//! HTTP/1.1 204 No Content              status, headers, and a body if there is one
//! ETag: …
//! ```
//!
//! What always holds: any bytes are read or refused.

use crate::service_error::{ServiceError, read_service_error};
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use memchr::memmem;

/// What became of a group.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum GroupAnswer {
    /// All were done; an ETag for each that has one.
    Done(Vec<Option<String>>),
    /// None was done.
    Failed { status: StatusCode, error: ServiceError, index: usize },
}

/// Reads the answer's body; an error says why it can't be read.
pub(crate) fn read_group_answer(content_type: &str, body: &[u8]) -> Result<GroupAnswer, String> {
    let outer = boundary(content_type).ok_or("its content type has no boundary")?;
    let mut etags = Vec::new();
    for part in parts(body, outer) {
        let (head, content) = split_head(part).ok_or("a part has no end of its headers")?;
        match boundary(&header(head, "content-type")) {
            Some(inner) => {
                for part in parts(content, inner) {
                    let (_, content) = split_head(part).ok_or("a part has no end of its headers")?;
                    match read_response(content)? {
                        Response::Done(etag) => etags.push(etag),
                        Response::Failed(failed) => return Ok(failed),
                    }
                }
            }
            None => match read_response(content)? {
                Response::Done(etag) => etags.push(etag),
                Response::Failed(failed) => return Ok(failed),
            },
        }
    }
    Ok(GroupAnswer::Done(etags))
}

enum Response {
    Done(Option<String>),
    Failed(GroupAnswer),
}

fn read_response(response: &[u8]) -> Result<Response, String> {
    let (head, body) = split_head(response).ok_or("an inner answer has no end of its headers")?;
    let line = head.lines().next().unwrap_or_default();
    let status = line.split(' ').nth(1).and_then(|status| StatusCode::from_bytes(status.as_bytes()).ok());
    let status = status.filter(|_| line.starts_with("HTTP/")).ok_or("an inner answer has no status")?;
    if status.is_success() {
        let etag = header(head, "etag");
        return Ok(Response::Done((!etag.is_empty()).then_some(etag)));
    }
    let mut headers = HeaderMap::new();
    if let Ok(code) = HeaderValue::from_str(&header(head, "x-ms-error-code")) {
        headers.insert(HeaderName::from_static("x-ms-error-code"), code);
    }
    let mut error = read_service_error(&headers, body);
    // The index before the text: `3:The specified entity already exists.`
    let mut index = 0;
    if let Some((number, rest)) = error.message.split_once(':')
        && let Ok(number) = number.parse()
    {
        index = number;
        error.message = rest.to_owned();
    }
    Ok(Response::Failed(GroupAnswer::Failed { status, error, index }))
}

/// The boundary that a content type names.
fn boundary(content_type: &str) -> Option<&str> {
    let at = content_type.to_ascii_lowercase().find("boundary=")? + "boundary=".len();
    let boundary = content_type.get(at..)?.split(';').next()?.trim().trim_matches('"');
    (!boundary.is_empty()).then_some(boundary)
}

/// What stands between the boundaries; what follows the closing one is left out.
fn parts<'a>(body: &'a [u8], boundary: &str) -> Vec<&'a [u8]> {
    let mark = format!("--{boundary}");
    let starts: Vec<usize> = memmem::find_iter(body, mark.as_bytes()).collect();
    let mut parts = Vec::new();
    for (index, start) in starts.iter().enumerate() {
        let from = start + mark.len();
        if body[from..].starts_with(b"--") {
            break;
        }
        let to = starts.get(index + 1).copied().unwrap_or(body.len());
        parts.push(body[from..to].trim_ascii_start());
    }
    parts
}

/// Headers as text, and what follows the empty line behind them.
fn split_head(part: &[u8]) -> Option<(&str, &[u8])> {
    let (at, len) = match (memmem::find(part, b"\r\n\r\n"), memmem::find(part, b"\n\n")) {
        (Some(at), _) => (at, 4),
        (None, Some(at)) => (at, 2),
        (None, None) => return None,
    };
    Some((std::str::from_utf8(&part[..at]).ok()?, &part[at + len..]))
}

fn header(head: &str, name: &str) -> String {
    let values = head.lines().filter_map(|line| line.split_once(':'));
    let mut values = values.filter(|(one, _)| one.trim().eq_ignore_ascii_case(name));
    values.next().map_or(String::new(), |(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TYPE: &str = "multipart/mixed; boundary=batchresponse_1";

    fn answer(inner: &[&str]) -> String {
        let mut body =
            "--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_2\r\n\r\n"
                .to_owned();
        for one in inner {
            let head = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n";
            body.push_str(&format!("--changesetresponse_2\r\n{head}\r\n{one}\r\n"));
        }
        body + "--changesetresponse_2--\r\n--batchresponse_1--\r\n"
    }

    #[test]
    fn each_part_has_its_etag() {
        let body = answer(&[
            "HTTP/1.1 204 No Content\r\nETag: W/\"datetime'a'\"\r\n\r\n",
            "HTTP/1.1 204 No Content\r\nContent-ID: 1\r\n\r\n",
        ]);
        let etags = vec![Some("W/\"datetime'a'\"".to_owned()), None];
        assert_eq!(read_group_answer(TYPE, body.as_bytes()), Ok(GroupAnswer::Done(etags)));
    }

    #[test]
    fn a_failed_part_names_its_operation() {
        let json = r#"{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"12:It exists.\nRequestId:x"}}}"#;
        let body =
            answer(&[&format!("HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\n\r\n{json}\r\n")]);
        let error = ServiceError { code: "EntityAlreadyExists".to_owned(), message: "It exists.".to_owned() };
        let failed = GroupAnswer::Failed { status: StatusCode::CONFLICT, error, index: 12 };
        assert_eq!(read_group_answer(TYPE, body.as_bytes()), Ok(failed));
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        assert!(read_group_answer("text/plain", b"").is_err());
        assert!(read_group_answer(TYPE, answer(&["204"]).as_bytes()).is_err());
        assert!(read_group_answer(TYPE, answer(&["HTTP/1.1 2 x\r\n\r\n"]).as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(body in "(--|batchresponse_1|\r\n|HTTP/1.1 |204 |[a-z:;=]|boundary=)*") {
            let _ = read_group_answer(TYPE, body.as_bytes());
        }
    }
}
