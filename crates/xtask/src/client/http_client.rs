//! A small blocking HTTP/1.1 client with one kept-alive connection, for chores that need answers rather than
//! speed.

use crate::client::shared_key::{Signer, date_now};
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
const JSON: &str = "application/json";
/// Bytes of a body that are read at a time.
const PART_SIZE_BYTES: usize = 256 << 10;

/// One connection that signs what it sends.
pub(crate) struct HttpClient {
    connection: BufReader<TcpStream>,
    address: SocketAddr,
    signer: Signer,
}

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpClient {
    pub(crate) fn connect(address: SocketAddr, signer: Signer) -> std::io::Result<Self> {
        Self::connect_within(address, signer, ANSWER_TIMEOUT)
    }

    /// The same; each part of a request or an answer may take so long.
    pub(crate) fn connect_within(
        address: SocketAddr,
        signer: Signer,
        timeout: Duration,
    ) -> std::io::Result<Self> {
        let connection = TcpStream::connect_timeout(&address, timeout)?;
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(timeout))?;
        connection.set_write_timeout(Some(timeout))?;
        Ok(Self { connection: BufReader::new(connection), address, signer })
    }

    /// The base URL of the account here.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/{}", self.address, self.signer.account())
    }

    /// Sends a JSON request to `/ACCOUNT/{target}`, and reads the answer.
    pub(crate) fn send(
        &mut self,
        verb: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Answer> {
        self.send_as(JSON, verb, target, headers, body)
    }

    /// The same with another content type.
    pub(crate) fn send_as(
        &mut self,
        content_type: &str,
        verb: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Answer> {
        let date = date_now();
        let target = format!("/{}/{target}", self.signer.account());
        let path = target.split('?').next().unwrap_or_default();
        let authorization = self.signer.authorization(verb, content_type, &date, path);
        let mut request = format!(
            "{verb} {target} HTTP/1.1\r\nHost: {}\r\nContent-Type: {content_type}\r\nx-ms-date: {date}\r\n\
             x-ms-version: 2019-02-02\r\nDataServiceVersion: 3.0\r\nAccept: application/json;odata=minimalmetadata\r\n\
             Authorization: {authorization}\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        let mut request = request.into_bytes();
        request.extend_from_slice(body);
        self.exchange(&request)
    }

    /// Sends a ready-made request, and reads the answer.
    pub(crate) fn exchange(&mut self, request: &[u8]) -> std::io::Result<Answer> {
        self.write(request)?;
        self.receive()
    }

    /// Sends a part of a request; [`Self::receive`] reads the answer to all of them.
    pub(crate) fn write(&mut self, part: &[u8]) -> std::io::Result<()> {
        self.connection.get_mut().write_all(part)
    }

    /// Reads an answer whole.
    pub(crate) fn receive(&mut self) -> std::io::Result<Answer> {
        let mut body = Vec::new();
        let mut answer = self.receive_into(|part| body.extend_from_slice(part))?;
        answer.body = body;
        Ok(answer)
    }

    /// Reads an answer and hands out its body as it comes; the answer itself has none then.
    pub(crate) fn receive_into(&mut self, mut sink: impl FnMut(&[u8])) -> std::io::Result<Answer> {
        let status_line = self.read_line()?;
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status: u16 = status.ok_or_else(|| broken(format!("status line {status_line:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.read_line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| broken(format!("header {line:?}")))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let answer = Answer { status, headers, body: Vec::new() };
        if answer.header("transfer-encoding") == Some("chunked") {
            sink(&self.read_chunks()?);
        } else if let Some(size) = answer.header("content-length") {
            let mut left: u64 = size.parse().map_err(|_| broken(format!("content length {size:?}")))?;
            let mut part = vec![0; left.min(PART_SIZE_BYTES as u64) as usize];
            while left > 0 {
                let wanted = left.min(part.len() as u64) as usize;
                self.connection.read_exact(&mut part[..wanted])?;
                sink(&part[..wanted]);
                left -= wanted as u64;
            }
        }
        Ok(answer)
    }

    fn read_chunks(&mut self) -> std::io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.read_line()?;
            let size =
                usize::from_str_radix(&line, 16).map_err(|_| broken(format!("chunk size {line:?}")))?;
            let start = body.len();
            body.resize(start + size, 0);
            self.connection.read_exact(&mut body[start..])?;
            self.read_line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn read_line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        self.connection.read_line(&mut line)?;
        if !line.ends_with("\r\n") {
            return Err(Error::new(ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        line.truncate(line.len() - 2);
        Ok(line)
    }
}

impl Answer {
    /// The value of a header; `name` is in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn broken(what: String) -> Error {
    Error::new(ErrorKind::InvalidData, format!("not HTTP: {what}"))
}
