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
//! The id and offset are under the checksum, so a block that lies in the wrong place (a misdirected write, a recycled
//! disk sector) does not verify.

use crate::error::StreamError;
use crate::ids::{ExtentId, Location};
use base::checksum::crc64;
use base::codec::{Decoder, Encode};
use bytes::Bytes;

/// Bytes of a block before its payload.
pub const BLOCK_HEADER_SIZE: usize = 32;

/// Bytes of payload one block may have.
pub const BLOCK_PAYLOAD_SIZE_MAX: usize = 64 << 20;

const MAGIC: u32 = u32::from_le_bytes(*b"LBK1");

/// Appends the block of `payload` at (`extent`, `offset`) to `out`; returns its checksum.
pub(crate) fn put_block(out: &mut impl Encode, extent: ExtentId, offset: u64, payload: &[u8]) -> u64 {
    let mut header = [0u8; BLOCK_HEADER_SIZE];
    header[0..4].copy_from_slice(&MAGIC.to_le_bytes());
    header[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[8..16].copy_from_slice(&extent.0.to_le_bytes());
    header[16..24].copy_from_slice(&offset.to_le_bytes());
    let checksum = crc64(&[&header[..24], payload]);
    header[24..32].copy_from_slice(&checksum.to_le_bytes());
    out.put_raw(&header);
    out.put_raw(payload);
    checksum
}

/// The payload length that the header at (`extent`, `offset`) claims; checks all of the header but the checksum.
pub(crate) fn payload_len(header: &[u8], extent: ExtentId, offset: u64) -> Result<u32, StreamError> {
    let claimed = claimed(header).ok_or_else(|| damaged(extent, offset, "the header is not one"))?;
    if claimed.extent != extent || claimed.offset != offset {
        return Err(damaged(extent, offset, "the header belongs to another place"));
    }
    Ok(claimed.len)
}

/// The size, header included, and the checksum of the first of `blocks`, which lies at (`extent`, `offset`). Checks all of
/// its header but the checksum.
pub(crate) fn step(blocks: &[u8], extent: ExtentId, offset: u64) -> Result<(usize, u64), StreamError> {
    let size = BLOCK_HEADER_SIZE + payload_len(blocks, extent, offset)? as usize;
    match Decoder::new(blocks.get(24..size).unwrap_or_default()).u64("checksum") {
        Ok(checksum) => Ok((size, checksum)),
        Err(_) => Err(damaged(extent, offset, "its end is missing")),
    }
}

/// The payload of the block at `location`, whose bytes (header and payload) are `block`.
pub(crate) fn verify(block: &Bytes, location: Location) -> Result<Bytes, StreamError> {
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
    fn any_flipped_bit_is_seen() {
        let (bytes, location) = block();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(verify(&flipped.into(), location).is_err(), "bit {bit}");
        }
    }
}
