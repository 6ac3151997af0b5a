//! The stream manager's log: records (see `record.rs`), the first a snapshot, each other one list of
//! commands. Behind the records are zeros: the file grows before it is needed, because syncing a file that
//! does not grow is many times faster, and because then a full disk refuses a list of commands before
//! anything of it is written.
//!
//! Two files hold the same log: each record is written and synced in the first, then in the second. What one
//! of them has lost is read from the other.
//!
//! ```text
//! stream_manager/log             records, zeros
//!                                body = u8 kind: 0 snapshot of format 1, 2 of formats 2 to 6, 3 snapshot,
//!                                       1 commands (command*)
//! stream_manager/log.second      the same bytes, from format 6 on
//! stream_manager/log.new         the next log, until it replaces the old one
//! stream_manager/log.second.new  the same
//! ```
//!
//! What always holds: a list of commands shows in the state after its record is synced in both. A start
//! begins a new log, in new files or, where there is no space for them, in the old ones (see
//! `restart_in_place.rs`).

use super::log_files::{FOLDER, LogRecovery, PATHS, write_failed};
use super::restart_in_place::{RestartedLog, begin_in_place, restart_in_place};
use super::state::apply::OwnerCheck;
use super::state::codec::StateFormat;
use super::state::{Command, State};
use crate::error::{StreamError, not_made};
use crate::extent_node::read_whole;
use crate::record::{self, EncodedRecord, Record, RecordBuilder, SearchScope};
use crate::settings::StreamSettings;
use crate::space::Space;
use base::codec::{Decoder, Encode};
use base::{Clock, Disk, DiskFile, Environment, OpenMode};
use bytes::Bytes;
use parking_lot::RwLock;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

const PATH: &str = PATHS[0];
const NEW_PATHS: [&str; 2] = ["stream_manager/log.new", "stream_manager/log.second.new"];
const KIND_SNAPSHOT_1: u8 = 0;
const KIND_COMMANDS: u8 = 1;
/// On a disk whose space is scarce the log does not grow if what is needed of it fits into it so many times.
const NEEDED_TIMES_MIN: u64 = 4;
const KIND_SNAPSHOT_2: u8 = 2;
const KIND_SNAPSHOT: u8 = 3;
/// A log of this size is replaced by a snapshot of the state.
const LOG_SIZE_BYTES_MAX: u64 = 8 << 20;
/// And one that has grown so often, as it does in small steps on small disks.
const LOG_GROWTH_COUNT_MAX: u64 = 32;
/// Lists of commands that free space are refused for want of space for so long, one after the other. Then the
/// log begins anew in its place: space may have come meanwhile, and that writes all of it. Not for long,
/// because a deletion waits only some seconds for the room that they would make.
const REFUSED_FOR_MAX: Duration = Duration::from_secs(1);

/// A list of commands that waits for the log.
pub(crate) struct Request {
    pub(crate) commands: Vec<Command>,
    pub(crate) reply: oneshot::Sender<Result<(), StreamError>>,
}

pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    files: [Arc<dyn DiskFile>; 2],
    generation: u64,
    sequence: u64,
    offset: u64,
    /// Where the zeroed part of the file ends.
    grown_to: u64,
    growth_bytes: u64,
    /// Bytes of the next log, for which there was no space when it was tried last.
    refused_size_bytes: u64,
    /// When a list of commands that free space was refused first, since the log had room for one last.
    refused_since: Option<Duration>,
    /// Why nothing can be written any more.
    stopped: Option<StreamError>,
    space: Arc<Space>,
}

/// Lays out a log that begins with `state`.
pub(crate) async fn format(
    env: &Environment,
    settings: &StreamSettings,
    space: &Arc<Space>,
    state: &State,
) -> Result<(), StreamError> {
    env.disk.create_folder(FOLDER).await.map_err(write_failed)?;
    // Unguessable, for the same reason as the journal's.
    let generation = (env.random.next_u64() >> 2) + 1;
    let snapshot = encode_snapshot(state, generation);
    write_snapshot(&env.disk, snapshot, generation, settings.manager_log_growth_bytes, space).await?;
    Ok(())
}

