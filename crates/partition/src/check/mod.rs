//! The offline check of a data folder: reads everything that counts, and says what is damaged and what that
//! means for which rows. It changes nothing: what the real recovery code would write goes to a disk in memory
//! over the folder.
//!
//! First the stream layer's files are read (`stream::check_streams`), then what lies in the streams: the
//! partition map, its copy, each range's metadata, checkpoints and log. What always holds: damage in one
//! range hides none in another; whatever makes the server refuse to start, or requests fail, is named.

mod folder_check;
mod pieces;
mod ranges;
mod words;

pub use folder_check::{Damage, FolderCheck};

use crate::background::maintenance::Maintenance;
use crate::blob_data::data_writer::DataWriter;
use crate::error::PartitionError;
use crate::lease::EndlessLease;
use crate::memory::memory_budget::MemoryBudget;
use crate::operation::{ObjectTable, Scan};
use crate::range_partition::{Life, RangeMetrics, Shared};
use crate::settings::PartitionSettings;
use crate::tree::block_cache::BlockCache;
use base::overlay_disk::OverlayDisk;
use base::{BoxFuture, Environment};
use ranges::{RangeCheck, scan_table};
use std::sync::Arc;
use stream::{
    DamagedPart, ExtentId, Incarnation, StreamCheck, StreamDamage, StreamError, StreamSettings, Streams,
    check_streams,
};

/// Checks the folder of `env`, whose disk is only read. `progress` gets the count of bytes that were read,
/// and of all there are. A folder that is not one of ours, or newer, is an error.
pub fn check_folder<'a>(
    env: &'a Environment,
    progress: &'a mut (dyn FnMut(u64, u64) + Send),
) -> BoxFuture<'a, Result<FolderCheck, PartitionError>> {
    Box::pin(async move {
        let env = &Environment { disk: Arc::new(OverlayDisk::new(env.disk.clone())), ..env.clone() };
        let streams = check_streams(env, progress).await?;
        let StreamCheck { extent_count, undigested_extent_count, block_count, size_bytes, is_fresh, .. } =
            streams;
        let mut found = FolderCheck {
            extent_count,
            undigested_extent_count,
            block_count,
            size_bytes,
            journaled_bytes: streams.journaled_bytes,
            is_fresh,
            torn: streams.torn,
            ..FolderCheck::default()
        };
        if is_fresh {
            return Ok(found);
        }
        let settings = StreamSettings { scrub_bytes_per_second: 0, ..StreamSettings::default() };
        let mut explained = Vec::new();
        match Streams::open(env, settings).await {
            Ok(opened) => {
                explained = check_ranges(env, &opened, &streams.damages, &mut found).await?;
                opened.close().await;
            }
            // Says nothing about the folder.
            Err(error @ StreamError::OutOfThreads { .. }) => return Err(error.into()),
            Err(error) if streams.damages.is_empty() => found.damages.push(Damage {
                place: "the folder".to_owned(),
                problem: error.to_string(),
                meaning: words::NO_START.to_owned(),
                rows: None,
            }),
            // Said already.
            Err(_) => {}
        }
        found.damages.extend(unexplained(streams.damages, &explained).map(told));
        Ok(found)
    })
}

/// Checks what lies in the streams of a stamp of several processes, which are only read. `damages` is what
/// the caller has found to be damaged in the streams themselves; how much it read it adds to what is found.
pub fn check_stamp_streams<'a>(
    env: &'a Environment,
    streams: &'a Arc<Streams>,
    damages: Vec<StreamDamage>,
) -> BoxFuture<'a, Result<FolderCheck, PartitionError>> {
    Box::pin(async move {
        let mut found = FolderCheck { is_fresh: streams.count() == 0, ..FolderCheck::default() };
        if !found.is_fresh {
            let explained = check_ranges(env, streams, &damages, &mut found).await?;
            found.damages.extend(unexplained(damages, &explained).map(told));
        }
        for damage in &mut found.damages {
            damage.meaning = words::of_stamp(&damage.meaning);
        }
        Ok(found)
    })
}

/// Shows the rows of a table to `scan`, as far as they can be read, of the streams of a stamp of several
/// processes, which are only read: for who wants names for what a check has found.
pub fn scan_stamp_streams<'a, S: Scan>(
    env: &'a Environment,
    streams: &'a Arc<Streams>,
    table: ObjectTable,
    scan: S,
) -> BoxFuture<'a, S> {
    Box::pin(async move {
        match shared(env, streams.clone()) {
            Ok(shared) => scan_table(&shared, table, scan).await,
            Err(_) => scan,
        }
    })
}

/// Checks all ranges. The blocks whose damage it has explained.
async fn check_ranges(
    env: &Environment,
    streams: &Arc<Streams>,
    damages: &[StreamDamage],
    found: &mut FolderCheck,
) -> Result<Vec<(ExtentId, u64)>, PartitionError> {
    let mut ranges = RangeCheck::new(shared(env, streams.clone())?, damages);
    ranges.run(found).await;
    Ok(ranges.explained())
}

/// Damage that no range has explained.
fn unexplained(
    damages: Vec<StreamDamage>,
    explained: &[(ExtentId, u64)],
) -> impl Iterator<Item = StreamDamage> {
    damages.into_iter().filter(|damage| match damage.part {
        DamagedPart::Block { extent, offset } => !explained.contains(&(extent, offset)),
        _ => true,
    })
}

fn told(damage: StreamDamage) -> Damage {
    let meaning = words::meaning_of(&damage);
    Damage { place: damage.place, problem: damage.problem, meaning, rows: None }
}

/// What loading a range takes; nothing runs in the background.
pub(crate) fn shared(env: &Environment, streams: Arc<Streams>) -> Result<Shared, PartitionError> {
    let settings = PartitionSettings::default();
    Ok(Shared {
        clock: env.clock.clone(),
        random: env.random.clone(),
        spawner: env.spawner.clone(),
        data_writer: DataWriter::start(&*env.spawner, &streams, settings.in_flight_size_bytes_max())?,
        row_data_writer: DataWriter::start_for_flushes(&*env.spawner, &streams)?,
        streams,
        cache: Arc::new(BlockCache::new(settings.cache_size_bytes_max)),
        memory: MemoryBudget::new(settings.memory_tables_size_bytes_max, settings.log_groups_max),
        dead: Arc::default(),
        settings,
        maintenance: Arc::new(Maintenance::default()),
        metrics: Arc::new(RangeMetrics::new(&env.metrics)),
        life: Life {
            incarnation: Incarnation::draw(&*env.random),
            lease: Arc::new(EndlessLease),
            shown: Arc::default(),
        },
        was_refused_space: Arc::default(),
    })
}
