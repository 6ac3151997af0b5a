//! Reads everything that a model knows, as users do, and judges each answer: points, queries, listings,
//! messages. What always holds: nothing is changed by reading, and one broken answer ends nothing but itself,
//! unless the server is gone.

use super::clients::{Clients, blob_path};
use super::model::{Fate, Key, Kind, Model, Verdict, judge, judge_presence};
use crate::bench::queues::element;
use crate::client::http_client::Answer;
use crate::client::server_process::ServerProcess;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// One judged answer about a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) key: Key,
    /// Which request told it.
    pub(crate) via: &'static str,
    pub(crate) verdict: Verdict,
}

/// All that was read.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) right_count: usize,
    /// Answers that are not right.
    pub(crate) findings: Vec<Finding>,
}

impl Reading {
    fn note(&mut self, key: &Key, via: &'static str, verdict: Verdict) {
        match verdict {
            Verdict::Right => self.right_count += 1,
            verdict => self.findings.push(Finding { key: key.clone(), via, verdict }),
        }
    }

    /// Keys about which some answer was an error.
    pub(crate) fn loud_keys(&self) -> BTreeSet<&Key> {
        self.findings.iter().filter(|finding| finding.verdict.is_loud()).map(|finding| &finding.key).collect()
    }
}

/// An answer below 500, or what its lack means.
fn answered(answer: io::Result<Answer>, server: &mut ServerProcess) -> Result<Answer, Verdict> {
    match answer {
        Ok(answer) if answer.status >= 500 && answer.body.is_empty() => {
            Err(Verdict::Wrong(format!("status {} without a body", answer.status)))
        }
        Ok(answer) if answer.status >= 500 => {
            Err(Verdict::Loud(format!("{} {}", answer.status, code(&answer))))
        }
        Ok(answer) => Ok(answer),
        Err(_) if server.has_ended() => Err(Verdict::Crash),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            Err(Verdict::Hang)
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Err(Verdict::Crash),
        Err(error) => Err(Verdict::Cut(error.to_string())),
    }
}

/// The service's word for an error.
fn code(answer: &Answer) -> String {
    if let Some(code) = answer.header("x-ms-error-code") {
        return code.to_owned();
    }
    answer.text().chars().take(120).collect()
}

/// The bytes of an answer to a get: `None` if nothing is there; any other status is wrong.
fn found(answer: Answer, bytes: impl Fn(&Answer) -> Vec<u8>) -> Result<Option<Vec<u8>>, Verdict> {
    match answer.status {
        200 => Ok(Some(bytes(&answer))),
        404 => Ok(None),
        status => Err(Verdict::Wrong(format!("status {status} {}", code(&answer)))),
    }
}

fn json(bytes: &[u8]) -> Json {
    serde_json::from_slice(bytes).unwrap_or(Json::Null)
}

fn entity_data(entity: &Json) -> Vec<u8> {
    entity["Data"].as_str().unwrap_or_default().as_bytes().to_vec()
}

/// Asks for everything in a model.
pub(crate) struct Reader<'a> {
    server: &'a mut ServerProcess,
    clients: &'a mut Clients,
    model: &'a Model,
    reading: Reading,
}

/// Reads all of it.
pub(crate) fn read_all(server: &mut ServerProcess, clients: &mut Clients, model: &Model) -> Reading {
    let mut reader = Reader { server, clients, model, reading: Reading::default() };
    reader.read_listings();
    for (key, fate) in &model.keys {
        match key.kind {
            Kind::Entity => reader.read_entity(key, fate),
            Kind::Blob => reader.read_blob(key, fate),
            _ => {}
        }
        if reader.is_over() {
            return reader.reading;
        }
    }
    let partitions: BTreeSet<(&str, &str)> = model
        .keys
        .keys()
        .filter(|key| key.kind == Kind::Entity)
        .map(|key| (key.container.as_str(), key.partition.as_str()))
        .collect();
    for (table, partition) in partitions {
        reader.query(table, partition);
    }
    // Also those that were deleted: nothing of them is to come back.
    for container in model.known_containers(Kind::Container) {
        reader.list_blobs(container);
    }
    for queue in model.known_containers(Kind::Queue) {
        reader.peek(queue);
    }
    reader.reading
}