/// The records of a log that holds `state`.
fn encode_snapshot(state: &State, generation: u64) -> EncodedRecord {
    let mut record = RecordBuilder::new();
    record.body().put_u8_field(KIND_SNAPSHOT);
    state.encode(record.body());
    record.finish(generation, 0)
}

/// Writes a new log that begins with a snapshot, and puts it in place.
async fn write_snapshot(
    disk: &Arc<dyn Disk>,
    snapshot: EncodedRecord,
    generation: u64,
    growth_bytes: u64,
    space: &Arc<Space>,
) -> Result<Log, StreamError> {
    let offset = snapshot.len as u64;
    let mut content = Vec::from(snapshot.bytes);
    let grown_to = content.len() as u64 + growth_bytes;
    content.resize(grown_to as usize, 0);
    let content = Bytes::from(content);
    let mut files = Vec::with_capacity(PATHS.len());
    for path in NEW_PATHS {
        match write_new(&**disk, path, content.clone()).await {
            Ok(file) => files.push(file),
            Err(error) => {
                // As for what is there of this one.
                for path in NEW_PATHS {
                    let _ = disk.remove(path).await;
                }
                return Err(error);
            }
        }
    }
    // From here on it is unknown which log the next start finds: not even a full disk is a mere refusal.
    for (from, to) in NEW_PATHS.into_iter().zip(PATHS) {
        disk.rename(from, to).await.map_err(|error| StreamError::write(to, &error))?;
    }
    disk.sync_folder(FOLDER).await.map_err(|error| StreamError::write(FOLDER, &error))?;
    let files = files.try_into().map_err(|_| StreamError::Folder("stream manager's layout".to_owned()))?;
    Ok(new_log(disk, files, generation, (offset, grown_to), growth_bytes, space))
}

/// A log that has its snapshot only, up to the first of these offsets, and zeros up to the second.
fn new_log(
    disk: &Arc<dyn Disk>,
    files: [Arc<dyn DiskFile>; 2],
    generation: u64,
    (offset, grown_to): (u64, u64),
    growth_bytes: u64,
    space: &Arc<Space>,
) -> Log {
    Log {
        disk: disk.clone(),
        files,
        generation,
        sequence: 0,
        offset,
        grown_to,
        growth_bytes,
        refused_size_bytes: 0,
        refused_since: None,
        stopped: None,
        space: space.clone(),
    }
}

/// Makes the file of the next log, which is as large as `bytes`; or there is none.
async fn write_new(disk: &dyn Disk, path: &str, bytes: Bytes) -> Result<Arc<dyn DiskFile>, StreamError> {
    if disk.exists(path).await.map_err(|error| StreamError::read(path, &error))? {
        disk.remove(path).await.map_err(write_failed)?;
    }
    let file = disk.open(path, OpenMode::CreateNew).await;
    let file = file.map_err(|error| not_made(path, &error))?;
    let written = async {
        file.write_at(0, bytes).await?;
        file.sync_data().await
    };
    if let Err(error) = written.await {
        // The part that is there would occupy the disk's last free bytes. If it stays, the next try removes
        // it.
        let _ = disk.remove(path).await;
        return Err(write_failed(error));
    }
    Ok(file)
}

/// Reads the log without changing anything: what reads in neither file is an error, never a shorter history.
/// `is_kept_twice`: the folder's format has the second file.
pub(crate) async fn read(env: &Environment, is_kept_twice: bool) -> Result<LogRecovery, StreamError> {
    let mut contents = [None, None];
    for (content, path) in contents.iter_mut().zip(PATHS) {
        *content = read_whole(&*env.disk, path).await?;
    }
    recover(&contents, is_kept_twice)
}

