//! Reads a batch request.
//!
//! ```text
//! --batch_X                                       one part: a change set, or a lone request
//! Content-Type: multipart/mixed; boundary=changeset_Y
//!
//! --changeset_Y                                   one part for each operation
//! Content-Type: application/http
//! Content-ID: 0
//!
//! POST http://127.0.0.1:10002/acct/People HTTP/1.1
//! Content-Type: application/json
//!
//! {"PartitionKey":"p","RowKey":"1"}
//! --changeset_Y--
//! --batch_X--
//! ```
//!
//! Liberal where clients differ: names in any case, blank lines before boundaries, requests and bodies, line
//! ends with or without carriage return, a missing last boundary of the batch. What always holds: any bytes
//! are a batch or are refused, a change set that was cut off is never taken for a whole one, nothing is
//! copied, and at most one operation more than allowed is read.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use memchr::memchr;
use memchr::memmem;
use table::limits::GROUP_OPERATIONS_MAX;

/// Operations read at most: one more than allowed, so that the caller sees that there are too many.
pub(crate) const OPERATIONS_READ_MAX: usize = GROUP_OPERATIONS_MAX + 1;

/// Bytes of a boundary at most (RFC 2046 allows 70).
const BOUNDARY_SIZE_BYTES_MAX: usize = 256;

/// Header lines of a part at most.
const PART_HEADERS_MAX: usize = 64;

/// A batch as sent.
#[derive(Debug)]
pub(crate) enum BatchRequest<'a> {
    /// Operations that are applied all or not at all.
    ChangeSet(Vec<BatchPart<'a>>),
    /// A lone request outside a change set.
    Direct(BatchPart<'a>),
}

/// One operation of a batch.
#[derive(Debug, Clone)]
pub(crate) struct BatchPart<'a> {
    /// What the reply repeats, if given.
    pub(crate) content_id: Option<&'a str>,
    /// The verb.
    pub(crate) method: &'a str,
    /// An absolute or path-only target.
    pub(crate) target: &'a str,
    headers: Vec<(&'a str, &'a str)>,
    /// The body, trimmed.
    pub(crate) body: &'a [u8],
}

impl<'a> BatchPart<'a> {
    /// The first value of a header, by lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        find(&self.headers, name)
    }
}

fn malformed() -> ApiError {
    ErrorCode::InvalidInput.into()
}

fn find<'a>(headers: &[(&'a str, &'a str)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
}

/// The boundary in a `multipart/mixed` content type, quoted or not.
pub(crate) fn boundary_of(content_type: &str) -> Option<&str> {
    let mut parts = content_type.split(';').map(str::trim);
    if !parts.next()?.eq_ignore_ascii_case("multipart/mixed") {
        return None;
    }
    let boundary = parts.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"'))
    })?;
    (1..=BOUNDARY_SIZE_BYTES_MAX).contains(&boundary.len()).then_some(boundary)
}

/// Reads a batch whose parts are separated by `boundary`.
pub(crate) fn read_batch<'a>(body: &'a [u8], boundary: &str) -> Result<BatchRequest<'a>, ApiError> {
    let mut outer = Parts::new(body, boundary);
    let part = outer.next().ok_or_else(malformed)?;
    if outer.next().is_some() {
        return Err(ApiError::with_message(
            ErrorCode::InvalidInput,
            "A batch must hold exactly one change set, or one request.",
        ));
    }
    let (headers, content) = read_headers(part)?;
    let content_type = find(&headers, "content-type").ok_or_else(malformed)?;
    let Some(inner) = boundary_of(content_type) else {
        return read_operation(&headers, content).map(BatchRequest::Direct);
    };
    let mut operations = Vec::new();
    let mut parts = Parts::new(content, inner);
    for part in parts.by_ref().take(OPERATIONS_READ_MAX) {
        let (headers, content) = read_headers(part)?;
        operations.push(read_operation(&headers, content)?);
    }
    let is_whole = parts.is_closed || operations.len() == OPERATIONS_READ_MAX;
    if !is_whole {
        return Err(malformed());
    }
    Ok(BatchRequest::ChangeSet(operations))
}

/// What stands between the lines `--boundary`, up to `--boundary--` or the end.
struct Parts<'a> {
    /// After a delimiter line; `None` when there are no more parts.
    rest: Option<&'a [u8]>,
    delimiter: Vec<u8>,
    /// The last delimiter line was there.
    is_closed: bool,
}

