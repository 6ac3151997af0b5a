//! `kill -9` under uploads, again and again: afterwards each blob is byte for byte what was acknowledged, or
//! that with the one unanswered change applied as a whole; its staged blocks are those of the same state;
//! nothing else is listed.
//!
//! A killed process keeps what the operating system has in memory, so this proves ordering and recovery; that
//! bytes are on the disk before they are acknowledged is proved on the simulated disk.

use crate::bench::queues::element;
use crate::client::content::content;
use crate::client::server_process::ServerProcess;
use crate::client::service_client::ServiceClient;
use crate::{Outcome, workspace};
use base::random::splitmix64;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const CONTAINER: &str = "kills";
const CONTENT_TYPE: &str = "application/octet-stream";
/// Blobs of one uploader.
const BLOB_COUNT: usize = 4;
const SIZE_BYTES_MAX: u64 = 2 << 20;
/// One size of so many is small enough for a row.
const SMALL_ONE_IN: u64 = 2;
const SMALL_SIZE_BYTES_MAX: u64 = 9 << 10;
const STAGED_BLOCKS_MAX: usize = 8;
const KILL_AFTER_MS_MIN: u64 = 300;
const KILL_AFTER_MS_MAX: u64 = 2000;
/// One round of this many lives so long that its space is being collected when it is killed.
const LONG_ROUND_ONE_IN: usize = 4;
const LONG_ROUND_MS: u64 = 10_000;

#[derive(clap::Args)]
pub(crate) struct BlobKillArguments {
    /// How often to kill.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Concurrent uploaders, each with blobs and a connection of its own.
    #[arg(long, default_value_t = 32)]
    uploaders: usize,
    /// Seed of the changes and the instants; else a new one, printed.
    #[arg(long)]
    seed: Option<u64>,
    /// The server to kill; else this checkout's, built now.
    #[arg(long)]
    bin: Option<PathBuf>,
}

impl BlobKillArguments {
    /// What each test run does.
    pub(crate) fn short(bin: PathBuf) -> Self {
        Self { rounds: 3, uploaders: 32, seed: None, bin: Some(bin) }
    }
}

pub(crate) fn run(arguments: &BlobKillArguments) -> Outcome<()> {
    let binary = workspace::server_binary(arguments.bin.as_deref())?;
    let scratch = workspace::Scratch::create("kill9-blobs")?;
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => u64::from(std::process::id()) ^ std::time::UNIX_EPOCH.elapsed()?.as_nanos() as u64,
    };
    println!("kill -9 of blobs: {} rounds, {} uploaders, seed {seed}", arguments.rounds, arguments.uploaders);
    let outcome = run_rounds(arguments, seed, &binary, &scratch.path().join("data"));
    if outcome.is_err() {
        println!("kill -9 of blobs: the data folder is kept in {}", scratch.keep().display());
    }
    outcome
}

fn connect(address: SocketAddr) -> std::io::Result<ServiceClient> {
    ServiceClient::connect(address, CONTENT_TYPE)
}

fn start(binary: &Path, data: &Path) -> Outcome<(ServerProcess, SocketAddr)> {
    let server = ServerProcess::start_larimar(binary, data)?;
    let address = server.blob_address.ok_or("the server has no blob service")?;
    Ok((server, address))
}

