//! What a data folder must hold: for each key the present state and all former ones. What always holds: a
//! state is judged by its bytes, a key's history begins with "not there", and the last entry of a history is
//! what was acknowledged last.

use crate::Outcome;
use crate::client::content::content;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// Kinds of things that users can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Table,
    Queue,
    Container,
    Entity,
    Message,
    Blob,
}

const KINDS: [(Kind, &str); 6] = [
    (Kind::Table, "table"),
    (Kind::Queue, "queue"),
    (Kind::Container, "container"),
    (Kind::Entity, "entity"),
    (Kind::Message, "message"),
    (Kind::Blob, "blob"),
];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// The kind of what lies inside.
    pub(crate) fn inner(self) -> Option<Kind> {
        match self {
            Kind::Table => Some(Kind::Entity),
            Kind::Queue => Some(Kind::Message),
            Kind::Container => Some(Kind::Blob),
            Kind::Entity | Kind::Message | Kind::Blob => None,
        }
    }
}

/// A name for one thing. Names are of letters, digits, `-` and `.`, so that paths need no escaping.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) kind: Kind,
    /// Its table, queue or container, or that itself.
    pub(crate) container: String,
    /// Of entities only.
    pub(crate) partition: String,
    /// RowKey, message id or blob name; empty for a container itself.
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn container(kind: Kind, container: &str) -> Self {
        Key { kind, container: container.into(), partition: String::new(), name: String::new() }
    }

    pub(crate) fn inside(kind: Kind, container: &str, partition: &str, name: &str) -> Self {
        Key { kind, container: container.into(), partition: partition.into(), name: name.into() }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind.name(), self.container)?;
        for part in [&self.partition, &self.name].into_iter().filter(|part| !part.is_empty()) {
            write!(f, "/{part}")?;
        }
        Ok(())
    }
}

/// Bytes that follow from a seed. Seed 0: zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) seed: u64,
    pub(crate) size: usize,
}

/// The bytes of a thing, part after part.
pub(crate) type Value = Vec<Part>;

pub(crate) fn bytes(value: &[Part]) -> Vec<u8> {
    let part = |part: &Part| match part.seed {
        0 => vec![0; part.size],
        seed => content(seed, part.size),
    };
    value.iter().flat_map(part).collect()
}

/// The bytes that go over the wire: entities and messages carry theirs as text.
pub(crate) fn wire_bytes(kind: Kind, value: &[Part]) -> Vec<u8> {
    match kind {
        Kind::Entity | Kind::Message => STANDARD.encode(bytes(value)).into_bytes(),
        _ => bytes(value),
    }
}

/// All that was ever stored under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    /// Acknowledged states, the latest last.
    pub(crate) history: Vec<Option<Value>>,
    /// A change that was sent and not answered.
    pub(crate) open: Option<Option<Value>>,
    /// Its last change was acknowledged so shortly before a kill that it may be in the last group of the
    /// journal.
    pub(crate) is_last: bool,
}

impl Default for Fate {
    fn default() -> Self {
        Fate { history: vec![None], open: None, is_last: false }
    }
}

impl Fate {
    pub(crate) fn now(&self) -> Option<&Value> {
        self.history.last().and_then(Option::as_ref)
    }

    pub(crate) fn acknowledge(&mut self, state: Option<Value>) {
        self.history.push(state);
        self.open = None;
    }
}

/// What an answer is worth.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Right,
    /// The last acknowledged write before a kill is missing; only right if the log has a warning about it.
    LastMissing,
    /// An error of the server, with a body.
    Loud(String),
    /// The connection ended within the answer.
    Cut(String),
    Older,
    Wrong(String),
    /// Nothing is there though there must be.
    Missing,
    /// A deleted thing is there.
    Back,
    /// No answer in time.
    Hang,
    /// The process is gone.
    Crash,
}

impl Verdict {
    pub(crate) fn is_loud(&self) -> bool {
        matches!(self, Verdict::Loud(_) | Verdict::Cut(_))
    }

