//! Keeps the process's resident memory within the memory budget and what the rest of the program needs.
//!
//! Why it looks at what is resident, and not at sums of what was counted: the allocator keeps freed memory
//! for seconds, memory is fragmented, and requests under way hold bytes of their own. Whatever it is, it
//! shows there. Two things give way: free memory, which the allocator returns, and the block cache, whose
//! blocks can be read again.
//!
//! What always holds: decisions are pure (`choose_release`, `choose_cache_limit`); the cache gives way only
//! after free memory was returned, and grows again by half of the room at most, or it would swing.

use allocator::Release;
use base::Clock;
use partition::Partitions;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often it looks. A compaction frees some tens of mebibytes meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Free memory that is old goes back to the system this often.
const RELEASE_EXPIRED_EVERY: u32 = 10;
/// Memory of the process beyond its budget from which on free memory goes back at once.
const RELEASED_FROM_BYTES: u64 = 96 << 20;
/// And, within a second of the last time, only if so much has come since: what is still there after a release
/// is in use.
const GROWN_BYTES_MIN: u64 = 16 << 20;
/// What the process may have in use beyond its budget; the cache shrinks by what is more. Less than
/// [`RELEASED_FROM_BYTES`]: the difference is there again before the next release, or each look would return
/// memory that is needed again at once.
const IN_USE_BEYOND_BYTES_MAX: u64 = 64 << 20;
/// A cache that gave way grows by a part of what it was set to that is no larger than this, and no smaller
/// than the next: it remembers a number of evicted keys that is scaled and rounded down with each change, and
/// many small steps would leave none.
const CACHE_GROWS_BY_DIVISOR_MIN: u64 = 8;
const CACHE_GROWS_BY_DIVISOR_MAX: u64 = 32;

/// What is guarded.
pub(crate) struct MemoryGuard {
    partitions: Weak<Partitions>,
    clock: Arc<dyn Clock>,
    budget_bytes: u64,
    cache_size_bytes_max: u64,
    /// What the cache may take at present.
    cache_limit_bytes: u64,
    /// What was resident after free memory was released last, or less if it has shrunk since.
    left_bytes: u64,
    /// Looks since old memory was released.
    looks: u32,
}

impl MemoryGuard {
    /// Of a process that was given `budget_bytes`, of which the cache takes `cache_size_bytes_max`.
    pub(crate) fn new(
        partitions: &Arc<Partitions>,
        clock: Arc<dyn Clock>,
        budget_bytes: u64,
        cache_size_bytes_max: u64,
    ) -> Self {
        MemoryGuard {
            partitions: Arc::downgrade(partitions),
            clock,
            budget_bytes,
            cache_size_bytes_max,
            cache_limit_bytes: cache_size_bytes_max,
            left_bytes: 0,
            looks: 0,
        }
    }

    /// Looks again and again, until the partitions are gone.
    pub(crate) async fn run(mut self) {
        while self.look() {
            self.clock.sleep(LOOK_EVERY).await;
        }
    }

    /// False: there is nothing to guard any more.
    fn look(&mut self) -> bool {
        let Some(partitions) = self.partitions.upgrade() else { return false };
        self.looks = (self.looks + 1) % RELEASE_EXPIRED_EVERY;
        let Some(resident) = resident_bytes() else { return true };
        self.left_bytes = self.left_bytes.min(resident);
        let release = choose_release(resident, self.left_bytes, self.budget_bytes, self.looks == 0);
        if let Some(release) = release {
            allocator::release_free_memory(release);
        }
        let Some(resident) = resident_bytes() else { return true };
        if release == Some(Release::All) {
            self.left_bytes = resident;
        }
        let cache = Cache {
            size_bytes: partitions.statistics().cache.size_bytes,
            limit_bytes: self.cache_limit_bytes,
            size_bytes_max: self.cache_size_bytes_max,
        };
        let mut limit = choose_cache_limit(resident, self.budget_bytes, cache);
        if release != Some(Release::All) {
            // How much of it is in use is not known; if all of it were, the cache could grow.
            limit = limit.max(self.cache_limit_bytes);
        }
        if limit != self.cache_limit_bytes {
            self.cache_limit_bytes = limit;
            partitions.limit_cache(limit);
            if limit < cache.limit_bytes {
                tracing::debug!(resident, limit, "the block cache shrinks");
                allocator::release_free_memory(Release::All);
            }
        }
        true
    }
}

