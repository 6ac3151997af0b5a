//! A blocking client of the Queue or the Blob service over one kept-alive connection, for chores that need
//! answers: load that only counts them is `load.rs`. What always holds: one request is under way at a time,
//! and each is signed as an official client would.

use crate::Outcome;
use crate::client::http_client::{Answer, HttpClient};
use crate::client::shared_key::{ServiceRequest, Signer, date_now};
use std::net::SocketAddr;
use std::time::Duration;

/// Names and values.
pub(crate) type Pairs<'a> = &'a [(&'a str, &'a str)];

/// One connection that signs what it sends.
pub(crate) struct ServiceClient {
    http: HttpClient,
    address: SocketAddr,
    signer: Signer,
    /// Of bodies that are not empty.
    content_type: &'static str,
}

impl ServiceClient {
    pub(crate) fn connect(address: SocketAddr, content_type: &'static str) -> std::io::Result<Self> {
        let signer = Signer::new();
        Ok(Self { http: HttpClient::connect(address, signer.clone())?, address, signer, content_type })
    }

    /// The same; each part of a request or an answer may take so long.
    pub(crate) fn connect_within(
        address: SocketAddr,
        content_type: &'static str,
        timeout: Duration,
    ) -> std::io::Result<Self> {
        let signer = Signer::new();
        let http = HttpClient::connect_within(address, signer.clone(), timeout)?;
        Ok(Self { http, address, signer, content_type })
    }

    fn head(&self, verb: &str, path: &str, parameters: Pairs<'_>, headers: Pairs<'_>, size: u64) -> String {
        let content_type = if size == 0 { "" } else { self.content_type };
        let request = ServiceRequest { verb, path, parameters, headers, content_type };
        self.signer.service_request(self.address, &date_now(), &request, size)
    }

    /// Sends a request and reads its answer. `parameters` are in the order of their names, `headers` start
    /// with `x-ms-`.
    pub(crate) fn send(
        &mut self,
        verb: &str,
        path: &str,
        parameters: Pairs<'_>,
        headers: Pairs<'_>,
        body: &[u8],
    ) -> std::io::Result<Answer> {
        let head = self.head(verb, path, parameters, headers, body.len() as u64);
        self.http.exchange(&[head.as_bytes(), body].concat())
    }

    /// The same; any other status than these is an error.
    pub(crate) fn expect(
        &mut self,
        verb: &str,
        path: &str,
        parameters: Pairs<'_>,
        headers: Pairs<'_>,
        body: &[u8],
        statuses: &[u16],
    ) -> Outcome<Answer> {
        let answer = self.send(verb, path, parameters, headers, body)?;
        match statuses.contains(&answer.status) {
            true => Ok(answer),
            false => Err(format!("{verb} {path}: {} {}", answer.status, answer.text()).into()),
        }
    }

    /// Sends a body of `size` bytes in parts, each written into the buffer by `fill` when its turn comes.
    pub(crate) fn put_streamed(
        &mut self,
        path: &str,
        parameters: Pairs<'_>,
        headers: Pairs<'_>,
        size: u64,
        part: &mut [u8],
        mut fill: impl FnMut(&mut [u8]),
    ) -> Outcome<Answer> {
        self.http.write(self.head("PUT", path, parameters, headers, size).as_bytes())?;
        let mut left = size;
        while left > 0 {
            let now = left.min(part.len() as u64) as usize;
            fill(&mut part[..now]);
            self.http.write(&part[..now])?;
            left -= now as u64;
        }
        let answer = self.http.receive()?;
        match answer.status {
            201 => Ok(answer),
            status => Err(format!("PUT {path}: {status} {}", answer.text()).into()),
        }
    }

    /// Reads a body as it comes.
    pub(crate) fn get_streamed(
        &mut self,
        path: &str,
        headers: Pairs<'_>,
        sink: impl FnMut(&[u8]),
    ) -> std::io::Result<Answer> {
        self.http.write(self.head("GET", path, &[], headers, 0).as_bytes())?;
        self.http.receive_into(sink)
    }
}
