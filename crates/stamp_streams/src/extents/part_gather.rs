//! The parts of an open extent that wait for the others of their bundle: pure bookkeeping for its writer.
//!
//! What always holds: what is taken is acknowledged, and follows each other without a hole; no more bytes
//! wait than are allowed, in one log and in the process.

use bytes::{Bytes, BytesMut};
use stamp::{BundleBounds, BundlePath, PART_HEADER_SIZE, PartHeader};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Parts that wait in one log, in bundles: more come while one is under way, and are read one by one.
const WAITING_BUNDLES_MAX: usize = 2;
/// Parts between two that are too large are bundled if they are at least this part of a bundle.
const SHORT_BUNDLE_OF_PARTS: usize = 4;

/// The parts of a bundle: one at least.
pub(crate) struct Gathered(Vec<(PartHeader, Bytes)>);

impl Gathered {
    /// Its name.
    pub(crate) fn path(&self) -> BundlePath {
        let (first, last) = (&self.0[0].0, &self.0[self.0.len() - 1].0);
        BundlePath { extent: first.place.extent, offset: first.offset, end: last.end() }
    }

    /// The object.
    pub(crate) fn content(&self) -> Bytes {
        let size: usize = self.0.iter().map(|(_, body)| PART_HEADER_SIZE + body.len()).sum();
        let mut content = BytesMut::with_capacity(size);
        for (header, body) in &self.0 {
            content.extend_from_slice(&header.encode());
            content.extend_from_slice(body);
        }
        content.freeze()
    }
}

/// Parts that wait.
pub(crate) struct PartGather {
    bounds: BundleBounds,
    parts: VecDeque<(PartHeader, Bytes)>,
    /// Bytes that wait in all logs of the process, these too.
    waiting_size: Arc<AtomicU64>,
}

impl PartGather {
    /// None yet. `waiting_size`: bytes that wait in all logs of the process.
    pub(crate) fn new(bounds: BundleBounds, waiting_size: &Arc<AtomicU64>) -> Self {
        PartGather { bounds, parts: VecDeque::new(), waiting_size: waiting_size.clone() }
    }

    /// A part was given its place, behind all that were before. One that is too large or has no room does not
    /// wait.
    pub(crate) fn pushed(&mut self, header: &PartHeader, body: &Bytes) {
        let bounds = &self.bounds;
        let size = body.len() as u64;
        let is_full = self.parts.len() >= WAITING_BUNDLES_MAX * bounds.parts_max;
        if size > bounds.part_size_bytes_max || is_full {
            return;
        }
        if self.waiting_size.load(Ordering::Relaxed) + size > bounds.waiting_size_bytes_max {
            return;
        }
        self.waiting_size.fetch_add(size, Ordering::Relaxed);
        self.parts.push_back((*header, body.clone()));
    }

    /// Whether [`Self::take`] may have one.
    pub(crate) fn has_bundle(&self, end: u64) -> bool {
        let (count, is_whole) = self.next_count(end);
        is_whole || count > 0 && self.is_broken_behind(count)
    }

    /// The next bundle, of parts that are acknowledged up to `end` of the extent.
    pub(crate) fn take(&mut self, end: u64) -> Option<Gathered> {
        loop {
            let (count, is_whole) = self.next_count(end);
            if count == 0 || !is_whole && !self.is_broken_behind(count) {
                return None;
            }
            let parts = self.take_front(count);
            if is_whole || count >= self.bounds.parts_max.div_ceil(SHORT_BUNDLE_OF_PARTS).max(2) {
                return Some(Gathered(parts));
            }
        }
    }

    /// Whether the part behind the first ones does not follow them.
    fn is_broken_behind(&self, count: usize) -> bool {
        let last = count.checked_sub(1).and_then(|last| self.parts.get(last));
        let next = self.parts.get(count);
        last.zip(next).is_some_and(|((last, _), (next, _))| next.offset != last.end())
    }

    /// How many parts the next bundle would have, and whether it can have no more.
    fn next_count(&self, end: u64) -> (usize, bool) {
        let (mut count, mut size, mut behind) = (0, 0, None);
        for (header, _) in &self.parts {
            let follows = behind.is_none_or(|behind| behind == header.offset);
            if !follows || header.end() > end {
                break;
            }
            (count, size, behind) = (count + 1, size + header.body_length, Some(header.end()));
            if count >= self.bounds.parts_max || size >= self.bounds.size_bytes {
                return (count, true);
            }
        }
        (count, false)
    }

