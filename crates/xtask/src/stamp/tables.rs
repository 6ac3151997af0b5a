//! Writers of table rows with a ledger each, and readers that check what they see.
//!
//! What always holds: a row has one writer; its values rise; each change names the ETag that it is made upon.
//! A reader notes before each read what was acknowledged (or seen) by then, and finds at least that.

use super::ledger::{Entry, Findings, Next, Problem};
use super::router::{PAUSE_MIN, Request, Router, Sent, wait};
use super::timeline::Timeline;
use crate::Outcome;
use crate::client::content::content;
use crate::client::http_client::Answer;
use base::random::splitmix64;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

pub(super) const TABLE: &str = "trial";
/// Rows of a partition, which is as many as a group transaction takes.
pub(super) const PARTITION_ROWS: usize = 100;
/// Rows of a writer that most of its changes go to, so that readers meet them.
const HOT_ROWS: u64 = 64;
/// One change of so many goes to any row.
const ANY_ROW_ONE_IN: u64 = 8;
const NO_CONTENT: (&str, &str) = ("Prefer", "return-no-content");

/// What readers may know of a writer's rows.
pub(super) struct Keys {
    name: String,
    /// Bytes of text beside the value.
    text_size_bytes: usize,
    /// Acknowledged, or seen by someone: no later read may answer less.
    pub(super) floors: Vec<AtomicU32>,
    /// The greatest value that was ever sent.
    pub(super) sent: Vec<AtomicU32>,
}

impl Keys {
    fn new(name: &str, count: usize, text_size_bytes: usize) -> Self {
        let numbers = || std::iter::repeat_with(|| AtomicU32::new(0)).take(count).collect();
        Keys { name: name.to_owned(), text_size_bytes, floors: numbers(), sent: numbers() }
    }

    fn partition(&self, index: usize) -> String {
        format!("{}-{:06}", self.name, index / PARTITION_ROWS)
    }

    pub(super) fn target(&self, index: usize) -> String {
        let (partition, row) = (self.partition(index), index % PARTITION_ROWS);
        format!("{TABLE}(PartitionKey='{partition}',RowKey='{row:02}')")
    }

    pub(super) fn entity(&self, index: usize, value: u32) -> String {
        let (partition, row) = (self.partition(index), index % PARTITION_ROWS);
        let seed = (index as u64) << 32 | u64::from(value);
        let text = STANDARD.encode(content(seed, self.text_size_bytes * 3 / 4));
        format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row:02}\",\"V\":{value},\"T\":\"{text}\"}}")
    }

    /// What no later read of a row may answer less than.
    pub(super) fn floor(&self, index: usize) -> u32 {
        self.floors[index].load(Ordering::SeqCst)
    }

    /// Where a row is by its keys.
    fn index(&self, entity: &serde_json::Value) -> Option<usize> {
        let partition = entity["PartitionKey"].as_str()?.strip_prefix(&self.name)?.strip_prefix('-')?;
        let row: usize = entity["RowKey"].as_str()?.parse().ok()?;
        let index = partition.parse::<usize>().ok()? * PARTITION_ROWS + row;
        (row < PARTITION_ROWS && index < self.floors.len()).then_some(index)
    }
}

/// Value and ETag of an answer to a read of one row; 0: it is not there.
fn read_row(answer: &Answer) -> Option<(u32, Option<String>)> {
    match answer.status {
        404 => Some((0, None)),
        200 => {
            let entity: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
            let value = u32::try_from(entity["V"].as_u64()?).ok()?;
            let etag = answer.header("etag").or(entity["odata.etag"].as_str()).map(str::to_owned);
            Some((value, etag))
        }
        _ => None,
    }
}

/// What all writers and readers share.
pub(super) struct Shared<'a> {
    pub(super) findings: &'a Findings,
    pub(super) stop: &'a AtomicBool,
    /// Writers change whole partitions, to write much.
    pub(super) fills: &'a AtomicBool,
}

/// How a writer reaches the processes.
pub(super) struct Ways {
    pub(super) singles: Router,
    /// For group transactions.
    pub(super) batches: Router,
    /// Of the URLs in these.
    pub(super) base_url: String,
}

