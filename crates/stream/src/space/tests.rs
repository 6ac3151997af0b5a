//! When the reserve grows, when a disk is nearly full, and when there is space for work that reclaims some.

use super::choices::{
    LOW_WATCH_EVERY, MARGIN_DIVISOR, Step, WATCH_EVERY, choose_step, has_space, is_little, look_again_after,
};
use std::time::Duration;

#[test]
fn a_reserve_grows_only_while_a_margin_stays_free() {
    const MIB: u64 = 1 << 20;
    for (held, size, free, expected) in [
        (0, 64 * MIB, u64::MAX, Step::Grow(MIB)),
        (0, 64 * MIB, 80 * MIB, Step::Grow(MIB)),
        (0, 64 * MIB, 80 * MIB - 1, Step::Rest),
        (63 * MIB, 64 * MIB, 17 * MIB, Step::Grow(MIB)),
        (63 * MIB, 64 * MIB, 17 * MIB - 1, Step::Rest),
        (64 * MIB - 5, 64 * MIB, u64::MAX, Step::Grow(5)),
        (64 * MIB, 64 * MIB, u64::MAX, Step::Rest),
        (65 * MIB, 64 * MIB, u64::MAX, Step::Rest),
        (0, 0, u64::MAX, Step::Rest),
    ] {
        assert_eq!(
            choose_step(held, size, free, size / MARGIN_DIVISOR),
            expected,
            "{held} of {size}, {free} free"
        );
    }
}

#[test]
fn a_disk_is_nearly_full_below_half_a_reserve_and_until_a_margin_more_is_free() {
    for (was_little, free, expected) in
        [(false, 319, true), (false, 320, false), (true, 320, true), (true, 339, true), (true, 340, false)]
    {
        assert_eq!(is_little(was_little, free, 640), expected, "{was_little} {free}");
    }
}

#[test]
fn free_space_is_measured_again_before_it_can_be_filled() {
    for (free, expected) in [
        (0, LOW_WATCH_EVERY),
        (32 << 20, LOW_WATCH_EVERY),
        ((32 << 20) + (2 << 30), Duration::from_secs(1)),
        (u64::MAX, WATCH_EVERY),
    ] {
        assert_eq!(look_again_after(free, 64 << 20), expected, "{free}");
    }
}

#[test]
fn work_leaves_a_margin_and_while_space_is_scarce_half_of_what_is_free() {
    for (is_scarce, free, size, expected) in [
        (false, 100, 84, true),
        (false, 100, 85, false),
        (false, 0, u64::MAX, false),
        (false, 0, 0, true),
        (false, 16, 2, true),
        (false, 16, 3, false),
        (true, 100, 50, true),
        (true, 100, 51, false),
        (true, 0, 0, true),
        (true, 0, 1, false),
    ] {
        assert_eq!(has_space(is_scarce, free, size, 16), expected, "{is_scarce} {free} {size}");
    }
}
