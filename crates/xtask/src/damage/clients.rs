//! Requests of the damage trials to all three services. What always holds: a connection that the server
//! closed between two requests is opened anew and the request sent once more, so that only an answer that
//! breaks off counts as one.

use super::model::{Key, Kind, Part, Value, bytes, wire_bytes};
use crate::Outcome;
use crate::bench::queues::element;
use crate::client::http_client::{Answer, HttpClient};
use crate::client::server_process::ServerProcess;
use crate::client::service_client::{Pairs, ServiceClient};
use crate::client::shared_key::Signer;
use base::random::splitmix64;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::io;
use std::net::SocketAddr;

const OCTETS: &str = "application/octet-stream";
const PAGE_SIZE_BYTES: usize = 32 << 10;
const PAGE_BLOB_PAGES: usize = 8;
const APPEND_SIZE_BYTES_MAX: u64 = 40 << 10;
const APPENDS_MAX: usize = 8;
const LARGE_SIZE_BYTES_MIN: u64 = 100 << 10;
const SMALL_SIZE_BYTES_MAX: u64 = 8 << 10;

/// Where the three services listen.
#[derive(Clone, Copy)]
pub(crate) struct Addresses {
    table: SocketAddr,
    queue: SocketAddr,
    blob: SocketAddr,
}

impl Addresses {
    pub(crate) fn of(server: &ServerProcess) -> Outcome<Self> {
        Ok(Addresses {
            table: server.address,
            queue: server.queue_address.ok_or("the server has no queue service")?,
            blob: server.blob_address.ok_or("the server has no blob service")?,
        })
    }
}

/// A connection to each service.
pub(crate) struct Clients {
    addresses: Addresses,
    table: HttpClient,
    queue: ServiceClient,
    blob: ServiceClient,
}

impl Clients {
    pub(crate) fn connect(addresses: Addresses) -> io::Result<Self> {
        Ok(Clients {
            addresses,
            table: HttpClient::connect(addresses.table, Signer::new())?,
            queue: ServiceClient::connect(addresses.queue, "application/xml")?,
            blob: ServiceClient::connect(addresses.blob, OCTETS)?,
        })
    }

    /// Sends a request, on new connections if the old one is closed. Sent twice it must mean the same.
    fn ask(&mut self, send: impl Fn(&mut Self) -> io::Result<Answer>) -> io::Result<Answer> {
        match send(self) {
            Err(error) if is_closed(&error) => {
                *self = Self::connect(self.addresses)?;
                send(self)
            }
            Err(error) => {
                // An answer that comes too late would be taken for that to the next request.
                if let Ok(clients) = Self::connect(self.addresses) {
                    *self = clients;
                }
                Err(error)
            }
            answer => answer,
        }
    }

    pub(crate) fn entity(&mut self, key: &Key) -> io::Result<Answer> {
        self.ask(|clients| clients.table.send("GET", &entity_target(key), &[], b""))
    }

    pub(crate) fn table_query(&mut self, target: &str) -> io::Result<Answer> {
        self.ask(|clients| clients.table.send("GET", target, &[], b""))
    }

    pub(crate) fn blob_get(&mut self, path: &str, parameters: Pairs<'_>) -> io::Result<Answer> {
        self.ask(|clients| clients.blob.send("GET", path, parameters, &[], b""))
    }

    pub(crate) fn queue_get(&mut self, path: &str, parameters: Pairs<'_>) -> io::Result<Answer> {
        self.ask(|clients| clients.queue.send("GET", path, parameters, &[], b""))
    }

    pub(crate) fn create_container(&mut self, kind: Kind, name: &str) -> io::Result<Answer> {
        match kind {
            Kind::Table => {
                let body = format!("{{\"TableName\":\"{name}\"}}");
                let headers = [("Prefer", "return-no-content")];
                self.ask(|clients| clients.table.send("POST", "Tables", &headers, body.as_bytes()))
            }
            Kind::Queue => self.ask(|clients| clients.queue.send("PUT", name, &[], &[], b"")),
            _ => self.ask(|clients| clients.blob.send("PUT", name, &[("restype", "container")], &[], b"")),
        }
    }

