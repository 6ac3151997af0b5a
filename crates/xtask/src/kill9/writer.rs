//! One writer of the kill rounds: it owns a partition, changes it in every way there is, and remembers what
//! was acknowledged. After a restart the partition must be exactly that, or that with the one unanswered
//! operation applied as a whole.

use crate::Outcome;
use crate::client::http_client::{Answer, HttpClient};
use crate::client::shared_key::Signer;
use base::random::splitmix64;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The table of all writers.
pub(crate) const TABLE: &str = "kills";
/// Rows from which on a writer adds none, so that reading all back stays quick while the log grows.
const ROW_COUNT_MAX: usize = 200;
const GROUP_SIZE_MAX: u64 = 20;
const VALUE_SIZE_MAX: u64 = 500;
const PROPERTY_NAMES: [&str; 3] = ["Alpha", "Beta", "Gamma"];
const NO_CONTENT: (&str, &str) = ("Prefer", "return-no-content");

type Properties = BTreeMap<String, String>;

/// An entity as it should be read back.
#[derive(Clone)]
struct Stored {
    properties: Properties,
    /// Known from the acknowledgement, or unknown after a group transaction.
    etag: Option<String>,
}

/// What an operation leaves in each row it touches.
type Effect = Vec<(String, Option<Properties>)>;

struct Planned {
    kind: Kind,
    row: String,
    verb: &'static str,
    target: String,
    if_match: Option<String>,
    body: Vec<u8>,
    effect: Effect,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Single,
    Group,
}

/// Counts over all rounds, to show that something was tested.
#[derive(Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) acknowledged: u64,
    pub(crate) acknowledged_groups: u64,
    pub(crate) unanswered_applied: u64,
    pub(crate) unanswered_lost: u64,
}

pub(crate) struct Writer {
    partition: String,
    random: u64,
    row_number: u64,
    value_number: u64,
    rows: BTreeMap<String, Stored>,
    unanswered: Option<Effect>,
    pub(crate) tally: Tally,
}

impl Writer {
    pub(crate) fn new(number: usize, seed: u64) -> Self {
        let mut random = seed ^ (number as u64).wrapping_mul(0xD1B5_4A32_D192_ED03);
        splitmix64(&mut random);
        Self {
            partition: format!("w{number:02}"),
            random,
            row_number: 0,
            value_number: 0,
            rows: BTreeMap::new(),
            unanswered: None,
            tally: Tally::default(),
        }
    }

    /// Writes until the server dies. An error before `killed` is set, or a refusal at any time, is a failure.
    pub(crate) fn write_until_killed(&mut self, address: SocketAddr, killed: &AtomicBool) -> Outcome<()> {
        let mut client = match HttpClient::connect(address, Signer::new()) {
            Ok(client) => client,
            Err(_) if killed.load(Ordering::SeqCst) => return Ok(()),
            Err(error) => return Err(format!("{}: connect: {error}", self.partition).into()),
        };
        while !killed.load(Ordering::SeqCst) {
            let planned = self.plan(&client.base_url());
            match send(&mut client, &planned) {
                Ok(answer) => self.acknowledge(planned, &answer)?,
                Err(error) => {
                    self.unanswered = Some(planned.effect);
                    if killed.load(Ordering::SeqCst) {
                        return Ok(());
                    }
                    return Err(format!("{}: the server did not answer: {error}", self.partition).into());
                }
            }
        }
        Ok(())
    }

    fn acknowledge(&mut self, planned: Planned, answer: &Answer) -> Outcome<()> {
        let fine = match planned.kind {
            Kind::Single => answer.status == 204,
            Kind::Group => {
                let parts = memchr::memmem::find_iter(&answer.body, b"HTTP/1.1 204").count();
                answer.status == 202 && parts == planned.effect.len()
            }
        };
        if !fine {
            let refusal = format!("{} {}: {} {}", planned.verb, planned.target, answer.status, answer.text());
            return Err(format!("{}: {refusal}\nsent:\n{}", self.partition, lossy(&planned.body)).into());
        }
        self.tally.acknowledged += 1;
        self.tally.acknowledged_groups += u64::from(planned.kind == Kind::Group);
        let etag = match planned.kind {
            Kind::Single => answer.header("etag").map(str::to_owned),
            Kind::Group => None,
        };
        if planned.kind == Kind::Single && planned.verb != "DELETE" && etag.is_none() {
            return Err(
                format!("{}: {} of {} answered no ETag", self.partition, planned.verb, planned.row).into()
            );
        }
        apply(&mut self.rows, planned.effect, etag.as_deref());
        Ok(())
    }