    pub(crate) fn is_failure(&self) -> bool {
        !self.is_loud() && !matches!(self, Verdict::Right | Verdict::LastMissing)
    }
}

/// Judges what a read found (`None`: nothing is there).
pub(crate) fn judge(kind: Kind, fate: &Fate, found: Option<&[u8]>) -> Verdict {
    let is = |state: &Option<Value>| match (state, found) {
        (None, None) => true,
        (Some(value), Some(found)) => wire_bytes(kind, value) == found,
        _ => false,
    };
    judge_state(fate, found.is_some(), is, found.map_or(0, <[u8]>::len))
}

/// Judges a listing, which only says whether a thing is there.
pub(crate) fn judge_presence(fate: &Fate, is_there: bool) -> Verdict {
    judge_state(fate, is_there, |state| state.is_some() == is_there, 0)
}

fn judge_state(fate: &Fate, is_there: bool, is: impl Fn(&Option<Value>) -> bool, size: usize) -> Verdict {
    let (now, former) = match fate.history.split_last() {
        Some((now, former)) => (now, former),
        None => (&None, &[][..]),
    };
    if is(now) || fate.open.as_ref().is_some_and(&is) {
        return Verdict::Right;
    }
    if fate.is_last && former.last().is_some_and(&is) {
        return Verdict::LastMissing;
    }
    match (now, is_there) {
        (Some(_), false) => Verdict::Missing,
        (_, true) if !former.iter().any(is) => Verdict::Wrong(format!("{size} bytes that nobody wrote")),
        (None, _) => Verdict::Back,
        (Some(_), true) => Verdict::Older,
    }
}

/// Every key of a folder and its fate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) keys: BTreeMap<Key, Fate>,
}

impl Model {
    pub(crate) fn fate(&mut self, key: &Key) -> &mut Fate {
        self.keys.entry(key.clone()).or_default()
    }

    /// A container goes, and all in it.
    pub(crate) fn delete_container(&mut self, kind: Kind, container: &str) {
        for (key, fate) in &mut self.keys {
            let is_it = key.kind == kind || Some(key.kind) == kind.inner();
            if is_it && key.container == container && fate.now().is_some() {
                fate.acknowledge(None);
            }
        }
    }

    /// Names of the containers of a kind that are there.
    pub(crate) fn containers(&self, kind: Kind) -> impl Iterator<Item = &str> {
        let here = self.keys.iter().filter(move |(key, fate)| key.kind == kind && fate.now().is_some());
        here.map(|(key, _)| key.container.as_str())
    }

    /// Names of the containers of a kind that are there or were.
    pub(crate) fn known_containers(&self, kind: Kind) -> impl Iterator<Item = &str> {
        let known = self.keys.keys().filter(move |key| key.kind == kind);
        known.map(|key| key.container.as_str())
    }

    /// Keys inside a container.
    pub(crate) fn inside<'a>(
        &'a self,
        kind: Kind,
        container: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Fate)> {
        self.keys.iter().filter(move |(key, _)| key.kind == kind && key.container == container)
    }

    pub(crate) fn to_json(&self) -> Json {
        let value = |value: &Option<Value>| match value {
            None => Json::Null,
            Some(parts) => parts.iter().map(|part| json!([part.seed, part.size])).collect(),
        };
        let fate = |(key, fate): (&Key, &Fate)| {
            let history: Vec<Json> = fate.history.iter().map(value).collect();
            let open: Vec<Json> = fate.open.iter().map(value).collect();
            let names = [key.kind.name(), &key.container, &key.partition, &key.name];
            json!([names, history, open, fate.is_last])
        };
        self.keys.iter().map(fate).collect()
    }

    pub(crate) fn parse(json: &Json) -> Outcome<Self> {
        let mut model = Model::default();
        for entry in json.as_array().ok_or("a model is a list")? {
            let (key, fate) =
                parse_entry(entry).ok_or_else(|| format!("not an entry of a model: {entry}"))?;
            model.keys.insert(key, fate);
        }
        Ok(model)
    }
}

