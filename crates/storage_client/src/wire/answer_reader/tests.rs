//! The reader of answers: each form of an answer, cut anywhere, what is none, and its bounds.
//!
//! What always holds: a cut changes nothing.

use super::*;
use crate::wire::header_text::text;
use proptest::prelude::*;

/// What is seen of an answer: status, body, and whether its connection may go on.
type Seen = (u16, Vec<u8>, bool);

/// Reads an answer that comes in these parts and, if it `closes`, ends with the connection.
fn read_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>, closes: bool) -> Result<Option<Seen>, Unread> {
    let (mut reader, mut bytes) = (AnswerReader::new(), Vec::new());
    let mut progress = Progress::Head;
    for part in parts {
        bytes.extend_from_slice(part);
        progress = reader.advance(&mut bytes, false)?;
    }
    if closes {
        progress = reader.advance(&mut bytes, true)?;
    }
    let seen = || (reader.status(), reader.body(&bytes).to_vec(), reader.keeps_open(&bytes));
    Ok((progress == Progress::Whole).then(seen))
}

fn read(answer: &str, closes: bool) -> Result<Option<Seen>, Unread> {
    read_parts([answer.as_bytes()], closes)
}

fn seen(status: u16, body: &str, keeps_open: bool) -> Result<Option<Seen>, Unread> {
    Ok(Some((status, body.as_bytes().to_vec(), keeps_open)))
}

const SIZED: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nx-ms-request-id: 1\r\n\r\nhello";
const EMPTY: &str = "HTTP/1.1 204 No Content\r\netag: e\r\n\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                       3\r\nhel\r\n002;name=value\r\nlo\r\n0\r\ntrailer: x\r\n\r\n";
const INTERIM: &str = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 201 x\r\n\
                       content-length: 2\r\n\r\nok";
const UNTIL_CLOSED: &str = "HTTP/1.1 200 OK\r\n\r\nhello";

#[test]
fn answers_are_read_in_each_form() {
    for (answer, closes, expected) in [
        (SIZED, false, seen(200, "hello", true)),
        (EMPTY, false, seen(204, "", true)),
        // It has no body, whatever it says.
        ("HTTP/1.1 204 x\r\ncontent-length: 7\r\n\r\n", false, seen(204, "", true)),
        (CHUNKED, false, seen(200, "hello", true)),
        (INTERIM, false, seen(201, "ok", true)),
        (UNTIL_CLOSED, false, Ok(None)),
        (UNTIL_CLOSED, true, seen(200, "hello", false)),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\ncontent-length: 1\r\n\r\nab",
            true,
            seen(200, "ab", false),
        ),
        ("HTTP/1.1 200 OK\r\nconnection: x, Close\r\ncontent-length: 0\r\n\r\n", false, seen(200, "", false)),
        (
            "HTTP/1.1 200 OK\r\nconnection: close, keep-alive\r\ncontent-length: 0\r\n\r\n",
            false,
            seen(200, "", false),
        ),
        ("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na", false, seen(200, "a", false)),
        (
            "HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\ncontent-length: 1\r\n\r\na",
            false,
            seen(200, "a", true),
        ),
        // What is behind it belongs to no request.
        ("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab", false, seen(200, "a", false)),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nx", false, seen(200, "", false)),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1\r\nContent-Length: 1\r\n\r\na", false, seen(200, "a", true)),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\ncontent-length: 9\r\n\r\n0\r\n\r\n",
            false,
            seen(200, "", true),
        ),
    ] {
        assert_eq!(read(answer, closes), expected, "{answer}");
    }
}

#[test]
fn an_answer_is_the_same_wherever_it_is_cut() {
    for (answer, closes) in
        [(SIZED, false), (EMPTY, false), (CHUNKED, false), (INTERIM, false), (UNTIL_CLOSED, true)]
    {
        let (bytes, whole) = (answer.as_bytes(), read(answer, closes));
        assert!(matches!(whole, Ok(Some(_))), "{answer}");
        for at in 0..=bytes.len() {
            assert_eq!(read_parts([&bytes[..at], &bytes[at..]], closes), whole, "{at} of {answer}");
            // Not whole before its last byte, and broken if it ends there.
            if at < bytes.len() && !closes {
                assert_eq!(read_parts([&bytes[..at]], false), Ok(None), "{at} of {answer}");
                assert!(
                    matches!(read_parts([&bytes[..at]], true), Err(Unread::Broken(_))),
                    "{at} of {answer}"
                );
            }
        }
        assert_eq!(read_parts(bytes.chunks(1), closes), whole, "{answer}");
    }
}

