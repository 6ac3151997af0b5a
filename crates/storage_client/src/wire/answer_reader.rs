//! Reads an answer of HTTP/1.1 (RFC 9112) whose bytes come in parts: where its head and its body are, and
//! when it is whole.
//!
//! ```text
//! HTTP/1.1 100 Continue CRLF CRLF         interim answers, left out
//! HTTP/1.1 200 OK CRLF
//! content-length: 5 CRLF CRLF             or transfer-encoding: chunked, or neither: until it is closed
//! hello
//! ```
//!
//! What always holds: it gives the same for the same bytes, however they are cut; any bytes are an answer, a
//! part of one, or refused; a head, chunks and the body are bounded. Absent: I/O, and answers to `HEAD`.

use crate::settings::ANSWER_SIZE_BYTES_MAX;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use std::mem::MaybeUninit;
use std::ops::Range;

/// Bytes of a head, at most.
pub(crate) const HEAD_SIZE_BYTES_MAX: usize = 64 << 10;
/// Headers, at most; as many as hyper takes.
pub(crate) const HEADERS_MAX: usize = 100;
/// Interim answers before the final one, at most.
const INTERIM_ANSWERS_MAX: usize = 8;
/// Bytes of the line before a chunk, and of the trailers behind the last one, at most.
const CHUNK_LINE_SIZE_BYTES_MAX: usize = 1 << 10;
const TRAILERS_SIZE_BYTES_MAX: usize = 16 << 10;

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Its head is still coming.
    Head,
    /// Its body is still coming.
    Body,
    /// All of it is there.
    Whole,
}

/// Why bytes are no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// They are not HTTP, or the connection ended too early.
    Broken(&'static str),
    /// The body has more than [`ANSWER_SIZE_BYTES_MAX`] bytes.
    TooLong,
}

/// Reads one answer after the other, each from a buffer that begins with it.
#[derive(Debug)]
pub(crate) struct AnswerReader {
    state: State,
    interim_count: usize,
    status: u16,
    head_size: usize,
    body: Range<usize>,
    trailers_size: usize,
    keeps_open: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Head,
    Sized,
    Chunked(Chunk),
    UntilClosed,
    Whole,
}

/// What comes next in a chunked body.
#[derive(Clone, Copy, Debug)]
enum Chunk {
    Size,
    Data { left: usize },
    DataEnd,
    Trailers,
}

/// What a head says about its body.
struct Head {
    status: u16,
    size: usize,
    is_chunked: bool,
    has_coding: bool,
    length: Option<usize>,
    keeps_open: bool,
    /// It says so, whatever else it says.
    closes: bool,
}

impl AnswerReader {
    pub(crate) fn new() -> Self {
        AnswerReader {
            state: State::Head,
            interim_count: 0,
            status: 0,
            head_size: 0,
            body: 0..0,
            trailers_size: 0,
            keeps_open: false,
        }
    }

    /// Looks at what has come: `bytes` begin with the answer, `is_closed` says that there will be no more.
    /// Takes interim answers and the frames of chunks out of them.
    pub(crate) fn advance(&mut self, bytes: &mut Vec<u8>, is_closed: bool) -> Result<Progress, Unread> {
        while let State::Head = self.state {
            let Some(head) = read_head(bytes)? else {
                return if is_closed { Err(Unread::Broken(CLOSED)) } else { Ok(Progress::Head) };
            };
            self.begin(&head, bytes)?;
        }
        match self.state {
            State::Sized if bytes.len() >= self.body.end => self.state = State::Whole,
            State::Chunked(chunk) => self.unchunk(chunk, bytes)?,
            State::UntilClosed => {
                self.body.end = bytes.len();
                if self.body.len() > ANSWER_SIZE_BYTES_MAX {
                    return Err(Unread::TooLong);
                }
                if is_closed {
                    self.state = State::Whole;
                }
            }
            State::Head | State::Sized | State::Whole => {}
        }
        match self.state {
            State::Whole => Ok(Progress::Whole),
            _ if is_closed => Err(Unread::Broken(CLOSED)),
            _ => Ok(Progress::Body),
        }
    }

