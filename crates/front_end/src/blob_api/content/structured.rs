//! Structured bodies: content in segments, each with its checksum, so that what goes wrong on the way shows
//! early.
//!
//! ```text
//! message  u8 version (1) u64 bytes of the message u16 flags (1: checksums) u16 segments, segment*,
//!          u64 checksum of all content
//! segment  u16 number from 1, u64 bytes of content, content, u64 checksum of it
//!
//! Numbers are little-endian; checksums are CRC-64/NVME.
//! ```
//!
//! What always holds: a reader keeps no content, and refuses whatever is not exactly this; what it let
//! through is only good once [`Unframer::finish`] has succeeded.

use crate::blob_api::headers::Headers;
use crate::blob_api::headers::request_headers::{invalid, missing, number, text};
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use base::checksum::Crc64;
use bytes::Bytes;
use std::collections::VecDeque;

/// The header that requests or announces a structured body.
pub(crate) const STRUCTURED_BODY: &str = "x-ms-structured-body";
/// The bytes of content in it.
pub(crate) const STRUCTURED_LENGTH: &str = "x-ms-structured-content-length";
/// The only form there is.
pub(crate) const STRUCTURED_V1: &str = "XSM/1.0; properties=crc64";

const VERSION: u8 = 1;
const WITH_CHECKSUMS: u16 = 1;
const MESSAGE_HEADER: usize = 13;
const SEGMENT_HEADER: usize = 10;
const CHECKSUM: usize = 8;
/// Content of a segment, unless there would be too many of them.
const SEGMENT_SIZE_BYTES: u64 = 4 << 20;

/// Whether the body is structured, or shall be.
pub(crate) fn is_structured(headers: Headers<'_>) -> Result<bool, ApiError> {
    match text(headers, STRUCTURED_BODY) {
        None => Ok(false),
        Some(form) if form.eq_ignore_ascii_case(STRUCTURED_V1) => Ok(true),
        Some(form) => Err(invalid(STRUCTURED_BODY, form)),
    }
}

/// The bytes of content in a structured body.
pub(crate) fn content_size(headers: Headers<'_>) -> Result<u64, ApiError> {
    number(headers, STRUCTURED_LENGTH)?.ok_or_else(|| missing(STRUCTURED_LENGTH))
}

fn malformed() -> ApiError {
    ApiError::with_message(ErrorCode::InvalidInput, "The structured body is malformed.")
}

enum Expects {
    MessageHeader,
    SegmentHeader,
    Content(u64),
    SegmentChecksum,
    MessageChecksum,
    Nothing,
}

/// Takes the content out of a structured body.
pub(crate) struct Unframer {
    expects: Expects,
    /// Bytes of a header or checksum so far.
    partial: Vec<u8>,
    message_size: u64,
    segments: u16,
    number: u16,
    segment: Crc64,
    message: Crc64,
}

impl Unframer {
    /// For a body of so many bytes.
    pub(crate) fn new(message_size: u64) -> Self {
        Unframer {
            expects: Expects::MessageHeader,
            partial: Vec::with_capacity(MESSAGE_HEADER),
            message_size,
            segments: 0,
            number: 0,
            segment: Crc64::default(),
            message: Crc64::default(),
        }
    }

    /// Takes bytes away from the front until some of them are content, or none is left.
    pub(crate) fn next(&mut self, bytes: &mut Bytes) -> Result<Option<Bytes>, ApiError> {
        while !bytes.is_empty() {
            let wanted = match &mut self.expects {
                Expects::Content(left) => {
                    let len = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    let content = bytes.split_to(len);
                    self.segment.update(&content);
                    self.message.update(&content);
                    *left -= len as u64;
                    if *left == 0 {
                        self.expects = Expects::SegmentChecksum;
                    }
                    return Ok(Some(content));
                }
                Expects::MessageHeader => MESSAGE_HEADER,
                Expects::SegmentHeader => SEGMENT_HEADER,
                Expects::SegmentChecksum | Expects::MessageChecksum => CHECKSUM,
                Expects::Nothing => return Err(malformed()),
            };
            let len = (wanted - self.partial.len()).min(bytes.len());
            self.partial.extend_from_slice(&bytes.split_to(len));
            if self.partial.len() == wanted {
                let whole = std::mem::take(&mut self.partial);
                self.expects = self.read(&whole)?;
            }
        }
        Ok(None)
    }

    /// What comes after a header or checksum.
    fn read(&mut self, whole: &[u8]) -> Result<Expects, ApiError> {
        let number = |from: usize, to: usize| {
            whole[from..to].iter().rev().fold(0, |number: u64, byte| number << 8 | u64::from(*byte))
        };
        match self.expects {
            Expects::MessageHeader => {
                let is_right = whole[0] == VERSION
                    && number(1, 9) == self.message_size
                    && number(9, 11) == u64::from(WITH_CHECKSUMS);
                self.segments = number(11, 13) as u16;
                match is_right && self.segments > 0 {
                    true => Ok(Expects::SegmentHeader),
                    false => Err(malformed()),
                }
            }
            Expects::SegmentHeader => {
                self.number += 1;
                self.segment = Crc64::default();
                let size = number(2, 10);
                match (number(0, 2) == u64::from(self.number), size) {
                    (false, _) => Err(malformed()),
                    (true, 0) => Ok(Expects::SegmentChecksum),
                    (true, size) => Ok(Expects::Content(size)),
                }
            }
            Expects::SegmentChecksum if number(0, 8) != self.segment.value() => {
                Err(ErrorCode::Crc64Mismatch.into())
            }
            Expects::SegmentChecksum if self.number < self.segments => Ok(Expects::SegmentHeader),
            Expects::SegmentChecksum => Ok(Expects::MessageChecksum),
            Expects::MessageChecksum if number(0, 8) != self.message.value() => {
                Err(ErrorCode::Crc64Mismatch.into())
            }
            _ => Ok(Expects::Nothing),
        }
    }