    pub(crate) fn delete_container(&mut self, kind: Kind, name: &str) -> io::Result<Answer> {
        match kind {
            Kind::Table => {
                let target = format!("Tables('{name}')");
                self.ask(|clients| clients.table.send("DELETE", &target, &[], b""))
            }
            Kind::Queue => self.ask(|clients| clients.queue.send("DELETE", name, &[], &[], b"")),
            _ => self.ask(|clients| clients.blob.send("DELETE", name, &[("restype", "container")], &[], b"")),
        }
    }

    pub(crate) fn put_entity(&mut self, key: &Key, value: &[Part]) -> io::Result<Answer> {
        let data = String::from_utf8_lossy(&wire_bytes(Kind::Entity, value)).into_owned();
        let body = serde_json::json!({
            "PartitionKey": key.partition, "RowKey": key.name, "Size": value[0].size, "Data": data,
        });
        let body = body.to_string();
        self.ask(|clients| clients.table.send("PUT", &entity_target(key), &[], body.as_bytes()))
    }

    pub(crate) fn delete_entity(&mut self, key: &Key) -> io::Result<Answer> {
        let headers = [("If-Match", "*")];
        self.ask(|clients| clients.table.send("DELETE", &entity_target(key), &headers, b""))
    }

    pub(crate) fn delete_blob(&mut self, key: &Key) -> io::Result<Answer> {
        self.ask(|clients| clients.blob.send("DELETE", &blob_path(key), &[], &[], b""))
    }

    pub(crate) fn put_blob(&mut self, key: &Key, value: &[Part]) -> io::Result<Answer> {
        let headers = [("x-ms-blob-type", "BlockBlob")];
        self.ask(|clients| clients.blob.send("PUT", &blob_path(key), &[], &headers, &bytes(value)))
    }

    /// Stages a block for each part, and commits them.
    fn put_blocks(&mut self, key: &Key, value: &[Part]) -> io::Result<Answer> {
        let mut list = String::from("<BlockList>");
        for part in value {
            // 21 digits have no sign in Base64 that needs escaping.
            let id = STANDARD.encode(format!("{:021}", part.seed));
            let path = blob_path(key);
            let parameters = [("blockid", id.as_str()), ("comp", "block")];
            let body = bytes(&[*part]);
            let answer = self.ask(|clients| clients.blob.send("PUT", &path, &parameters, &[], &body))?;
            if answer.status != 201 {
                return Ok(answer);
            }
            list.push_str(&format!("<Latest>{id}</Latest>"));
        }
        list.push_str("</BlockList>");
        let parameters = [("comp", "blocklist")];
        self.ask(|clients| clients.blob.send("PUT", &blob_path(key), &parameters, &[], list.as_bytes()))
    }