impl Reader<'_> {
    /// After a crash, or an answer that never came, the rest would be the same.
    fn is_over(&self) -> bool {
        let last = self.reading.findings.last();
        last.is_some_and(|finding| matches!(finding.verdict, Verdict::Crash | Verdict::Hang))
    }

    fn read_entity(&mut self, key: &Key, fate: &Fate) {
        let answer = answered(self.clients.entity(key), self.server);
        let bytes = answer.and_then(|answer| found(answer, |answer| entity_data(&json(&answer.body))));
        self.note_found(key, "get", fate, bytes);
    }

    fn read_blob(&mut self, key: &Key, fate: &Fate) {
        let answer = answered(self.clients.blob_get(&blob_path(key), &[]), self.server);
        let bytes = answer.and_then(|answer| found(answer, |answer| answer.body.clone()));
        self.note_found(key, "get", fate, bytes);
    }

    fn note_found(
        &mut self,
        key: &Key,
        via: &'static str,
        fate: &Fate,
        bytes: Result<Option<Vec<u8>>, Verdict>,
    ) {
        let verdict = bytes.map_or_else(|verdict| verdict, |bytes| judge(key.kind, fate, bytes.as_deref()));
        self.reading.note(key, via, verdict);
    }

    /// Tables, queues and containers.
    fn read_listings(&mut self) {
        let tables = answered(self.clients.table_query("Tables"), self.server).map(|answer| {
            let page = json(&answer.body);
            let names = page["value"].as_array().into_iter().flatten();
            names.filter_map(|table| table["TableName"].as_str().map(str::to_owned)).collect()
        });
        self.note_listing(Kind::Table, tables);
        let queues = answered(self.clients.queue_get("", &[("comp", "list")]), self.server);
        self.note_listing(Kind::Queue, queues.map(|answer| names(&answer, "Queue")));
        let containers = answered(self.clients.blob_get("", &[("comp", "list")]), self.server);
        self.note_listing(Kind::Container, containers.map(|answer| names(&answer, "Container")));
    }

    fn note_listing(&mut self, kind: Kind, listed: Result<BTreeSet<String>, Verdict>) {
        let known = self.model.keys.iter().filter(|(key, _)| key.kind == kind);
        for (key, fate) in known {
            let verdict = match &listed {
                Ok(listed) => judge_presence(fate, listed.contains(&key.container)),
                Err(verdict) => verdict.clone(),
            };
            self.reading.note(key, "listing", verdict);
        }
        for name in listed.into_iter().flatten() {
            let key = Key::container(kind, &name);
            if !self.model.keys.contains_key(&key) {
                self.reading.note(&key, "listing", Verdict::Wrong("nobody made it".into()));
            }
        }
    }

    fn list_blobs(&mut self, container: &str) {
        let parameters = [("comp", "list"), ("restype", "container")];
        let listed = answered(self.clients.blob_get(container, &parameters), self.server);
        let listed = listed.and_then(|answer| match answer.status {
            200 => Ok(names(&answer, "Blob")),
            404 => Ok(BTreeSet::new()),
            status => Err(Verdict::Wrong(format!("status {status} {}", code(&answer)))),
        });
        let listed = match listed {
            Ok(listed) => listed,
            Err(verdict) => {
                return self.reading.note(&Key::inside(Kind::Blob, container, "", ""), "listing", verdict);
            }
        };
        for (key, fate) in self.model.inside(Kind::Blob, container) {
            self.reading.note(key, "listing", judge_presence(fate, listed.contains(&key.name)));
        }
        for name in listed {
            let key = Key::inside(Kind::Blob, container, "", &name);
            if !self.model.keys.contains_key(&key) {
                self.reading.note(&key, "listing", Verdict::Wrong("nobody put it".into()));
            }
        }
    }

    fn query(&mut self, table: &str, partition: &str) {
        let rows = match self.query_rows(table, partition) {
            Ok(rows) => rows,
            Err(verdict) => {
                let key = Key::inside(Kind::Entity, table, partition, "");
                return self.reading.note(&key, "query", verdict);
            }
        };
        let known = self.model.inside(Kind::Entity, table).filter(|(key, _)| key.partition == partition);
        for (key, fate) in known {
            let verdict = judge(Kind::Entity, fate, rows.get(&key.name).map(Vec::as_slice));
            self.reading.note(key, "query", verdict);
        }
        for name in rows.keys() {
            let key = Key::inside(Kind::Entity, table, partition, name);
            if !self.model.keys.contains_key(&key) {
                self.reading.note(&key, "query", Verdict::Wrong("nobody put it".into()));
            }
        }
    }

    fn query_rows(&mut self, table: &str, partition: &str) -> Result<BTreeMap<String, Vec<u8>>, Verdict> {
        let mut rows = BTreeMap::new();
        let mut continuation = String::new();
        loop {
            let target = format!("{table}()?$filter=PartitionKey%20eq%20'{partition}'{continuation}");
            let answer = answered(self.clients.table_query(&target), self.server)?;
            match answer.status {
                200 => {}
                404 => return Ok(rows),
                status => return Err(Verdict::Wrong(format!("status {status} {}", code(&answer)))),
            }
            let page = json(&answer.body);
            let entities = page["value"].as_array();
            for entity in entities.ok_or_else(|| Verdict::Wrong("a page without rows".into()))? {
                let name = entity["RowKey"].as_str().unwrap_or_default().to_owned();
                if rows.insert(name, entity_data(entity)).is_some() {
                    return Err(Verdict::Wrong("a row came twice".into()));
                }
            }
            continuation.clear();
            for name in ["NextPartitionKey", "NextRowKey"] {
                if let Some(token) =
                    answer.header(&format!("x-ms-continuation-{}", name.to_ascii_lowercase()))
                {
                    let escaped: String = token.bytes().map(|byte| format!("%{byte:02X}")).collect();
                    continuation.push_str(&format!("&{name}={escaped}"));
                }
            }
            if continuation.is_empty() {
                return Ok(rows);
            }
        }
    }

    /// All messages of a queue, and how many it says it has.
    fn peek(&mut self, queue: &str) {
        let path = format!("{queue}/messages");
        let parameters = [("numofmessages", "32"), ("peekonly", "true")];
        let answer = answered(self.clients.queue_get(&path, &parameters), self.server);
        let whole = Key::inside(Kind::Message, queue, "", "");
        let text = match answer {
            Ok(answer) if answer.status == 200 => answer.text(),
            Ok(answer) if answer.status == 404 => String::new(),
            Ok(answer) => {
                let verdict = Verdict::Wrong(format!("status {} {}", answer.status, code(&answer)));
                return self.reading.note(&whole, "peek", verdict);
            }
            Err(verdict) => return self.reading.note(&whole, "peek", verdict),
        };
        let messages: BTreeMap<String, Vec<u8>> = text
            .split("<QueueMessage>")
            .skip(1)
            .map(|message| {
                let part = |name| element(message.as_bytes(), name);
                (part("MessageId").to_owned(), part("MessageText").as_bytes().to_vec())
            })
            .collect();
        for (key, fate) in self.model.inside(Kind::Message, queue) {
            let verdict = judge(Kind::Message, fate, messages.get(&key.name).map(Vec::as_slice));
            self.reading.note(key, "peek", verdict);
        }
        for id in messages.keys() {
            let key = Key::inside(Kind::Message, queue, "", id);
            if !self.model.keys.contains_key(&key) {
                self.reading.note(&key, "peek", Verdict::Wrong("nobody put it".into()));
            }
        }
        let answer = answered(self.clients.queue_get(queue, &[("comp", "metadata")]), self.server);
        let is_deleted = self.model.containers(Kind::Queue).all(|name| name != queue);
        let verdict = match answer {
            Err(verdict) => verdict,
            Ok(answer) if answer.status == 404 && is_deleted => Verdict::Right,
            Ok(answer) => match answer.header("x-ms-approximate-messages-count") {
                Some(count) if count == messages.len().to_string() => Verdict::Right,
                Some(count) => Verdict::Wrong(format!("{} messages, counted as {count}", messages.len())),
                None => Verdict::Missing,
            },
        };
        self.reading.note(&whole, "count", verdict);
    }
}

/// Names of things in a listing.
fn names(answer: &Answer, thing: &str) -> BTreeSet<String> {
    let text = answer.text();
    let tag = format!("<{thing}>");
    let parts = text.split(&tag).skip(1);
    parts.map(|part| element(part.as_bytes(), "Name").to_owned()).collect()
}