    fn begin(&mut self, head: &Head, bytes: &mut Vec<u8>) -> Result<(), Unread> {
        if head.status == 101 {
            return Err(Unread::Broken("the server changes the protocol"));
        }
        if head.status < 200 {
            self.interim_count += 1;
            bytes.drain(..head.size);
            let is_bounded = self.interim_count <= INTERIM_ANSWERS_MAX;
            return if is_bounded {
                Ok(())
            } else {
                Err(Unread::Broken("there are too many interim answers"))
            };
        }
        (self.status, self.head_size) = (head.status, head.size);
        self.keeps_open = head.keeps_open && !head.closes;
        self.body = head.size..head.size;
        self.state = if matches!(head.status, 204 | 304) {
            State::Whole
        } else if head.is_chunked {
            State::Chunked(Chunk::Size)
        } else if let Some(length) = head.length.filter(|_| !head.has_coding) {
            if length > ANSWER_SIZE_BYTES_MAX {
                return Err(Unread::TooLong);
            }
            self.body.end += length;
            State::Sized
        } else {
            self.keeps_open = false;
            State::UntilClosed
        };
        Ok(())
    }

    /// Moves the data of the chunks that are there to the end of the body, and drops what is around it.
    fn unchunk(&mut self, mut chunk: Chunk, bytes: &mut Vec<u8>) -> Result<(), Unread> {
        let mut at = self.body.end;
        loop {
            match chunk {
                Chunk::Size => {
                    let Some(size) = line_size(&bytes[at..], CHUNK_LINE_SIZE_BYTES_MAX)? else { break };
                    let left = chunk_size(&bytes[at..at + size])?;
                    if self.body.len().saturating_add(left) > ANSWER_SIZE_BYTES_MAX {
                        return Err(Unread::TooLong);
                    }
                    at += size;
                    chunk = if left == 0 { Chunk::Trailers } else { Chunk::Data { left } };
                }
                Chunk::Data { left } => {
                    let size = left.min(bytes.len() - at);
                    bytes.copy_within(at..at + size, self.body.end);
                    self.body.end += size;
                    at += size;
                    if size < left {
                        chunk = Chunk::Data { left: left - size };
                        break;
                    }
                    chunk = Chunk::DataEnd;
                }
                Chunk::DataEnd => match &bytes[at..] {
                    [b'\r', b'\n', ..] => {
                        at += 2;
                        chunk = Chunk::Size;
                    }
                    [] | [b'\r'] => break,
                    _ => return Err(Unread::Broken("a chunk is longer than it says")),
                },
                // They say nothing that is needed.
                Chunk::Trailers => {
                    let size_max = TRAILERS_SIZE_BYTES_MAX.saturating_sub(self.trailers_size);
                    let Some(size) = line_size(&bytes[at..], size_max)? else { break };
                    let is_end = matches!(&bytes[at..at + size], b"\r\n" | b"\n");
                    at += size;
                    self.trailers_size += size;
                    if is_end {
                        bytes.drain(self.body.end..at);
                        self.state = State::Whole;
                        return Ok(());
                    }
                }
            }
        }
        bytes.drain(self.body.end..at);
        self.state = State::Chunked(chunk);
        Ok(())
    }

    /// Of an answer whose head is there.
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// The body, as far as it is there.
    pub(crate) fn body<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.body.clone()).unwrap_or_default()
    }

    /// Whether the next request may go on the same connection: nothing is behind the answer, and the server
    /// does not close.
    pub(crate) fn keeps_open(&self, bytes: &[u8]) -> bool {
        self.keeps_open && matches!(self.state, State::Whole) && bytes.len() == self.body.end
    }

    /// All headers.
    pub(crate) fn headers(&self, bytes: &[u8]) -> HeaderMap {
        let mut map = HeaderMap::new();
        with_head(&bytes[..self.head_size], |_, parsed| {
            for header in parsed.headers.iter() {
                let name = HeaderName::from_bytes(header.name.as_bytes());
                if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(header.value)) {
                    map.append(name, value);
                }
            }
            Ok(())
        })
        // It was read before.
        .unwrap_or_default();
        map
    }
}

