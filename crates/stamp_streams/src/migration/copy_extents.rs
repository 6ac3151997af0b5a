//! Extents of a folder become extents of the stamp: several at a time, each part by part.
//!
//! What always holds: an extent is listed before its first part is sent, and its name is used by one life
//! only; its length is recorded once all its parts are there, behind one another, and sealed; parts end where
//! blocks end; at most [`LANES`] windows of parts are under way.

use crate::migration::content::lane_purpose;
use crate::migration::error::MigrationError;
use crate::migration::hold::Hold;
use crate::migration::into_stamp::Report;
use bytes::Bytes;
use futures_util::future::try_join_all;
use parking_lot::Mutex;
use stamp::{Change, ExtentName, PART_BODY_SIZE_MAX, StreamId};
use std::collections::VecDeque;
use stream::{ExtentId, FolderSource, SourceExtent};

/// Extents that are copied at a time, each with a window of 2 parts.
pub(super) const LANES: usize = 4;
/// A part ends before the block that would make it larger.
const PART_SIZE_BYTES: usize = 8 << 20;

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
    missing: Vec<(ExtentId, u64)>,
    report: &Report<'_>,
) -> Result<(), MigrationError> {
    let lanes = lanes(hold, fingerprint).await?;
    let missing = Mutex::new(VecDeque::from(missing));
    let copying = lanes.into_iter().map(|lane| {
        let missing = &missing;
        async move {
            loop {
                let Some((extent, length)) = missing.lock().pop_front() else { return Ok(()) };
                copy(hold, source, lane, (extent, length), report).await?;
            }
        }
    });
    try_join_all(copying).await.map(drop)
}

async fn copy(
    hold: &Hold,
    source: &FolderSource,
    lane: StreamId,
    (extent, length): (ExtentId, u64),
    report: &Report<'_>,
) -> Result<(), MigrationError> {
    let name = ExtentName::of_short(hold.life.incarnation(), extent);
    let mut blocks = Parts { blocks: source.read(extent)?, next: None };
    hold.range.change(&[Change::AddExtent { stream: lane, extent: name }]).await?;
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
        if appended.len() > super::hold::WINDOW_PARTS {
            settle(&mut appended, report).await.map_err(away)?;
        }
    }
    while !appended.is_empty() {
        settle(&mut appended, report).await.map_err(away)?;
    }
    if end != length {
        return Err(MigrationError::Differs(format!("extent {extent} has {end} bytes, not {length}")));
    }
    log.end_extent().await.map_err(away)
}

/// Waits until the first of the parts that were sent is durable.
async fn settle(
    appended: &mut VecDeque<(crate::extents::log::Appended, u64)>,
    report: &Report<'_>,
) -> Result<(), String> {
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
