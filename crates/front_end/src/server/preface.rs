//! Tells HTTP/1.1 from HTTP/2 by the first bytes of a connection, without taking them.
//!
//! HTTP/2 with prior knowledge starts with a preface that is no request of HTTP/1.1. The whole preface is
//! waited for here, where time is bounded: the HTTP/2 handshake itself waits for ever.

use base::Clock;
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.0 or 1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// What an HTTP/2 client sends first (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How long to wait for more when the first bytes do not tell.
const NEXT_LOOK_AFTER: Duration = Duration::from_millis(5);

/// Looks at the first bytes; waits for them as long as it takes. An end before them is an error.
pub(crate) async fn protocol_of(stream: &TcpStream, clock: &dyn Clock) -> io::Result<Protocol> {
    loop {
        let mut start = [0; PREFACE.len()];
        let size = stream.peek(&mut start).await?;
        match decide(&start[..size]) {
            Some(protocol) => return Ok(protocol),
            None if size == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            None => clock.sleep(NEXT_LOOK_AFTER).await,
        }
    }
}

fn decide(start: &[u8]) -> Option<Protocol> {
    match start {
        PREFACE => Some(Protocol::Http2),
        _ if PREFACE.starts_with(start) => None,
        _ => Some(Protocol::Http1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_preface_is_http2() {
        assert_eq!(decide(PREFACE), Some(Protocol::Http2));
        assert_eq!(decide(b"PRI * HTTP/2.0\r\n"), None);
        assert_eq!(decide(b"P"), None);
        assert_eq!(decide(b""), None);
        for start in ["G", "PO", "PUT", "PAT", "PRI x", "\0"] {
            assert_eq!(decide(start.as_bytes()), Some(Protocol::Http1), "{start}");
        }
    }
}