/// One writer with its rows.
pub(super) struct Writer {
    pub(super) keys: Arc<Keys>,
    pub(super) entries: Vec<Entry>,
    router: Router,
    pub(super) batches: Router,
    pub(super) base_url: String,
    /// The partition that the next group changes.
    pub(super) next_group: usize,
    random: u64,
    /// Of this round.
    pub(super) timeline: Timeline,
    /// Changes that were acknowledged, and those whose outcome was unknown.
    pub(super) acknowledged: u64,
    pub(super) unknown: u64,
}

impl Writer {
    /// Rows are none yet.
    pub(super) fn new(name: &str, (rows, row_size): (usize, usize), ways: Ways, seed: u64) -> Self {
        Writer {
            keys: Arc::new(Keys::new(name, rows, row_size)),
            entries: vec![Entry::default(); rows],
            router: ways.singles,
            batches: ways.batches,
            base_url: ways.base_url,
            next_group: 0,
            random: seed,
            timeline: Timeline::start(),
            acknowledged: 0,
            unknown: 0,
        }
    }

    /// Changes rows until it shall stop.
    pub(super) fn write(&mut self, shared: &Shared<'_>) {
        self.timeline = Timeline::start();
        while !shared.stop.load(Ordering::SeqCst) {
            if shared.fills.load(Ordering::SeqCst) {
                self.change_group(shared);
                continue;
            }
            let rows = self.entries.len() as u64;
            let any = splitmix64(&mut self.random).is_multiple_of(ANY_ROW_ONE_IN);
            let below = if any { rows } else { rows.min(HOT_ROWS) };
            let index = (splitmix64(&mut self.random) % below) as usize;
            match self.entries[index].next() {
                Next::Read => self.read(index, shared),
                Next::Insert => self.change(index, None, shared),
                Next::Update(etag) => self.change(index, Some(&etag), shared),
            }
        }
    }

    pub(super) fn read(&mut self, index: usize, shared: &Shared<'_>) {
        let target = self.keys.target(index);
        let request = Request { verb: "GET", path: &target, parameters: &[], headers: &[], body: b"" };
        let Ok(answer) = self.router.ask(request, shared.stop) else { return };
        match read_row(&answer) {
            Some((found, etag)) => {
                let before = self.entries[index].clone();
                if let Some(problem) = self.entries[index].adopt(found, etag.as_deref()) {
                    let text = || format!("{target} is {found} ({etag:?}) for its writer: {before:?}");
                    shared.findings.add(problem, text);
                }
                self.keys.floors[index].fetch_max(found, Ordering::SeqCst);
            }
            None => shared
                .findings
                .add(Problem::Wrong, || format!("GET {target}: {} {}", answer.status, answer.text())),
        }
    }

    fn change(&mut self, index: usize, etag: Option<&str>, shared: &Shared<'_>) {
        let value = self.keys.sent[index].load(Ordering::SeqCst) + 1;
        let (target, entity) = (self.keys.target(index), self.keys.entity(index, value));
        let condition = etag.map(|etag| ("If-Match", etag));
        let headers = [condition.unwrap_or(NO_CONTENT)];
        let (verb, path) = if etag.is_some() { ("PUT", target.as_str()) } else { ("POST", TABLE) };
        let request = Request { verb, path, parameters: &[], headers: &headers, body: entity.as_bytes() };
        self.keys.sent[index].store(value, Ordering::SeqCst);
        self.entries[index].send(value);
        match self.router.send(request, shared.stop) {
            Sent::Answer(answer) if answer.status == 204 => {
                self.entries[index].acknowledge(value, answer.header("etag"));
                self.keys.floors[index].fetch_max(value, Ordering::SeqCst);
                self.acknowledged += 1;
                self.timeline.acknowledge();
            }
            // Somebody changed it, or deleted it: the next read finds out whether that is explained.
            Sent::Answer(answer) if [404, 409, 412].contains(&answer.status) => {
                self.entries[index].conflict(value);
            }
            Sent::Answer(answer) => {
                self.entries[index].forget_outcome();
                let text = || format!("{verb} {target}: {} {}", answer.status, answer.text());
                shared.findings.add(Problem::Wrong, text);
            }
            Sent::NotDone(_) => self.entries[index].refuse(value),
            Sent::Unknown(_) => {
                self.entries[index].forget_outcome();
                self.unknown += 1;
            }
        }
    }

