//! Extents of a folder become extents of the stamp: several at a time, each part by part.
//!
//! They go in waves, of one extent for each stream that lists what was copied, so that one change of the
//! document names a whole wave and one records its lengths: each change writes the whole document, and the
//! metadata store keeps all of them for a while.
//!
//! What always holds: an extent is listed before its first part is sent, and its name is used by one life
//! only; its length is recorded once all its parts are there, behind one another, and sealed; parts end where
//! blocks end; at most [`COPIES_AT_ONCE`] windows of parts are under way.

use crate::extents::log::Appended;
use crate::migration::content::lane_purpose;
use crate::migration::error::MigrationError;
use crate::migration::hold::{Hold, WINDOW_PARTS};
use crate::migration::report::Report;
use bytes::Bytes;
use futures_util::stream::{StreamExt, TryStreamExt, iter};
use stamp::{Change, ExtentName, PART_BODY_SIZE_MAX, StreamId};
use std::collections::VecDeque;
use stream::{ExtentId, FolderSource, SourceExtent};

/// Extents of a wave.
const LANES: usize = 16;
/// Extents that are copied or compared at a time, each with one or two parts.
pub(super) const COPIES_AT_ONCE: usize = 4;
/// A part ends before the block that would make it larger. What is under way at once must arrive within the
/// time of one try, over an ordinary line.
const PART_SIZE_BYTES: usize = 4 << 20;

/// The streams that list what is copied; they are made if they are missing.
async fn lanes(hold: &Hold, fingerprint: u64) -> Result<Vec<StreamId>, MigrationError> {
    let document = hold.range.document();
    let (mut lanes, mut changes) = (Vec::new(), Vec::new());
    for lane in 0..LANES {
        let purpose = lane_purpose(fingerprint, lane);
        let known = document.streams.iter().find(|(_, stream)| stream.purpose == purpose);
        lanes.push(match known {
            Some((id, _)) => *id,
            None => {
                let stream = StreamId(hold.life.next_name());
                changes.push(Change::CreateStream { stream, purpose });
                stream
            }
        });
    }
    if !changes.is_empty() {
        hold.range.change(&changes).await?;
    }
    Ok(lanes)
}

/// Copies extents of these ids and lengths.
pub(super) async fn copy_all(
    hold: &Hold,
    source: &FolderSource,
    fingerprint: u64,
    mut missing: Vec<(ExtentId, u64)>,
    report: &Report<'_>,
) -> Result<(), MigrationError> {
    // Those of a wave end together.
    missing.sort_by_key(|(extent, length)| (std::cmp::Reverse(*length), *extent));
    let lanes = lanes(hold, fingerprint).await?;
    for wave in missing.chunks(LANES) {
        let name = |extent| ExtentName::of_short(hold.life.incarnation(), extent);
        let wave: Vec<Copied> = wave
            .iter()
            .zip(&lanes)
            .map(|((short, length), lane)| Copied { lane: *lane, name: name(*short), length: *length })
            .collect();
        let add = |copied: &Copied| Change::AddExtent { stream: copied.lane, extent: copied.name };
        hold.range.change(&wave.iter().map(add).collect::<Vec<_>>()).await?;
        let copies: Vec<_> = wave.iter().map(|copied| copy(hold, source, copied, report)).collect();
        let sealed: Vec<Vec<Change>> = iter(copies).buffer_unordered(COPIES_AT_ONCE).try_collect().await?;
        hold.range.change(&sealed.concat()).await?;
    }
    Ok(())
}

/// An extent that is being copied.
struct Copied {
    lane: StreamId,
    name: ExtentName,
    length: u64,
}

/// Copies and seals an extent that is listed; the changes that record its length.
async fn copy(
    hold: &Hold,
    source: &FolderSource,
    copied: &Copied,
    report: &Report<'_>,
) -> Result<Vec<Change>, MigrationError> {
    let Copied { lane, name, length } = *copied;
    let extent = name.short();
    let mut blocks = Parts { blocks: source.read(extent)?, next: None };
    let log = hold.range.log(lane);
    let away = |error: String| MigrationError::Away(format!("extent {extent}: {error}"));
    let (mut appended, mut end) = (VecDeque::new(), 0);
    while let Some(part) = blocks.next_part().await? {
        let sent = log.append(part).await.map_err(|error| away(error.to_string()))?;
        let header = *sent.header();
        if (header.place.extent, header.offset) != (name, end) {
            return Err(MigrationError::Differs(format!("extent {extent} was given another place")));
        }
        end = header.end();
        appended.push_back((sent, header.body_length));
        if appended.len() > WINDOW_PARTS {
            settle(&mut appended, report).await.map_err(away)?;
        }
    }
    while !appended.is_empty() {
        settle(&mut appended, report).await.map_err(away)?;
    }
    if end != length {
        return Err(MigrationError::Differs(format!("extent {extent} has {end} bytes, not {length}")));
    }
    let recorded = vec![Change::RecordLength { stream: lane, extent: name, length }];
    match log.seal_extent().await.map_err(away)? {
        sealed if sealed == recorded => Ok(sealed),
        _ => Err(MigrationError::Differs(format!("extent {extent} was sealed elsewhere"))),
    }
}

/// Waits until the first of the parts that were sent is durable.
async fn settle(appended: &mut VecDeque<(Appended, u64)>, report: &Report<'_>) -> Result<(), String> {
    let Some((sent, length)) = appended.pop_front() else { return Ok(()) };
    sent.durable().await.map_err(|error| error.to_string())?;
    report.copied(length);
    Ok(())
}

/// Whole blocks of an extent, taken together.
struct Parts {
    blocks: SourceExtent,
    /// The block that begins the next part.
    next: Option<Bytes>,
}

impl Parts {
    async fn next_part(&mut self) -> Result<Option<Bytes>, MigrationError> {
        let mut part = Vec::new();
        loop {
            let block = match self.next.take() {
                Some(block) => block,
                None => match self.blocks.next().await? {
                    Some(block) => block,
                    None => break,
                },
            };
            if block.len() as u64 > PART_BODY_SIZE_MAX {
                return Err(MigrationError::Refused(format!(
                    "a block has {} bytes, and a part of a stamp at most {PART_BODY_SIZE_MAX}",
                    block.len()
                )));
            }
            if !part.is_empty() && part.len() + block.len() > PART_SIZE_BYTES {
                self.next = Some(block);
                break;
            }
            part.extend_from_slice(&block);
        }
        Ok((!part.is_empty()).then(|| part.into()))
    }
}
