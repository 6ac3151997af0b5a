//! Data folders to damage, one for each kind of stop, filled by several writers over the services, through
//! two restarts, so that there are checkpoints, sealed extents and used journal segments. What always holds:
//! each key belongs to one writer, which has one request under way; every key is overwritten or deleted at
//! least twice.

use super::clients::{Addresses, Clients, put_message_answer};
use super::model::{Fate, Key, Kind, Model, Part, Value};
use crate::Outcome;
use crate::client::http_client::Answer;
use crate::client::server_process::ServerProcess;
use base::random::splitmix64;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Memory tables of 1.6 MiB, so that a small folder has checkpoints.
pub(crate) const SERVER_FLAGS: [&str; 6] =
    ["--memory-budget", "64MiB", "--cache-share", "90", "--pin-workers", "false"];
pub(crate) const WRITER_COUNT: usize = 8;
const CONTAINERS_OF_A_KIND: usize = 4;
const PARTITIONS_OF_A_TABLE: usize = 6;
const ROWS_OF_A_PARTITION: usize = 24;
const ENTITY_SIZE_BYTES_MIN: u64 = 75;
const ENTITY_SIZE_BYTES_MAX: u64 = 3 << 10;
/// First letters of blobs' names and how many of each a container has: in the row, large, page blobs, append
/// blobs.
const BLOBS_OF_A_CONTAINER: [(char, usize); 4] = [('s', 12), ('l', 3), ('p', 2), ('a', 2)];
const MESSAGES_OF_A_ROUND: usize = 10;
/// As many as one request peeks at.
const MESSAGES_OF_A_QUEUE_MAX: usize = 28;
const MESSAGE_SIZE_BYTES_MAX: u64 = 2 << 10;
const DELETED_ONE_IN: u64 = 5;
const IDLE_FOR: Duration = Duration::from_millis(100);
const LOAD_FOR: Duration = Duration::from_millis(250);
/// Containers that are deleted: one long before the end, one in the server's last life.
const GONE: &str = "gone";
const GONE_LAST: &str = "gonelast";
const KINDS_OF_CONTAINERS: [Kind; 3] = [Kind::Table, Kind::Queue, Kind::Container];

/// How the server of a folder was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Clean,
    /// `kill -9` after a time in which nothing was asked.
    IdleKill,
    /// `kill -9` between requests of all writers.
    LoadKill,
    /// `kill -9` as soon as a last, lonely write is answered: nothing that follows it says that it was whole.
    AnswerKill,
}

pub(crate) const STOPS: [Stop; 4] = [Stop::Clean, Stop::IdleKill, Stop::LoadKill, Stop::AnswerKill];

impl Stop {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stop::Clean => "clean stop",
            Stop::IdleKill => "kill when idle",
            Stop::LoadKill => "kill under load",
            Stop::AnswerKill => "kill after an answer",
        }
    }

    /// Of its folder beside the others.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Stop::Clean => "clean",
            Stop::IdleKill => "idle-kill",
            Stop::LoadKill => "load-kill",
            Stop::AnswerKill => "answer-kill",
        }
    }
}

/// Fills `data`, stops its server as asked for, and says what must be there.
pub(crate) fn build(
    binary: &Path,
    data: &Path,
    stop: Stop,
    large_blob_bytes_max: u64,
    seed: u64,
) -> Outcome<Model> {
    let start = || ServerProcess::start_larimar_with(binary, data, &SERVER_FLAGS);
    let mut writers: Vec<Writer> =
        (0..WRITER_COUNT).map(|number| Writer::new(number, seed, large_blob_bytes_max)).collect();
    let mut containers = Model::default();

    let server = start()?;
    let mut clients = Clients::connect(Addresses::of(&server)?)?;
    for kind in KINDS_OF_CONTAINERS {
        for name in container_names(kind).chain([GONE.to_owned(), GONE_LAST.to_owned()]) {
            let answer = clients.create_container(kind, &name)?;
            expect(&answer, &[201, 204], &name)?;
            containers.fate(&Key::container(kind, &name)).acknowledge(Some(Vec::new()));
        }
    }
    fill(&mut clients, &mut containers, GONE)?;
    fill(&mut clients, &mut containers, GONE_LAST)?;
    write_rounds(&mut writers, &server, 2)?;
    end(server, Stop::Clean)?;

    let server = start()?;
    delete(&mut Clients::connect(Addresses::of(&server)?)?, &mut containers, GONE)?;
    write_rounds(&mut writers, &server, 1)?;
    end(server, Stop::IdleKill)?;

    let server = start()?;
    let mut clients = Clients::connect(Addresses::of(&server)?)?;
    fill(&mut clients, &mut containers, GONE_LAST)?;
    write_rounds(&mut writers, &server, 1)?;
    delete(&mut clients, &mut containers, GONE_LAST)?;
    drop(clients);
    match stop {
        Stop::LoadKill => kill_under_load(&mut writers, server)?,
        Stop::AnswerKill => kill_after_answer(&mut writers[0], server)?,
        stop => end(server, stop)?,
    }
    for writer in writers {
        containers.keys.extend(writer.model.keys);
    }
    Ok(containers)
}

