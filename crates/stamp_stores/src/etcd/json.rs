//! Requests to etcd's JSON gateway, and its answers: keys and values in base64, numbers as texts.
//!
//! What always holds: any bytes are an answer or an error; a field of another version is ignored; one that is
//! left out is zero or empty, as the gateway leaves out what is.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use stamp::Revision;
use stamp_streams::{KeyCompare, KeyEntry, KeyTransaction, Selection, StoreState};
use std::time::Duration;

/// Keys that one page of a selection has, at most: documents have up to 256 KiB.
pub(crate) const PAGE_KEYS_MAX: usize = 200;
/// Selections in one transaction, at most: etcd takes 128 operations.
pub(crate) const SELECTIONS_MAX: usize = 120;

/// Bytes as they are in JSON.
pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// The first key behind all that begin with `prefix`; for the empty one all keys.
pub(crate) fn prefix_end(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    // UTF-8 has no byte 0xff, so there is a next one.
    match end.last_mut() {
        Some(last) => *last += 1,
        None => end.push(0),
    }
    end
}

/// A piece of what is to be read: from a key on, up to an end or that key alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) from: Vec<u8>,
    pub(crate) end: Option<Vec<u8>>,
}

impl Piece {
    /// A selection below a prefix.
    pub(crate) fn of(selection: &Selection, base: &str) -> Self {
        match selection {
            Selection::Key(key) => Piece { from: format!("{base}{key}").into_bytes(), end: None },
            Selection::Prefix(prefix) => {
                let whole = format!("{base}{prefix}");
                let end = Some(prefix_end(&whole));
                let from = if whole.is_empty() { vec![0] } else { whole.into_bytes() };
                Piece { from, end }
            }
            Selection::Behind { prefix, after } => {
                let end = Some(prefix_end(&format!("{base}{prefix}")));
                Piece { from: [base.as_bytes(), after.as_bytes(), &[0]].concat(), end }
            }
        }
    }

    fn request(&self, revision: Option<Revision>) -> Value {
        let mut range = json!({ "key": encode(&self.from), "limit": PAGE_KEYS_MAX.to_string() });
        if let Some(end) = &self.end {
            range["range_end"] = encode(end).into();
        }
        if let Some(revision) = revision {
            range["revision"] = revision.0.to_string().into();
        }
        json!({ "request_range": range })
    }
}

/// A read of pieces, now or at a revision. A transaction of reads is linearizable as long as it has one.
pub(crate) fn read_request(pieces: &[Piece], revision: Option<Revision>) -> Bytes {
    let ranges: Vec<Value> = pieces.iter().map(|piece| piece.request(revision)).collect();
    json!({ "success": ranges }).to_string().into()
}

/// A transaction, its keys below `base`. One that changes nothing reads a key: etcd would answer it from what
/// one member knows otherwise.
pub(crate) fn commit_request(transaction: &KeyTransaction, base: &str) -> Bytes {
    let key = |key: &str| encode(format!("{base}{key}"));
    let compare = |compare: &KeyCompare| match compare {
        KeyCompare::Is(name, value) => {
            json!({ "target": "VALUE", "result": "EQUAL", "key": key(name), "value": encode(value) })
        }
        KeyCompare::ChangedAt(name, revision) => {
            let revision = revision.0.to_string();
            json!({ "target": "MOD", "result": "EQUAL", "key": key(name), "mod_revision": revision })
        }
        KeyCompare::Exists(name) => {
            json!({ "target": "VERSION", "result": "GREATER", "key": key(name), "version": "0" })
        }
    };
    let put = |(name, value, lease): &(String, Bytes, Option<stamp_streams::StoreLease>)| {
        let mut put = json!({ "key": key(name), "value": encode(value) });
        if let Some(lease) = lease {
            put["lease"] = lease.0.to_string().into();
        }
        json!({ "request_put": put })
    };
    let delete = |name: &String| json!({ "request_delete_range": { "key": key(name) } });
    let mut success: Vec<Value> = transaction.puts.iter().map(put).collect();
    success.extend(transaction.deletes.iter().map(delete));
    let mut failure = Vec::new();
    if success.is_empty() {
        let read = Piece { from: vec![0], end: None }.request(None);
        success.push(read.clone());
        failure.push(read);
    }
    let compares: Vec<Value> = transaction.compares.iter().map(compare).collect();
    json!({ "compare": compares, "success": success, "failure": failure }).to_string().into()
}

