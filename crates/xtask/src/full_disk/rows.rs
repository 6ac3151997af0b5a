//! What fills the disk: blobs, entities or messages, each made from its number, so that whoever knows the
//! numbers knows what must be there.

use crate::Outcome;
use crate::client::content::content;
use crate::client::http_client::HttpClient;
use crate::client::server_process::ServerProcess;
use crate::client::service_client::{Pairs, ServiceClient};
use crate::client::shared_key::Signer;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::net::SocketAddr;

const CONTAINER: &str = "fill";
const TABLE: &str = "fill";
const QUEUE: &str = "fill";
pub(super) const BLOCK_BLOB: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
pub(super) const BINARY: &str = "application/octet-stream";
/// Entities of one group transaction.
const GROUP_ENTITY_COUNT: u64 = 100;
/// Bytes of a block of a blob that is put in blocks.
const BLOCK_SIZE_BYTES: u64 = 4 << 20;

/// What is stored, each of so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Blob(u64),
    /// A unit is a group of a hundred of one partition.
    Entity(u64),
    Message(u64),
}

impl Kind {
    /// Whether a few of them fill a small disk.
    pub(super) fn is_huge(self) -> bool {
        matches!(self, Kind::Blob(100_000_000..))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, size) = match self {
            Kind::Blob(size) => ("blobs", size),
            Kind::Entity(size) => ("entities", size),
            Kind::Message(size) => ("messages", size),
        };
        match size {
            1_000_000.. => write!(formatter, "{what} of {} MB", size / 1_000_000),
            1024.. => write!(formatter, "{what} of {} KiB", size / 1024),
            _ => write!(formatter, "{what} of {size} B"),
        }
    }
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Done,
    /// 503, in the server's words.
    Refused(String),
    /// It is not there.
    Missing,
}

/// A unit as it was put: what its deletion needs to know.
#[derive(Clone, Debug, Default)]
pub(super) struct Unit {
    pub(super) number: u64,
    /// Id and pop receipt of a message.
    receipt: Option<(String, String)>,
}

/// The connections of one thread.
pub(super) struct Client {
    kind: Kind,
    blob_address: SocketAddr,
    table_address: SocketAddr,
    blobs: ServiceClient,
    queues: ServiceClient,
    tables: HttpClient,
}

fn answer(status: u16, text: impl FnOnce() -> String, fine: &[u16]) -> Outcome<Answer> {
    match status {
        status if fine.contains(&status) => Ok(Answer::Done),
        503 => Ok(Answer::Refused(text())),
        404 => Ok(Answer::Missing),
        status => Err(format!("{status} {}", text()).into()),
    }
}

/// The text between two marks.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let from = text.find(start)? + start.len();
    Some(&text[from..from + text[from..].find(end)?])
}

impl Client {
    pub(super) fn connect(server: &ServerProcess, kind: Kind) -> Outcome<Self> {
        let blobs = server.blob_address.ok_or("the server has no blob service")?;
        let queues = server.queue_address.ok_or("the server has no queue service")?;
        Ok(Client {
            kind,
            blob_address: blobs,
            table_address: server.address,
            blobs: ServiceClient::connect(blobs, BINARY)?,
            queues: ServiceClient::connect(queues, "application/xml")?,
            tables: HttpClient::connect(server.address, Signer::new())?,
        })
    }

    /// Makes what the units are put into.
    pub(super) fn prepare(&mut self) -> Outcome<()> {
        let container = [("restype", "container")];
        self.blobs.expect("PUT", CONTAINER, &container, &[], b"", &[201])?;
        self.queues.expect("PUT", QUEUE, &[], &[], b"", &[201])?;
        let body = format!("{{\"TableName\":\"{TABLE}\"}}");
        let made = self.tables.send("POST", "Tables", &[("Prefer", "return-no-content")], body.as_bytes())?;
        if made.status == 204 { Ok(()) } else { Err(made.text().into()) }
    }

    /// Bytes of a unit.
    pub(super) fn unit_size_bytes(kind: Kind) -> u64 {
        match kind {
            Kind::Blob(size) | Kind::Message(size) => size,
            Kind::Entity(size) => size * GROUP_ENTITY_COUNT,
        }
    }

