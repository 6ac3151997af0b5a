//! The bytes of a range's document, as the metadata store keeps them.
//!
//! ```text
//!  4  magic "LDOC"
//!  2  format, 1
//! 16  stamp
//! 24  range
//!     own entry: 1 byte 1 or 0, 16 incarnation of the owner if 1, 8 epoch
//!     keys: limits
//! 24  mark
//!  1  1 if no backup has what only the document says, else 0
//!     varint  count of streams, in order of their ids; for each
//!         24  id
//!             bytes purpose, varint next ordinal, varint trim ordinal, varint trim offset
//!             varint count of extents, in order; for each
//!                 24  name
//!                     varint ordinal
//!                     1 byte 1 or 0, varint length if 1
//!                     1 byte 1 or 0, limits if 1
//!  8  CRC-64/NVME of all before
//! ```
//!
//! Limits are bytes `from`, 1 byte 1 or 0, bytes `to` if 1. "Bytes" are a varint length and so many bytes.
//! What always holds: what is read has the invariants of `range_document.rs`; all else is an error that names
//! the range.

use crate::document::range_document::{
    ExtentEntry, KeyLimits, OwnEntry, RangeDocument, StreamEntry, TrimPoint,
};
use crate::error::StoredError;
use crate::ids::{ExtentName, Incarnation, Mark, RangeId, StampId, StreamId, UniqueName, decode_wide};
use base::checksum::crc64;
use base::codec::{DecodeError, Decoder, Encode};
use std::collections::BTreeMap;
use stream::OwnerEpoch;

/// Bytes that a document may have. The metadata store takes transactions of 1.5 MB.
pub const DOCUMENT_SIZE_BYTES_MAX: usize = 256 << 10;
/// From this size on it is worth a warning: the range has too many extents, and should be split or compacted.
pub const DOCUMENT_SIZE_BYTES_LARGE: usize = DOCUMENT_SIZE_BYTES_MAX / 4 * 3;
/// The newest format that is read, and the one that is written.
pub const DOCUMENT_FORMAT: u16 = 1;

const MAGIC: &[u8; 4] = b"LDOC";
const CHECKSUM_SIZE: usize = 8;
/// Magic, format, checksum.
const SIZE_MIN: usize = 6 + CHECKSUM_SIZE;

/// The bytes of a document of `stamp`.
pub fn encode_document(document: &RangeDocument, stamp: StampId) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_raw(MAGIC);
    out.put_u16_field(DOCUMENT_FORMAT);
    out.put_raw(&stamp.0.to_le_bytes());
    document.range.0.encode(&mut out);
    put_option(&mut out, document.own.owner.as_ref(), |out, owner| out.put_raw(&owner.0.to_le_bytes()));
    out.put_u64_field(document.own.epoch.0);
    put_limits(&mut out, &document.keys);
    document.mark.0.encode(&mut out);
    out.put_u8_field(u8::from(document.needs_backup));
    out.put_varint(document.streams.len() as u64);
    for (id, stream) in &document.streams {
        id.0.encode(&mut out);
        out.put_bytes_field(stream.purpose.as_bytes());
        out.put_varint(stream.next_ordinal);
        out.put_varint(stream.trim.ordinal);
        out.put_varint(stream.trim.offset);
        out.put_varint(stream.extents.len() as u64);
        for extent in &stream.extents {
            extent.name.0.encode(&mut out);
            out.put_varint(extent.ordinal);
            put_option(&mut out, extent.length.as_ref(), |out, length| out.put_varint(*length));
            put_option(&mut out, extent.limits.as_ref(), put_limits);
        }
    }
    let checksum = crc64(&[&out]);
    out.put_u64_field(checksum);
    out
}