    /// Reads the partition back and compares. Afterwards the writer goes on from what it read.
    pub(crate) fn verify(&mut self, address: SocketAddr) -> Outcome<()> {
        let mut client = HttpClient::connect(address, Signer::new())?;
        let found = read_partition(&mut client, &self.partition)?;
        let unanswered = self.unanswered.take();
        let mut difference = difference(&self.rows, &found);
        if let Some(effect) = unanswered {
            if difference.is_none() {
                self.tally.unanswered_lost += 1;
            } else {
                let mut with_it = self.rows.clone();
                apply(&mut with_it, effect.clone(), None);
                if self::difference(&with_it, &found).is_none() {
                    self.tally.unanswered_applied += 1;
                    difference = None;
                } else {
                    let touched: Vec<&str> = effect.iter().map(|(row, _)| row.as_str()).collect();
                    let note = format!("; the unanswered operation touched {}", touched.join(" "));
                    difference = difference.map(|text| text + &note);
                }
            }
        }
        if let Some(difference) = difference {
            return Err(format!("partition {}: {difference}", self.partition).into());
        }
        self.rows = found;
        Ok(())
    }

    fn below(&mut self, bound: u64) -> u64 {
        splitmix64(&mut self.random) % bound
    }

    fn plan(&mut self, base_url: &str) -> Planned {
        let full = self.rows.len() >= ROW_COUNT_MAX;
        match self.below(100) {
            _ if self.rows.len() < 3 => self.plan_insert(),
            0..25 if !full => self.plan_insert(),
            0..25 | 70..75 => self.plan_delete(),
            25..50 => self.plan_update("PUT"),
            50..70 => self.plan_update("MERGE"),
            _ => self.plan_group(base_url),
        }
    }

    fn plan_insert(&mut self) -> Planned {
        let row = self.new_row();
        let properties = self.new_properties();
        Planned {
            kind: Kind::Single,
            verb: "POST",
            target: TABLE.to_owned(),
            if_match: None,
            body: self.entity_json(&row, &properties),
            effect: vec![(row.clone(), Some(properties))],
            row,
        }
    }

    fn plan_update(&mut self, verb: &'static str) -> Planned {
        let row = self.known_row();
        let properties = self.new_properties();
        Planned {
            kind: Kind::Single,
            verb,
            target: self.entity_target(&row),
            if_match: Some(self.etag_of(&row)),
            body: self.entity_json(&row, &properties),
            effect: vec![(row.clone(), Some(self.after(&row, verb == "MERGE", properties)))],
            row,
        }
    }

    fn plan_delete(&mut self) -> Planned {
        let row = self.known_row();
        Planned {
            kind: Kind::Single,
            verb: "DELETE",
            target: self.entity_target(&row),
            if_match: Some(self.etag_of(&row)),
            body: Vec::new(),
            effect: vec![(row.clone(), None)],
            row,
        }
    }

    fn plan_group(&mut self, base_url: &str) -> Planned {
        let full = self.rows.len() >= ROW_COUNT_MAX;
        let mut effect = Effect::new();
        let mut body = b"--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n".to_vec();
        for _ in 0..2 + self.below(GROUP_SIZE_MAX - 1) {
            let choice = if full { 4 + self.below(6) } else { self.below(10) };
            let row = if choice < 4 { self.new_row() } else { self.known_row() };
            if effect.iter().any(|(touched, _)| *touched == row) {
                continue; // A group may touch each row once.
            }
            let (verb, left) = match choice {
                0..4 => ("POST", Some(self.new_properties())),
                4..6 => ("DELETE", None),
                6..8 => ("PUT", Some(self.new_properties())),
                _ => ("MERGE", Some(self.new_properties())),
            };
            let entity =
                left.as_ref().map(|properties| self.entity_json(&row, properties)).unwrap_or_default();
            let target = if verb == "POST" { TABLE.to_owned() } else { self.entity_target(&row) };
            let condition = if verb == "POST" {
                "Prefer: return-no-content".to_owned()
            } else {
                format!("If-Match: {}", self.etag_of(&row))
            };
            body.extend_from_slice(
                format!(
                    "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                     {verb} {base_url}/{target} HTTP/1.1\r\nContent-Type: application/json\r\n\
                     Accept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0;\r\n{condition}\r\n\r\n"
                )
                .as_bytes(),
            );
            body.extend_from_slice(&entity);
            body.extend_from_slice(b"\r\n");
            let left = left.map(|properties| self.after(&row, verb == "MERGE", properties));
            effect.push((row, left));
        }
        body.extend_from_slice(b"--changeset_c--\r\n--batch_b--\r\n");
        Planned {
            kind: Kind::Group,
            row: String::new(),
            verb: "POST",
            target: "$batch".to_owned(),
            if_match: None,
            body,
            effect,
        }
    }

