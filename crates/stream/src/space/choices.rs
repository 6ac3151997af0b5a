//! The choices about space, from numbers alone: when the reserve grows, when the disk is nearly full, when to
//! measure again, and whether there is space for work that reclaims some.

use std::time::Duration;

/// The reserve is written in pieces of this size, so that other writes reach the disk in between.
pub(super) const PIECE_SIZE_BYTES: u64 = 1 << 20;
/// A reserve that is not whole is looked after this often.
pub(super) const WATCH_EVERY: Duration = Duration::from_secs(5);
/// What is free is not measured more often than this.
pub(super) const LOW_WATCH_EVERY: Duration = Duration::from_millis(20);
/// With less free than this part of the reserve the disk is nearly full.
pub(super) const LOW_DIVISOR: u64 = 2;
/// And no longer so once this part of the reserve more is free.
pub(super) const LOW_MARGIN_DIVISOR: u64 = 32;
/// Up to this part of what is free is little.
pub(super) const SMALL_PART_DIVISOR: u64 = 8;
/// The reserve only grows while this part of its size stays free besides; else the next write would have it
/// given up again.
pub(super) const MARGIN_DIVISOR: u64 = 4;
/// What is free is measured again before it can have been filled at this speed.
const FILLED_BYTES_PER_SECOND_MAX: u64 = 2 << 30;

/// What to do about a reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Rest,
    /// The reserve grows by so many bytes.
    Grow(u64),
}

/// The next step of a reserve that holds `held_bytes` of `size_bytes`, on a disk with so much free.
pub(super) fn choose_step(held_bytes: u64, size_bytes: u64, free_bytes: u64, margin_bytes: u64) -> Step {
    let missing_bytes = size_bytes.saturating_sub(held_bytes);
    if missing_bytes == 0 || free_bytes < missing_bytes + margin_bytes {
        return Step::Rest;
    }
    Step::Grow(missing_bytes.min(PIECE_SIZE_BYTES))
}

/// Whether so little is free that the disk is nearly full, with a reserve of that size.
pub(super) fn is_little(was_little: bool, free_bytes: u64, size_bytes: u64) -> bool {
    let margin_bytes = if was_little { size_bytes / LOW_MARGIN_DIVISOR } else { 0 };
    free_bytes < size_bytes / LOW_DIVISOR + margin_bytes
}

/// When to measure a disk again of which so much is free.
pub(super) fn look_again_after(free_bytes: u64, size_bytes: u64) -> Duration {
    let left_bytes = free_bytes.saturating_sub(size_bytes / LOW_DIVISOR);
    let filled_after = Duration::from_secs_f64(left_bytes as f64 / FILLED_BYTES_PER_SECOND_MAX as f64);
    filled_after.clamp(LOW_WATCH_EVERY, WATCH_EVERY)
}

/// Whether there is space for work that reclaims some but takes so many bytes first. While space is scarce
/// half of what is free stays for other work: a large compaction that fails for want of space would have kept
/// it from all deletions meanwhile. Else a margin stays, or such work would fill the disk, and the reserve
/// would be given up for it again and again. Work that takes a small part of what is free hinders nothing,
/// and without it rows that are nearly all dead would stay for ever.
pub(super) fn has_space(is_scarce: bool, free_bytes: u64, size_bytes: u64, margin_bytes: u64) -> bool {
    if is_scarce {
        size_bytes <= free_bytes / 2
    } else {
        size_bytes <= free_bytes / SMALL_PART_DIVISOR || size_bytes.saturating_add(margin_bytes) <= free_bytes
    }
}