/// The records of both files: at each place the first one's if it reads, else the second's.
struct CombinedLog {
    records: Vec<Record>,
    /// Which file lacks a record that the other has.
    lacks: [bool; 2],
}

fn combine(contents: &[Option<Bytes>; 2]) -> Result<CombinedLog, StreamError> {
    let empty = Bytes::new();
    let files = contents.each_ref().map(|content| content.as_ref().unwrap_or(&empty));
    // A snapshot is the first record that a generation has.
    let firsts = files.map(|file| record::first(file).filter(|first| first.sequence == 0));
    let generation = firsts.iter().flatten().map(|first| first.generation).max();
    let generation = generation.ok_or_else(|| StreamError::Corrupt(format!("{PATH} is unreadable")))?;
    // A log that was about to be replaced is complete, but says nothing of what came later.
    let is_present =
        firsts.each_ref().map(|first| first.as_ref().is_none_or(|first| first.generation == generation));
    let mut combined = CombinedLog { records: Vec::new(), lacks: [false, false] };
    loop {
        let (at, sequence) =
            combined.records.last().map_or((0, 0), |last: &Record| (last.end, last.sequence + 1));
        let read = [0, 1].map(|index| match is_present[index] {
            true => record::read_at(files[index], at, generation, sequence),
            false => None,
        });
        if read.iter().all(Option::is_none) {
            break;
        }
        for (lacks, record) in combined.lacks.iter_mut().zip(&read) {
            *lacks |= record.as_ref().is_none_or(|record| record.is_mended);
        }
        combined.records.extend(read.into_iter().flatten().next());
    }
    let (at, sequence) = combined.records.last().map_or((0, 0), |last| (last.end, last.sequence + 1));
    let wanted = SearchScope::Behind { generation, sequence };
    for (file, path) in files.into_iter().zip(PATHS) {
        if let Some(lost) = record::find_successor(file, at, wanted) {
            return Err(StreamError::Corrupt(format!(
                "{path}: the record at byte {at} is unreadable in both files, but record {} follows it",
                lost.sequence
            )));
        }
    }
    Ok(combined)
}

/// The state that the log's bytes add up to.
fn recover(contents: &[Option<Bytes>; 2], is_kept_twice: bool) -> Result<LogRecovery, StreamError> {
    let CombinedLog { records, lacks } = combine(contents)?;
    let malformed = |error: base::codec::DecodeError| StreamError::Corrupt(format!("{PATH}: {error}"));
    let (first, rest) =
        records.split_first().ok_or_else(|| StreamError::Corrupt(format!("{PATH} is unreadable")))?;
    let mut decoder = Decoder::new(&first.body);
    let format = match decoder.u8("kind").map_err(malformed)? {
        KIND_SNAPSHOT => StateFormat::WithOwners,
        KIND_SNAPSHOT_2 => StateFormat::WithEpochs,
        KIND_SNAPSHOT_1 => StateFormat::WithoutDigests,
        _ => return Err(StreamError::Corrupt(format!("{PATH} does not start with a snapshot"))),
    };
    let mut state = State::decode(&mut decoder, format).map_err(malformed)?;
    decoder.finish("snapshot").map_err(malformed)?;
    // A start begins a new log, so all of one is of one format.
    let check = match format {
        StateFormat::WithOwners => OwnerCheck::Compare,
        _ => OwnerCheck::Logged,
    };
    for record in rest {
        let mut decoder = Decoder::new(&record.body);
        if decoder.u8("kind").map_err(malformed)? != KIND_COMMANDS {
            return Err(StreamError::Corrupt(format!(
                "{PATH}: record {} is of an unknown kind",
                record.sequence
            )));
        }
        let mut commands = Vec::new();
        while !decoder.is_empty() {
            commands.push(Command::decode(&mut decoder).map_err(malformed)?);
        }
        state.apply_checked(&commands, check)?;
    }
    // The second file may lack the last record: a crash between the two syncs. And so it may lack a whole new
    // log.
    let last_only = |index: usize| {
        let before = records.len().saturating_sub(1);
        let all_but_last =
            contents[index].as_ref().is_some_and(|content| has_all(content, &records[..before]));
        index == 1 && (all_but_last || contents[1].as_ref().is_some_and(|content| is_older(content, first)))
    };
    let is_begun_again = |index: usize| {
        let content = contents[index].as_ref();
        content.is_some_and(|content| is_begun_again(content, first, rest.is_empty()))
    };
    let is_damaged =
        |index: &usize| is_kept_twice && lacks[*index] && !last_only(*index) && !is_begun_again(*index);
    let damaged = (0..PATHS.len()).filter(is_damaged).map(|index| PATHS[index]).collect();
    let used = records.last().map_or(0, |last| last.end);
    let mut whole = [0, 1].map(|index| {
        let content = contents[index].as_ref().filter(|_| !lacks[index])?;
        content.get(..used).map(|_| content.slice(..used))
    });
    if rest.is_empty() && whole.iter().all(Option::is_none) {
        whole = contents.each_ref().map(|content| replaced_log(content.as_ref()?, first, &state));
    }
    Ok(LogRecovery { state, generation: first.generation, damaged, whole })
}