    /// Puts a unit, and says what its deletion needs.
    pub(super) fn put(&mut self, number: u64) -> Outcome<(Answer, Unit)> {
        let mut unit = Unit { number, receipt: None };
        let answer = match self.kind {
            Kind::Blob(size) if size > BLOCK_SIZE_BYTES * 2 => self.put_in_blocks(number, size)?,
            Kind::Blob(size) => {
                let body = content(number, size as usize);
                self.send_body(&blob_path(number), &[], &[BLOCK_BLOB], &body)?
            }
            Kind::Entity(size) => self.send_group(number, Some(size))?,
            Kind::Message(size) => {
                let text = text_of(number, size);
                let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
                let path = format!("{QUEUE}/messages");
                let put = self.queues.send("POST", &path, &[("messagettl", "-1")], &[], body.as_bytes())?;
                let text = put.text();
                let id = between(&text, "<MessageId>", "</MessageId>");
                let receipt = between(&text, "<PopReceipt>", "</PopReceipt>");
                unit.receipt = id.zip(receipt).map(|(id, receipt)| (id.to_owned(), receipt.to_owned()));
                answer(put.status, || text.clone(), &[201])?
            }
        };
        Ok((answer, unit))
    }

    fn put_in_blocks(&mut self, number: u64, size: u64) -> Outcome<Answer> {
        let mut list = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
        for (index, start) in (0..size).step_by(BLOCK_SIZE_BYTES as usize).enumerate() {
            let id = STANDARD.encode(format!("{index:06}"));
            let body = content(number << 20 | index as u64, (size - start).min(BLOCK_SIZE_BYTES) as usize);
            // Six digits, which need no escaping in Base64 either.
            let parameters = [("blockid", id.as_str()), ("comp", "block")];
            let put = self.send_body(&blob_path(number), &parameters, &[], &body)?;
            if put != Answer::Done {
                return Ok(put);
            }
            list.push_str(&format!("<Latest>{id}</Latest>"));
        }
        list.push_str("</BlockList>");
        let put =
            self.blobs.send("PUT", &blob_path(number), &[("comp", "blocklist")], &[], list.as_bytes())?;
        answer(put.status, || put.text(), &[201])
    }

    /// Puts a large body. A refusal that comes before its end closes the connection.
    fn send_body(
        &mut self,
        path: &str,
        parameters: Pairs<'_>,
        headers: Pairs<'_>,
        body: &[u8],
    ) -> Outcome<Answer> {
        match self.blobs.send("PUT", path, parameters, headers, body) {
            Ok(put) => answer(put.status, || put.text(), &[201]),
            Err(error) => {
                self.blobs = ServiceClient::connect(self.blob_address, BINARY)?;
                Ok(Answer::Refused(error.to_string()))
            }
        }
    }

    /// A group transaction on a unit's entities: inserts, or deletions.
    fn send_group(&mut self, number: u64, insert: Option<u64>) -> Outcome<Answer> {
        let base_url = self.tables.base_url();
        let mut body =
            String::from("--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n");
        for row in 0..GROUP_ENTITY_COUNT {
            let (verb, target, condition, entity) = match insert {
                Some(size) => {
                    let text = text_of(number * GROUP_ENTITY_COUNT + row, size);
                    let entity = format!(
                        "{{\"PartitionKey\":\"{}\",\"RowKey\":\"{row:03}\",\"Text\":\"{text}\"}}",
                        partition_of(number)
                    );
                    ("POST", TABLE.to_owned(), "Prefer: return-no-content", entity)
                }
                None => {
                    let target =
                        format!("{TABLE}(PartitionKey='{}',RowKey='{row:03}')", partition_of(number));
                    ("DELETE", target, "If-Match: *", String::new())
                }
            };
            body.push_str(&format!(
                "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 {verb} {base_url}/{target} HTTP/1.1\r\nContent-Type: application/json\r\n\
                 Accept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0;\r\n{condition}\r\n\r\n\
                 {entity}\r\n"
            ));
        }
        body.push_str("--changeset_c--\r\n--batch_b--\r\n");
        let content_type = "multipart/mixed; boundary=batch_b";
        let sent = match self.tables.send_as(content_type, "POST", "$batch", &[], body.as_bytes()) {
            Ok(sent) => sent,
            Err(error) => {
                // A refusal that comes before the end of the body closes the connection.
                self.tables = HttpClient::connect(self.table_address, Signer::new())?;
                return Ok(Answer::Refused(error.to_string()));
            }
        };
        let text = sent.text();
        // A refusal of the whole may come outside of the batch's answer or inside of it.
        let inside = between(&text, "HTTP/1.1 ", " ").and_then(|status| status.parse().ok());
        let status = if sent.status == 202 { inside.unwrap_or(0) } else { sent.status };
        answer(status, || text.clone(), &[204, 201])
    }