/// Names that the services take: tables have no hyphens.
fn container_names(kind: Kind) -> impl Iterator<Item = String> {
    let count = if kind == Kind::Queue { WRITER_COUNT } else { CONTAINERS_OF_A_KIND };
    (0..count).map(move |number| format!("damage{number}"))
}

/// Puts something into containers that will be deleted.
fn fill(clients: &mut Clients, model: &mut Model, name: &str) -> Outcome<()> {
    for number in 0..4 {
        let value = vec![Part { seed: 1000 + number + model.keys.len() as u64, size: 500 }];
        let entity = Key::inside(Kind::Entity, name, "p", &number.to_string());
        expect(&clients.put_entity(&entity, &value)?, &[204], &name)?;
        model.fate(&entity).acknowledge(Some(value.clone()));
        let blob = Key::inside(Kind::Blob, name, "", &format!("s{number}"));
        expect(&clients.put_blob(&blob, &value)?, &[201], &name)?;
        model.fate(&blob).acknowledge(Some(value.clone()));
        let answer = clients.put_message(name, &value)?;
        expect(&answer, &[201], &name)?;
        let message = Key::inside(Kind::Message, name, "", &put_message_answer(&answer).0);
        model.fate(&message).acknowledge(Some(value));
    }
    Ok(())
}

fn delete(clients: &mut Clients, model: &mut Model, name: &str) -> Outcome<()> {
    for kind in KINDS_OF_CONTAINERS {
        let answer = clients.delete_container(kind, name)?;
        expect(&answer, &[202, 204], &name)?;
        model.delete_container(kind, name);
    }
    Ok(())
}

fn expect(answer: &Answer, statuses: &[u16], what: &dyn std::fmt::Display) -> Outcome<()> {
    match statuses.contains(&answer.status) {
        true => Ok(()),
        false => Err(format!("{what}: {} {}", answer.status, answer.text()).into()),
    }
}

fn end(server: ServerProcess, stop: Stop) -> Outcome<()> {
    if stop == Stop::Clean {
        let status = server.terminate()?;
        return if status.success() { Ok(()) } else { Err(format!("after SIGTERM: {status}").into()) };
    }
    std::thread::sleep(IDLE_FOR);
    server.kill()
}

fn write_rounds(writers: &mut [Writer], server: &ServerProcess, count: usize) -> Outcome<()> {
    let addresses = Addresses::of(server)?;
    std::thread::scope(|scope| {
        let running: Vec<_> = writers
            .iter_mut()
            .map(|writer| scope.spawn(move || writer.write_rounds(addresses, count)))
            .collect();
        running.into_iter().try_for_each(|thread| thread.join().expect("a writer panicked"))
    })
}

fn kill_under_load(writers: &mut [Writer], server: ServerProcess) -> Outcome<()> {
    let addresses = Addresses::of(&server)?;
    let killed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let killed = &killed;
        let running: Vec<_> = writers
            .iter_mut()
            .map(|writer| scope.spawn(move || writer.write_until_killed(addresses, killed)))
            .collect();
        std::thread::sleep(LOAD_FOR);
        killed.store(true, Ordering::SeqCst);
        let outcome = server.kill();
        let written: Outcome<()> =
            running.into_iter().try_for_each(|thread| thread.join().expect("a writer panicked"));
        written.and(outcome)
    })
}

fn kill_after_answer(writer: &mut Writer, server: ServerProcess) -> Outcome<()> {
    let mut clients = Clients::connect(Addresses::of(&server)?)?;
    let key = writer.keys.iter().find(|key| key.kind == Kind::Entity).ok_or("no entity")?.clone();
    let value = vec![writer.part(ENTITY_SIZE_BYTES_MIN, ENTITY_SIZE_BYTES_MAX)];
    let answer = clients.put_entity(&key, &value)?;
    server.kill()?;
    expect(&answer, &[204], &key)?;
    let fate = writer.model.fate(&key);
    fate.acknowledge(Some(value));
    fate.is_last = true;
    Ok(())
}

/// Changes keys that nobody else changes.
struct Writer {
    queue: String,
    keys: Vec<Key>,
    model: Model,
    /// Of messages that are there.
    receipts: BTreeMap<Key, String>,
    large_blob_bytes_max: u64,
    random: u64,
}

impl Writer {
    fn new(number: usize, seed: u64, large_blob_bytes_max: u64) -> Self {
        let mut keys = Vec::new();
        for table in container_names(Kind::Table) {
            for partition in 0..PARTITIONS_OF_A_TABLE {
                let row = |row: usize| {
                    Key::inside(Kind::Entity, &table, &format!("p{partition}"), &format!("r{row:03}"))
                };
                keys.extend((0..ROWS_OF_A_PARTITION).map(row));
            }
        }
        for container in container_names(Kind::Container) {
            for (letter, count) in BLOBS_OF_A_CONTAINER {
                let blob =
                    |index: usize| Key::inside(Kind::Blob, &container, "", &format!("{letter}{index:02}"));
                keys.extend((0..count).map(blob));
            }
        }
        let mine = keys.into_iter().enumerate().filter(|(index, _)| index % WRITER_COUNT == number);
        Writer {
            queue: format!("damage{number}"),
            keys: mine.map(|(_, key)| key).collect(),
            model: Model::default(),
            receipts: BTreeMap::new(),
            large_blob_bytes_max,
            random: seed ^ (number as u64 + 1).wrapping_mul(0xD1B5_4A32_D192_ED03),
        }
    }