    /// What a merge or a replacement leaves in a row that exists.
    fn after(&self, row: &str, merge: bool, properties: Properties) -> Properties {
        match self.rows.get(row) {
            Some(stored) if merge => {
                let mut merged = stored.properties.clone();
                merged.extend(properties);
                merged
            }
            _ => properties,
        }
    }

    fn new_row(&mut self) -> String {
        self.row_number += 1;
        format!("r{:06}", self.row_number)
    }

    fn known_row(&mut self) -> String {
        let position = self.below(self.rows.len() as u64) as usize;
        self.rows.keys().nth(position).cloned().unwrap_or_default()
    }

    fn etag_of(&self, row: &str) -> String {
        self.rows.get(row).and_then(|stored| stored.etag.clone()).unwrap_or_else(|| "*".to_owned())
    }

    /// One to three properties whose values occur nowhere else.
    fn new_properties(&mut self) -> Properties {
        let mut properties = Properties::new();
        for _ in 0..1 + self.below(3) {
            let name = PROPERTY_NAMES[self.below(PROPERTY_NAMES.len() as u64) as usize];
            self.value_number += 1;
            let filler = "x".repeat(self.below(VALUE_SIZE_MAX) as usize);
            properties.insert(name.to_owned(), format!("{}-{}-{filler}", self.partition, self.value_number));
        }
        properties
    }

    fn entity_json(&self, row: &str, properties: &Properties) -> Vec<u8> {
        let mut entity = serde_json::Map::new();
        entity.insert("PartitionKey".to_owned(), self.partition.clone().into());
        entity.insert("RowKey".to_owned(), row.to_owned().into());
        entity.extend(properties.iter().map(|(name, value)| (name.clone(), value.clone().into())));
        serde_json::Value::Object(entity).to_string().into_bytes()
    }

    fn entity_target(&self, row: &str) -> String {
        format!("{TABLE}(PartitionKey='{}',RowKey='{row}')", self.partition)
    }
}

fn send(client: &mut HttpClient, planned: &Planned) -> std::io::Result<Answer> {
    if planned.kind == Kind::Group {
        return client.send_as(
            "multipart/mixed; boundary=batch_b",
            planned.verb,
            &planned.target,
            &[],
            &planned.body,
        );
    }
    match &planned.if_match {
        Some(etag) => client.send(planned.verb, &planned.target, &[("If-Match", etag)], &planned.body),
        None => client.send(planned.verb, &planned.target, &[NO_CONTENT], &planned.body),
    }
}

fn apply(rows: &mut BTreeMap<String, Stored>, effect: Effect, etag: Option<&str>) {
    for (row, left) in effect {
        match left {
            Some(properties) => {
                rows.insert(row, Stored { properties, etag: etag.map(str::to_owned) });
            }
            None => {
                rows.remove(&row);
            }
        }
    }
}

fn read_partition(client: &mut HttpClient, partition: &str) -> Outcome<BTreeMap<String, Stored>> {
    let mut rows = BTreeMap::new();
    let mut continuation = String::new();
    loop {
        let target = format!("{TABLE}()?$filter=PartitionKey%20eq%20'{partition}'{continuation}");
        let answer = client.send("GET", &target, &[], b"")?;
        if answer.status != 200 {
            return Err(format!("{target}: {} {}", answer.status, answer.text()).into());
        }
        let page: serde_json::Value = serde_json::from_slice(&answer.body)?;
        for entity in page["value"].as_array().ok_or("a page without value")? {
            let (row, stored) = read_entity(entity, partition)?;
            if rows.insert(row, stored).is_some() {
                return Err(format!("the query returned an entity twice: {entity}").into());
            }
        }
        continuation.clear();
        for name in ["NextPartitionKey", "NextRowKey"] {
            if let Some(token) = answer.header(&format!("x-ms-continuation-{}", name.to_ascii_lowercase())) {
                continuation.push_str(&format!("&{name}={}", percent_encoded(token)));
            }
        }
        if continuation.is_empty() {
            return Ok(rows);
        }
    }
}

