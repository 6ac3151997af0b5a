//! Little-endian integers, varints and length-prefixed bytes: the alphabet of every stored format.
//!
//! Reading never panics and never allocates more than the input holds: a short or malformed input is a
//! [`DecodeError`] that names the field.

use bytes::BytesMut;

/// A stored value could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed {0}")]
pub struct DecodeError(pub &'static str);

/// Writes fields to the end of a buffer.
pub trait Encode {
    /// The bytes as they are.
    fn put_raw(&mut self, bytes: &[u8]);
    /// One byte.
    fn put_u8_field(&mut self, value: u8) {
        self.put_raw(&[value]);
    }
    /// Two bytes, little-endian.
    fn put_u16_field(&mut self, value: u16) {
        self.put_raw(&value.to_le_bytes());
    }
    /// Four bytes, little-endian.
    fn put_u32_field(&mut self, value: u32) {
        self.put_raw(&value.to_le_bytes());
    }
    /// Eight bytes, little-endian.
    fn put_u64_field(&mut self, value: u64) {
        self.put_raw(&value.to_le_bytes());
    }
    /// LEB128: seven bits a byte, low first.
    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.put_u8_field((value as u8 & 0x7f) | 0x80);
            value >>= 7;
        }
        self.put_u8_field(value as u8);
    }
    /// Varint length, then the bytes.
    fn put_bytes_field(&mut self, value: &[u8]) {
        self.put_varint(value.len() as u64);
        self.put_raw(value);
    }
}

impl Encode for Vec<u8> {
    fn put_raw(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
    fn put_u8_field(&mut self, value: u8) {
        self.push(value);
    }
}

impl Encode for BytesMut {
    fn put_raw(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Reads fields from the front of a slice.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// A reader over `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Decoder { rest: bytes }
    }

    /// What has not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all has been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        if len > self.rest.len() {
            return Err(DecodeError(field));
        }
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N, field)?);
        Ok(out)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        Ok(self.array::<1>(field)?[0])
    }

    /// Two bytes, little-endian.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    /// Four bytes, little-endian.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    /// Eight bytes, little-endian.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// A LEB128 integer of at most 64 bits.
    #[inline]
    pub fn varint(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        // Most are lengths below 128.
        match self.rest.split_first() {
            Some((&byte, rest)) if byte & 0x80 == 0 => {
                self.rest = rest;
                Ok(u64::from(byte))
            }
            _ => self.long_varint(field),
        }
    }

    fn long_varint(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8(field)?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(DecodeError(field));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError(field))
    }

    /// A varint length, then that many bytes.
    #[inline]
    pub fn bytes(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let len = usize::try_from(self.varint(field)?).map_err(|_| DecodeError(field))?;
        self.take(len, field)
    }

    /// As [`Self::bytes`], checked to be UTF-8.
    pub fn text(&mut self, field: &'static str) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.bytes(field)?).map_err(|_| DecodeError(field))
    }

    /// An error unless all has been read.
    pub fn finish(self, what: &'static str) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(DecodeError(what)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back() {
        let mut out = Vec::new();
        out.put_u8_field(7);
        out.put_u16_field(300);
        out.put_u32_field(70_000);
        out.put_u64_field(u64::MAX);
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::MAX] {
            out.put_varint(value);
        }
        out.put_bytes_field(b"abc");
        let mut decoder = Decoder::new(&out);
        assert_eq!(decoder.u8("a"), Ok(7));
        assert_eq!(decoder.u16("a"), Ok(300));
        assert_eq!(decoder.u32("a"), Ok(70_000));
        assert_eq!(decoder.u64("a"), Ok(u64::MAX));
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::MAX] {
            assert_eq!(decoder.varint("v"), Ok(value));
        }
        assert_eq!(decoder.text("t"), Ok("abc"));
        assert_eq!(decoder.finish("all"), Ok(()));
    }

    #[test]
    fn short_and_overlong_input_is_an_error() {
        assert_eq!(Decoder::new(&[1, 2]).u32("field"), Err(DecodeError("field")));
        assert_eq!(Decoder::new(&[0xff; 10]).varint("v"), Err(DecodeError("v")));
        assert_eq!(Decoder::new(&[0x05, 1]).bytes("b"), Err(DecodeError("b")));
        assert_eq!(Decoder::new(&[0]).finish("x"), Err(DecodeError("x")));
    }
}
