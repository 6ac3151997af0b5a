//! Parts that a process has read of a range before it takes it.
//!
//! An object of an extent never changes once it was created, and its name is never used for another. So what
//! a process that stands by reads of a range whose owner is silent is what it would read once it has taken
//! it, and it takes the range with its log in memory.
//!
//! What always holds: only what was there, with the right checksums, is kept; that something is not there is
//! never taken from here; no more bytes are kept than were allowed.

use crate::extents::bundle_turns::BundleReads;
use bytes::Bytes;
use parking_lot::Mutex;
use stamp::{ExtentName, PART_HEADER_SIZE, PartHeader};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that an entry counts for beside its body.
const ENTRY_SIZE_BYTES: u64 = 2 * PART_HEADER_SIZE as u64;

#[derive(Default)]
struct Kept {
    /// Headers, and bodies of those that were read whole.
    parts: BTreeMap<(ExtentName, u64), (PartHeader, Option<Bytes>)>,
    size_bytes: u64,
    /// More is kept up to so many bytes; none: what is there is used, and nothing more is kept.
    size_bytes_max: Option<u64>,
    /// Whether a load reads the parts of a stream of this purpose.
    is_loaded: Option<fn(&str) -> bool>,
}

/// What was read ahead. Usually nothing.
#[derive(Default)]
pub struct ReadAhead {
    kept: Mutex<Kept>,
    /// Whether anything is kept, or is to be: every read asks.
    is_on: AtomicBool,
    pub(crate) bundle_reads: BundleReads,
}

impl ReadAhead {
    /// Keeps what is read from now on, up to so many bytes. Of streams whose purpose `is_loaded` names, small
    /// parts are read whole where only their headers are asked for: their load reads them anyway.
    pub fn begin(&self, size_bytes_max: u64, is_loaded: fn(&str) -> bool) {
        let mut kept = self.kept.lock();
        (kept.size_bytes_max, kept.is_loaded) = (Some(size_bytes_max), Some(is_loaded));
        drop(kept);
        self.is_on.store(true, Ordering::Release);
    }

    /// Nothing more is kept: a load begins, and uses what is there. The bytes that are.
    pub fn use_up(&self) -> u64 {
        let mut kept = self.kept.lock();
        kept.size_bytes_max = None;
        kept.size_bytes
    }

    /// Nothing is kept any more.
    pub fn end(&self) {
        self.is_on.store(false, Ordering::Release);
        *self.kept.lock() = Kept::default();
    }