impl<'a> Parts<'a> {
    fn new(body: &'a [u8], boundary: &str) -> Self {
        let mut delimiter = Vec::with_capacity(boundary.len() + 2);
        delimiter.extend_from_slice(b"--");
        delimiter.extend_from_slice(boundary.as_bytes());
        let mut parts = Parts { rest: Some(body), delimiter, is_closed: false };
        // What precedes the first delimiter is no part.
        parts.rest = match parts.find_delimiter(body) {
            Some((_, after, false)) => Some(after),
            // Nothing at all; what stands before it would be dropped without a word.
            Some((at, _, true)) => {
                parts.is_closed = body[..at].trim_ascii().is_empty();
                None
            }
            None => None,
        };
        parts
    }

    /// The next delimiter line: (where it starts, what follows it, whether it is the last).
    fn find_delimiter(&self, bytes: &'a [u8]) -> Option<(usize, &'a [u8], bool)> {
        for at in memmem::find_iter(bytes, &self.delimiter) {
            if at > 0 && bytes[at - 1] != b'\n' {
                continue;
            }
            let after = &bytes[at + self.delimiter.len()..];
            let (after, last) = match after.strip_prefix(b"--") {
                Some(after) => (after, true),
                None => (after, false),
            };
            let line_end = memchr(b'\n', after).unwrap_or(after.len());
            if after[..line_end].trim_ascii().is_empty() {
                return Some((at, &after[(line_end + 1).min(after.len())..], last));
            }
        }
        None
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        match self.find_delimiter(rest) {
            Some((at, after, last)) => {
                self.rest = (!last).then_some(after);
                self.is_closed = last;
                Some(&rest[..at])
            }
            None => {
                // A missing last boundary: what is left is the last part, unless it is blank.
                self.rest = None;
                (!rest.trim_ascii().is_empty()).then_some(rest)
            }
        }
    }
}

type Headers<'a> = Vec<(&'a str, &'a str)>;

/// Header lines up to a blank line, and what follows it. Blank lines before them are skipped.
fn read_headers(part: &[u8]) -> Result<(Headers<'_>, &[u8]), ApiError> {
    let mut headers = Vec::with_capacity(8);
    let mut rest = skip_blank_lines(part);
    while !rest.is_empty() {
        let (line, after) = take_line(rest);
        rest = after;
        if line.is_empty() {
            break;
        }
        let line = std::str::from_utf8(line).map_err(|_| malformed())?;
        let (name, value) = line.split_once(':').ok_or_else(malformed)?;
        if headers.len() == PART_HEADERS_MAX {
            return Err(malformed());
        }
        headers.push((name.trim(), value.trim()));
    }
    Ok((headers, rest))
}

fn read_operation<'a>(part_headers: &Headers<'a>, content: &'a [u8]) -> Result<BatchPart<'a>, ApiError> {
    let is_http = find(part_headers, "content-type")
        .and_then(|content_type| content_type.split(';').next())
        .is_some_and(|media_type| media_type.trim().eq_ignore_ascii_case("application/http"));
    if !is_http {
        return Err(malformed());
    }
    let (request_line, rest) = take_line(skip_blank_lines(content));
    let request_line = std::str::from_utf8(request_line).map_err(|_| malformed())?;
    let (method, rest_of_line) = request_line.trim().split_once(' ').ok_or_else(malformed)?;
    let (target, _) = rest_of_line.rsplit_once(" HTTP/").ok_or_else(malformed)?;
    // A blank line at once means that there are no headers.
    let (headers, body) = match take_line(rest) {
        ([], body) => (Vec::new(), body),
        _ => read_headers(rest)?,
    };
    let content_id = find(part_headers, "content-id").or_else(|| find(&headers, "content-id"));
    Ok(BatchPart {
        content_id: content_id.filter(|id| id.bytes().all(|byte| (0x20..0x7f).contains(&byte))),
        method,
        target: target.trim(),
        headers,
        body: body.trim_ascii(),
    })
}

/// The line without its end, and what follows.
fn take_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match memchr(b'\n', bytes) {
        Some(at) => (bytes[..at].trim_ascii_end(), &bytes[at + 1..]),
        None => (bytes.trim_ascii_end(), &[]),
    }
}

fn skip_blank_lines(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii_start()
}

#[cfg(test)]
mod tests;
