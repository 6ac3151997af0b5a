//! What was copied is read again from the object store and compared with its source, block by block.
//!
//! What always holds: each extent is compared from its first byte to its last; each block and each part has
//! the right checksum on both sides.

use crate::migration::copy_extents::COPIES_AT_ONCE;
use crate::migration::error::MigrationError;
use crate::migration::hold::Hold;
use crate::migration::report::Report;
use bytes::Buf;
use futures_util::stream::{StreamExt, TryStreamExt, iter};
use stamp::ExtentEntry;
use std::time::Duration;
use stream::{ExtentId, FolderSource};

/// How long one part is tried.
const READ_FOR: Duration = Duration::from_secs(60);

/// Compares these extents.
pub(super) async fn compare_all(
    hold: &Hold,
    source: &FolderSource,
    copied: Vec<(ExtentId, ExtentEntry)>,
    report: &Report<'_>,
) -> Result<(), MigrationError> {
    let compares = copied.into_iter().map(|(extent, entry)| compare(hold, source, extent, entry, report));
    iter(compares.collect::<Vec<_>>()).buffer_unordered(COPIES_AT_ONCE).try_collect().await
}

async fn compare(
    hold: &Hold,
    source: &FolderSource,
    extent: ExtentId,
    entry: ExtentEntry,
    report: &Report<'_>,
) -> Result<(), MigrationError> {
    let differs = |at: u64| MigrationError::Differs(format!("extent {extent} at byte {at}"));
    let mut parts = hold.range.reader(&entry).ok_or_else(|| differs(0))?;
    let mut blocks = source.read(extent)?;
    let clock = &hold.life.surroundings.clock;
    loop {
        let until = clock.monotonic() + READ_FOR;
        let next = parts.next(|| hold.range.is_held() && clock.monotonic() < until).await;
        let Some(part) = next? else { break };
        let (at, mut rest) = (part.header.offset, part.body);
        let size = rest.len() as u64;
        while !rest.is_empty() {
            let block = blocks.next().await?.ok_or_else(|| differs(at))?;
            if !rest.starts_with(&block) {
                return Err(differs(at));
            }
            rest.advance(block.len());
        }
        report.compared(size);
    }
    match blocks.next().await? {
        Some(_) => Err(differs(entry.length.unwrap_or_default())),
        None => Ok(()),
    }
}