    /// Deletes a unit.
    pub(super) fn delete(&mut self, unit: &Unit) -> Outcome<Answer> {
        match self.kind {
            Kind::Blob(_) => {
                let sent = self.blobs.send("DELETE", &blob_path(unit.number), &[], &[], b"")?;
                answer(sent.status, || sent.text(), &[202])
            }
            Kind::Entity(_) => self.send_group(unit.number, None),
            Kind::Message(_) => {
                let (id, receipt) = unit.receipt.as_ref().ok_or("a message without a receipt")?;
                let path = format!("{QUEUE}/messages/{id}");
                let sent = self.queues.send("DELETE", &path, &[("popreceipt", receipt)], &[], b"")?;
                answer(sent.status, || sent.text(), &[204])
            }
        }
    }

    /// Deletes the container, table or queue with all that is in it; the queue is cleared.
    pub(super) fn delete_all(&mut self) -> Outcome<Answer> {
        let sent = match self.kind {
            Kind::Blob(_) => self.blobs.send("DELETE", CONTAINER, &[("restype", "container")], &[], b"")?,
            Kind::Entity(_) => self.tables.send("DELETE", &format!("Tables('{TABLE}')"), &[], b"")?,
            Kind::Message(_) => self.queues.send("DELETE", &format!("{QUEUE}/messages"), &[], &[], b"")?,
        };
        answer(sent.status, || sent.text(), &[202, 204])
    }

    /// Whether the unit reads as it was put; `None`: this kind can't be asked for one unit.
    pub(super) fn is_whole(&mut self, unit: &Unit) -> Outcome<Option<bool>> {
        let number = unit.number;
        match self.kind {
            Kind::Blob(size) => {
                let mut state = number;
                let mut is_same = true;
                let mut read_bytes = 0;
                let in_blocks = size > BLOCK_SIZE_BYTES * 2;
                let mut wanted = Vec::new();
                let got = self.blobs.get_streamed(&blob_path(number), &[], |part| {
                    read_bytes += part.len() as u64;
                    if !in_blocks {
                        wanted.extend_from_slice(part);
                    }
                })?;
                if !in_blocks {
                    let mut whole = vec![0; size as usize];
                    crate::client::content::fill(&mut state, &mut whole);
                    is_same = whole == wanted;
                }
                Ok(Some(got.status == 200 && is_same && read_bytes == size))
            }
            Kind::Entity(size) => {
                let filter = format!("{TABLE}()?$filter=PartitionKey%20eq%20'{}'", partition_of(number));
                let text = self.tables.send("GET", &filter, &[], b"")?.text();
                let is_there = |row: u64| {
                    text.contains(&format!("\"{}\"", text_of(number * GROUP_ENTITY_COUNT + row, size)))
                };
                Ok(Some((0..GROUP_ENTITY_COUNT).all(is_there)))
            }
            Kind::Message(_) => Ok(None),
        }
    }

    /// How many messages there are about.
    pub(super) fn message_count(&mut self) -> Outcome<u64> {
        let got = self.queues.expect("GET", QUEUE, &[("comp", "metadata")], &[], b"", &[200])?;
        Ok(got.header("x-ms-approximate-messages-count").ok_or("no count")?.parse()?)
    }
}

fn blob_path(number: u64) -> String {
    format!("{CONTAINER}/b{number:08}")
}

/// Mixed up, so that neighbours in time are none by key.
fn partition_of(number: u64) -> String {
    format!("{:08x}-{number}", (number as u32).wrapping_mul(0x9e37_79b9))
}

/// Text that compresses to three quarters at best.
fn text_of(seed: u64, size: u64) -> String {
    let mut text = STANDARD.encode(content(seed, size as usize * 3 / 4 + 3));
    text.truncate(size as usize);
    text
}
