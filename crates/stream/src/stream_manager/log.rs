//! The stream manager's log: one file of records (see `record.rs`), the first a snapshot, each other one list of
//! commands. Behind the records are zeros: the file grows before it is needed, because syncing a file that does not
//! grow is many times faster, and because then a full disk refuses a list of commands before anything of it is written.
//!
//! ```text
//! stream_manager/log        records, zeros; body = u8 kind: 0 snapshot of format 1, 1 commands (command*), 2 snapshot
//! stream_manager/log.new    the next log, until it replaces the old one
//! ```
//!
//! What always holds: a list of commands shows in the state after its record is synced. Once no further one comes, an
//! empty record is synced behind the last, so that later damage to it is told apart from a torn write.

use super::state::{Command, State};
use crate::error::{StreamError, is_disk_full, not_made};
use crate::record::{self, RECORD_ALIGNMENT, RecordBuilder};
use crate::settings::StreamSettings;
use crate::space::Space;
use base::codec::{Decoder, Encode};
use base::{Clock, Disk, DiskFile, Environment, OpenMode};
use bytes::Bytes;
use parking_lot::RwLock;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

const FOLDER: &str = "stream_manager";
const PATH: &str = "stream_manager/log";
const NEW_PATH: &str = "stream_manager/log.new";
const KIND_SNAPSHOT_1: u8 = 0;
const KIND_COMMANDS: u8 = 1;
const KIND_SNAPSHOT: u8 = 2;
/// A log of this size is replaced by a snapshot of the state.
const LOG_SIZE_BYTES_MAX: u64 = 8 << 20;
/// And one that has grown so often, as it does in small steps on small disks.
const LOG_GROWTH_COUNT_MAX: u64 = 32;
/// After this long without a request the last record gets its successor.
const IDLE_MARK_AFTER: Duration = Duration::from_millis(20);

/// A list of commands that waits for the log.
pub(crate) struct Request {
    pub(crate) commands: Vec<Command>,
    pub(crate) reply: oneshot::Sender<Result<(), StreamError>>,
}

pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    file: Arc<dyn DiskFile>,
    generation: u64,
    sequence: u64,
    offset: u64,
    /// Where the zeroed part of the file ends.
    grown_to: u64,
    growth_bytes: u64,
    /// Bytes of the next log, for which there was no space when it was tried last.
    refused_size_bytes: u64,
    /// Whether the newest record holds commands.
    unmarked: bool,
    /// Why nothing can be written any more.
    stopped: Option<StreamError>,
    space: Arc<Space>,
}

fn write_failed(error: std::io::Error) -> StreamError {
    if is_disk_full(&error) { StreamError::DiskFull } else { StreamError::write(PATH, &error) }
}

/// Lays out the log of no streams.
pub(crate) async fn format(
    env: &Environment,
    settings: &StreamSettings,
    space: &Arc<Space>,
) -> Result<(), StreamError> {
    env.disk.create_folder(FOLDER).await.map_err(write_failed)?;
    // Unguessable, for the same reason as the journal's.
    let generation = (env.random.next_u64() >> 2) + 1;
    let records = encode_snapshot(&State::default(), generation);
    write_snapshot(&env.disk, records, generation, settings.manager_log_growth_bytes, space).await?;
    Ok(())
}

/// The records of a log that holds `state`.
fn encode_snapshot(state: &State, generation: u64) -> Vec<u8> {
    let mut record = RecordBuilder::new();
    record.body().put_u8_field(KIND_SNAPSHOT);
    state.encode(record.body());
    let mut records = record.finish(generation, 0).to_vec();
    records.extend_from_slice(&mark(generation, 1));
    records
}

/// Writes a new log that begins with the records of a snapshot, and puts it in place.
async fn write_snapshot(
    disk: &Arc<dyn Disk>,
    mut records: Vec<u8>,
    generation: u64,
    growth_bytes: u64,
    space: &Arc<Space>,
) -> Result<Log, StreamError> {
    let offset = records.len() as u64;
    let grown_to = offset + growth_bytes;
    records.resize(grown_to as usize, 0);
    let file = write_new(&**disk, records.into()).await?;
    // From here on nobody knows which log the next start finds: not even a full disk is a mere refusal.
    disk.rename(NEW_PATH, PATH).await.map_err(|error| StreamError::write(PATH, &error))?;
    disk.sync_folder(FOLDER).await.map_err(|error| StreamError::write(PATH, &error))?;
    let disk = disk.clone();
    Ok(Log {
        disk,
        file,
        generation,
        sequence: 1,
        offset,
        grown_to,
        growth_bytes,
        refused_size_bytes: 0,
        unmarked: false,
        stopped: None,
        space: space.clone(),
    })
}

