//! The metadata stream's format: each block is the whole metadata of a range partition; the last one counts.
//!
//! ```text
//! metadata   = u8 format (1), u64 owner epoch, range, u64 version, u8 has log start, [location],
//!              varint next checkpoint number, varint count, checkpoint* (newest first)
//! range      = varint n, n bytes first key, u8 has end, [varint n, n bytes end key]
//! checkpoint = varint number of its stream, location of its root, range it is read for
//! location   = u64 extent, u64 offset, u32 length
//! ```
//!
//! Why a checkpoint has a range of its own: after a split both children refer to the same checkpoint, and
//! after a merge of ranges one of them may have rewritten its part.

use crate::key::KeyRange;
use crate::operation::RowVersion;
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;
use stream::{ExtentId, Location, OwnerEpoch};

const FORMAT: u8 = 1;

/// What a range partition is, besides its recent rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) epoch: OwnerEpoch,
    pub(crate) range: KeyRange,
    /// Changes up to this version are in the checkpoints.
    pub(crate) flushed_version: RowVersion,
    /// A group of the log from which replay finds every later change; `None`: the log's start.
    pub(crate) log_start: Option<Location>,
    /// The next checkpoint's stream gets this number.
    pub(crate) next_checkpoint: u64,
    /// Newest first.
    pub(crate) checkpoints: Vec<CheckpointReference>,
}

/// A checkpoint that belongs to the range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointReference {
    /// Number in its stream's name.
    pub(crate) number: u64,
    pub(crate) root: Location,
    /// Keys outside are foreign: they are hidden.
    pub(crate) limit: KeyRange,
}

impl Metadata {
    /// A range that has never held a row.
    pub(crate) fn empty(range: KeyRange) -> Self {
        Metadata {
            epoch: OwnerEpoch(0),
            range,
            flushed_version: RowVersion(0),
            log_start: None,
            next_checkpoint: 1,
            checkpoints: Vec::new(),
        }
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        out.put_u8_field(FORMAT);
        out.put_u64_field(self.epoch.0);
        put_range(&mut out, &self.range);
        out.put_u64_field(self.flushed_version.0);
        out.put_u8_field(u8::from(self.log_start.is_some()));
        if let Some(start) = self.log_start {
            put_location(&mut out, start);
        }
        out.put_varint(self.next_checkpoint);
        out.put_varint(self.checkpoints.len() as u64);
        for checkpoint in &self.checkpoints {
            out.put_varint(checkpoint.number);
            put_location(&mut out, checkpoint.root);
            put_range(&mut out, &checkpoint.limit);
        }
        out.into()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(bytes);
        if decoder.u8("metadata format")? != FORMAT {
            return Err(DecodeError("metadata format"));
        }
        let mut metadata = Metadata {
            epoch: OwnerEpoch(decoder.u64("owner epoch")?),
            range: take_range(&mut decoder)?,
            flushed_version: RowVersion(decoder.u64("flushed version")?),
            log_start: match decoder.u8("has log start")? {
                0 => None,
                _ => Some(take_location(&mut decoder)?),
            },
            next_checkpoint: decoder.varint("next checkpoint")?,
            checkpoints: Vec::new(),
        };
        for _ in 0..decoder.varint("checkpoint count")? {
            metadata.checkpoints.push(CheckpointReference {
                number: decoder.varint("checkpoint number")?,
                root: take_location(&mut decoder)?,
                limit: take_range(&mut decoder)?,
            });
        }
        decoder.finish("metadata")?;
        Ok(metadata)
    }
}

fn put_range(out: &mut Vec<u8>, range: &KeyRange) {
    out.put_bytes_field(&range.start);
    out.put_u8_field(u8::from(range.end.is_some()));
    if let Some(end) = &range.end {
        out.put_bytes_field(end);
    }
}

fn take_range(decoder: &mut Decoder<'_>) -> Result<KeyRange, DecodeError> {
    let start = Bytes::copy_from_slice(decoder.bytes("first key")?);
    let end = match decoder.u8("has end")? {
        0 => None,
        _ => Some(Bytes::copy_from_slice(decoder.bytes("end key")?)),
    };
    Ok(KeyRange { start, end })
}

/// Appends an encoded location.
pub(crate) fn put_location(out: &mut Vec<u8>, location: Location) {
    out.put_u64_field(location.extent.0);
    out.put_u64_field(location.offset);
    out.put_u32_field(location.len);
}

/// Reads an encoded location.
pub(crate) fn take_location(decoder: &mut Decoder<'_>) -> Result<Location, DecodeError> {
    Ok(Location {
        extent: ExtentId(decoder.u64("location extent")?),
        offset: decoder.u64("location offset")?,
        len: decoder.u32("location length")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn location() -> impl Strategy<Value = Location> {
        any::<(u64, u64, u32)>().prop_map(|(extent, offset, len)| Location {
            extent: ExtentId(extent),
            offset,
            len,
        })
    }

    fn range() -> impl Strategy<Value = KeyRange> {
        any::<(Vec<u8>, Option<Vec<u8>>)>()
            .prop_map(|(start, end)| KeyRange { start: start.into(), end: end.map(Bytes::from) })
    }

    proptest! {
        #[test]
        fn metadata_comes_back(
            epoch: u64,
            version: u64,
            next_checkpoint: u64,
            range in range(),
            log_start in prop::option::of(location()),
            checkpoints in prop::collection::vec((any::<u64>(), location(), range()), 0..4),
        ) {
            let checkpoints = checkpoints
                .into_iter()
                .map(|(number, root, limit)| CheckpointReference { number, root, limit })
                .collect();
            let (epoch, flushed_version) = (OwnerEpoch(epoch), RowVersion(version));
            let metadata = Metadata { epoch, range, flushed_version, log_start, next_checkpoint, checkpoints };
            prop_assert_eq!(Metadata::decode(&metadata.encode()), Ok(metadata));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(bytes: Vec<u8>) {
            let _ = Metadata::decode(&bytes);
            let _ = Metadata::decode(&[&[FORMAT], bytes.as_slice()].concat());
        }
    }
}