/// Whether the file was being begun again in its place when that was cut off. The log's `first` record is
/// what the other file has: the log as it was before, or the next one, which has no further record before
/// both files have it.
fn is_begun_again(content: &Bytes, first: &Record, is_only: bool) -> bool {
    match record::begun_generation(content) {
        Some(begun) if begun > first.generation => true,
        Some(begun) if begun == first.generation => is_only && record::first(content).is_none(),
        _ => is_only && is_older(content, first),
    }
}

/// The bytes of a log that was about to be replaced by one of which there is only its `first` record,
/// damaged: nothing was added to that before both files had it, so the replaced log says the same.
fn replaced_log(content: &Bytes, first: &Record, state: &State) -> Option<Bytes> {
    if !is_older(content, first) {
        return None;
    }
    let replaced = recover(&[Some(content.clone()), None], false).ok()?;
    let [whole, _] = replaced.whole;
    whole.filter(|_| replaced.state == *state)
}

/// Whether the file has all of these records, as they were written.
fn has_all(content: &Bytes, records: &[Record]) -> bool {
    records.iter().all(|record| {
        let read = record::read_at(content, record.at, record.generation, record.sequence);
        read.is_some_and(|read| !read.is_mended)
    })
}

/// Whether the file is of the log that the one with this first record takes the place of.
fn is_older(content: &Bytes, first: &Record) -> bool {
    record::first(content).is_some_and(|older| older.generation < first.generation)
}

impl Log {
    /// Starts a new log from a snapshot of what was recovered.
    pub(crate) async fn start(
        env: &Environment,
        settings: &StreamSettings,
        recovered: &LogRecovery,
        space: &Arc<Space>,
    ) -> Result<Log, StreamError> {
        let generation = recovered.generation + 1;
        let snapshot = encode_snapshot(&recovered.state, generation);
        let growth_bytes = settings.manager_log_growth_bytes;
        match write_snapshot(&env.disk, snapshot.clone(), generation, growth_bytes, space).await {
            Err(StreamError::DiskFull) => {
                let begun = restart_in_place(&*env.disk, &recovered.whole, &snapshot).await?;
                tracing::info!(
                    "there is no space for new files of the stream manager's log: it begins anew in the old ones"
                );
                let RestartedLog { files, grown_to } = begun;
                Ok(new_log(
                    &env.disk,
                    files,
                    generation,
                    (snapshot.len as u64, grown_to),
                    growth_bytes,
                    space,
                ))
            }
            started => started,
        }
    }

