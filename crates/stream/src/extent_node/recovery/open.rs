//! Opening a node: recover the journal, bring every extent's file up to it, start a new generation.
//!
//! What always holds: an extent whose file is missing or shorter than its length is served as far as it
//! reads, and takes no more appends. Files that are not in the journal's table are orphans of a creation or
//! deletion that was cut off, and are removed. Where a full disk has no space for journaled bytes, the
//! journal goes on in its newest segment, and they stay pending.

use super::extent_files::{JournaledBytes, OpenedExtents, open_extents};
use super::forgotten::forget_deleted;
use super::settle::{ListedExtent, settle};
use crate::error::{StreamError, is_disk_full, not_made};
use crate::extent_node::drain::Drain;
use crate::extent_node::extent::Extent;
use crate::extent_node::journal::{
    JournalContents, JournalFiles, JournalMetrics, JournalRecovery, JournalWriter, NewestSegment,
    OpenSegment, RecordMemory, SEGMENT_COUNT, SYNCED_PATH, SyncedMark, TABLE_PATHS, TableCopies, recover,
    segment_path,
};
use crate::extent_node::node::{ExtentNode, JOURNAL_QUEUE_COUNT_MAX};
use crate::extent_node::state::{Entry, ExtentTable};
use crate::extent_node::stop::Stop;
use crate::ids::ExtentId;
use crate::settings::StreamSettings;
use crate::space::Space;
use base::{Disk, DiskFile, Environment, OpenMode};
use bytes::Bytes;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Zeros are written to a new journal file in pieces of this size.
const ZERO_WRITE_SIZE_BYTES: u64 = 1 << 20;

/// A node whose extents are up to its journal, and that has not written to its journal yet.
pub(crate) struct RecoveredNode {
    recovered: JournalRecovery,
    extents: BTreeMap<ExtentId, Arc<Extent>>,
    /// Journaled bytes for which there was no space in their files: at most what two segments of the journal
    /// hold.
    pending: BTreeMap<ExtentId, Vec<JournaledBytes>>,
    /// The entries that the journal writes first if it goes on in its newest segment; `None`: it may not,
    /// because more is known than its entries can hold.
    to_go_on: Option<Vec<Entry<'static>>>,
    /// Files in the extents' folder that no extent has.
    orphans: Vec<String>,
    /// No extent that is known, and no file, has this id or a higher one.
    pub(crate) next_extent: u64,
    /// What journal and streams say of the extents is damaged: what only seems to be an orphan is not to be
    /// removed.
    pub(crate) has_losses: bool,
}

/// What a start does with journaled bytes for which a full disk has no space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnNoSpace {
    /// The start fails.
    Fail,
    /// The bytes stay pending, if nothing is damaged.
    KeepPending,
}

/// What a journal's writer begins with.
struct WriterStart {
    table: ExtentTable,
    generation: u64,
    sequence: u64,
    /// Index of the file that it writes first.
    file: usize,
    segment_size_bytes: u64,
    /// As many bytes wait for their extents as with segments of this size, if it is smaller.
    wanted_segment_size_bytes: u64,
}

impl ExtentNode {
    /// Lays out an empty node: zeroed journal files and the folder for extents, all durable.
    pub(crate) async fn format(
        env: &Environment,
        settings: &StreamSettings,
        space: &Arc<Space>,
    ) -> Result<(), StreamError> {
        Self::format_with(env, settings, space, ExtentTable::default()).await
    }

    /// The same of a node that has these extents, whose files are there or will be.
    pub(crate) async fn format_with(
        env: &Environment,
        settings: &StreamSettings,
        space: &Arc<Space>,
        table: ExtentTable,
    ) -> Result<(), StreamError> {
        let failed = |what: &'static str| move |error: std::io::Error| not_made(what, &error);
        env.disk.create_folder("extents").await.map_err(failed("folder extents"))?;
        env.disk.create_folder("journal").await.map_err(failed("folder journal"))?;
        for index in 0..SEGMENT_COUNT {
            complete_segment(&*env.disk, index, settings.journal_segment_size_bytes).await?;
        }
        for folder in ["journal", "extents", ""] {
            env.disk.sync_folder(folder).await.map_err(failed("data folder"))?;
        }
        // Unguessable, so that stored user data can't look like a record of this folder's journal.
        let generation = (env.random.next_u64() >> 2) + 2;
        let segment_size_bytes = settings.journal_segment_size_bytes;
        let begin = WriterStart {
            table,
            generation,
            sequence: 0,
            file: 0,
            segment_size_bytes,
            wanted_segment_size_bytes: segment_size_bytes,
        };
        let mut writer = new_writer(env, begin, space.clone()).await?;
        writer.begin().await
    }