    fn write_rounds(&mut self, addresses: Addresses, count: usize) -> Outcome<()> {
        let mut clients = Clients::connect(addresses)?;
        for _ in 0..count {
            for index in 0..self.keys.len() {
                let key = self.keys[index].clone();
                self.change(&mut clients, &key)??;
            }
            self.change_messages(&mut clients)?;
        }
        Ok(())
    }

    fn write_until_killed(&mut self, addresses: Addresses, killed: &AtomicBool) -> Outcome<()> {
        let mut clients = Clients::connect(addresses)?;
        let mut last = None;
        loop {
            let key = self.keys[splitmix64(&mut self.random) as usize % self.keys.len()].clone();
            match self.change(&mut clients, &key)? {
                Ok(()) => last = Some(key),
                Err(_) if killed.load(Ordering::SeqCst) => break,
                Err(error) => return Err(format!("{key}: {error}").into()),
            }
        }
        if let Some(last) = last {
            self.model.fate(&last).is_last = true;
        }
        Ok(())
    }

    fn part(&mut self, least: u64, most: u64) -> Part {
        let size = (least + splitmix64(&mut self.random) % (most - least)) as usize;
        Part { seed: splitmix64(&mut self.random) | 1, size }
    }

    /// One change of a key. A refusal is the outer error, no answer the inner one.
    fn change(&mut self, clients: &mut Clients, key: &Key) -> Outcome<io::Result<()>> {
        let now = self.model.fate(key).now().cloned();
        let deletes = now.is_some() && splitmix64(&mut self.random).is_multiple_of(DELETED_ONE_IN);
        let (state, answer): (Option<Value>, _) = match (key.kind, deletes) {
            (Kind::Entity, true) => (None, clients.delete_entity(key)),
            (Kind::Entity, false) => {
                let value = vec![self.part(ENTITY_SIZE_BYTES_MIN, ENTITY_SIZE_BYTES_MAX)];
                let answer = clients.put_entity(key, &value);
                (Some(value), answer)
            }
            (_, true) => (None, clients.delete_blob(key)),
            (_, false) => {
                let size_max = self.large_blob_bytes_max;
                let (value, answer) = clients.change_blob(key, now.as_ref(), size_max, &mut self.random);
                (Some(value), answer)
            }
        };
        let fate = self.model.fate(key);
        match answer {
            Ok(answer) => {
                expect(&answer, &[201, 202, 204], key)?;
                fate.acknowledge(state);
                Ok(Ok(()))
            }
            Err(error) => {
                fate.open = Some(state);
                Ok(Err(error))
            }
        }
    }

    /// Puts some messages, gives some another text twice, deletes some.
    fn change_messages(&mut self, clients: &mut Clients) -> Outcome<()> {
        for _ in 0..MESSAGES_OF_A_ROUND {
            let value = vec![self.part(10, MESSAGE_SIZE_BYTES_MAX)];
            let answer = clients.put_message(&self.queue, &value)?;
            expect(&answer, &[201], &self.queue)?;
            let (id, receipt) = put_message_answer(&answer);
            let key = Key::inside(Kind::Message, &self.queue, "", &id);
            self.model.fate(&key).acknowledge(Some(value));
            self.receipts.insert(key, receipt);
        }
        for key in self.receipts.keys().cloned().collect::<Vec<_>>() {
            for _ in 0..2 {
                let value = vec![self.part(10, MESSAGE_SIZE_BYTES_MAX)];
                let answer = clients.update_message(&key, &self.receipts[&key], &value)?;
                expect(&answer, &[204], &key)?;
                let receipt = answer.header("x-ms-popreceipt").ok_or("an update without a receipt")?;
                self.receipts.insert(key.clone(), receipt.to_owned());
                self.model.fate(&key).acknowledge(Some(value));
            }
            let is_full = self.receipts.len() > MESSAGES_OF_A_QUEUE_MAX;
            if is_full || splitmix64(&mut self.random).is_multiple_of(3) {
                let receipt = self.receipts.remove(&key).unwrap_or_default();
                expect(&clients.delete_message(&key, &receipt)?, &[204], &key)?;
                self.model.fate(&key).acknowledge(None);
            }
        }
        Ok(())
    }
}

/// Whether all keys that writers change were overwritten or deleted at least twice.
pub(crate) fn is_worn(model: &Model) -> bool {
    let is_gone = |key: &Key| [GONE, GONE_LAST].contains(&key.container.as_str());
    let worn = |(key, fate): (&Key, &Fate)| is_gone(key) || fate.history.len() > 3;
    model.keys.iter().filter(|(key, _)| matches!(key.kind, Kind::Entity | Kind::Blob)).all(worn)
}
