//! The header of a part and of a seal: the first 256 bytes of each object of an extent.
//!
//! ```text
//! offset  size  field
//!      0     4  magic "LPRT"
//!      4     2  format, 1
//!      6     1  kind: 1 part, 2 seal
//!      7     1  zero
//!      8    16  stamp
//!     24    16  generation of the metadata store that the writer knew
//!     40    24  extent: incarnation that named it, counter
//!     64     8  offset: bytes of body in the extent before this object
//!     72     8  body length, behind this header
//!     80    24  range
//!    104    24  stream
//!    128     8  ordinal of the extent in its stream
//!    136    16  incarnation of the writer
//!    152     8  owner epoch of the writer
//!    160     8  CRC-64/NVME of the body
//!    168     8  checksum of the header before this one in the extent; 0 in the first
//!    176    72  zero
//!    248     8  CRC-64/NVME of bytes 0..248: the checksum of this header
//! ```
//!
//! Integers are little-endian. All formats keep magic, format and checksum where they are, so that a newer
//! format is distinguished from damage. There is no time stamp and no attempt number: a part that is sent
//! again is byte for byte the same. What always holds: a part has a body, and what is decoded names the
//! extent and the offset under which it lies.

use crate::error::StoredError;
use crate::ids::decode_wide;
use crate::ids::{ExtentName, Generation, Incarnation, Owner, RangeId, StampId, StreamId, UniqueName};
use base::checksum::crc64;
use base::codec::{DecodeError, Decoder, Encode};
use std::fmt;
use stream::OwnerEpoch;

/// Bytes of each header.
pub const PART_HEADER_SIZE: usize = 256;
/// Bytes that the body of a part may have.
pub const PART_BODY_SIZE_MAX: u64 = 64 << 20;
/// The newest format that is read, and the one that is written.
pub const PART_FORMAT: u16 = 1;

const MAGIC: &[u8; 4] = b"LPRT";
const CHECKSUM_OFFSET: usize = PART_HEADER_SIZE - 8;
const UNUSED_SIZE: usize = 72;

/// What an object of an extent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartKind {
    /// Bytes of the stream.
    Part,
    /// The end of the extent.
    Seal,
}

impl PartKind {
    fn number(self) -> u8 {
        match self {
            PartKind::Part => 1,
            PartKind::Seal => 2,
        }
    }
}

/// Which extent this is, of which stream of which range, and where in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtentPlace {
    /// The extent.
    pub extent: ExtentName,
    /// The range that made it. Others may list it later.
    pub range: RangeId,
    /// The stream that it was made for.
    pub stream: StreamId,
    /// Its number in that stream.
    pub ordinal: u64,
}

/// The stamp, and the life of its metadata store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StampLife {
    /// The installation.
    pub stamp: StampId,
    /// The life of its metadata store.
    pub generation: Generation,
}

/// The first bytes of each object of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartHeader {
    /// Part or seal.
    pub kind: PartKind,
    /// Which installation wrote it.
    pub life: StampLife,
    /// Which extent it belongs to.
    pub place: ExtentPlace,
    /// Bytes of body in the extent before this object.
    pub offset: u64,
    /// Bytes of body of this object.
    pub body_length: u64,
    /// The owner that wrote it; of a seal, the one that sealed.
    pub writer: Owner,
    /// Checksum of the body.
    pub body_checksum: u64,
    /// [`Self::checksum`] of the header before it in the extent; 0 in the first.
    pub previous: u64,
}

impl PartHeader {
    /// The checksum of this header, which the next one of the extent names.
    pub fn checksum(&self) -> u64 {
        crc64(&[&self.fields()])
    }

    /// The offset behind this object's body.
    pub fn end(&self) -> u64 {
        match self.kind {
            PartKind::Part => self.offset.saturating_add(self.body_length),
            PartKind::Seal => self.offset,
        }
    }

    /// The 256 bytes.
    pub fn encode(&self) -> [u8; PART_HEADER_SIZE] {
        let fields = self.fields();
        let mut out = [0; PART_HEADER_SIZE];
        out[..CHECKSUM_OFFSET].copy_from_slice(&fields);
        out[CHECKSUM_OFFSET..].copy_from_slice(&crc64(&[&fields]).to_le_bytes());
        out
    }

