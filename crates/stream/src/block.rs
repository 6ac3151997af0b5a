//! The append block: the unit of append, of checksum and of read verification in an extent.
//!
//! ```text
//! offset  size  field
//!      0     4  magic "LBK1"
//!      4     4  payload length n, little-endian
//!      8     8  extent id
//!     16     8  offset of this header in the extent
//!     24     8  CRC-64/NVME of bytes 0..24 and the payload
//!     32     n  payload
//! ```
//!
//! The id and offset are under the checksum, so a block that lies in the wrong place (a misdirected write, a
//! recycled disk sector) does not verify.

use crate::error::StreamError;
use crate::ids::{ExtentId, Location};
use base::checksum::{crc64, flipped_bit_of};
use base::codec::{Decoder, Encode};
use bytes::{Bytes, BytesMut};

/// Bytes of a block before its payload.
pub const BLOCK_HEADER_SIZE: usize = 32;

/// Bytes of payload one block may have.
pub const BLOCK_PAYLOAD_SIZE_MAX: usize = 64 << 20;

const MAGIC: u32 = u32::from_le_bytes(*b"LBK1");

fn header_fields(extent: ExtentId, offset: u64, len: u32) -> [u8; 24] {
    let mut fields = [0u8; 24];
    fields[0..4].copy_from_slice(&MAGIC.to_le_bytes());
    fields[4..8].copy_from_slice(&len.to_le_bytes());
    fields[8..16].copy_from_slice(&extent.0.to_le_bytes());
    fields[16..24].copy_from_slice(&offset.to_le_bytes());
    fields
}

/// Appends the block of `payload` at (`extent`, `offset`) to `out`; returns its checksum.
pub fn put_block(out: &mut impl Encode, extent: ExtentId, offset: u64, payload: &[u8]) -> u64 {
    let fields = header_fields(extent, offset, payload.len() as u32);
    let checksum = crc64(&[&fields, payload]);
    out.put_raw(&fields);
    out.put_raw(&checksum.to_le_bytes());
    out.put_raw(payload);
    checksum
}

/// The block that lies at `location`, header and payload, if what was read there is it but for one flipped
/// bit.
pub(crate) fn mended(block: &Bytes, location: Location) -> Option<Bytes> {
    let fields = header_fields(location.extent, location.offset, location.len);
    let found = block
        .get(..BLOCK_HEADER_SIZE)
        .filter(|_| block.len() == BLOCK_HEADER_SIZE + location.len as usize)?;
    let payload = &block[BLOCK_HEADER_SIZE..];
    let stored = u64::from_le_bytes(found[24..].try_into().ok()?);
    let flipped_in_fields = found.iter().zip(fields).map(|(found, field)| (found ^ field).count_ones()).sum();
    let off_by = crc64(&[&fields, payload]) ^ stored;
    let mut mended = BytesMut::from(&block[..]);
    match (flipped_in_fields, off_by.count_ones()) {
        (1, 0) => mended[..24].copy_from_slice(&fields),
        (0u32, 1) => mended[24..BLOCK_HEADER_SIZE].copy_from_slice(&(stored ^ off_by).to_le_bytes()),
        (0, _) => {
            let bit = flipped_bit_of(payload.len(), off_by)?;
            mended[BLOCK_HEADER_SIZE + bit / 8] ^= 1 << (bit % 8);
        }
        _ => return None,
    }
    Some(mended.freeze())
}

/// The lengths that a block of this header, which lies at (`extent`, `offset`) and does not read, may have:
/// the one that it says, and those with one bit of it flipped.
pub(crate) fn possible_lengths(header: &[u8], extent: ExtentId, offset: u64) -> Vec<u32> {
    let Some(said) = header.get(4..8).and_then(|len| len.try_into().ok()).map(u32::from_le_bytes) else {
        return Vec::new();
    };
    let fields = header_fields(extent, offset, said);
    let flipped: u32 = header.iter().zip(fields).map(|(found, field)| (found ^ field).count_ones()).sum();
    let lengths = match flipped {
        0 => std::iter::once(said).chain((0..32).map(|bit| said ^ (1 << bit))).collect(),
        1 => vec![said],
        _ => Vec::new(),
    };
    lengths.into_iter().filter(|len| *len as usize <= BLOCK_PAYLOAD_SIZE_MAX).collect()
}

