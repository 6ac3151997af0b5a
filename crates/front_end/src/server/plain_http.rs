//! The answer to plain HTTP on a port that encrypts: one clear text instead of a broken handshake.
//!
//! A TLS connection begins with a byte that no request does (a handshake record is 22), so the first byte
//! decides. What always holds: nothing of such a request is looked at, and no more than a bounded part of it
//! is taken in.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::reply::error_shape::ErrorShape;
use crate::request::request_id::RequestId;
use base::{Clock, Random};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes of a request that are taken in behind the answer: a client that still sends would lose it otherwise.
const TAKEN_IN_SIZE_BYTES_MAX: u64 = 1 << 20;

/// How long is waited for the client to read the answer and close.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);

/// Whether a connection begins like a request in the clear. Waits for its first byte as long as it takes.
pub(super) async fn is_plain_http(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0; 1];
    let size = stream.peek(&mut first).await?;
    Ok(size > 0 && first[0].is_ascii_alphabetic())
}

/// Answers any request alike and closes the connection.
pub(super) async fn refuse(mut stream: TcpStream, clock: &dyn Clock, random: &dyn Random) -> io::Result<()> {
    let answer = answer(clock, random);
    stream.write_all(&answer).await?;
    stream.shutdown().await?;
    let mut taken_in = stream.take(TAKEN_IN_SIZE_BYTES_MAX);
    let mut sink = tokio::io::sink();
    let until_closed = std::pin::pin!(tokio::io::copy(&mut taken_in, &mut sink));
    futures_util::future::select(until_closed, clock.sleep(CLOSED_WITHIN)).await;
    Ok(())
}

fn answer(clock: &dyn Clock, random: &dyn Random) -> Vec<u8> {
    let request_id = RequestId::new(random);
    let error = ApiError::new(ErrorCode::AccountRequiresHttps);
    let reply = ErrorShape::Xml.reply(&error, request_id.as_str(), clock.now());
    let date = httpdate::fmt_http_date(std::time::UNIX_EPOCH + clock.now().since_unix());
    let mut out = format!("HTTP/1.1 {}\r\ndate: {date}\r\nconnection: close\r\n", reply.status).into_bytes();
    out.extend_from_slice(format!("x-ms-request-id: {}\r\n", request_id.as_str()).as_bytes());
    for (name, value) in &reply.headers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("content-length: {}\r\n\r\n", reply.body.len()).as_bytes());
    out.extend_from_slice(&reply.body);
    out
}