    /// Plans one change of a blob, which is of the kind that its name begins with, and makes it.
    pub(crate) fn change_blob(
        &mut self,
        key: &Key,
        now: Option<&Value>,
        large_size_bytes_max: u64,
        random: &mut u64,
    ) -> (Value, io::Result<Answer>) {
        let part = |random: &mut u64, least: u64, most: u64| Part {
            seed: splitmix64(random) | 1,
            size: (least + splitmix64(random) % (most - least)) as usize,
        };
        match (key.name.as_bytes().first(), now) {
            (Some(b'p'), None) => {
                let value = vec![Part { seed: 0, size: PAGE_SIZE_BYTES }; PAGE_BLOB_PAGES];
                let size = (PAGE_SIZE_BYTES * PAGE_BLOB_PAGES).to_string();
                let headers = [("x-ms-blob-content-length", size.as_str()), ("x-ms-blob-type", "PageBlob")];
                let answer =
                    self.ask(|clients| clients.blob.send("PUT", &blob_path(key), &[], &headers, b""));
                (value, answer)
            }
            (Some(b'p'), Some(now)) => {
                let mut value = now.clone();
                let index = splitmix64(random) as usize % PAGE_BLOB_PAGES;
                value[index].seed = splitmix64(random) | 1;
                let first = index * PAGE_SIZE_BYTES;
                let range = format!("bytes={first}-{}", first + PAGE_SIZE_BYTES - 1);
                let headers = [("x-ms-page-write", "update"), ("x-ms-range", range.as_str())];
                let body = bytes(&value[index..=index]);
                let send = |clients: &mut Self| {
                    clients.blob.send("PUT", &blob_path(key), &[("comp", "page")], &headers, &body)
                };
                (value, self.ask(send))
            }
            (Some(b'a'), Some(now)) if now.len() < APPENDS_MAX => {
                let added = part(random, 1, APPEND_SIZE_BYTES_MAX);
                let value = [now.as_slice(), &[added]].concat();
                let (path, body) = (blob_path(key), bytes(&[added]));
                // Not sent again: twice it would mean something else.
                let answer = self.blob.send("PUT", &path, &[("comp", "appendblock")], &[], &body);
                (value, answer)
            }
            (Some(b'a'), _) => {
                let headers = [("x-ms-blob-type", "AppendBlob")];
                let answer =
                    self.ask(|clients| clients.blob.send("PUT", &blob_path(key), &[], &headers, b""));
                (Vec::new(), answer)
            }
            (Some(b'l'), _) if splitmix64(random).is_multiple_of(3) => {
                let most = large_size_bytes_max / 2;
                let value = (0..2).map(|_| part(random, LARGE_SIZE_BYTES_MIN / 2, most)).collect::<Value>();
                let answer = self.put_blocks(key, &value);
                (value, answer)
            }
            (first, _) => {
                let is_large = first == Some(&b'l');
                let (least, most) = if is_large {
                    (LARGE_SIZE_BYTES_MIN, large_size_bytes_max)
                } else {
                    (1, SMALL_SIZE_BYTES_MAX)
                };
                let value = vec![part(random, least, most)];
                let answer = self.put_blob(key, &value);
                (value, answer)
            }
        }
    }

    /// Puts a message; its id and receipt are in the answer.
    pub(crate) fn put_message(&mut self, queue: &str, value: &[Part]) -> io::Result<Answer> {
        let path = format!("{queue}/messages");
        self.queue.send("POST", &path, &[("messagettl", "-1")], &[], &message_body(value))
    }

    /// Gives a message another text; the answer has its new receipt.
    pub(crate) fn update_message(&mut self, key: &Key, receipt: &str, value: &[Part]) -> io::Result<Answer> {
        let parameters = [("popreceipt", receipt), ("visibilitytimeout", "0")];
        self.queue.send("PUT", &message_path(key), &parameters, &[], &message_body(value))
    }

    pub(crate) fn delete_message(&mut self, key: &Key, receipt: &str) -> io::Result<Answer> {
        self.queue.send("DELETE", &message_path(key), &[("popreceipt", receipt)], &[], b"")
    }
}

fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

fn entity_target(key: &Key) -> String {
    format!("{}(PartitionKey='{}',RowKey='{}')", key.container, key.partition, key.name)
}

pub(crate) fn blob_path(key: &Key) -> String {
    format!("{}/{}", key.container, key.name)
}

fn message_path(key: &Key) -> String {
    format!("{}/messages/{}", key.container, key.name)
}

fn message_body(value: &[Part]) -> Vec<u8> {
    let text = String::from_utf8_lossy(&wire_bytes(Kind::Message, value)).into_owned();
    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>").into_bytes()
}

/// The id and receipt in the answer to a put.
pub(crate) fn put_message_answer(answer: &Answer) -> (String, String) {
    let part = |name| element(&answer.body, name).to_owned();
    (part("MessageId"), part("PopReceipt"))
}