    /// Whether the message is whole.
    pub(crate) fn finish(&self) -> Result<(), ApiError> {
        if matches!(self.expects, Expects::Nothing) { Ok(()) } else { Err(malformed()) }
    }
}

/// Puts content into a structured body.
pub(crate) struct Framer {
    size: u64,
    segment_size: u64,
    number: u16,
    left_in_segment: u64,
    left: u64,
    segment: Crc64,
    message: Crc64,
}

impl Framer {
    /// For so many bytes of content.
    pub(crate) fn new(size: u64) -> Self {
        let segment_size = SEGMENT_SIZE_BYTES.max(size.div_ceil(u64::from(u16::MAX)));
        let (segment, message) = (Crc64::default(), Crc64::default());
        Framer { size, segment_size, number: 0, left_in_segment: 0, left: size, segment, message }
    }

    fn segments(&self) -> u64 {
        self.size.div_ceil(self.segment_size).max(1)
    }

    /// Bytes of the whole message.
    pub(crate) fn message_size(&self) -> u64 {
        let around = MESSAGE_HEADER + CHECKSUM;
        self.size + around as u64 + self.segments() * (SEGMENT_HEADER + CHECKSUM) as u64
    }

    fn open_segment(&mut self, head: &mut Vec<u8>) {
        self.number += 1;
        self.left_in_segment = self.left.min(self.segment_size);
        self.segment = Crc64::default();
        head.extend_from_slice(&self.number.to_le_bytes());
        head.extend_from_slice(&self.left_in_segment.to_le_bytes());
    }

    /// Appends the message's first bytes.
    pub(crate) fn begin(&mut self, out: &mut VecDeque<Bytes>) {
        let mut head = vec![VERSION];
        head.extend_from_slice(&self.message_size().to_le_bytes());
        head.extend_from_slice(&WITH_CHECKSUMS.to_le_bytes());
        head.extend_from_slice(&(self.segments() as u16).to_le_bytes());
        self.open_segment(&mut head);
        out.push_back(head.into());
        if self.size == 0 {
            self.close(out);
        }
    }

    /// Appends the next content, and what ends the message after the last of it.
    pub(crate) fn put(&mut self, mut content: Bytes, out: &mut VecDeque<Bytes>) {
        while !content.is_empty() && self.left > 0 {
            let len = usize::try_from(self.left_in_segment).unwrap_or(usize::MAX).min(content.len());
            let part = content.split_to(len);
            self.segment.update(&part);
            self.message.update(&part);
            self.left -= len as u64;
            self.left_in_segment -= len as u64;
            out.push_back(part);
            if self.left_in_segment == 0 {
                self.close(out);
            }
        }
    }

    /// Ends a segment: another one follows, or the message's end.
    fn close(&mut self, out: &mut VecDeque<Bytes>) {
        let mut foot = self.segment.value().to_le_bytes().to_vec();
        match self.left {
            0 => foot.extend_from_slice(&self.message.value().to_le_bytes()),
            _ => self.open_segment(&mut foot),
        }
        out.push_back(foot.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(content: &[u8], portion: usize) -> Vec<u8> {
        let mut framer = Framer::new(content.len() as u64);
        let mut out = VecDeque::new();
        framer.begin(&mut out);
        content.chunks(portion).for_each(|part| framer.put(Bytes::copy_from_slice(part), &mut out));
        let message: Vec<u8> = out.into_iter().flatten().collect();
        assert_eq!(message.len() as u64, framer.message_size());
        message
    }

    fn unframed(message: &[u8], portion: usize) -> Result<Vec<u8>, ErrorCode> {
        let mut unframer = Unframer::new(message.len() as u64);
        let mut content = Vec::new();
        for part in message.chunks(portion) {
            let mut part = Bytes::copy_from_slice(part);
            while let Some(bytes) = unframer.next(&mut part).map_err(|error| error.code)? {
                content.extend_from_slice(&bytes);
            }
        }
        unframer.finish().map(|()| content).map_err(|error| error.code)
    }

    #[test]
    fn content_comes_back_however_it_is_cut() {
        let large: Vec<u8> = (0..(9 << 20) + 7).map(|index| (index % 251) as u8).collect();
        for content in [&b""[..], b"a", b"123456789", &large] {
            let message = framed(content, 100_000);
            for portion in [7_001, 1 << 20, message.len()] {
                assert_eq!(unframed(&message, portion).as_deref(), Ok(content));
            }
        }
        // Layout and checksum of the catalogue.
        let message = framed(b"123456789", 4);
        assert_eq!(message[..23], *b"\x01\x30\0\0\0\0\0\0\0\x01\0\x01\0\x01\0\x09\0\0\0\0\0\0\0");
        assert_eq!(message[32..40], 0xae8b_1486_0a79_9888_u64.to_le_bytes());
    }

    #[test]
    fn whatever_is_wrong_is_noticed() {
        let message = framed(b"123456789", 9);
        for index in 0..message.len() {
            let mut wrong = message.clone();
            wrong[index] ^= 1;
            assert!(unframed(&wrong, 5).is_err(), "byte {index}");
        }
        assert_eq!(unframed(&message[..message.len() - 1], 5), Err(ErrorCode::InvalidInput));
        let mut wrong = message.clone();
        wrong[25] ^= 1;
        assert_eq!(unframed(&wrong, 64), Err(ErrorCode::Crc64Mismatch));
        let more = [&message[..], b"x"].concat();
        assert!(unframed(&more, 5).is_err());
    }
}
