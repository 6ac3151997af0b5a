//! Opening a node: recover the journal, bring every extent's file up to it, start a new generation.
//!
//! What always holds: an extent's file that is missing or shorter than its length is an error that names it. Files
//! that no journal knows are left-overs of a creation or deletion that was cut off, and are removed.

use super::drain::Drain;
use super::extent::Extent;
use super::journal::{
    JournalWriter, RecordMemory, Recovered, SEGMENT_COUNT, SegmentFiles, recover, segment_path,
};
use super::state::ExtentTable;
use super::stop::Stop;
use super::{ExtentNode, JOURNAL_QUEUE_COUNT_MAX, extent_path};
use crate::error::{StreamError, not_made};
use crate::ids::ExtentId;
use crate::settings::StreamSettings;
use crate::space::Space;
use base::{Disk, Environment, OpenMode};
use bytes::Bytes;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Zeros are written to a new journal file in pieces of this size.
const ZERO_WRITE_SIZE_BYTES: u64 = 1 << 20;

/// A node whose extents are up to its journal, and that has not written to its journal yet.
pub(crate) struct RecoveredNode {
    files: SegmentFiles,
    recovered: Recovered,
    extents: BTreeMap<ExtentId, Arc<Extent>>,
    /// Files in the extents' folder that no extent has.
    orphans: Vec<String>,
}

impl ExtentNode {
    /// Lays out an empty node: zeroed journal files and the folder for extents, all durable.
    pub(crate) async fn format(
        env: &Environment,
        settings: &StreamSettings,
        space: &Arc<Space>,
    ) -> Result<(), StreamError> {
        let failed = |what: &'static str| move |error: std::io::Error| not_made(what, &error);
        env.disk.create_folder("extents").await.map_err(failed("folder extents"))?;
        env.disk.create_folder("journal").await.map_err(failed("folder journal"))?;
        let mut files = Vec::with_capacity(SEGMENT_COUNT);
        for index in 0..SEGMENT_COUNT {
            let file =
                env.disk.open(&segment_path(index), OpenMode::CreateNew).await.map_err(failed("journal"))?;
            let zeros =
                Bytes::from(vec![0; ZERO_WRITE_SIZE_BYTES.min(settings.journal_segment_size_bytes) as usize]);
            let mut at = 0;
            while at < settings.journal_segment_size_bytes {
                let size = (zeros.len() as u64).min(settings.journal_segment_size_bytes - at);
                file.write_at(at, zeros.slice(..size as usize)).await.map_err(failed("journal"))?;
                at += size;
            }
            file.sync_data().await.map_err(failed("journal"))?;
            files.push(file);
        }
        for folder in ["journal", "extents", ""] {
            env.disk.sync_folder(folder).await.map_err(failed("data folder"))?;
        }
        // Unguessable, so that stored user data can't look like a record of this folder's journal.
        let generation = (env.random.next_u64() >> 2) + 2;
        let files = files.try_into().map_err(|_| StreamError::Folder("journal layout".to_owned()))?;
        let mut writer =
            new_writer(env, files, ExtentTable::default(), generation, 0, 0, space.clone()).await?;
        writer.start_segment().await
    }

    /// Recovers the journal and brings every extent's file up to it. The journal itself stays as it is. No file is changed
    /// if `check` finds what the journal says of the extents wrong.
    pub(crate) async fn recover(
        env: &Environment,
        check: impl FnOnce(&ExtentTable) -> Result<(), StreamError>,
    ) -> Result<RecoveredNode, StreamError> {
        let files = open_segments(env).await?;
        let mut contents = Vec::with_capacity(SEGMENT_COUNT);
        for file in &files {
            let what = |error: std::io::Error| StreamError::read("the journal", &error);
            let len = file.size().await.map_err(what)?;
            contents.push(file.read_at(0, len as usize).await.map_err(what)?);
        }
        let contents = contents.try_into().map_err(|_| StreamError::Folder("journal layout".to_owned()))?;
        let recovered = recover(&contents)?;
        drop(contents);
        if let Some(torn) = &recovered.torn {
            tracing::warn!("{torn}");
        }
        check(&recovered.table)?;
        let (extents, orphans) = open_extents(&*env.disk, &recovered).await?;
        Ok(RecoveredNode { files, recovered, extents, orphans })
    }