    /// Reads all rows back, and judges each; answers how many there are.
    pub(super) fn verify(&mut self, router: &mut Router, findings: &Findings) -> Outcome<usize> {
        let keys = self.keys.clone();
        let mut found: Vec<(u32, Option<String>)> = vec![(0, None); self.entries.len()];
        let count = scan(router, &keys.name, |entity| match keys.index(entity) {
            Some(index) => {
                let value = entity["V"].as_u64().and_then(|value| u32::try_from(value).ok());
                found[index] = (value.unwrap_or(0), entity["odata.etag"].as_str().map(str::to_owned));
            }
            None => findings.add(Problem::Wrong, || format!("nobody wrote {entity}")),
        })?;
        for (index, (value, etag)) in found.iter().enumerate() {
            let before = self.entries[index].clone();
            if let Some(problem) = self.entries[index].adopt(*value, etag.as_deref()) {
                let target = keys.target(index);
                findings.add(problem, || format!("{target} is {value} ({etag:?}) at the end: {before:?}"));
            }
            keys.floors[index].fetch_max(*value, Ordering::SeqCst);
        }
        Ok(count)
    }

    /// Rows that are there or may be.
    pub(super) fn rows(&self) -> usize {
        self.entries.len()
    }
}

/// All rows of a writer, in pages.
pub(super) fn scan(
    router: &mut Router,
    name: &str,
    mut each: impl FnMut(&serde_json::Value),
) -> Outcome<usize> {
    let never = AtomicBool::new(false);
    // '.' is the character after '-'.
    let filter = format!("PartitionKey%20ge%20'{name}-'%20and%20PartitionKey%20lt%20'{name}.'");
    let (mut continuation, mut count) = (String::new(), 0);
    loop {
        let path = format!("{TABLE}()?$filter={filter}{continuation}");
        let request = Request { verb: "GET", path: &path, parameters: &[], headers: &[], body: b"" };
        let answer = router.ask(request, &never)?;
        if answer.status != 200 {
            return Err(format!("GET {path}: {} {}", answer.status, answer.text()).into());
        }
        let page: serde_json::Value = serde_json::from_slice(&answer.body)?;
        for entity in page["value"].as_array().ok_or("a page without value")? {
            each(entity);
            count += 1;
        }
        continuation.clear();
        for name in ["NextPartitionKey", "NextRowKey"] {
            if let Some(token) = answer.header(&format!("x-ms-continuation-{}", name.to_ascii_lowercase())) {
                let escaped: String = token.bytes().map(|byte| format!("%{byte:02X}")).collect();
                continuation.push_str(&format!("&{name}={escaped}"));
            }
        }
        if continuation.is_empty() {
            return Ok(count);
        }
    }
}

/// Reads rows of all writers until it shall stop, and answers how many reads were checked.
pub(super) fn check_reads(router: &mut Router, writers: &[Arc<Keys>], seed: u64, shared: &Shared<'_>) -> u64 {
    let (mut random, mut checked, mut pause) = (seed, 0, PAUSE_MIN);
    while !shared.stop.load(Ordering::SeqCst) {
        let keys = &writers[(splitmix64(&mut random) % writers.len() as u64) as usize];
        let index = (splitmix64(&mut random) % HOT_ROWS.min(keys.floors.len() as u64)) as usize;
        let target = keys.target(index);
        let request = Request { verb: "GET", path: &target, parameters: &[], headers: &[], body: b"" };
        // Each try is a read of its own: what was acknowledged while it waited counts, too.
        let floor = keys.floors[index].load(Ordering::SeqCst);
        let answer = match router.send_once(request) {
            Sent::Answer(answer) => answer,
            Sent::NotDone(_) | Sent::Unknown(_) => {
                wait(&mut pause);
                continue;
            }
        };
        (checked, pause) = (checked + 1, PAUSE_MIN);
        match read_row(&answer) {
            Some((found, _)) if found < floor => {
                shared.findings.add(Problem::Stale, || format!("{target} is {found} after {floor}"));
            }
            Some((found, _)) if found > keys.sent[index].load(Ordering::SeqCst) => {
                shared.findings.add(Problem::Former, || format!("{target} is {found}, which nobody wrote"));
            }
            Some((found, _)) => drop(keys.floors[index].fetch_max(found, Ordering::SeqCst)),
            None => shared
                .findings
                .add(Problem::Wrong, || format!("GET {target}: {} {}", answer.status, answer.text())),
        }
    }
    checked
}