    /// Whether anything is kept, or is to be.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.kept.lock().parts.is_empty()
    }

    /// Whether parts of a stream of this purpose are read whole, and kept.
    pub(crate) fn keeps_whole(&self, purpose: &str) -> bool {
        self.is_on() && self.kept.lock().is_loaded.is_some_and(|is_loaded| is_loaded(purpose))
    }

    /// Whether what is read now is kept.
    pub(crate) fn is_keeping(&self) -> bool {
        self.is_on() && !self.is_full()
    }

    /// Whether there is no room for more.
    pub fn is_full(&self) -> bool {
        let kept = self.kept.lock();
        kept.size_bytes_max.is_none_or(|size_bytes_max| kept.size_bytes >= size_bytes_max)
    }

    pub(crate) fn header(&self, extent: ExtentName, offset: u64) -> Option<PartHeader> {
        if !self.is_on() {
            return None;
        }
        self.kept.lock().parts.get(&(extent, offset)).map(|(header, _)| *header)
    }

    /// A part that was read whole. One that is `used_up` goes: nobody asks for it again.
    pub(crate) fn part(&self, extent: ExtentName, offset: u64, used_up: bool) -> Option<(PartHeader, Bytes)> {
        if !self.is_on() {
            return None;
        }
        let mut kept = self.kept.lock();
        let (header, body) = kept.parts.get_mut(&(extent, offset))?;
        let found = (*header, body.clone()?);
        if used_up {
            *body = None;
            kept.size_bytes = kept.size_bytes.saturating_sub(found.1.len() as u64);
        }
        Some(found)
    }

    /// Keeps what was read, if it has its checksums right and there is room.
    pub(crate) fn keep(&self, header: &PartHeader, body: Option<&Bytes>) {
        if !self.is_on() || body.is_some_and(|body| header.check_body(body).is_err()) {
            return;
        }
        let mut kept = self.kept.lock();
        let key = (header.place.extent, header.offset);
        let before = kept.parts.get(&key).map(|(_, body)| body.as_ref().map(|body| body.len() as u64));
        let size_bytes = match (before, body) {
            // It is there whole, or no more of it was read now.
            (Some(Some(_)), _) | (Some(None), None) => return,
            (Some(None), Some(body)) => body.len() as u64,
            (None, body) => ENTRY_SIZE_BYTES + body.map_or(0, |body| body.len() as u64),
        };
        if kept.size_bytes_max.is_some_and(|size_bytes_max| kept.size_bytes + size_bytes <= size_bytes_max) {
            kept.size_bytes += size_bytes;
            kept.parts.insert(key, (*header, body.cloned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::checksum::crc64;
    use stamp::{
        ExtentPlace, Generation, Incarnation, Owner, OwnerEpoch, PartKind, RangeId, StampId, StampLife,
        StreamId,
    };

    const BY: Incarnation = Incarnation(1);

    fn header(offset: u64, body: &[u8]) -> PartHeader {
        PartHeader {
            life: StampLife { stamp: StampId(1), generation: Generation(1) },
            place: ExtentPlace {
                extent: ExtentName::new(BY, 5),
                range: RangeId::new(BY, 0),
                stream: StreamId::new(BY, 1),
                ordinal: 0,
            },
            writer: Owner { incarnation: BY, epoch: OwnerEpoch(1) },
            kind: PartKind::Part,
            offset,
            body_length: body.len() as u64,
            body_checksum: crc64(&[body]),
            previous: 0,
        }
    }

    #[test]
    fn what_was_read_whole_is_there_until_it_is_used_up() {
        let (ahead, extent) = (ReadAhead::default(), ExtentName::new(BY, 5));
        let (first, body) = (header(0, b"one"), Bytes::from_static(b"one"));
        ahead.keep(&first, Some(&body));
        assert_eq!(ahead.part(extent, 0, false), None, "nothing is kept before it begins");
        ahead.begin(2 * ENTRY_SIZE_BYTES + 3, |purpose| purpose == "log");
        assert!(ahead.keeps_whole("log") && !ahead.keeps_whole("data"));
        assert!(ahead.is_empty());
        ahead.keep(&first, Some(&Bytes::from_static(b"two")));
        assert_eq!(ahead.header(extent, 0), None, "another body than its header says");
        ahead.keep(&first, None);
        assert_eq!((ahead.header(extent, 0), ahead.part(extent, 0, false)), (Some(first), None));
        ahead.keep(&first, Some(&body));
        ahead.keep(&header(3, b""), None);
        assert!(ahead.is_full());
        ahead.keep(&header(4, b""), None);
        assert_eq!(ahead.header(extent, 4), None, "there is no room");
        for _ in 0..2 {
            assert_eq!(ahead.part(extent, 0, false), Some((first, body.clone())));
        }
        assert_eq!(ahead.use_up(), 2 * ENTRY_SIZE_BYTES + 3);
        assert_eq!(ahead.part(extent, 0, true), Some((first, body.clone())));
        assert_eq!((ahead.part(extent, 0, true), ahead.header(extent, 0)), (None, Some(first)));
        ahead.keep(&first, Some(&body));
        assert_eq!(ahead.part(extent, 0, false), None, "nothing more is kept");
        ahead.end();
        assert!(!ahead.keeps_whole("log"));
        assert_eq!((ahead.header(extent, 0), ahead.use_up()), (None, 0));
        assert!(ahead.is_empty());
    }
}