    /// The log's task: one list of commands at a time. `shown` is what others see.
    pub(crate) async fn run(
        mut self,
        clock: Arc<dyn Clock>,
        shown: Arc<RwLock<State>>,
        mut requests: mpsc::Receiver<Request>,
    ) {
        // Ahead of what is shown while a list is being written: a state is large, and is not copied for each
        // list.
        let mut state = shown.read().clone();
        while let Some(request) = requests.recv().await {
            let outcome = self.serve(&mut state, &shown, &request.commands, clock.monotonic()).await;
            // A requester that was dropped is no reason to stop.
            let _ = request.reply.send(outcome);
        }
    }

    async fn serve(
        &mut self,
        state: &mut State,
        shown: &RwLock<State>,
        commands: &[Command],
        now: Duration,
    ) -> Result<(), StreamError> {
        if let Some(error) = &self.stopped {
            return Err(error.clone());
        }
        if commands.is_empty() {
            return Ok(());
        }
        let mut record = self.encode(commands);
        if self.is_worth_beginning_again(state, record.bytes.len() as u64) {
            match self.begin_again(state, record.bytes.len() as u64).await {
                Ok(()) => record = self.encode(commands),
                Err(error) if self.stopped.is_some() => return Err(error),
                // It could not be read, say: then it grows.
                Err(error) => tracing::info!(%error, "the stream manager's log does not begin anew yet"),
            }
        }
        match self.grow(record.bytes.len() as u64).await {
            // What takes space waits for it. What frees some does for a while.
            Err(StreamError::DiskFull) if self.is_stuck(commands, now) => {
                self.begin_again(state, record.bytes.len() as u64).await?;
                record = self.encode(commands);
            }
            grown => grown?,
        }
        self.refused_since = None;
        state.apply_all(commands)?;
        if let Err(error) = self.append(state, record).await {
            self.stop_after(Some(error.clone()));
            return Err(error);
        }
        shown.write().apply_all(commands)
    }

    /// Whether the log, which has no room for so many bytes, should not grow for them, because space is
    /// scarce and most of what it has is not needed: what it would take is what deletions need to go on.
    fn is_worth_beginning_again(&self, state: &State, size_bytes: u64) -> bool {
        if self.offset + size_bytes <= self.grown_to || !self.space.is_scarce() {
            return false;
        }
        let needed = encode_snapshot(state, self.generation + 1).bytes.len() as u64 + size_bytes;
        NEEDED_TIMES_MIN * needed <= self.grown_to
    }

    /// A list of commands is refused for want of space: whether those that free some have been for too long.
    fn is_stuck(&mut self, commands: &[Command], now: Duration) -> bool {
        if !commands.iter().all(Command::frees_space) {
            return false;
        }
        now.saturating_sub(*self.refused_since.get_or_insert(now)) >= REFUSED_FOR_MAX
    }

    /// The next record.
    fn encode(&self, commands: &[Command]) -> EncodedRecord {
        let mut record = RecordBuilder::new();
        record.body().put_u8_field(KIND_COMMANDS);
        commands.iter().for_each(|command| command.encode(record.body()));
        record.finish(self.generation, self.sequence + 1)
    }

    /// The disk has no space for a longer log, and without one nothing could be deleted: it begins anew in
    /// its place, with a snapshot of `state`, if so many bytes fit behind that.
    async fn begin_again(&mut self, state: &State, size_bytes: u64) -> Result<(), StreamError> {
        let generation = self.generation + 1;
        let snapshot = encode_snapshot(state, generation);
        if snapshot.bytes.len() as u64 + size_bytes > self.grown_to {
            return Err(StreamError::DiskFull);
        }
        let mut whole = [None, None];
        for ((whole, file), path) in whole.iter_mut().zip(&self.files).zip(PATHS) {
            let read = file.read_at(0, self.offset as usize).await;
            *whole = Some(read.map_err(|error| StreamError::read(path, &error))?);
        }
        match begin_in_place(&*self.disk, self.files.clone(), &whole, &snapshot).await {
            Ok(RestartedLog { files, grown_to }) => {
                tracing::info!(
                    "the stream manager's log is full, and so is the disk: it begins anew in its place"
                );
                let (disk, space) = (self.disk.clone(), self.space.clone());
                let end = (snapshot.len as u64, grown_to);
                *self = new_log(&disk, files, generation, end, self.growth_bytes, &space);
                Ok(())
            }
            Err(error) => {
                // It is unknown how much of it was written.
                self.stop_after(Some(error.clone()));
                Err(error)
            }
        }
    }

