//! Small parts that follow each other, copied into one object, so that whoever takes a range reads its logs
//! with few requests.
//!
//! A group of writes is a part of its own, some tens of KiB, and a store answers about as many requests
//! whatever their size. So the owner of a log puts acknowledged parts, as they are in the store, behind each
//! other into a bundle; a reader of the log takes them from there, and reads those that are in none one by
//! one. Nothing depends on a bundle: the parts stay, and count.
//!
//! What always holds: a bundle has only parts that are acknowledged, byte for byte, from one extent and
//! without a hole; a reader checks each of them as if it had been read by itself.

use crate::error::StoredError;
use crate::extent::bundle_path::BundlePath;
use crate::extent::part_header::{PART_HEADER_SIZE, PartHeader, PartKind};
use crate::ids::StampId;
use std::ops::Range;

/// What is put into bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleBounds {
    /// A bundle is made of so many parts, at least 2.
    pub parts_max: usize,
    /// Or of those that have so many bytes together.
    pub size_bytes: u64,
    /// Bytes of a part above which it is not put into a bundle: its bytes cost more than its request.
    pub part_size_bytes_max: u64,
    /// Bytes that a process keeps of all parts that wait for the others of their bundle. What is above is
    /// read one by one.
    pub waiting_size_bytes_max: u64,
}

impl BundleBounds {
    /// Bytes that the object of a bundle has at most.
    pub fn object_size_bytes_max(&self) -> u64 {
        let headers = (self.parts_max * PART_HEADER_SIZE) as u64;
        self.size_bytes + self.part_size_bytes_max + headers
    }
}

impl Default for BundleBounds {
    fn default() -> Self {
        BundleBounds {
            parts_max: 32,
            size_bytes: 1 << 20,
            part_size_bytes_max: 128 << 10,
            waiting_size_bytes_max: 64 << 20,
        }
    }
}

/// The parts of a bundle: their headers, and where their bodies lie in the object.
///
/// # Errors
///
/// If the object is anything but the parts that its name says.
pub fn split_bundle(
    object: &[u8],
    stamp: StampId,
    path: BundlePath,
) -> Result<Vec<(PartHeader, Range<usize>)>, StoredError> {
    let (mut parts, mut at, mut offset) = (Vec::new(), 0, path.offset);
    let mut previous = None;
    while at < object.len() {
        let header = PartHeader::decode(&object[at..], stamp, path.extent, offset)?;
        let body = at + PART_HEADER_SIZE..(at + PART_HEADER_SIZE).saturating_add(header.body_length as usize);
        header.check_body(object.get(body.clone()).unwrap_or_default())?;
        let continues = previous.is_none_or(|previous| previous == header.previous);
        if header.kind != PartKind::Part || !continues {
            return Err(StoredError::malformed(&what(path), &"an object in it does not continue it"));
        }
        (previous, offset, at) = (Some(header.checksum()), header.end(), body.end);
        parts.push((header, body));
    }
    match offset == path.end {
        true => Ok(parts),
        false => Err(StoredError::malformed(&what(path), &format_args!("its parts end at {offset:016x}"))),
    }
}

fn what(path: BundlePath) -> String {
    format!("extent {}, bundle of {:016x} to {:016x}", path.extent, path.offset, path.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extent::fixtures::{extent, life, place, writer};
    use base::checksum::crc64;

    /// Parts of these bodies, one behind the other.
    fn parts(from: u64, bodies: &[&[u8]]) -> Vec<(PartHeader, Vec<u8>)> {
        let (mut offset, mut previous) = (from, 77);
        let part = |body: &&[u8]| {
            let header = PartHeader {
                kind: PartKind::Part,
                life: life(),
                place: place(),
                offset,
                body_length: body.len() as u64,
                writer: writer(1, 1),
                body_checksum: crc64(&[body]),
                previous,
            };
            (offset, previous) = (header.end(), header.checksum());
            (header, body.to_vec())
        };
        bodies.iter().map(part).collect()
    }

    fn object(parts: &[(PartHeader, Vec<u8>)]) -> Vec<u8> {
        parts.iter().flat_map(|(header, body)| [header.encode().to_vec(), body.clone()].concat()).collect()
    }

    fn path(end: u64) -> BundlePath {
        BundlePath { extent: extent(), offset: 10, end }
    }

    #[test]
    fn parts_come_back_as_they_were() {
        let written = parts(10, &[b"one", b"and", b"another"]);
        let object = object(&written);
        let read = split_bundle(&object, life().stamp, path(23)).unwrap();
        let read: Vec<_> = read.into_iter().map(|(header, body)| (header, object[body].to_vec())).collect();
        assert_eq!(read, written);
    }

    #[test]
    fn anything_else_is_refused() {
        let written = parts(10, &[b"one", b"and", b"another"]);
        let (whole, stamp) = (object(&written), life().stamp);
        let refused = |object: &[u8], path| {
            assert!(split_bundle(object, stamp, path).is_err(), "{} bytes", object.len());
        };
        (0..whole.len()).for_each(|cut| refused(&whole[..cut], path(23)));
        refused(&[&whole[..], b"more"].concat(), path(23));
        refused(&whole, path(24));
        refused(&object(&[written[0].clone(), written[2].clone()]), path(20));
        let other = parts(13, &[b"and"]);
        refused(&object(&[written[0].clone(), other[0].clone()]), path(16));
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            refused(&flipped, path(23));
        }
        assert!(split_bundle(&whole, StampId(1), path(23)).is_err(), "another stamp");
    }
}