/// Makes the file of the next log, which is as large as `bytes`; or there is none.
async fn write_new(disk: &dyn Disk, bytes: Bytes) -> Result<Arc<dyn DiskFile>, StreamError> {
    if disk.exists(NEW_PATH).await.map_err(|error| StreamError::read(NEW_PATH, &error))? {
        disk.remove(NEW_PATH).await.map_err(write_failed)?;
    }
    let file = disk.open(NEW_PATH, OpenMode::CreateNew).await;
    let file = file.map_err(|error| not_made(NEW_PATH, &error))?;
    let written = async {
        file.write_at(0, bytes).await?;
        file.sync_data().await
    };
    if let Err(error) = written.await {
        // What is there of it would keep the last free bytes from everybody. If it stays, the next try removes it.
        let _ = disk.remove(NEW_PATH).await;
        return Err(write_failed(error));
    }
    Ok(file)
}

/// A record without commands.
fn mark(generation: u64, sequence: u64) -> Bytes {
    let mut record = RecordBuilder::new();
    record.body().put_u8_field(KIND_COMMANDS);
    record.finish(generation, sequence)
}

/// What the log says after a stop of any kind.
pub(crate) struct Recovered {
    pub(crate) state: State,
    generation: u64,
}

/// Reads the log without changing anything: what does not read is an error, never a shorter history.
pub(crate) async fn read(env: &Environment) -> Result<Recovered, StreamError> {
    let read_failed = |error: std::io::Error| StreamError::read(PATH, &error);
    let file = env.disk.open(PATH, OpenMode::Read).await.map_err(read_failed)?;
    let len = file.size().await.map_err(read_failed)?;
    let content = file.read_at(0, len as usize).await.map_err(read_failed)?;
    recover(&content)
}

/// The state that the log's bytes add up to.
fn recover(content: &Bytes) -> Result<Recovered, StreamError> {
    let records = record::scan(content, PATH)?;
    let malformed = |error: base::codec::DecodeError| StreamError::Corrupt(format!("{PATH}: {error}"));
    let (first, rest) =
        records.split_first().ok_or_else(|| StreamError::Corrupt(format!("{PATH} is unreadable")))?;
    let mut decoder = Decoder::new(&first.body);
    let digests = match decoder.u8("kind").map_err(malformed)? {
        KIND_SNAPSHOT => true,
        KIND_SNAPSHOT_1 => false,
        _ => return Err(StreamError::Corrupt(format!("{PATH} does not start with a snapshot"))),
    };
    let mut state = State::decode(&mut decoder, digests).map_err(malformed)?;
    decoder.finish("snapshot").map_err(malformed)?;
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
        state.apply_all(&commands)?;
    }
    Ok(Recovered { state, generation: first.generation })
}

impl Log {
    /// Starts a new log from a snapshot of what was recovered.
    pub(crate) async fn start(
        env: &Environment,
        settings: &StreamSettings,
        recovered: &Recovered,
        space: &Arc<Space>,
    ) -> Result<Log, StreamError> {
        let generation = recovered.generation + 1;
        let records = encode_snapshot(&recovered.state, generation);
        write_snapshot(&env.disk, records, generation, settings.manager_log_growth_bytes, space).await
    }

    /// The log's task: one list of commands at a time. `shown` is what others see.
    pub(crate) async fn run(
        mut self,
        shown: Arc<RwLock<State>>,
        mut requests: mpsc::Receiver<Request>,
        clock: Arc<dyn Clock>,
    ) {
        // Ahead of what is shown while a list is being written: a state is large, and is not copied for each list.
        let mut state = shown.read().clone();
        loop {
            let idle = clock.sleep(IDLE_MARK_AFTER);
            tokio::select! {
                biased;
                request = requests.recv() => {
                    let Some(request) = request else { return self.mark().await };
                    let outcome = self.serve(&mut state, &shown, &request.commands).await;
                    // A requester that went away is no reason to stop.
                    let _ = request.reply.send(outcome);
                }
                () = idle, if self.unmarked => self.mark().await,
            }
        }
    }

    /// Gives the last record its successor.
    async fn mark(&mut self) {
        if std::mem::take(&mut self.unmarked) && self.stopped.is_none() {
            let written = self.write(mark(self.generation, self.sequence + 1)).await;
            self.stop_after(written.err());
        }
    }

