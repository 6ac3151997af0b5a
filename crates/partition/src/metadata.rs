//! The metadata stream's format: each block is the whole metadata of a range partition; the last one counts.
//!
//! ```text
//! metadata = u8 format (1), u64 owner epoch, varint n, n bytes first key,
//!            u8 has end, [varint n, n bytes end key],
//!            u8 has log start, [u64 extent, u64 offset, u32 length],
//!            u64 last row version before the log start
//! ```

use crate::key::KeyRange;
use crate::operation::RowVersion;
use base::codec::{DecodeError, Decoder, Encode};
use bytes::Bytes;
use stream::{ExtentId, Location, OwnerEpoch};

const FORMAT: u8 = 1;

/// What a range partition is, besides its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) epoch: OwnerEpoch,
    pub(crate) range: KeyRange,
    /// The log's first group that no checkpoint holds; `None`: all of the log.
    pub(crate) log_start: Option<Location>,
    /// The highest row version before `log_start`.
    pub(crate) last_version: RowVersion,
}

impl Metadata {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        out.put_u8_field(FORMAT);
        out.put_u64_field(self.epoch.0);
        out.put_bytes_field(&self.range.start);
        out.put_u8_field(u8::from(self.range.end.is_some()));
        if let Some(end) = &self.range.end {
            out.put_bytes_field(end);
        }
        out.put_u8_field(u8::from(self.log_start.is_some()));
        if let Some(start) = &self.log_start {
            out.put_u64_field(start.extent.0);
            out.put_u64_field(start.offset);
            out.put_u32_field(start.len);
        }
        out.put_u64_field(self.last_version.0);
        out.into()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(bytes);
        if decoder.u8("metadata format")? != FORMAT {
            return Err(DecodeError("metadata format"));
        }
        let epoch = OwnerEpoch(decoder.u64("owner epoch")?);
        let start = Bytes::copy_from_slice(decoder.bytes("first key")?);
        let end = match decoder.u8("has end")? {
            0 => None,
            _ => Some(Bytes::copy_from_slice(decoder.bytes("end key")?)),
        };
        let log_start = match decoder.u8("has log start")? {
            0 => None,
            _ => Some(Location {
                extent: ExtentId(decoder.u64("log extent")?),
                offset: decoder.u64("log offset")?,
                len: decoder.u32("log length")?,
            }),
        };
        let last_version = RowVersion(decoder.u64("last version")?);
        decoder.finish("metadata")?;
        Ok(Metadata { epoch, range: KeyRange { start, end }, log_start, last_version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn metadata_comes_back(
            epoch: u64, start: Vec<u8>, end: Option<Vec<u8>>, log: Option<(u64, u64, u32)>, version: u64
        ) {
            let metadata = Metadata {
                epoch: OwnerEpoch(epoch),
                range: KeyRange { start: start.into(), end: end.map(Bytes::from) },
                log_start: log.map(|(extent, offset, len)| Location { extent: ExtentId(extent), offset, len }),
                last_version: RowVersion(version),
            };
            prop_assert_eq!(Metadata::decode(&metadata.encode()), Ok(metadata));
        }

        #[test]
        fn any_bytes_parse_or_are_refused(bytes: Vec<u8>) {
            let _ = Metadata::decode(&bytes);
        }
    }
}
