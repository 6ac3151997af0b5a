//! By what a write is signed, and until when.
//!
//! An account has no transaction over partitions, so a write can't hold the fence. Instead its signature ends
//! at most T after a read of the claim and of the shard's copy **began** that let it pass. So who claims the
//! mapping anew, or closes it, and waits T and the clocks' bound, meets no late write.
//!
//! What always holds: a signature's end depends on the read, not on when it is made; a read is used by writes
//! of the same hold only, and by none once less than a third of T is left.

use base::Ticks;
use parking_lot::Mutex;
use shard_map::{MappingId, Name};
use std::collections::BTreeMap;
use std::time::Duration;

use crate::backend::fence::FenceHold;

/// Mappings whose reads are remembered, at most; with more all are read anew.
const REMEMBERED_MAX: usize = 4096;

/// Reads that let writes pass.
#[derive(Default)]
pub(super) struct Rights {
    passed: Mutex<BTreeMap<(Name, MappingId), Passed>>,
}

#[derive(Clone, Copy)]
struct Passed {
    hold: FenceHold,
    read_at: Ticks,
}

impl Rights {
    /// When the read began that a write may still be signed by.
    pub(super) fn read_at(
        &self,
        map: &Name,
        mapping: &MappingId,
        hold: FenceHold,
        (now, signed_for): (Ticks, Duration),
    ) -> Option<Ticks> {
        let passed = self.passed.lock().get(&(map.clone(), mapping.clone())).copied()?;
        let is_usable = passed.hold == hold && is_fresh(passed.read_at, signed_for, now);
        is_usable.then_some(passed.read_at)
    }

    /// Remembers a read that let a write pass.
    pub(super) fn remember(&self, map: &Name, mapping: &MappingId, hold: FenceHold, read_at: Ticks) {
        let mut passed = self.passed.lock();
        if passed.len() >= REMEMBERED_MAX {
            passed.clear();
        }
        passed.insert((map.clone(), mapping.clone()), Passed { hold, read_at });
    }

    /// Forgets a mapping's, so that its next write reads.
    pub(super) fn forget(&self, map: &Name, mapping: &MappingId) {
        self.passed.lock().remove(&(map.clone(), mapping.clone()));
    }
}

/// Whether a read may be used for another write: not from the future, and a third of T is left.
fn is_fresh(read_at: Ticks, signed_for: Duration, now: Ticks) -> bool {
    read_at <= now && now < read_at.plus(signed_for - signed_for / 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shard_map::Epoch;

    #[test]
    fn a_read_is_used_for_two_thirds_of_t_and_for_its_hold_only() {
        let s = |seconds: u64| Ticks(seconds * base::clock::TICKS_PER_SECOND);
        let t = Duration::from_secs(15);
        for (now, expected) in [(99, false), (100, true), (109, true), (110, false), (999, false)] {
            assert_eq!(is_fresh(s(100), t, s(now)), expected, "{now}");
        }
        let rights = Rights::default();
        let (map, mapping) = (Name::parse("m").expect("a name"), MappingId::Virtual(3));
        let closed = FenceHold::Closed(Epoch(5));
        rights.remember(&map, &mapping, closed, s(100));
        let read_at = |mapping: &MappingId, hold| rights.read_at(&map, mapping, hold, (s(101), t));
        assert_eq!(read_at(&mapping, closed), Some(s(100)));
        assert_eq!(read_at(&mapping, FenceHold::Closed(Epoch(6))), None);
        assert_eq!(read_at(&mapping, FenceHold::Open(Epoch(5))), None);
        assert_eq!(read_at(&MappingId::Virtual(4), closed), None);
        rights.forget(&map, &mapping);
        assert_eq!(read_at(&mapping, closed), None);
    }
}