    fn fields(&self) -> [u8; CHECKSUM_OFFSET] {
        let mut out = Vec::with_capacity(CHECKSUM_OFFSET);
        out.put_raw(MAGIC);
        out.put_u16_field(PART_FORMAT);
        out.put_u8_field(self.kind.number());
        out.put_u8_field(0);
        out.put_raw(&self.life.stamp.0.to_le_bytes());
        out.put_raw(&self.life.generation.0.to_le_bytes());
        self.place.extent.0.encode(&mut out);
        out.put_u64_field(self.offset);
        out.put_u64_field(self.body_length);
        self.place.range.0.encode(&mut out);
        self.place.stream.0.encode(&mut out);
        out.put_u64_field(self.place.ordinal);
        out.put_raw(&self.writer.incarnation.0.to_le_bytes());
        out.put_u64_field(self.writer.epoch.0);
        out.put_u64_field(self.body_checksum);
        out.put_u64_field(self.previous);
        let mut fields = [0; CHECKSUM_OFFSET];
        fields[..out.len()].copy_from_slice(&out);
        fields
    }

    /// Reads the header of the object of `extent` at `offset` in `stamp` from the object's first bytes.
    pub fn decode(
        bytes: &[u8],
        stamp: StampId,
        extent: ExtentName,
        offset: u64,
    ) -> Result<Self, StoredError> {
        let what = PartLabel { extent, offset };
        let Some(bytes) = bytes.get(..PART_HEADER_SIZE) else {
            let (found, expected) = (bytes.len() as u64, PART_HEADER_SIZE as u64);
            return Err(StoredError::Cut { what: what.to_string(), found, expected });
        };
        if &bytes[..4] != MAGIC {
            return Err(StoredError::malformed(&what, &"it does not begin as a part does"));
        }
        let (fields, checksum) = bytes.split_at(CHECKSUM_OFFSET);
        if crc64(&[fields]).to_le_bytes() != checksum {
            return Err(StoredError::WrongChecksum { what: what.to_string(), of: "header" });
        }
        let format = u16::from_le_bytes([bytes[4], bytes[5]]);
        if format > PART_FORMAT {
            return Err(StoredError::NewerFormat {
                what: what.to_string(),
                found: format,
                newest: PART_FORMAT,
            });
        }
        let header = decode_fields(&fields[6..]).map_err(|error| StoredError::malformed(&what, &error))?;
        header.check(stamp, what)
    }

    fn check(self, stamp: StampId, what: PartLabel) -> Result<Self, StoredError> {
        if self.life.stamp != stamp {
            let (found, expected) = (self.life.stamp.to_string(), stamp.to_string());
            return Err(StoredError::OtherStamp { what: what.to_string(), found, expected });
        }
        if (self.place.extent, self.offset) != (what.extent, what.offset) {
            let found = PartLabel { extent: self.place.extent, offset: self.offset };
            return Err(StoredError::malformed(&what, &format_args!("it is {found}")));
        }
        if self.kind == PartKind::Part && !(1..=PART_BODY_SIZE_MAX).contains(&self.body_length) {
            let why = format_args!("a part of {} bytes", self.body_length);
            return Err(StoredError::malformed(&what, &why));
        }
        Ok(self)
    }

    /// Whether `body` is what was written behind this header.
    pub fn check_body(&self, body: &[u8]) -> Result<(), StoredError> {
        let what = PartLabel { extent: self.place.extent, offset: self.offset }.to_string();
        if body.len() as u64 != self.body_length {
            return Err(StoredError::Cut { what, found: body.len() as u64, expected: self.body_length });
        }
        match crc64(&[body]) == self.body_checksum {
            true => Ok(()),
            false => Err(StoredError::WrongChecksum { what, of: "body" }),
        }
    }
}

fn decode_fields(bytes: &[u8]) -> Result<PartHeader, DecodeError> {
    let mut decoder = Decoder::new(bytes);
    let kind = match decoder.u8("kind")? {
        1 => PartKind::Part,
        2 => PartKind::Seal,
        _ => return Err(DecodeError("kind")),
    };
    let zero = decoder.u8("zero")?;
    let stamp = StampId(decode_wide(&mut decoder, "stamp")?);
    let generation = Generation(decode_wide(&mut decoder, "generation")?);
    let extent = ExtentName(UniqueName::decode(&mut decoder, "extent")?);
    let (offset, body_length) = (decoder.u64("offset")?, decoder.u64("body length")?);
    let range = RangeId(UniqueName::decode(&mut decoder, "range")?);
    let stream = StreamId(UniqueName::decode(&mut decoder, "stream")?);
    let ordinal = decoder.u64("ordinal")?;
    let incarnation = Incarnation(decode_wide(&mut decoder, "writer")?);
    let epoch = OwnerEpoch(decoder.u64("epoch")?);
    let (body_checksum, previous) = (decoder.u64("checksum of the body")?, decoder.u64("previous")?);
    let unused = decoder.take(UNUSED_SIZE, "unused bytes")?;
    if zero != 0 || unused.iter().any(|byte| *byte != 0) {
        return Err(DecodeError("unused bytes"));
    }
    Ok(PartHeader {
        kind,
        life: StampLife { stamp, generation },
        place: ExtentPlace { extent, range, stream, ordinal },
        offset,
        body_length,
        writer: Owner { incarnation, epoch },
        body_checksum,
        previous,
    })
}