    fn take_front(&mut self, count: usize) -> Vec<(PartHeader, Bytes)> {
        let taken: Vec<_> = self.parts.drain(..count).collect();
        let size: usize = taken.iter().map(|(_, body)| body.len()).sum();
        self.waiting_size.fetch_sub(size as u64, Ordering::Relaxed);
        taken
    }
}

impl Drop for PartGather {
    fn drop(&mut self) {
        self.take_front(self.parts.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::checksum::crc64;
    use stamp::{
        ExtentName, ExtentPlace, Generation, Incarnation, Owner, OwnerEpoch, PartKind, RangeId, StampId,
        StampLife, StreamId, split_bundle,
    };

    const BY: Incarnation = Incarnation(1);
    const BOUNDS: BundleBounds =
        BundleBounds { parts_max: 4, size_bytes: 30, part_size_bytes_max: 20, waiting_size_bytes_max: 100 };

    /// Pushes parts of these lengths, one behind the other.
    struct Writer {
        gather: PartGather,
        waiting: Arc<AtomicU64>,
        offset: u64,
        previous: u64,
    }

    impl Writer {
        fn new() -> Self {
            let waiting = Arc::default();
            Writer { gather: PartGather::new(BOUNDS, &waiting), waiting, offset: 0, previous: 0 }
        }

        fn push(&mut self, lengths: &[u64]) {
            for length in lengths {
                let body = Bytes::from(vec![*length as u8; *length as usize]);
                let header = PartHeader {
                    life: StampLife { stamp: StampId(1), generation: Generation(1) },
                    place: ExtentPlace {
                        extent: ExtentName::new(BY, 5),
                        range: RangeId::new(BY, 0),
                        stream: StreamId::new(BY, 1),
                        ordinal: 0,
                    },
                    writer: Owner { incarnation: BY, epoch: OwnerEpoch(1) },
                    kind: PartKind::Part,
                    offset: self.offset,
                    body_length: *length,
                    body_checksum: crc64(&[&body]),
                    previous: self.previous,
                };
                (self.offset, self.previous) = (header.end(), header.checksum());
                self.gather.pushed(&header, &body);
            }
        }

        /// What is taken: begin, end, lengths of its parts.
        fn take(&mut self, end: u64) -> Option<(u64, u64, Vec<u64>)> {
            let has_bundle = self.gather.has_bundle(end);
            let taken = self.gather.take(end);
            assert!(has_bundle || taken.is_none());
            let taken = taken?;
            let (path, content) = (taken.path(), taken.content());
            let parts = split_bundle(&content, StampId(1), path).expect("parts");
            Some((path.offset, path.end, parts.iter().map(|(header, _)| header.body_length).collect()))
        }

        fn waiting(&self) -> u64 {
            self.waiting.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_bundle_is_made_once_enough_is_acknowledged() {
        let mut writer = Writer::new();
        assert_eq!(writer.take(0), None);
        writer.push(&[5, 5, 5, 5, 5]);
        assert_eq!(writer.take(19), None, "the fourth is not acknowledged");
        assert_eq!(writer.take(20), Some((0, 20, vec![5; 4])));
        assert_eq!((writer.take(25), writer.waiting()), (None, 5));
        writer.push(&[20, 10]);
        assert_eq!(writer.take(45), None);
        assert_eq!(writer.take(55), Some((20, 55, vec![5, 20, 10])), "it has its bytes");
        assert_eq!(writer.waiting(), 0);
    }

    #[test]
    fn a_part_that_is_too_large_ends_a_bundle() {
        let mut writer = Writer::new();
        writer.push(&[5, 5, 21, 6, 21, 1, 1, 1, 1]);
        assert_eq!(writer.take(10), Some((0, 10, vec![5, 5])));
        assert_eq!(writer.take(100), Some((58, 62, vec![1; 4])), "one alone is not bundled");
        assert_eq!((writer.take(100), writer.waiting()), (None, 0));
    }

    #[test]
    fn no_more_waits_than_is_allowed() {
        let mut writer = Writer::new();
        writer.push(&[1; 20]);
        assert_eq!(writer.waiting(), 8, "in one log");
        for _ in 0..2 {
            assert!(writer.take(8).is_some());
        }
        writer.waiting.fetch_add(95, Ordering::Relaxed);
        writer.push(&[3, 3]);
        assert_eq!(writer.waiting(), 98, "in the process");
        drop(std::mem::replace(&mut writer.gather, PartGather::new(BOUNDS, &Arc::default())));
        assert_eq!(writer.waiting(), 95, "what is dropped does not wait");
    }
}