    /// Recovers the journal and brings every extent's file up to it. The journal itself stays as it is.
    /// `listed` are the extents that streams have; `has_copies`: the folder is of the present format, which
    /// has copies of the journal's table. A damaged folder of an older format is refused before anything is
    /// changed, so that the program that wrote it can still open it.
    pub(crate) async fn recover(
        env: &Environment,
        listed: &[ListedExtent],
        has_copies: bool,
        no_space: OnNoSpace,
    ) -> Result<RecoveredNode, StreamError> {
        let mut recovered = recover(&read_journal(&*env.disk, has_copies).await?)?;
        let as_journaled = recovered.table.clone();
        settle(&mut recovered, listed);
        forget_deleted(&*env.disk, &mut recovered, listed).await?;
        let lost = recovered.findings.iter().find(|finding| !finding.is_mended || !has_copies);
        if let Some(lost) = lost.filter(|_| !has_copies) {
            return Err(StreamError::Corrupt(format!("{}: {}", lost.place, lost.problem)));
        }
        let has_losses = lost.is_some();
        if let Some(torn) = &recovered.torn {
            tracing::warn!("{torn}");
        }
        for finding in &recovered.findings {
            let (place, problem) = (&finding.place, &finding.problem);
            if finding.is_mended {
                tracing::warn!(place, problem, "damage is mended from what is kept twice");
            } else {
                tracing::error!(
                    place,
                    problem,
                    "damage: larimar check tells what it means, larimar repair what can be done"
                );
            }
        }
        let keeps_pending = no_space == OnNoSpace::KeepPending && recovered.open_segment.is_some();
        let OpenedExtents { extents, others, has_losses: lacks_files, pending } =
            open_extents(&*env.disk, &mut recovered, keeps_pending).await?;
        let has_losses = has_losses || lacks_files;
        let may_go_on = recovered.open_segment.is_some() && !has_losses;
        let to_go_on = as_journaled.changes_to(&recovered.table).filter(|_| may_go_on);
        if !pending.is_empty() && to_go_on.is_none() {
            return Err(StreamError::DiskFull);
        }
        let of_files = others.iter().filter_map(|name| u64::from_str_radix(name.get(..16)?, 16).ok());
        let of_extents = extents.keys().map(|extent| extent.0);
        let next_extent = of_files.chain(of_extents).max().map_or(0, |highest| highest.saturating_add(1));
        // Where something is lost an unknown file may be what is missing.
        let is_named_by_id = |name: &String| name.len() == 16 && u64::from_str_radix(name, 16).is_ok();
        let orphans =
            if has_losses { Vec::new() } else { others.into_iter().filter(is_named_by_id).collect() };
        Ok(RecoveredNode { recovered, extents, pending, to_go_on, orphans, next_extent, has_losses })
    }

    /// Starts a new generation of the journal, and the node's tasks.
    pub(crate) async fn start(
        env: &Environment,
        settings: &StreamSettings,
        node: RecoveredNode,
        space: Arc<Space>,
    ) -> Result<Arc<Self>, StreamError> {
        let RecoveredNode { recovered, extents, pending, to_go_on, orphans, .. } = node;
        let begun = match pending.is_empty() {
            true => begin_segment(env, settings, &recovered, &space).await,
            false => Err(StreamError::DiskFull),
        };
        let writer = match (begun, &recovered.open_segment, to_go_on) {
            (Err(StreamError::DiskFull), Some(segment), Some(changes)) => {
                let mut writer = go_on(env, settings, &recovered, (segment, &changes), &space).await?;
                writer.add_pending(&extents, pending);
                writer
            }
            (begun, ..) => begun?,
        };
        // Not before: what was read of the journal may be more than the disk holds of it.
        remove_orphans(&*env.disk, orphans).await?;
        let (journal, requests) = mpsc::channel(JOURNAL_QUEUE_COUNT_MAX);
        let stop = writer.stop.clone();
        let drain = writer.drain.clone();
        env.spawner
            .spawn_background("extent-drain", Box::pin(drain.clone().run(env.clock.clone())))
            .map_err(StreamError::no_thread("extent-drain"))?;
        let journal_thread = match env.spawner.start_thread("journal") {
            Ok(thread) => thread,
            Err(error) => {
                drain.close();
                return Err(StreamError::no_thread("journal")(error));
            }
        };
        journal_thread.spawn("journal", Box::pin(writer.run(requests)));
        Ok(Arc::new(ExtentNode {
            disk: env.disk.clone(),
            settings: settings.clone(),
            extents: RwLock::new(extents),
            journal,
            journal_thread,
            stop,
            space,
        }))
    }
}

