//! A whole request: the input is `METHOD TARGET`, lines of `name: value`, an empty line, the body. It is
//! signed with the account's key unless it brings an `Authorization` of its own.
//!
//! Beyond the checks of all targets: an invented signature grants nothing, and reads change nothing.

use crate::stamp::Stamp;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Uri};

pub(crate) fn run(stamp: &mut Stamp, input: &[u8]) {
    let Some(request) = read(input) else {
        return;
    };
    let claimed = request.headers.contains_key(AUTHORIZATION);
    let headers = stamp.signed(&request.method, &request.uri, request.headers);
    let method = request.method.clone();
    let answer = stamp.send(request.method, request.uri, headers, request.body);
    if claimed && method != Method::OPTIONS {
        assert!(answer.is_refusal(), "a made-up signature was taken: {}", answer.text());
    }
    if answer.is_refusal() || matches!(method, Method::GET | Method::HEAD | Method::OPTIONS) {
        stamp.check_unchanged("the request was refused, or a read");
    }
}

struct RawRequest<'a> {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: &'a [u8],
}

/// Parses the input; `None`: HTTP can't carry it.
fn read(mut input: &[u8]) -> Option<RawRequest<'_>> {
    let first = next_line(&mut input);
    let blank = first.iter().position(|&byte| byte == b' ')?;
    let method = Method::from_bytes(&first[..blank]).ok()?;
    let uri = Uri::try_from(first[blank + 1..].trim_ascii()).ok()?;
    let mut headers = HeaderMap::new();
    loop {
        let line = next_line(&mut input);
        if line.is_empty() {
            return Some(RawRequest { method, uri, headers, body: input });
        }
        let colon = line.iter().position(|&byte| byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        headers.append(name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?);
    }
}

fn next_line<'a>(input: &mut &'a [u8]) -> &'a [u8] {
    let end = input.iter().position(|&byte| byte == b'\n');
    let (line, rest) = match end {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (*input, &input[input.len()..]),
    };
    *input = rest;
    line.trim_ascii_end()
}