    async fn serve(
        &mut self,
        state: &mut State,
        shown: &RwLock<State>,
        commands: &[Command],
    ) -> Result<(), StreamError> {
        if let Some(error) = &self.stopped {
            return Err(error.clone());
        }
        if commands.is_empty() {
            self.mark().await;
            return Ok(());
        }
        let mut record = RecordBuilder::new();
        record.body().put_u8_field(KIND_COMMANDS);
        commands.iter().for_each(|command| command.encode(record.body()));
        let record = record.finish(self.generation, self.sequence + 1);
        self.grow(record.len() as u64 + RECORD_ALIGNMENT as u64).await?;
        state.apply_all(commands)?;
        if let Err(error) = self.append(state, record).await {
            self.stop_after(Some(error.clone()));
            return Err(error);
        }
        shown.write().apply_all(commands)
    }

    /// After a failed write nobody knows what the log holds: nothing is written any more.
    fn stop_after(&mut self, failure: Option<StreamError>) {
        if let Some(error) = failure {
            tracing::error!(%error, "the stream manager's log has stopped");
            self.stopped = Some(error);
        }
    }

    /// Makes room for `size_bytes` more. A full disk is no reason to stop: nothing depends on the new zeros yet.
    async fn grow(&mut self, size_bytes: u64) -> Result<(), StreamError> {
        if self.offset + size_bytes <= self.grown_to {
            return Ok(());
        }
        let growth = size_bytes.max(self.growth_bytes);
        let given_up = self.space.given_up();
        let mut grown = self.write_zeros(growth).await;
        // Without this log nothing can be given back.
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
        let written = async {
            self.file.write_at(self.grown_to, vec![0; size_bytes as usize].into()).await?;
            self.file.sync_data().await
        };
        if let Err(error) = written.await {
            // As for the next log. If zeros stay, the next growth writes over them.
            let _ = self.file.set_len(self.grown_to).await;
            return Err(write_failed(error));
        }
        Ok(())
    }

    async fn append(&mut self, next: &State, record: Bytes) -> Result<(), StreamError> {
        let size_bytes_max = LOG_SIZE_BYTES_MAX.min(LOG_GROWTH_COUNT_MAX * self.growth_bytes);
        if self.offset > size_bytes_max && self.may_have_space_for_next().await {
            let generation = self.generation + 1;
            let records = encode_snapshot(next, generation);
            let size_bytes = records.len() as u64 + self.growth_bytes;
            match write_snapshot(&self.disk, records, generation, self.growth_bytes, &self.space).await {
                Ok(log) => {
                    *self = log;
                    return Ok(());
                }
                // The old log has room for this list, and goes on until there is space, or a file for the new one.
                Err(StreamError::DiskFull | StreamError::OutOfFiles(_)) => {
                    self.refused_size_bytes = size_bytes
                }
                Err(error) => return Err(error),
            }
        }
        self.write(record).await?;
        self.unmarked = true;
        Ok(())
    }

    /// False while the disk has less space than the next log did not find.
    async fn may_have_space_for_next(&self) -> bool {
        // Where nobody knows how much there is, it is tried.
        self.disk.free_bytes().await.map_or(true, |free_bytes| free_bytes >= self.refused_size_bytes)
    }

    async fn write(&mut self, record: Bytes) -> Result<(), StreamError> {
        // The record may be in the log all the same: not even a full disk is a mere refusal here.
        let failed = |error: std::io::Error| StreamError::write(PATH, &error);
        self.file.write_at(self.offset, record.clone()).await.map_err(failed)?;
        self.file.sync_data().await.map_err(failed)?;
        self.offset += record.len() as u64;
        self.sequence += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::ExtentInfo;
    use super::*;
    use crate::ids::ExtentId;
    use crate::sealed::Sealed;

    /// The bytes of a snapshot as format 1 wrote them: one stream with a sealed extent and an open one.
    #[test]
    fn a_snapshot_of_format_1_is_read() {
        let mut record = RecordBuilder::new();
        let body = record.body();
        body.put_u8_field(0);
        body.put_u64_field(7);
        body.put_varint(2);
        body.put_u64_field(5);
        body.put_varint(1000 + 1);
        body.put_u64_field(6);
        body.put_varint(0);
        body.put_varint(1);
        body.put_bytes_field(b"a/log");
        body.put_u64_field(3);
        body.put_varint(2);
        body.put_u64_field(5);
        body.put_u64_field(6);
        let state = recover(&record.finish(1, 0)).unwrap().state;
        let sealed = Some(Sealed { length: 1000, digest: None });
        assert_eq!(state.extents[&ExtentId(5)], ExtentInfo { sealed, references: 1 });
        assert_eq!(state.extents[&ExtentId(6)], ExtentInfo { sealed: None, references: 1 });
        assert_eq!((state.next_extent, state.streams.len()), (7, 1));
    }
}