#[test]
fn what_is_no_answer_is_refused() {
    for answer in [
        "nonsense\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 099 x\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\na",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\na",
        "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    ] {
        assert!(matches!(read(answer, false), Err(Unread::Broken(_))), "{answer}");
    }
}

/// A server that never ends a head, a line or a body takes no memory without bound.
#[test]
fn heads_lines_and_bodies_are_bounded() {
    let broken = |answer: &str| matches!(read(answer, false), Err(Unread::Broken(_)));
    let head = |size: usize| {
        let frame = "HTTP/1.1 204 x\r\na: \r\n\r\n".len();
        format!("HTTP/1.1 204 x\r\na: {}\r\n\r\n", "x".repeat(size - frame))
    };
    assert_eq!(read(&head(HEAD_SIZE_BYTES_MAX), false), seen(204, "", true));
    assert!(broken(&head(HEAD_SIZE_BYTES_MAX + 1)));
    let endless = head(HEAD_SIZE_BYTES_MAX + 9);
    assert!(broken(&endless[..HEAD_SIZE_BYTES_MAX + 1]));
    let headers = |count| format!("HTTP/1.1 204 x\r\n{}\r\n", "a: b\r\n".repeat(count));
    assert_eq!(read(&headers(HEADERS_MAX), false), seen(204, "", true));
    assert!(broken(&headers(HEADERS_MAX + 1)));
    let interim = |count| format!("{}{EMPTY}", "HTTP/1.1 100 x\r\n\r\n".repeat(count));
    assert_eq!(read(&interim(INTERIM_ANSWERS_MAX), false), seen(204, "", true));
    assert!(broken(&interim(INTERIM_ANSWERS_MAX + 1)));
    let chunked = |rest: &str| format!("HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n{rest}");
    assert!(broken(&chunked(&"0".repeat(CHUNK_LINE_SIZE_BYTES_MAX))));
    assert!(broken(&chunked(&format!("0\r\n{}", "a: b\r\n".repeat(TRAILERS_SIZE_BYTES_MAX / 6 + 1)))));
    let size = ANSWER_SIZE_BYTES_MAX;
    let sized = |size| format!("HTTP/1.1 200 x\r\ncontent-length: {size}\r\n\r\n");
    assert_eq!(read(&sized(size), false), Ok(None));
    assert_eq!(read(&sized(size + 1), false), Err(Unread::TooLong));
    assert_eq!(read(&chunked(&format!("{size:x}\r\n")), false), Ok(None));
    assert_eq!(read(&chunked(&format!("1\r\na\r\n{size:x}\r\n")), false), Err(Unread::TooLong));
    assert_eq!(read(&chunked(&format!("1\r\na\r\n{:x}\r\n", usize::MAX)), false), Err(Unread::TooLong));
}

#[test]
fn headers_are_those_of_the_final_answer() {
    let (mut reader, mut bytes) = (AnswerReader::new(), INTERIM.as_bytes().to_vec());
    reader.advance(&mut bytes, false).expect("an answer");
    let headers = reader.headers(&bytes);
    assert_eq!((headers.len(), text(&headers, "content-length")), (1, "2"));
}

proptest! {
    /// Any bytes, cut anywhere, end in the same way, and the frames of chunks do not pile up.
    #[test]
    fn any_bytes_are_read_or_refused(
        answer in "(HTTP/1\\.1 (200|204|100) x\r\n|transfer-encoding: chunked\r\n|content-length: 3\r\n|\r\n|[0-3a]|0\r\n\r\n|\\PC)*",
        cuts in proptest::collection::vec(0..200usize, 0..6),
        closes in any::<bool>(),
    ) {
        let bytes = answer.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let parts = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
        // What breaks late is whole for who reads no further, so only answers that are whole at their end are
        // compared.
        let whole = read_parts([bytes], closes);
        let cut = read_parts(parts, closes);
        prop_assert_eq!(whole, cut);
    }
}