/// Begins the segment after the newest one. Every journaled byte is synced in its extent.
async fn begin_segment(
    env: &Environment,
    settings: &StreamSettings,
    recovered: &JournalRecovery,
    space: &Arc<Space>,
) -> Result<JournalWriter, StreamError> {
    if let Some((file, header)) = recovered.unconfirmed.clone() {
        // The former process may have ended before its sync, or in spite of it: written again, it is on the
        // disk for certain before the older segments are written over, which it takes the place of.
        let failed = |error: std::io::Error| StreamError::write("journal", &error);
        let file = env.disk.open(&segment_path(file), OpenMode::Write).await.map_err(failed)?;
        file.write_at(0, header).await.map_err(failed)?;
        file.sync_data().await.map_err(failed)?;
    }
    let (file, segment_size_bytes) =
        choose_file(&*env.disk, &recovered.free_files, recovered.segment_size_bytes).await?;
    let begin = WriterStart {
        table: recovered.table.clone(),
        generation: recovered.generation + 1,
        sequence: recovered.sequence,
        file,
        segment_size_bytes,
        wanted_segment_size_bytes: settings.journal_segment_size_bytes,
    };
    let mut writer = new_writer(env, begin, space.clone()).await?;
    writer.begin().await?;
    Ok(writer)
}