fn run_rounds(arguments: &BlobKillArguments, seed: u64, binary: &Path, data: &Path) -> Outcome<()> {
    let mut random = seed;
    let mut uploaders: Vec<Uploader> =
        (0..arguments.uploaders).map(|number| Uploader::new(number, seed)).collect();
    let (mut server, mut address) = start(binary, data)?;
    connect(address)?.expect("PUT", CONTAINER, &[("restype", "container")], &[], b"", &[201])?;
    let mut acknowledged = 0;
    for round in 1..=arguments.rounds {
        let longer_ms = if round.is_multiple_of(LONG_ROUND_ONE_IN) { LONG_ROUND_MS } else { 0 };
        let kill_after_ms =
            longer_ms + KILL_AFTER_MS_MIN + splitmix64(&mut random) % (KILL_AFTER_MS_MAX - KILL_AFTER_MS_MIN);
        let killed = AtomicBool::new(false);
        let before = Tally::total(&uploaders);
        std::thread::scope(|scope| {
            let killed = &killed;
            let running: Vec<_> = uploaders
                .iter_mut()
                .map(|uploader| scope.spawn(move || uploader.upload_until_killed(address, killed)))
                .collect();
            std::thread::sleep(Duration::from_millis(kill_after_ms));
            killed.store(true, Ordering::SeqCst);
            let outcome = server.kill();
            let uploaded: Outcome<()> =
                running.into_iter().try_for_each(|thread| thread.join().expect("no panic"));
            uploaded.and(outcome)
        })?;
        (server, address) = start(binary, data)?;
        verify(&mut uploaders, address)?;
        let after = Tally::total(&uploaders);
        println!(
            "round {round}: killed after {kill_after_ms} ms, {} changes acknowledged ({} commits), {} MiB read back, \
             unanswered ones: {} applied, {} not",
            after.acknowledged - before.acknowledged,
            after.commits - before.commits,
            (after.read_bytes - before.read_bytes) >> 20,
            after.unanswered_applied - before.unanswered_applied,
            after.unanswered_lost - before.unanswered_lost,
        );
        if after.acknowledged == before.acknowledged {
            return Err("nothing was acknowledged, so nothing was tested".into());
        }
        acknowledged = after.acknowledged;
    }
    let status = server.terminate()?;
    if !status.success() {
        return Err(format!("after SIGTERM the server ended with {status}").into());
    }
    println!(
        "kill -9 of blobs: {} rounds fine, {acknowledged} changes acknowledged, every blob whole; seed {seed}",
        arguments.rounds
    );
    Ok(())
}

fn verify(uploaders: &mut [Uploader], address: SocketAddr) -> Outcome<()> {
    let verified: Outcome<()> = std::thread::scope(|scope| {
        let running: Vec<_> =
            uploaders.iter_mut().map(|uploader| scope.spawn(move || uploader.verify(address))).collect();
        running.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    });
    verified?;
    let mut known = BTreeSet::new();
    for uploader in uploaders {
        let there = uploader.blobs.iter().filter(|blob| !blob.state.is_nothing());
        known.extend(there.map(|blob| blob.name.clone()));
    }
    let parameters = [("comp", "list"), ("include", "uncommittedblobs"), ("restype", "container")];
    let page = connect(address)?.expect("GET", CONTAINER, &parameters, &[], b"", &[200])?.text();
    let listed: BTreeSet<String> =
        page.split("<Blob>").skip(1).map(|blob| element(blob.as_bytes(), "Name").to_owned()).collect();
    if listed == known {
        return Ok(());
    }
    Err(format!("listed is {listed:?}, known is {known:?}").into())
}

/// Ids and sizes of committed and of staged blocks.
type Lists = (Vec<(String, u64)>, Vec<(String, u64)>);

/// Bytes of a blob that were written together.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    /// Empty: it was not put as a block.
    id: String,
    seed: u64,
    size: u64,
}

/// All that is stored under a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    committed: Option<Vec<Block>>,
    staged: BTreeMap<String, Block>,
}

#[derive(Clone, Debug)]
enum Change {
    Put(Block),
    Stage(Block),
    /// The ids of the list, each the latest.
    Commit(Vec<String>),
    Delete,
}

impl State {
    fn is_nothing(&self) -> bool {
        self.committed.is_none() && self.staged.is_empty()
    }

    fn changed(&self, change: &Change) -> State {
        let mut next = self.clone();
        match change {
            Change::Stage(block) => drop(next.staged.insert(block.id.clone(), block.clone())),
            Change::Put(block) => {
                next = State { committed: Some(vec![block.clone()]), staged: BTreeMap::new() };
            }
            Change::Delete => next = State::default(),
            Change::Commit(ids) => {
                let committed = self.committed.iter().flatten();
                let latest = |id: &String| {
                    let staged = self.staged.get(id);
                    staged.or_else(|| committed.clone().find(|block| block.id == *id)).cloned()
                };
                next = State {
                    committed: Some(ids.iter().filter_map(latest).collect()),
                    staged: BTreeMap::new(),
                };
            }
        }
        next
    }