const CLOSED: &str = "the connection was closed before the answer was whole";

/// Parses a head; none if it is not whole. `use_it` gets its size.
fn with_head<T>(
    bytes: &[u8],
    use_it: impl FnOnce(usize, &httparse::Response<'_, '_>) -> Result<T, Unread>,
) -> Result<Option<T>, Unread> {
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    match parser.parse_response_with_uninit_headers(&mut response, bytes, &mut headers) {
        Ok(httparse::Status::Complete(size)) => use_it(size, &response).map(Some),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => Err(Unread::Broken("the answer has too many headers")),
        Err(_) => Err(Unread::Broken("the answer is not HTTP")),
    }
}

fn read_head(bytes: &[u8]) -> Result<Option<Head>, Unread> {
    const TOO_LONG: Unread = Unread::Broken("the answer's head is too long");
    let head = with_head(bytes, |size, response| {
        if size > HEAD_SIZE_BYTES_MAX {
            return Err(TOO_LONG);
        }
        let is_1_1 = response.version == Some(1);
        let status = response.code.filter(|code| *code >= 100);
        let Some(status) = status else { return Err(Unread::Broken("the answer has no status")) };
        let (is_chunked, has_coding, length, keeps_open) = (false, false, None, is_1_1);
        let mut head = Head { status, size, is_chunked, has_coding, length, keeps_open, closes: false };
        for header in response.headers.iter() {
            head.take(header.name, header.value)?;
        }
        if head.has_coding && !is_1_1 {
            return Err(Unread::Broken("a transfer coding in HTTP/1.0"));
        }
        Ok(head)
    })?;
    if head.is_none() && bytes.len() > HEAD_SIZE_BYTES_MAX {
        return Err(TOO_LONG);
    }
    Ok(head)
}

impl Head {
    /// What a header says about the body and the connection.
    fn take(&mut self, name: &str, value: &[u8]) -> Result<(), Unread> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        // Most are none of these, which their lengths show.
        match name.len() {
            10 if is("connection") => {
                for token in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    if token.eq_ignore_ascii_case(b"close") {
                        self.closes = true;
                    } else if token.eq_ignore_ascii_case(b"keep-alive") {
                        self.keeps_open = true;
                    }
                }
            }
            14 if is("content-length") => {
                let length = decimal(value.trim_ascii()).ok_or(Unread::Broken("its length is no number"))?;
                if self.length.is_some_and(|other| other != length) {
                    return Err(Unread::Broken("the answer has two lengths"));
                }
                self.length = Some(length);
            }
            17 if is("transfer-encoding") => {
                let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
                self.has_coding = true;
                self.is_chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
            }
            _ => {}
        }
        Ok(())
    }
}

fn decimal(text: &[u8]) -> Option<usize> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_number)?.parse().ok()
}

/// The size of a line with its end; none if the end is not there yet.
fn line_size(bytes: &[u8], size_max: usize) -> Result<Option<usize>, Unread> {
    let end = memchr::memchr(b'\n', &bytes[..bytes.len().min(size_max)]);
    if end.is_none() && bytes.len() >= size_max {
        return Err(Unread::Broken("a line between chunks is too long"));
    }
    Ok(end.map(|end| end + 1))
}

/// The size in the line before a chunk; extensions are left out.
fn chunk_size(line: &[u8]) -> Result<usize, Unread> {
    const NO_SIZE: Unread = Unread::Broken("a chunk has no size");
    let line = line.strip_suffix(b"\r\n").ok_or(NO_SIZE)?;
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number).ok_or(NO_SIZE)?;
    usize::from_str_radix(digits, 16).map_err(|_| NO_SIZE)
}

#[cfg(test)]
mod tests;