/// A watch of all keys below a prefix, from a revision on. Long answers come in pieces.
pub(crate) fn watch_request(base: &str, from: Revision) -> Bytes {
    let piece = Piece::of(&Selection::Prefix(String::new()), base);
    let (key, end) = (encode(piece.from), encode(piece.end.unwrap_or_default()));
    let from = from.0.to_string();
    let create = json!({ "key": key, "range_end": end, "start_revision": from, "fragment": true });
    json!({ "create_request": create }).to_string().into()
}

/// A number that is a text, or a number.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Text(String),
        Plain(u64),
    }
    match Number::deserialize(deserializer)? {
        Number::Plain(number) => Ok(number),
        Number::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Header {
    #[serde(default, alias = "clusterId", deserialize_with = "number")]
    cluster_id: u64,
    #[serde(default, deserialize_with = "number")]
    revision: u64,
}

impl Header {
    fn state(self) -> Result<StoreState, String> {
        if self.cluster_id == 0 || self.revision == 0 {
            return Err("it does not say which store it is of, or at which revision".to_owned());
        }
        Ok(StoreState { cluster: self.cluster_id, revision: Revision(self.revision) })
    }
}

#[derive(Debug, Default, Deserialize)]
struct Pair {
    #[serde(default)]
    key: String,
    #[serde(default)]
    value: String,
    #[serde(default, alias = "modRevision", deserialize_with = "number")]
    mod_revision: u64,
    #[serde(default, deserialize_with = "number")]
    lease: u64,
}

#[derive(Debug, Default, Deserialize)]
struct Ranged {
    #[serde(default)]
    kvs: Vec<Pair>,
    #[serde(default)]
    more: bool,
}

#[derive(Debug, Deserialize)]
struct Response {
    #[serde(alias = "responseRange")]
    response_range: Option<Ranged>,
}

#[derive(Debug, Deserialize)]
struct TransactionAnswer {
    header: Header,
    #[serde(default)]
    succeeded: bool,
    #[serde(default)]
    responses: Vec<Response>,
}

/// Why JSON is none, without a part of it.
fn unreadable(error: &serde_json::Error) -> String {
    format!("it is no answer of etcd (line {}, column {})", error.line(), error.column())
}

/// The answer to a transaction: whether it happened, and the state.
pub(crate) fn commit_answer(body: &[u8]) -> Result<(bool, StoreState), String> {
    let answer: TransactionAnswer = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    Ok((answer.succeeded, answer.header.state()?))
}

/// What was read of one piece.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) entries: Vec<KeyEntry>,
    /// The last key as it is in the store, if more are behind it.
    pub(crate) more_behind: Option<Vec<u8>>,
}

/// The answer to a read of so many pieces; keys without `base`.
pub(crate) fn read_answer(body: &[u8], count: usize, base: &str) -> Result<(StoreState, Vec<Page>), String> {
    let answer: TransactionAnswer = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    let state = answer.header.state()?;
    if answer.responses.len() != count || !answer.succeeded {
        return Err("it has not what was asked for".to_owned());
    }
    let pages =
        answer.responses.into_iter().map(|response| page(response.response_range.unwrap_or_default(), base));
    Ok((state, pages.collect::<Result<_, _>>()?))
}

fn page(ranged: Ranged, base: &str) -> Result<Page, String> {
    let decode = |text: &str| STANDARD.decode(text).map_err(|_| "a key or value is no base64".to_owned());
    let last = ranged.kvs.last().map(|pair| decode(&pair.key)).transpose()?;
    let entry = |pair: Pair| -> Result<KeyEntry, String> {
        let key = String::from_utf8(decode(&pair.key)?).map_err(|_| "a key is no UTF-8".to_owned())?;
        let key = key.strip_prefix(base).ok_or("a key is of another prefix")?.to_owned();
        let value = Bytes::from(decode(&pair.value)?);
        Ok(KeyEntry { key, value, changed_at: Revision(pair.mod_revision) })
    };
    let entries: Vec<KeyEntry> = ranged.kvs.into_iter().map(entry).collect::<Result<_, _>>()?;
    Ok(Page { entries, more_behind: last.filter(|_| ranged.more) })
}