/// Which free memory is to go back to the system, if so much is resident, and was after the last time.
fn choose_release(resident: u64, left_bytes: u64, budget_bytes: u64, is_time: bool) -> Option<Release> {
    let is_too_much = resident > budget_bytes.saturating_add(RELEASED_FROM_BYTES);
    let has_grown = resident > left_bytes.saturating_add(GROWN_BYTES_MIN);
    match is_too_much && (has_grown || is_time) {
        true => Some(Release::All),
        false => is_time.then_some(Release::Expired),
    }
}

/// The cache as it is.
#[derive(Clone, Copy, Debug)]
struct Cache {
    /// What it takes, with what checkpoints hold.
    size_bytes: u64,
    /// What it may take.
    limit_bytes: u64,
    /// What it was set to.
    size_bytes_max: u64,
}

/// What the cache may take if so much of the process's memory is in use.
fn choose_cache_limit(in_use: u64, budget_bytes: u64, cache: Cache) -> u64 {
    let in_use_max = budget_bytes.saturating_add(IN_USE_BEYOND_BYTES_MAX);
    let excess = in_use.saturating_sub(in_use_max);
    if excess > 0 {
        return cache.limit_bytes.min(cache.size_bytes).saturating_sub(excess);
    }
    // The other half of the room stays, or it would swing.
    let step = ((in_use_max - in_use) / 2).min(cache.size_bytes_max / CACHE_GROWS_BY_DIVISOR_MIN);
    if step < cache.size_bytes_max / CACHE_GROWS_BY_DIVISOR_MAX {
        return cache.limit_bytes;
    }
    cache.size_bytes_max.min(cache.limit_bytes + step)
}

/// Bytes of this process that are resident; `None`: the system does not say.
fn resident_bytes() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split(' ').nth(1)?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const BUDGET: u64 = 256 * MIB;

    #[test]
    fn free_memory_goes_back_when_it_is_old_or_too_much() {
        for (resident_mib, left_mib, is_time, expected) in [
            (100, 0, false, None),
            (100, 0, true, Some(Release::Expired)),
            (352, 0, true, Some(Release::Expired)),
            (353, 0, true, Some(Release::All)),
            (353, 0, false, Some(Release::All)),
            // What was left is in use.
            (400, 390, false, None),
            (400, 390, true, Some(Release::All)),
            (407, 390, false, Some(Release::All)),
        ] {
            let chosen = choose_release(resident_mib * MIB, left_mib * MIB, BUDGET, is_time);
            assert_eq!(chosen, expected, "{resident_mib} MiB, {left_mib} left");
        }
        assert_eq!(choose_release(u64::MAX, 0, u64::MAX, false), None);
    }

    #[test]
    fn the_cache_gives_way_by_what_is_too_much_and_grows_again() {
        let choose = |in_use_mib: u64, size_mib: u64, limit_mib: u64| {
            let cache =
                Cache { size_bytes: size_mib * MIB, limit_bytes: limit_mib * MIB, size_bytes_max: 128 * MIB };
            choose_cache_limit(in_use_mib * MIB, BUDGET, cache) / MIB
        };
        for (in_use, size, limit, expected) in [
            (200, 100, 128, 128),
            (320, 100, 128, 128),
            (350, 100, 128, 70),
            (350, 128, 40, 10),
            (900, 100, 128, 0),
            // Near the bound it stays as it is.
            (318, 70, 70, 70),
            (313, 70, 70, 70),
            (312, 70, 70, 74),
            (288, 70, 70, 86),
            (100, 70, 70, 86),
            (200, 70, 127, 128),
        ] {
            assert_eq!(choose(in_use, size, limit), expected, "{in_use} MiB in use, {size} of {limit}");
        }
    }

    #[test]
    fn what_is_resident_is_known() {
        assert!(resident_bytes().is_some_and(|bytes| (MIB..1 << 40).contains(&bytes)));
    }
}
