//! Requests to a server by its signed addresses, and answers as text.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const WITHIN: Duration = Duration::from_secs(30);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends a request to what `path` names below a signed address; `path` may have a query of its own.
pub(crate) fn send(address: &str, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Answer {
    let (host, target) =
        address.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a path");
    let (account, signature) = target.split_once('?').expect("a signature");
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let target = format!("/{}{path}?{signature}&{query}", account.trim_end_matches('/'));
    let mut connection = TcpStream::connect(host).expect("a connection");
    connection.set_read_timeout(Some(WITHIN)).expect("a time-out");
    let mut head = format!(
        "{method} {} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n",
        target.trim_end_matches('&')
    );
    headers.iter().for_each(|header| head.push_str(&format!("{header}\r\n")));
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    connection.write_all(head.as_bytes()).expect("sent");
    // A server that refuses may not read it.
    let _ = connection.write_all(body);
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).expect("an answer");
    parse(&answer)
}

fn parse(answer: &[u8]) -> Answer {
    let at = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&answer[..at]).into_owned();
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let is_chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let mut body = answer[at + 4..].to_vec();
    if is_chunked {
        body = unchunked(&body);
    }
    Answer { status: status.expect("a status"), headers, body }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(at) = rest.windows(2).position(|window| window == b"\r\n") {
        let size =
            std::str::from_utf8(&rest[..at]).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let size = size.expect("the size of a chunk");
        if size == 0 {
            break;
        }
        body.extend_from_slice(&rest[at + 2..at + 2 + size]);
        rest = &rest[at + 4 + size..];
    }
    body
}