fn read_entity(entity: &serde_json::Value, partition: &str) -> Outcome<(String, Stored)> {
    let broken = || format!("not an entity of partition {partition}: {entity}");
    let members = entity.as_object().ok_or_else(broken)?;
    if members.get("PartitionKey").and_then(|key| key.as_str()) != Some(partition) {
        return Err(broken().into());
    }
    let row = members.get("RowKey").and_then(|key| key.as_str()).ok_or_else(broken)?;
    let etag = members.get("odata.etag").and_then(|etag| etag.as_str()).ok_or_else(broken)?;
    let mut properties = Properties::new();
    for (name, value) in members {
        if name.starts_with("odata.") || ["PartitionKey", "RowKey", "Timestamp"].contains(&name.as_str()) {
            continue;
        }
        properties.insert(name.clone(), value.as_str().ok_or_else(broken)?.to_owned());
    }
    Ok((row.to_owned(), Stored { properties, etag: Some(etag.to_owned()) }))
}

/// The first few rows in which two states differ, as text. An ETag that is not known is not compared.
fn difference(expected: &BTreeMap<String, Stored>, found: &BTreeMap<String, Stored>) -> Option<String> {
    let mut rows: Vec<&String> = expected.keys().chain(found.keys()).collect();
    rows.sort();
    rows.dedup();
    let mut differences = Vec::new();
    for row in rows {
        let text = match (expected.get(row), found.get(row)) {
            (Some(_), None) => "acknowledged, but missing".to_owned(),
            (None, Some(_)) => "there, but never acknowledged".to_owned(),
            (Some(expected), Some(found)) if expected.properties != found.properties => {
                format!("expected {:?}, found {:?}", expected.properties, found.properties)
            }
            (Some(Stored { etag: Some(expected), .. }), Some(Stored { etag: Some(found), .. }))
                if expected != found =>
            {
                format!("same content, but ETag {expected} became {found}")
            }
            _ => continue,
        };
        differences.push(format!("{row}: {text}"));
    }
    if differences.is_empty() {
        return None;
    }
    let total = differences.len();
    differences.truncate(5);
    Some(format!("{total} rows differ; {}", differences.join("; ")))
}

fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Effect, Properties, Stored, Writer, apply, difference};
    use std::collections::BTreeMap;

    fn row(value: &str) -> Properties {
        Properties::from([("Alpha".to_owned(), value.to_owned())])
    }

    fn state(rows: &[(&str, &str)]) -> BTreeMap<String, Stored> {
        let stored = |value: &str| Stored { properties: row(value), etag: Some(format!("e{value}")) };
        rows.iter().map(|(name, value)| ((*name).to_owned(), stored(value))).collect()
    }

    /// A checker that sees no difference would pass any server.
    #[test]
    fn sees_lost_stale_resurrected_and_half_applied_rows() {
        let acknowledged = state(&[("a", "1"), ("b", "1")]);
        assert!(difference(&acknowledged, &acknowledged).is_none());
        assert!(difference(&acknowledged, &state(&[("a", "1")])).is_some());
        assert!(difference(&acknowledged, &state(&[("a", "1"), ("b", "0")])).is_some());
        assert!(difference(&acknowledged, &state(&[("a", "1"), ("b", "1"), ("c", "1")])).is_some());
        let mut other_etag = acknowledged.clone();
        other_etag.insert("a".to_owned(), Stored { properties: row("1"), etag: Some("other".to_owned()) });
        assert!(difference(&acknowledged, &other_etag).is_some());

        let group: Effect = vec![("a".to_owned(), Some(row("2"))), ("b".to_owned(), None)];
        let mut whole = acknowledged.clone();
        apply(&mut whole, group, None);
        assert!(difference(&whole, &state(&[("a", "2")])).is_none());
        assert!(difference(&whole, &state(&[("a", "2"), ("b", "1")])).is_some());
    }

    #[test]
    fn the_same_seed_plans_the_same_operations() {
        let plan = |seed| {
            let mut writer = Writer::new(1, seed);
            let mut bodies = Vec::new();
            for _ in 0..50 {
                let planned = writer.plan("http://127.0.0.1:1/a");
                bodies.push((planned.verb, planned.target, planned.body));
                apply(&mut writer.rows, planned.effect, None);
            }
            bodies
        };
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7), plan(8));
    }
}