/// Goes on in the newest segment: its bytes, or those of the one before it, are needed, and a start must not
/// use up the journal, so that the next one finds it as this one did.
async fn go_on(
    env: &Environment,
    settings: &StreamSettings,
    recovered: &JournalRecovery,
    (segment, changes): (&OpenSegment, &[Entry<'_>]),
    space: &Arc<Space>,
) -> Result<JournalWriter, StreamError> {
    let (_, segment_size_bytes) = choose_file(&*env.disk, &[], recovered.segment_size_bytes).await?;
    let begin = WriterStart {
        table: recovered.table.clone(),
        generation: recovered.generation,
        sequence: recovered.sequence,
        file: segment.file,
        segment_size_bytes,
        wanted_segment_size_bytes: settings.journal_segment_size_bytes,
    };
    let mut writer = new_writer(env, begin, space.clone()).await?;
    writer.go_on(segment, changes).await?;
    Ok(writer)
}

/// The journal's files as they are.
pub(crate) async fn read_journal(disk: &dyn Disk, has_copies: bool) -> Result<JournalContents, StreamError> {
    let mut segments = [const { None }; SEGMENT_COUNT];
    for (index, segment) in segments.iter_mut().enumerate() {
        *segment = read_whole(disk, &segment_path(index)).await?;
    }
    let mut copies = [None, None];
    for (copy, path) in copies.iter_mut().zip(TABLE_PATHS) {
        *copy = read_whole(disk, path).await?;
    }
    let synced = read_whole(disk, SYNCED_PATH).await?;
    Ok(JournalContents { segments, copies, synced, has_copies })
}

/// A file's bytes; `None`: there is no such file.
pub(crate) async fn read_whole(disk: &dyn Disk, path: &str) -> Result<Option<Bytes>, StreamError> {
    let read = async {
        let file = disk.open(path, OpenMode::Read).await?;
        let len = file.size().await?;
        file.read_at(0, len as usize).await
    };
    match read.await {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StreamError::read(path, &error)),
    }
}

/// Which of the free files the new segment is written to, and how large journal files are. The files keep the
/// size they were made with; a changed setting counts from the next folder on.
async fn choose_file(
    disk: &dyn Disk,
    free_files: &[usize],
    known_size_bytes: Option<u64>,
) -> Result<(usize, u64), StreamError> {
    let mut sizes = [0; SEGMENT_COUNT];
    for (index, size) in sizes.iter_mut().enumerate() {
        let path = segment_path(index);
        let failed = |error: std::io::Error| StreamError::read(&path, &error);
        if disk.exists(&path).await.map_err(failed)? {
            let file = disk.open(&path, OpenMode::Read).await.map_err(failed)?;
            *size = file.size().await.map_err(failed)?;
        }
    }
    let segment_size_bytes = known_size_bytes.unwrap_or(sizes.into_iter().max().unwrap_or(0));
    // One that is whole, rather than one that is to be made anew.
    let largest = free_files
        .iter()
        .copied()
        .max_by_key(|file| (sizes[*file].min(segment_size_bytes), SEGMENT_COUNT - file));
    Ok((largest.unwrap_or(0), segment_size_bytes))
}

/// Makes a journal file, or what is missing of it.
async fn complete_segment(
    disk: &dyn Disk,
    index: usize,
    size_bytes: u64,
) -> Result<Arc<dyn DiskFile>, StreamError> {
    let path = segment_path(index);
    let failed = |error: std::io::Error| not_made("journal", &error);
    let mode = match disk.exists(&path).await.map_err(failed)? {
        true => OpenMode::Write,
        false => OpenMode::CreateNew,
    };
    let file = disk.open(&path, mode).await.map_err(failed)?;
    let found = file.size().await.map_err(failed)?;
    let zeros = Bytes::from(vec![0; ZERO_WRITE_SIZE_BYTES.min(size_bytes.saturating_sub(found)) as usize]);
    let mut at = found;
    let written = async {
        while at < size_bytes {
            let size = (zeros.len() as u64).min(size_bytes - at);
            file.write_at(at, zeros.slice(..size as usize)).await?;
            at += size;
        }
        if found < size_bytes { file.sync_data().await } else { Ok(()) }
    };
    if let Err(error) = written.await {
        // The part that is there would occupy the disk's last free bytes.
        let _ = file.set_len(found).await;
        return Err(if is_disk_full(&error) { StreamError::DiskFull } else { failed(error) });
    }
    if mode == OpenMode::CreateNew {
        disk.sync_folder("journal").await.map_err(failed)?;
    }
    Ok(file)
}

async fn new_writer(
    env: &Environment,
    begin: WriterStart,
    space: Arc<Space>,
) -> Result<JournalWriter, StreamError> {
    let WriterStart { table, generation, sequence, file, segment_size_bytes, wanted_segment_size_bytes } =
        begin;
    let mut segments = Vec::with_capacity(SEGMENT_COUNT);
    for index in 0..SEGMENT_COUNT {
        let given_up = space.given_up();
        let made = match complete_segment(&*env.disk, index, segment_size_bytes).await {
            Err(StreamError::DiskFull) if space.give_up(given_up).await => {
                complete_segment(&*env.disk, index, segment_size_bytes).await?
            }
            made => made?,
        };
        segments.push(made);
    }
    let segments = segments.try_into().map_err(|_| StreamError::Folder("journal layout".to_owned()))?;
    let table_copies = TableCopies::open(&*env.disk, segment_size_bytes).await?;
    let stop = Arc::new(Stop::default());
    Ok(JournalWriter {
        files: JournalFiles {
            segments,
            segment_size_bytes,
            table_copies,
            synced_mark: SyncedMark::open(&*env.disk).await?,
            metrics: JournalMetrics::new(&env.metrics),
        },
        newest: NewestSegment { file, generation, oldest_generation: generation, sequence, offset: 0 },
        position: 0,
        table,
        drain: Arc::new(Drain::new(
            stop.clone(),
            space.clone(),
            segment_size_bytes.min(wanted_segment_size_bytes),
        )),
        owed: 0,
        stop,
        space,
        clock: env.clock.clone(),
        unmarked: false,
        memory: RecordMemory::default(),
    })
}

/// Removes files of extents that the journal on the disk does not have any more.
async fn remove_orphans(disk: &dyn Disk, orphans: Vec<String>) -> Result<(), StreamError> {
    for orphan in orphans {
        tracing::info!(orphan, "removing a file that belongs to no extent");
        disk.remove(&format!("extents/{orphan}"))
            .await
            .map_err(|error| StreamError::write("orphan", &error))?;
    }
    Ok(())
}
