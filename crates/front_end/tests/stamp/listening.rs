//! A stamp that listens on a socket.
#![allow(clippy::disallowed_methods)] // Tests open the sockets that production code is handed.

use super::{ROOT, Stamp};
use front_end::Limits;
use front_end::auth::shared_key::SignedService;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;

/// Bytes that the kernel keeps for a client: so few that a client that reads nothing is noticed at once.
const SEND_BUFFER_SIZE_BYTES: u32 = 64 << 10;

/// The service that listens.
#[derive(Clone, Copy)]
pub(crate) enum Service {
    Table,
    Blob,
}

pub(crate) struct Running {
    pub(crate) stamp: Stamp,
    pub(crate) address: std::net::SocketAddr,
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) served: tokio::task::JoinHandle<()>,
}

impl Running {
    pub(crate) async fn start(limits: Limits, service: Service) -> Running {
        Self::over(Stamp::with_limits(limits).await, service).await
    }

    /// Of a stamp that is there.
    pub(crate) async fn over(stamp: Stamp, service: Service) -> Running {
        let socket = TcpSocket::new_v4().expect("a socket");
        // Accepted sockets have it, too.
        socket.set_send_buffer_size(SEND_BUFFER_SIZE_BYTES).expect("a buffer");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let listener = socket.listen(128).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let front_end = stamp.front_end.clone();
        let served = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            match service {
                Service::Table => front_end.serve_table(listener, Box::pin(stopped)).await,
                Service::Blob => front_end.serve_blob(listener, Box::pin(stopped)).await,
            }
        });
        Running { stamp, address, stop, served }
    }

    /// A request to the Table service.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> String {
        let target = format!("{ROOT}{path}");
        let mut text = format!("{method} {target} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in &self.stamp.signed_headers(method, &target, &[]) {
            text.push_str(&format!("{name}: {}\r\n", value.to_str().expect("text")));
        }
        format!("{text}\r\n{body}")
    }

    /// The headers of a request to the Blob service, signed.
    pub(crate) fn blob_headers(
        &self,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
    ) -> Vec<(String, String)> {
        let target = format!("{ROOT}{path}");
        let headers = [&[("x-ms-version", "2026-10-06")], more].concat();
        let signed = self.stamp.headers_signed_for(SignedService::BlobOrQueue, method, &target, &headers);
        let text = |value: &hyper::header::HeaderValue| value.to_str().expect("text").to_owned();
        signed.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
    }

    /// A request to the Blob service, up to its body.
    pub(crate) fn blob_request(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let mut request = format!("{method} {ROOT}{path} HTTP/1.1\r\n");
        for (name, value) in self.blob_headers(method, path, headers) {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request + "\r\n"
    }
}

/// Reads one answer with a known length.
pub(crate) async fn read_answer(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        assert_eq!(stream.read(&mut byte).await.expect("an answer"), 1, "{}", String::from_utf8_lossy(&text));
        text.push(byte[0]);
    }
    let head = String::from_utf8(text).expect("text");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |size| size.parse().expect("size"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.expect("a body");
    head + &String::from_utf8(body).expect("text")
}

pub(crate) async fn ends(stream: &mut TcpStream) -> bool {
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read(&mut [0; 64])).await;
    matches!(read, Ok(Ok(0) | Err(_)))
}