    /// A change that makes sense here.
    fn choose_change(&self, random: &mut u64, next_id: &mut u64) -> Change {
        let seed = splitmix64(random);
        let size_max = if splitmix64(random).is_multiple_of(SMALL_ONE_IN) {
            SMALL_SIZE_BYTES_MAX
        } else {
            SIZE_BYTES_MAX
        };
        let size = 1 + splitmix64(random) % size_max;
        match splitmix64(random) % 16 {
            0..4 => Change::Put(Block { id: String::new(), seed, size }),
            4 if self.committed.is_some() => Change::Delete,
            5..8 if !self.staged.is_empty() => self.choose_commit(random),
            _ if self.staged.len() >= STAGED_BLOCKS_MAX => self.choose_commit(random),
            _ => {
                *next_id += 1;
                // Sometimes a block is staged again.
                let again = self.staged.keys().next().filter(|_| seed.is_multiple_of(5)).cloned();
                Change::Stage(Block {
                    id: again.unwrap_or(format!("b{:05}", *next_id % 100_000)),
                    seed,
                    size,
                })
            }
        }
    }

    /// Some of the blocks that were committed before, and all that are staged.
    fn choose_commit(&self, random: &mut u64) -> Change {
        let kept = self.committed.iter().flatten().filter(|block| !block.id.is_empty());
        let mut ids: Vec<String> =
            kept.map(|block| block.id.clone()).filter(|_| splitmix64(random).is_multiple_of(2)).collect();
        ids.retain(|id| !self.staged.contains_key(id));
        ids.extend(self.staged.keys().cloned());
        Change::Commit(ids)
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        let blocks = self.committed.as_ref()?;
        Some(blocks.iter().flat_map(|block| content(block.seed, block.size as usize)).collect())
    }

    /// As a block list tells them.
    fn lists(&self) -> Lists {
        let pair = |block: &Block| (block.id.clone(), block.size);
        let committed = self.committed.iter().flatten().filter(|block| !block.id.is_empty());
        (committed.map(pair).collect(), self.staged.values().map(pair).collect())
    }
}

#[derive(Clone, Copy, Default)]
struct Tally {
    acknowledged: u64,
    commits: u64,
    unanswered_applied: u64,
    unanswered_lost: u64,
    read_bytes: u64,
}

impl Tally {
    fn total(uploaders: &[Uploader]) -> Tally {
        let mut total = Tally::default();
        for Uploader { tally, .. } in uploaders {
            total.acknowledged += tally.acknowledged;
            total.commits += tally.commits;
            total.unanswered_applied += tally.unanswered_applied;
            total.unanswered_lost += tally.unanswered_lost;
            total.read_bytes += tally.read_bytes;
        }
        total
    }
}

struct Blob {
    name: String,
    state: State,
    unanswered: Option<Change>,
}

impl Blob {
    fn path(&self) -> String {
        format!("{CONTAINER}/{}", self.name)
    }
}

/// Changes blobs that nobody else changes.
struct Uploader {
    blobs: Vec<Blob>,
    random: u64,
    next_id: u64,
    tally: Tally,
}

impl Uploader {
    fn new(number: usize, seed: u64) -> Self {
        let blob =
            |index| Blob { name: format!("u{number:02}/{index}"), state: State::default(), unanswered: None };
        Self {
            blobs: (0..BLOB_COUNT).map(blob).collect(),
            random: seed ^ (number as u64 + 1).wrapping_mul(0xD1B5_4A32_D192_ED03),
            next_id: 0,
            tally: Tally::default(),
        }
    }

    fn upload_until_killed(&mut self, address: SocketAddr, killed: &AtomicBool) -> Outcome<()> {
        let killed = || killed.load(Ordering::SeqCst);
        let mut client = match connect(address) {
            Err(_) if killed() => return Ok(()),
            client => client?,
        };
        while !killed() {
            let index = splitmix64(&mut self.random) as usize % BLOB_COUNT;
            let blob = &mut self.blobs[index];
            let change = blob.state.choose_change(&mut self.random, &mut self.next_id);
            blob.unanswered = Some(change.clone());
            match send(&mut client, &blob.path(), &change) {
                Ok((status, _)) if status == 201 || status == 202 => {
                    blob.state = blob.state.changed(&change);
                    blob.unanswered = None;
                    self.tally.acknowledged += 1;
                    self.tally.commits += u64::from(matches!(change, Change::Commit(_)));
                }
                Ok((status, text)) => return Err(format!("{change:?}: {status} {text}").into()),
                Err(_) if killed() => return Ok(()),
                Err(error) => return Err(format!("{change:?}: {error}").into()),
            }
        }
        Ok(())
    }