#[derive(Deserialize)]
struct Granted {
    #[serde(default, rename = "ID", deserialize_with = "number")]
    id: u64,
}

/// The lease of an answer to a grant.
pub(crate) fn grant_answer(body: &[u8]) -> Result<u64, String> {
    let granted: Granted = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    if granted.id == 0 { Err("it names no lease".to_owned()) } else { Ok(granted.id) }
}

#[derive(Deserialize)]
struct Kept {
    result: Lived,
}

#[derive(Deserialize)]
struct Lived {
    #[serde(default, rename = "TTL", deserialize_with = "number")]
    ttl: u64,
}

/// Whether the lease of an answer to a keep-alive lives.
pub(crate) fn keep_alive_answer(body: &[u8]) -> Result<bool, String> {
    let kept: Kept = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    Ok(kept.result.ttl > 0)
}

/// The lease of the only key of an answer to a read; none if that is not there, or has none.
pub(crate) fn key_lease_answer(body: &[u8]) -> Result<Option<u64>, String> {
    let answer: TransactionAnswer = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    let ranged = answer.responses.into_iter().filter_map(|response| response.response_range);
    let lease = ranged.flat_map(|ranged| ranged.kvs).next().map(|pair| pair.lease);
    Ok(lease.filter(|lease| *lease > 0))
}

#[derive(Deserialize)]
struct Left {
    /// Whole seconds as a text; -1 of a lease that has ended.
    #[serde(default, rename = "TTL")]
    ttl: serde_json::Value,
}

/// What is left of the lease of an answer that says it; none if it has ended.
pub(crate) fn lease_left_answer(body: &[u8]) -> Result<Option<Duration>, String> {
    let left: Left = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    let seconds = match &left.ttl {
        Value::String(text) => text.parse::<i64>().ok(),
        other => other.as_i64(),
    };
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    Ok(seconds.map(Duration::from_secs))
}

#[derive(Deserialize)]
struct LoggedIn {
    token: String,
}

/// The token of an answer to a log-in.
pub(crate) fn login_answer(body: &[u8]) -> Result<String, String> {
    let answer: LoggedIn = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    Ok(answer.token)
}

/// What a line of a watch says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchLine {
    /// Something has changed, last at this revision.
    Changed(Revision),
    /// What was to be watched is compacted away up to this revision.
    Compacted(Revision),
    /// Nothing yet.
    Alive,
    /// It ends.
    Ended(String),
}

#[derive(Deserialize)]
struct Watched {
    result: Option<WatchResult>,
}

#[derive(Deserialize)]
struct WatchResult {
    #[serde(default)]
    canceled: bool,
    #[serde(default, alias = "compactRevision", deserialize_with = "number")]
    compact_revision: u64,
    #[serde(default, alias = "cancelReason")]
    cancel_reason: String,
    #[serde(default)]
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    kv: EventPair,
}

/// Only when: keys and values are read when somebody looks.
#[derive(Deserialize)]
struct EventPair {
    #[serde(default, alias = "modRevision", deserialize_with = "number")]
    mod_revision: u64,
}

/// Reads a line of a watch.
pub(crate) fn watch_line(line: &[u8]) -> Result<WatchLine, String> {
    let watched: Watched = serde_json::from_slice(line).map_err(|error| unreadable(&error))?;
    let Some(result) = watched.result else { return Ok(WatchLine::Ended(super::errors::message(line))) };
    if result.compact_revision > 0 {
        return Ok(WatchLine::Compacted(Revision(result.compact_revision)));
    }
    if result.canceled {
        return Ok(WatchLine::Ended(result.cancel_reason));
    }
    let changed = result.events.iter().map(|event| event.kv.mod_revision).max();
    Ok(changed.map_or(WatchLine::Alive, |revision| WatchLine::Changed(Revision(revision))))
}

#[cfg(test)]
mod tests;
