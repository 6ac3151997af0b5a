//! Whole parts that were read last, so that blocks that are read one after the other cost one request for
//! each part.
//!
//! What always holds: at most [`CACHED_SIZE_BYTES_MAX`] bytes are kept, or one part that is larger.

use bytes::Bytes;
use parking_lot::Mutex;
use stamp::ExtentName;
use std::collections::BTreeMap;

/// Bytes of parts that are kept.
const CACHED_SIZE_BYTES_MAX: u64 = 64 << 20;

#[derive(Default)]
struct Kept {
    parts: BTreeMap<(ExtentName, u64), (u64, Bytes)>,
    size_bytes: u64,
    uses: u64,
}

/// Bodies of parts, by extent and offset.
#[derive(Default)]
pub(super) struct PartCache(Mutex<Kept>);

impl PartCache {
    pub(super) fn part(&self, extent: ExtentName, start: u64) -> Option<Bytes> {
        let mut kept = self.0.lock();
        kept.uses += 1;
        let now = kept.uses;
        let (used, body) = kept.parts.get_mut(&(extent, start))?;
        *used = now;
        Some(body.clone())
    }

    pub(super) fn keep(&self, extent: ExtentName, start: u64, body: Bytes) {
        let mut kept = self.0.lock();
        kept.uses += 1;
        let now = kept.uses;
        kept.size_bytes += body.len() as u64;
        if let Some((_, before)) = kept.parts.insert((extent, start), (now, body)) {
            kept.size_bytes -= before.len() as u64;
        }
        while kept.size_bytes > CACHED_SIZE_BYTES_MAX && kept.parts.len() > 1 {
            let oldest = kept.parts.iter().min_by_key(|(_, (used, _))| *used).map(|(place, _)| *place);
            let Some((_, dropped)) = oldest.and_then(|place| kept.parts.remove(&place)) else { break };
            kept.size_bytes -= dropped.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stamp::Incarnation;

    #[test]
    fn the_part_that_was_not_used_for_longest_goes() {
        let (cache, extent) = (PartCache::default(), ExtentName::new(Incarnation(1), 1));
        let third = Bytes::from(vec![0; (CACHED_SIZE_BYTES_MAX / 3) as usize]);
        for start in 0..3 {
            cache.keep(extent, start, third.clone());
        }
        assert!(cache.part(extent, 0).is_some());
        cache.keep(extent, 3, third.clone());
        let there: Vec<bool> = (0..4).map(|start| cache.part(extent, start).is_some()).collect();
        assert_eq!(there, [true, false, true, true]);
        let large = Bytes::from(vec![0; CACHED_SIZE_BYTES_MAX as usize + 1]);
        cache.keep(extent, 9, large);
        let there: Vec<bool> = [0, 2, 3, 9].map(|start| cache.part(extent, start).is_some()).to_vec();
        assert_eq!(there, [false, false, false, true], "one part is always kept");
    }
}