/// Reads the document of `range` in `stamp`.
pub fn decode_document(bytes: &[u8], stamp: StampId, range: RangeId) -> Result<RangeDocument, StoredError> {
    let what = format!("document of range {range}");
    let cut =
        || StoredError::Cut { what: what.clone(), found: bytes.len() as u64, expected: SIZE_MIN as u64 };
    let (checked, checksum) = bytes.split_last_chunk::<CHECKSUM_SIZE>().ok_or_else(cut)?;
    if checked.len() < SIZE_MIN - CHECKSUM_SIZE {
        return Err(cut());
    }
    if &checked[..4] != MAGIC {
        return Err(StoredError::malformed(&what, &"it does not begin as a document does"));
    }
    // A document that was cut has a wrong checksum, too: its length is nowhere else.
    if crc64(&[checked]).to_le_bytes() != *checksum {
        return Err(StoredError::WrongChecksum { what, of: "content" });
    }
    let format = u16::from_le_bytes([checked[4], checked[5]]);
    if format > DOCUMENT_FORMAT {
        return Err(StoredError::NewerFormat { what, found: format, newest: DOCUMENT_FORMAT });
    }
    let (found_stamp, document) =
        decode_fields(&checked[6..]).map_err(|error| StoredError::malformed(&what, &error))?;
    if found_stamp != stamp {
        let (found, expected) = (found_stamp.to_string(), stamp.to_string());
        return Err(StoredError::OtherStamp { what, found, expected });
    }
    if document.range != range {
        return Err(StoredError::malformed(&what, &format_args!("it is of range {}", document.range)));
    }
    check(&document).map_err(|why| StoredError::malformed(&what, &why))?;
    Ok(document)
}

fn check(document: &RangeDocument) -> Result<(), String> {
    for (id, stream) in &document.streams {
        let ordinals: Vec<u64> = stream.extents.iter().map(|entry| entry.ordinal).collect();
        let is_rising = ordinals.is_sorted_by(|first, second| first < second);
        if !is_rising || ordinals.last().is_some_and(|last| *last >= stream.next_ordinal) {
            return Err(format!("ordinals of stream {id} do not rise to {}", stream.next_ordinal));
        }
    }
    Ok(())
}