/// How an object of an extent is named in errors.
#[derive(Clone, Copy)]
pub(crate) struct PartLabel {
    pub(crate) extent: ExtentName,
    pub(crate) offset: u64,
}

impl fmt::Display for PartLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "extent {}, object at {:016x}", self.extent, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAMP: StampId = StampId(7);

    fn header() -> PartHeader {
        let by = Incarnation(0x1234);
        let place = ExtentPlace {
            extent: ExtentName::new(by, 5),
            range: RangeId::new(by, 1),
            stream: StreamId::new(by, 2),
            ordinal: 9,
        };
        PartHeader {
            kind: PartKind::Part,
            life: StampLife { stamp: STAMP, generation: Generation(8) },
            place,
            offset: 4096,
            body_length: 4,
            writer: Owner { incarnation: by, epoch: OwnerEpoch(3) },
            body_checksum: crc64(&[b"body"]),
            previous: 77,
        }
    }

    fn decode(bytes: &[u8]) -> Result<PartHeader, StoredError> {
        PartHeader::decode(bytes, STAMP, header().place.extent, 4096)
    }

    /// The bytes with a field set and the checksum made right again.
    fn with(at: usize, field: &[u8]) -> Vec<u8> {
        let mut bytes = header().encode().to_vec();
        bytes[at..at + field.len()].copy_from_slice(field);
        let checksum = crc64(&[&bytes[..CHECKSUM_OFFSET]]);
        bytes[CHECKSUM_OFFSET..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    #[test]
    fn a_header_comes_back_and_is_the_same_each_time() {
        let bytes = header().encode();
        assert_eq!(bytes, header().encode(), "a part that is sent again is the same");
        assert_eq!(decode(&bytes), Ok(header()));
        assert_eq!(bytes[CHECKSUM_OFFSET..], header().checksum().to_le_bytes());
        let seal = PartHeader { kind: PartKind::Seal, body_length: 0, ..header() };
        assert_eq!(decode(&seal.encode()), Ok(seal));
        assert_eq!((header().end(), seal.end()), (4100, 4096));
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let cases: [(&[u8], &str); 8] = [
            (&header().encode()[..255], "is cut: 255 bytes where 256 are needed"),
            (b"", "is cut: 0 bytes where 256 are needed"),
            (&with(0, b"XPRT"), "does not begin as a part does"),
            (&with(4, &2u16.to_le_bytes()), "has format 2, this program reads up to 1"),
            (&with(8, &9u128.to_le_bytes()), "to stamp 00000000000000000000000000000009, not to"),
            (&with(64, &1u64.to_le_bytes()), "it is extent"),
            (&with(6, &[3]), "malformed kind"),
            (&with(72, &0u64.to_le_bytes()), "a part of 0 bytes"),
        ];
        for (bytes, expected) in cases {
            let error = decode(bytes).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(error.contains(&header().place.extent.to_string()), "{error}");
        }
        assert!(decode(&with(200, &[1])).unwrap_err().to_string().contains("unused bytes"));
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        for bit in 0..PART_HEADER_SIZE * 8 {
            let mut bytes = header().encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let error = decode(&bytes).unwrap_err();
            let is_magic = bit < 32;
            assert!(is_magic || matches!(error, StoredError::WrongChecksum { .. }), "bit {bit}: {error}");
        }
    }

    #[test]
    fn a_body_is_checked_for_length_and_content() {
        assert_eq!(header().check_body(b"body"), Ok(()));
        assert!(matches!(header().check_body(b"bod"), Err(StoredError::Cut { .. })));
        assert!(matches!(header().check_body(b"bodY"), Err(StoredError::WrongChecksum { of: "body", .. })));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(decode(&bytes).is_err());
        }
    }
}
