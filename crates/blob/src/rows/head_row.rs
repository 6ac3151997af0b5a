//! The head row of a blob's name: lease, counts, and the base blob's record.
//!
//! ```text
//! row name = 2h
//! value    = row start, u8 format (1, and 1 more with the time, and 2 more with versions),
//!            varint staged blocks, [varint ticks when the last one was staged,] u8 length of their ids,
//!            varint snapshots, varint deleted snapshots, [varint versions], lease, u8 record is there,
//!            [record]
//! ```
//!
//! What always holds: if anything but pages that are being removed is stored under a name, its head is there.

use crate::lease::Lease;
use crate::rows::decision::stop::Stop;
use crate::rows::record::BlobRecord;
use base::Ticks;
use base::codec::{DecodeError, Decoder, Encode};
use partition::RowStart;

/// Row name of the head.
pub(crate) const HEAD: &str = "2h";

const HEAD_FORMAT: u8 = 1;
/// What the format of a head is higher by that says since when its staged blocks are idle.
const WITH_TIME: u8 = 1;
/// What the format of a head is higher by that counts versions.
const WITH_VERSIONS: u8 = 2;

/// The head row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) lease: Lease,
    pub(crate) staged: u32,
    /// When the last of them was staged; 0: nobody knows.
    pub(crate) staged_at: Ticks,
    pub(crate) staged_id_len: u8,
    pub(crate) snapshots: u32,
    pub(crate) deleted_snapshots: u32,
    /// Former ones, deleted or not.
    pub(crate) versions: u32,
    pub(crate) current: Option<BlobRecord>,
}

impl Head {
    pub(crate) fn encode(&self) -> Result<Vec<u8>, Stop> {
        let start = match &self.current {
            Some(current) => current.content.row_start().ok_or(Stop::NeedContent)?,
            None => RowStart::default(),
        };
        let mut out = Vec::with_capacity(256 + start.overflow_size_bytes);
        start.put(&mut out);
        let has_time = self.staged > 0 && self.staged_at.0 > 0;
        let has_versions = self.versions > 0;
        let with = |has: bool, part: u8| if has { part } else { 0 };
        out.put_u8_field(HEAD_FORMAT + with(has_time, WITH_TIME) + with(has_versions, WITH_VERSIONS));
        out.put_varint(u64::from(self.staged));
        if has_time {
            out.put_varint(self.staged_at.0);
        }
        out.put_u8_field(self.staged_id_len);
        out.put_varint(u64::from(self.snapshots));
        out.put_varint(u64::from(self.deleted_snapshots));
        if has_versions {
            out.put_varint(u64::from(self.versions));
        }
        self.lease.encode(&mut out);
        out.put_u8_field(u8::from(self.current.is_some()));
        if let Some(current) = &self.current {
            current.encode(&mut out);
        }
        Ok(out)
    }

    pub(crate) fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(value);
        let start = RowStart::take(&mut decoder)?;
        let format = decoder.u8("head format")?;
        if !(HEAD_FORMAT..=HEAD_FORMAT + WITH_TIME + WITH_VERSIONS).contains(&format) {
            return Err(DecodeError("head format"));
        }
        let count = |number: u64| u32::try_from(number).map_err(|_| DecodeError("head count"));
        let staged = count(decoder.varint("staged blocks")?)?;
        let has = |part: u8| (format - HEAD_FORMAT) & part != 0;
        let staged_at = if has(WITH_TIME) { decoder.varint("time of staging")? } else { 0 };
        let mut head = Head {
            staged,
            staged_at: Ticks(staged_at),
            staged_id_len: decoder.u8("length of ids")?,
            snapshots: count(decoder.varint("snapshots")?)?,
            deleted_snapshots: count(decoder.varint("deleted snapshots")?)?,
            versions: if has(WITH_VERSIONS) { count(decoder.varint("versions")?)? } else { 0 },
            lease: Lease::decode(&mut decoder)?,
            current: None,
        };
        if decoder.u8("record is there")? != 0 {
            head.current = Some(BlobRecord::decode(&mut decoder, start)?);
        }
        decoder.finish("head row")?;
        Ok(head)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.current.is_none()
            && self.staged == 0
            && self.snapshots == 0
            && self.deleted_snapshots == 0
            && self.versions == 0
            && self.lease == Lease::None
    }

    /// The base blob, unless it is deleted.
    pub(crate) fn live(&self) -> Option<&BlobRecord> {
        self.current.as_ref().filter(|current| current.deleted.is_none())
    }
}