/// The payload length that the header at (`extent`, `offset`) claims; checks all of the header but the
/// checksum.
pub(crate) fn payload_len(header: &[u8], extent: ExtentId, offset: u64) -> Result<u32, StreamError> {
    let claimed = claimed(header).ok_or_else(|| damaged(extent, offset, "the header is not one"))?;
    if claimed.extent != extent || claimed.offset != offset {
        return Err(damaged(extent, offset, "the header belongs to another place"));
    }
    Ok(claimed.len)
}

/// The size, header included, and the checksum of the first of `blocks`, which lies at (`extent`, `offset`).
/// Checks all of its header but the checksum.
pub fn step(blocks: &[u8], extent: ExtentId, offset: u64) -> Result<(usize, u64), StreamError> {
    let size = BLOCK_HEADER_SIZE + payload_len(blocks, extent, offset)? as usize;
    match Decoder::new(blocks.get(24..size).unwrap_or_default()).u64("checksum") {
        Ok(checksum) => Ok((size, checksum)),
        Err(_) => Err(damaged(extent, offset, "its end is missing")),
    }
}

/// The payload of the block at `location`, whose bytes (header and payload) are `block`.
pub fn verify(block: &Bytes, location: Location) -> Result<Bytes, StreamError> {
    let Location { extent, offset, len } = location;
    let claimed = payload_len(block, extent, offset)?;
    if claimed != len || block.len() != BLOCK_HEADER_SIZE + len as usize {
        return Err(damaged(extent, offset, "the length differs"));
    }
    let payload = block.slice(BLOCK_HEADER_SIZE..);
    if crc64(&[&block[..24], &payload]).to_le_bytes() != block[24..32] {
        return Err(damaged(extent, offset, "the checksum differs"));
    }
    Ok(payload)
}

/// Where a block of this header says that it lies. Nothing but its form is checked.
pub(crate) fn claimed(header: &[u8]) -> Option<Location> {
    let mut decoder = Decoder::new(header.get(..24)?);
    (decoder.u32("magic").ok()? == MAGIC).then_some(())?;
    let len = decoder.u32("length").ok()?;
    let extent = ExtentId(decoder.u64("extent").ok()?);
    let offset = decoder.u64("offset").ok()?;
    (len as usize <= BLOCK_PAYLOAD_SIZE_MAX).then_some(Location { extent, offset, len })
}

fn damaged(extent: ExtentId, offset: u64, why: &str) -> StreamError {
    StreamError::Corrupt(format!("extent {extent}, block at {offset}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> (Bytes, Location) {
        let mut out = Vec::new();
        put_block(&mut out, ExtentId(5), 64, b"payload");
        (out.into(), Location { extent: ExtentId(5), offset: 64, len: 7 })
    }

    #[test]
    fn a_block_verifies_where_it_was_put_and_nowhere_else() {
        let (bytes, location) = block();
        assert_eq!(verify(&bytes, location).unwrap(), "payload");
        for other in [
            Location { extent: ExtentId(6), ..location },
            Location { offset: 65, ..location },
            Location { len: 6, ..location },
        ] {
            assert!(verify(&bytes, other).is_err());
        }
    }

    #[test]
    fn any_flipped_bit_is_seen_and_undone_and_two_are_not() {
        let (bytes, location) = block();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let damaged = Bytes::from(flipped.clone());
            assert!(verify(&damaged, location).is_err(), "bit {bit}");
            assert!(possible_lengths(&damaged[..32], ExtentId(5), 64).contains(&7), "bit {bit}");
            assert_eq!(mended(&damaged, location), Some(bytes.clone()), "bit {bit}");
            let other = (bit * 7 + 11) % (bytes.len() * 8);
            flipped[other / 8] ^= 1 << (other % 8);
            let twice = mended(&flipped.into(), location);
            assert!(other == bit || twice.is_none(), "bits {bit} and {other}");
        }
    }
}