fn put_option<T>(out: &mut Vec<u8>, value: Option<&T>, put: impl FnOnce(&mut Vec<u8>, &T)) {
    out.put_u8_field(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

fn put_limits(out: &mut Vec<u8>, limits: &KeyLimits) {
    out.put_bytes_field(&limits.from);
    put_option(out, limits.to.as_ref(), |out, to| out.put_bytes_field(to));
}

fn is_some(decoder: &mut Decoder<'_>, field: &'static str) -> Result<bool, DecodeError> {
    match decoder.u8(field)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(DecodeError(field)),
    }
}

fn decode_limits(decoder: &mut Decoder<'_>) -> Result<KeyLimits, DecodeError> {
    let from = decoder.bytes("first key")?.to_vec();
    let to = is_some(decoder, "last key")?.then(|| decoder.bytes("last key").map(<[u8]>::to_vec));
    Ok(KeyLimits { from, to: to.transpose()? })
}

fn decode_fields(bytes: &[u8]) -> Result<(StampId, RangeDocument), DecodeError> {
    let mut decoder = Decoder::new(bytes);
    let stamp = StampId(decode_wide(&mut decoder, "stamp")?);
    let range = RangeId(UniqueName::decode(&mut decoder, "range")?);
    let owner = is_some(&mut decoder, "owner")?.then(|| decode_wide(&mut decoder, "owner")).transpose()?;
    let epoch = OwnerEpoch(decoder.u64("epoch")?);
    let own = OwnEntry { owner: owner.map(Incarnation), epoch };
    let keys = decode_limits(&mut decoder)?;
    let mark = Mark(UniqueName::decode(&mut decoder, "mark")?);
    let needs_backup = is_some(&mut decoder, "need of a backup")?;
    let mut streams = BTreeMap::new();
    for _ in 0..decoder.varint("count of streams")? {
        let id = StreamId(UniqueName::decode(&mut decoder, "stream")?);
        if streams.insert(id, decode_stream(&mut decoder)?).is_some() {
            return Err(DecodeError("list of streams"));
        }
    }
    decoder.finish("end of the document")?;
    Ok((stamp, RangeDocument { range, own, keys, streams, mark, needs_backup }))
}

fn decode_stream(decoder: &mut Decoder<'_>) -> Result<StreamEntry, DecodeError> {
    let purpose = decoder.text("purpose of a stream")?.to_owned();
    let next_ordinal = decoder.varint("next ordinal")?;
    let ordinal = decoder.varint("trim point")?;
    let trim = TrimPoint { ordinal, offset: decoder.varint("trim point")? };
    let mut extents = Vec::new();
    for _ in 0..decoder.varint("count of extents")? {
        let name = ExtentName(UniqueName::decode(decoder, "extent")?);
        let ordinal = decoder.varint("ordinal")?;
        let length = is_some(decoder, "length")?.then(|| decoder.varint("length")).transpose()?;
        let limits = is_some(decoder, "limits")?.then(|| decode_limits(decoder)).transpose()?;
        extents.push(ExtentEntry { name, ordinal, length, limits });
    }
    Ok(StreamEntry { purpose, next_ordinal, trim, extents })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAMP: StampId = StampId(5);

    fn document() -> RangeDocument {
        let by = Incarnation(3);
        let range = RangeId::new(by, 1);
        let keys = KeyLimits { from: b"a".to_vec(), to: Some(b"m".to_vec()) };
        let own = OwnEntry { owner: Some(by), epoch: OwnerEpoch(4) };
        let mut document = RangeDocument::new(range, own, keys.clone(), Mark::new(by, 9));
        let entry = |counter, ordinal, length, limits| ExtentEntry {
            name: ExtentName::new(by, counter),
            ordinal,
            length,
            limits,
        };
        let stream = StreamEntry {
            purpose: "log".to_owned(),
            next_ordinal: 8,
            trim: TrimPoint { ordinal: 2, offset: 77 },
            extents: vec![entry(5, 2, Some(300), Some(keys)), entry(6, 7, None, None)],
        };
        document.streams.insert(StreamId::new(by, 2), stream);
        document.streams.insert(StreamId::new(by, 3), StreamEntry::default());
        document
    }

    fn decode(bytes: &[u8]) -> Result<RangeDocument, StoredError> {
        decode_document(bytes, STAMP, document().range)
    }

    fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
        let end = bytes.len() - CHECKSUM_SIZE;
        let checksum = crc64(&[&bytes[..end]]);
        bytes[end..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    #[test]
    fn a_document_comes_back() {
        assert_eq!(decode(&encode_document(&document(), STAMP)), Ok(document()));
        let own = OwnEntry::released(OwnerEpoch(1));
        let released = RangeDocument { own, needs_backup: false, ..document() };
        assert_eq!(decode(&encode_document(&released, STAMP)), Ok(released));
    }

    #[test]
    fn errors_name_the_range_and_what_is_wrong() {
        let bytes = encode_document(&document(), STAMP);
        let mut newer = bytes.clone();
        newer[4] = 2;
        let mut falling = document();
        falling.streams.values_mut().next().unwrap().next_ordinal = 7;
        let mut other_range = document();
        other_range.range = RangeId::new(Incarnation(9), 9);
        let cases = [
            (bytes[..bytes.len() - 1].to_vec(), "checksum of its content differs"),
            (bytes[..10].to_vec(), "is cut: 10 bytes"),
            (Vec::new(), "is cut: 0 bytes"),
            (with_checksum(newer), "has format 2, this program reads up to 1"),
            (encode_document(&document(), StampId(6)), "belongs to stamp"),
            (encode_document(&other_range, STAMP), "it is of range"),
            (encode_document(&falling, STAMP), "do not rise to 7"),
            (with_checksum([&b"XDOC"[..], &bytes[4..]].concat()), "does not begin as a document does"),
        ];
        for (bytes, expected) in cases {
            let error = decode(&bytes).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(error.contains(&document().range.to_string()), "{error}");
        }
    }

    #[test]
    fn any_flipped_bit_and_any_cut_is_noticed() {
        let bytes = encode_document(&document(), STAMP);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&flipped).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(decode(&bytes[..len]).is_err(), "{len} bytes");
            assert!(decode(&with_checksum(bytes[..len.max(SIZE_MIN)].to_vec())).is_err(), "{len} bytes");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 14..200)) {
            let mut bytes = bytes;
            bytes[..4].copy_from_slice(MAGIC);
            bytes[4..6].copy_from_slice(&1u16.to_le_bytes());
            prop_assert!(decode(&with_checksum(bytes)).is_err());
        }
    }
}