fn parse_entry(entry: &Json) -> Option<(Key, Fate)> {
    let name = |index: usize| entry[0][index].as_str();
    let key = Key::inside(Kind::parse(name(0)?)?, name(1)?, name(2)?, name(3)?);
    let states = |list: &Json| list.as_array()?.iter().map(parse_state).collect::<Option<Vec<_>>>();
    let (history, open) = (states(&entry[1])?, states(&entry[2])?.pop());
    Some((key, Fate { history, open, is_last: entry[3].as_bool()? }))
}

fn parse_state(json: &Json) -> Option<Option<Value>> {
    if json.is_null() {
        return Some(None);
    }
    let part = |part: &Json| Some(Part { seed: part[0].as_u64()?, size: part[1].as_u64()? as usize });
    json.as_array()?.iter().map(part).collect::<Option<Value>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(seed: u64) -> Option<Value> {
        Some(vec![Part { seed, size: 20 }])
    }

    fn fate(history: &[Option<Value>]) -> Fate {
        Fate { history: history.to_vec(), ..Fate::default() }
    }

    fn judged(fate: &Fate, found: &Option<Value>) -> Verdict {
        let found = found.as_ref().map(|found| wire_bytes(Kind::Entity, found));
        judge(Kind::Entity, fate, found.as_deref())
    }

    /// A judge that takes an older value or a lost row for right would pass any server.
    #[test]
    fn only_the_present_state_is_right() {
        let present = fate(&[None, value(1), None, value(2)]);
        assert_eq!(judged(&present, &value(2)), Verdict::Right);
        assert_eq!(judged(&present, &value(1)), Verdict::Older);
        assert_eq!(judged(&present, &None), Verdict::Missing);
        assert!(matches!(judged(&present, &value(3)), Verdict::Wrong(_)));
        let deleted = fate(&[None, value(1), None]);
        assert_eq!(judged(&deleted, &None), Verdict::Right);
        assert_eq!(judged(&deleted, &value(1)), Verdict::Back);
        assert!(matches!(judged(&deleted, &value(2)), Verdict::Wrong(_)));
    }

    #[test]
    fn what_was_sent_last_may_be_there_and_what_was_acknowledged_last_is_marked() {
        let open = Fate { open: Some(value(2)), ..fate(&[None, value(1)]) };
        assert_eq!(judged(&open, &value(1)), Verdict::Right);
        assert_eq!(judged(&open, &value(2)), Verdict::Right);
        assert_eq!(judged(&open, &None), Verdict::Missing);
        let last = Fate { is_last: true, ..fate(&[None, value(1), value(2), value(3)]) };
        assert_eq!(judged(&last, &value(3)), Verdict::Right);
        assert_eq!(judged(&last, &value(2)), Verdict::LastMissing);
        assert_eq!(judged(&last, &value(1)), Verdict::Older);
        assert_eq!(judge_presence(&open, false), Verdict::Missing);
        assert_eq!(judge_presence(&fate(&[None, value(1), None]), true), Verdict::Back);
    }

    #[test]
    fn a_model_comes_back_from_its_text() {
        let mut model = Model::default();
        let key = Key::inside(Kind::Blob, "c", "", "b");
        model.fate(&Key::container(Kind::Container, "c")).acknowledge(Some(Vec::new()));
        model.fate(&key).acknowledge(Some(vec![Part { seed: u64::MAX, size: 7 }, Part { seed: 0, size: 9 }]));
        model.fate(&key).open = Some(None);
        let text = model.to_json().to_string();
        assert_eq!(Model::parse(&serde_json::from_str(&text).unwrap()).unwrap(), model);
        model.delete_container(Kind::Container, "c");
        assert!(model.keys.values().all(|fate| fate.now().is_none()));
    }
}