    /// Starts a new generation of the journal, and the node's tasks.
    pub(crate) async fn start(
        env: &Environment,
        settings: &StreamSettings,
        node: RecoveredNode,
        space: Arc<Space>,
    ) -> Result<Arc<Self>, StreamError> {
        let RecoveredNode { files, recovered, extents, orphans } = node;
        if let Some((file, header)) = recovered.unconfirmed {
            // The former process may have ended before its sync, or in spite of it: written again, it is on the disk for
            // certain before the older segments are written over, which it takes the place of.
            let failed = |error: std::io::Error| StreamError::write("journal", &error);
            files[file].write_at(0, header).await.map_err(failed)?;
            files[file].sync_data().await.map_err(failed)?;
        }
        let mut writer = new_writer(
            env,
            files,
            recovered.table,
            recovered.generation + 1,
            recovered.sequence,
            recovered.free_file,
            space.clone(),
        )
        .await?;
        writer.start_segment().await?;
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

async fn open_segments(env: &Environment) -> Result<SegmentFiles, StreamError> {
    let mut files = Vec::with_capacity(SEGMENT_COUNT);
    for index in 0..SEGMENT_COUNT {
        let path = segment_path(index);
        files.push(
            env.disk.open(&path, OpenMode::Write).await.map_err(|error| StreamError::read(&path, &error))?,
        );
    }
    files.try_into().map_err(|_| StreamError::Folder("journal layout".to_owned()))
}

async fn new_writer(
    env: &Environment,
    files: SegmentFiles,
    table: ExtentTable,
    generation: u64,
    sequence: u64,
    file: usize,
    space: Arc<Space>,
) -> Result<JournalWriter, StreamError> {
    // The files keep the size they were made with; a changed setting counts from the next format on.
    let segment_size_bytes =
        files[file].size().await.map_err(|error| StreamError::read("the journal", &error))?;
    let stop = Arc::new(Stop::default());
    Ok(JournalWriter {
        files,
        segment_size_bytes,
        file,
        generation,
        oldest_generation: generation,
        sequence,
        offset: 0,
        position: 0,
        table,
        drain: Arc::new(Drain::new(stop.clone(), space, segment_size_bytes)),
        owed: 0,
        stop,
        clock: env.clock.clone(),
        unmarked: false,
        memory: RecordMemory::default(),
    })
}

/// Opens every extent's file, writes what only the journal has, and syncs it. Returns the names of files besides, too.
async fn open_extents(
    disk: &dyn Disk,
    recovered: &Recovered,
) -> Result<(BTreeMap<ExtentId, Arc<Extent>>, Vec<String>), StreamError> {
    let mut names =
        disk.list("extents").await.map_err(|error| StreamError::read("folder extents", &error))?;
    let mut appends: BTreeMap<ExtentId, Vec<(u64, Bytes)>> = BTreeMap::new();
    for (extent, offset, bytes) in &recovered.appends {
        appends.entry(*extent).or_default().push((*offset, bytes.clone()));
    }
    let mut extents = BTreeMap::new();
    for (&id, &state) in &recovered.table.extents {
        let path = extent_path(id);
        names.retain(|name| extent_path_name(&path) != name);
        let file = disk.open(&path, OpenMode::Write).await.map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                StreamError::Corrupt(format!("{path} is missing; it should hold {} bytes", state.length))
            } else {
                StreamError::read(&path, &error)
            }
        })?;
        let write_failed = |error: std::io::Error| {
            if crate::error::is_disk_full(&error) {
                StreamError::DiskFull
            } else {
                StreamError::write(&path, &error)
            }
        };
        let journaled = appends.remove(&id).unwrap_or_default();
        for (offset, bytes) in &journaled {
            file.write_at(*offset, bytes.clone()).await.map_err(write_failed)?;
        }
        let len = file.size().await.map_err(|error| StreamError::read(&path, &error))?;
        if len < state.length {
            return Err(StreamError::Corrupt(format!(
                "{path} has {len} bytes; it should hold {}",
                state.length
            )));
        }
        if len > state.length {
            file.set_len(state.length).await.map_err(write_failed)?;
        }
        if !journaled.is_empty() || len > state.length {
            file.sync_data().await.map_err(write_failed)?;
        }
        extents.insert(id, Arc::new(Extent::new(id, file, state)));
    }
    Ok((extents, names))
}

/// Removes files of extents that the journal on the disk does not know any more.
async fn remove_orphans(disk: &dyn Disk, orphans: Vec<String>) -> Result<(), StreamError> {
    for orphan in orphans {
        tracing::info!(orphan, "removing a file that belongs to no extent");
        disk.remove(&format!("extents/{orphan}"))
            .await
            .map_err(|error| StreamError::write("orphan", &error))?;
    }
    Ok(())
}

fn extent_path_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