    /// After a failed write it is unknown what the log holds: nothing is written any more.
    fn stop_after(&mut self, failure: Option<StreamError>) {
        if let Some(error) = failure {
            tracing::error!(%error, "the stream manager's log has stopped");
            self.stopped = Some(error);
        }
    }

    /// Adds zeros so that `size_bytes` more fit. A full disk is no reason to stop: nothing depends on the new
    /// zeros yet.
    async fn grow(&mut self, size_bytes: u64) -> Result<(), StreamError> {
        if self.offset + size_bytes <= self.grown_to {
            return Ok(());
        }
        let growth = size_bytes.max(self.growth_bytes);
        let given_up = self.space.given_up();
        let mut grown = self.write_zeros(growth).await;
        // Without this log no space can be reclaimed.
        if grown == Err(StreamError::DiskFull) && self.space.give_up(given_up).await {
            grown = self.write_zeros(growth).await;
        }
        match grown {
            Ok(()) => {
                self.grown_to += growth;
                Ok(())
            }
            Err(StreamError::DiskFull) => Err(StreamError::DiskFull),
            Err(error) => {
                self.stopped = Some(error.clone());
                Err(error)
            }
        }
    }

    async fn write_zeros(&self, size_bytes: u64) -> Result<(), StreamError> {
        let zeros = Bytes::from(vec![0; size_bytes as usize]);
        let written = async {
            for file in &self.files {
                file.write_at(self.grown_to, zeros.clone()).await?;
                file.sync_data().await?;
            }
            Ok(())
        };
        if let Err(error) = written.await {
            // As for the next log. If zeros stay, the next growth writes over them.
            for file in &self.files {
                let _ = file.set_len(self.grown_to).await;
            }
            return Err(write_failed(error));
        }
        Ok(())
    }

    async fn append(&mut self, next: &State, record: EncodedRecord) -> Result<(), StreamError> {
        let size_bytes_max = LOG_SIZE_BYTES_MAX.min(LOG_GROWTH_COUNT_MAX * self.growth_bytes);
        if self.offset > size_bytes_max && self.may_have_space_for_next().await {
            let generation = self.generation + 1;
            let snapshot = encode_snapshot(next, generation);
            let size_bytes = PATHS.len() as u64 * (snapshot.bytes.len() as u64 + self.growth_bytes);
            match write_snapshot(&self.disk, snapshot, generation, self.growth_bytes, &self.space).await {
                Ok(log) => {
                    *self = log;
                    return Ok(());
                }
                // The list fits in the old log, which goes on until there is space, or a file, for the new
                // one.
                Err(StreamError::DiskFull | StreamError::OutOfFiles(_)) => {
                    self.refused_size_bytes = size_bytes
                }
                Err(error) => return Err(error),
            }
        }
        self.write(record).await?;
        Ok(())
    }

    /// False while the disk has less space than the next log did not find.
    async fn may_have_space_for_next(&self) -> bool {
        // Where free space is unknown, it is tried.
        self.disk.free_bytes().await.map_or(true, |free_bytes| free_bytes >= self.refused_size_bytes)
    }

    async fn write(&mut self, record: EncodedRecord) -> Result<(), StreamError> {
        // The record may be in the log all the same: not even a full disk is a mere refusal here.
        for (file, path) in self.files.iter().zip(PATHS) {
            let failed = |error: std::io::Error| StreamError::write(path, &error);
            file.write_at(self.offset, record.bytes.clone()).await.map_err(failed)?;
            file.sync_data().await.map_err(failed)?;
        }
        self.offset += record.len as u64;
        self.sequence += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