    fn verify(&mut self, address: SocketAddr) -> Outcome<()> {
        let mut client = connect(address)?;
        for blob in &mut self.blobs {
            let found = Found::read(&mut client, &blob.path())?;
            self.tally.read_bytes += found.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
            let changed = blob.unanswered.take().map(|change| blob.state.changed(&change));
            if found.is(&blob.state) {
                self.tally.unanswered_lost += u64::from(changed.is_some());
            } else if let Some(changed) = changed.filter(|changed| found.is(changed)) {
                self.tally.unanswered_applied += 1;
                blob.state = changed;
            } else {
                return Err(
                    format!("{} is neither what was acknowledged nor what was sent last", blob.name).into()
                );
            }
            // Staged blocks are there with the right bytes if a list of them says so.
            if !blob.state.staged.is_empty() && splitmix64(&mut self.random).is_multiple_of(2) {
                let change = blob.state.choose_commit(&mut self.random);
                let (status, text) = send(&mut client, &blob.path(), &change)?;
                if status != 201 {
                    return Err(format!("{}: {change:?}: {status} {text}", blob.name).into());
                }
                blob.state = blob.state.changed(&change);
                if !Found::read(&mut client, &blob.path())?.is(&blob.state) {
                    return Err(format!("{}: staged blocks have other bytes", blob.name).into());
                }
            }
        }
        Ok(())
    }
}

fn send(client: &mut ServiceClient, path: &str, change: &Change) -> std::io::Result<(u16, String)> {
    let answer = match change {
        Change::Put(block) => {
            let bytes = content(block.seed, block.size as usize);
            client.send("PUT", path, &[], &[("x-ms-blob-type", "BlockBlob")], &bytes)
        }
        Change::Stage(block) => {
            let bytes = content(block.seed, block.size as usize);
            let id = STANDARD.encode(&block.id);
            client.send("PUT", path, &[("blockid", &id), ("comp", "block")], &[], &bytes)
        }
        Change::Commit(ids) => {
            let mut list = String::from("<BlockList>");
            for id in ids {
                list.push_str(&format!("<Latest>{}</Latest>", STANDARD.encode(id)));
            }
            list.push_str("</BlockList>");
            client.send("PUT", path, &[("comp", "blocklist")], &[], list.as_bytes())
        }
        Change::Delete => client.send("DELETE", path, &[], &[], b""),
    }?;
    Ok((answer.status, answer.text()))
}

/// What the server says is stored under a name.
struct Found {
    bytes: Option<Vec<u8>>,
    lists: Lists,
}

impl Found {
    fn read(client: &mut ServiceClient, path: &str) -> Outcome<Self> {
        let answer = client.send("GET", path, &[], &[], b"")?;
        let bytes = match answer.status {
            200 => Some(answer.body),
            404 => None,
            status => return Err(format!("GET {path}: {status} {}", answer.text()).into()),
        };
        let parameters = [("blocklisttype", "all"), ("comp", "blocklist")];
        let answer = client.expect("GET", path, &parameters, &[], b"", &[200, 404])?;
        if answer.status == 404 {
            return Ok(Found { bytes, lists: Default::default() });
        }
        let text = answer.text();
        let (committed, staged) = text.split_once("<UncommittedBlocks>").unwrap_or((&text, ""));
        Ok(Found { bytes, lists: (blocks(committed)?, blocks(staged)?) })
    }

    fn is(&self, state: &State) -> bool {
        self.bytes == state.bytes() && self.lists == state.lists()
    }
}

fn blocks(text: &str) -> Outcome<Vec<(String, u64)>> {
    let mut blocks = Vec::new();
    for block in text.split("<Block>").skip(1) {
        let id = STANDARD.decode(element(block.as_bytes(), "Name"))?;
        blocks.push((String::from_utf8(id)?, element(block.as_bytes(), "Size").parse()?));
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_takes_the_latest_and_ends_what_is_staged() {
        let block = |id: &str, seed| Block { id: id.into(), seed, size: 3 };
        let staged = State::default().changed(&Change::Stage(block("b1", 1)));
        assert!(staged.bytes().is_none() && !staged.is_nothing());
        let first = staged.changed(&Change::Commit(vec!["b1".into()]));
        assert_eq!(first.bytes(), Some(content(1, 3)));
        let again = first.changed(&Change::Stage(block("b1", 2))).changed(&Change::Stage(block("b2", 3)));
        let second = again.changed(&Change::Commit(vec!["b2".into(), "b1".into()]));
        assert_eq!(second.bytes(), Some([content(3, 3), content(2, 3)].concat()));
        assert!(second.staged.is_empty());
        assert!(second.changed(&Change::Delete).is_nothing());
    }
}
