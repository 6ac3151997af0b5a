//! How much writers are slowed before they are stopped: pure choices over what is in memory, how fast flushes
//! are, and how far compactions lag.
//!
//! Why: writers that are faster than flushes would fill one memory table after the other at full speed and
//! then all stop until a flush has ended. Instead the rate at which they are admitted falls towards that of
//! the flushes while the tables fill, so that each of them waits a little. It works like a token bucket: each
//! write takes the next turn, and the turn after it comes as much later as its bytes take at the rate. What
//! always holds: without pressure there is no delay; no delay is longer than [`WRITE_DELAY_MAX`]; writers get
//! turns in the order in which they came, and no two the same one unless that bound makes them.

use std::time::Duration;

/// No write is delayed for longer. A thousand batches of 40 KiB take so long at 40 MiB/s.
pub(crate) const WRITE_DELAY_MAX: Duration = Duration::from_secs(1);
/// A turn that comes sooner than that is taken at once: timers are no more exact than this.
const WRITE_DELAY_MIN: Duration = Duration::from_millis(1);

/// The whole, in the unit of levels and factors.
const WHOLE_PERMILLE: u64 = 1000;
/// A flush counts as done up to this part at most until it has ended: one that takes longer than those before
/// it must not let writers run into the stop.
const FLUSHED_PERMILLE_MAX: u64 = 900;
/// Used parts of the budget of all memory tables, and the levels that they count as.
const BUDGET_PERMILLE_MIN: u64 = 750;
/// A range whose own tables are at most at this level has no part in that: others fill the budget.
const OWN_PERMILLE_MIN: u64 = 500;
/// Compactions lag if there are more than so many times as many checkpoints as are compacted at once, and
/// most at so many times.
const DEBT_COUNT_FACTOR_MIN: usize = 4;
const DEBT_COUNT_FACTOR_MAX: usize = 8;
/// The factor of the rate then.
const DEBT_PERMILLE_MIN: u64 = 250;

/// Levels in memory tables of the range, and the factor of the flushes' rate at which writers are admitted,
/// both in permille. One table is being flushed while one fills; what is beyond that comes in faster than it
/// goes out, but for what comes in at once when a table is full.
const FACTORS: [(u64, u64); 3] = [(1050, 2000), (1250, 1000), (1500, 500)];

/// What writers of a range press against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pressure {
    /// Bytes of the range's frozen memory tables that no flush has passed yet.
    pub(crate) frozen_bytes: u64,
    /// Bytes of its table that takes changes.
    pub(crate) active_bytes: u64,
    /// At which a table is frozen.
    pub(crate) table_size_bytes: u64,
    /// What tables of all ranges take, and may take.
    pub(crate) used_bytes: u64,
    pub(crate) used_bytes_max: u64,
    pub(crate) checkpoint_count: usize,
    /// Checkpoints that are compacted at once.
    pub(crate) compaction_count_min: usize,
}

/// `part` of `whole`, in permille.
fn permille(part: u64, whole: u64) -> u64 {
    let permille = u128::from(part) * u128::from(WHOLE_PERMILLE) / u128::from(whole.max(1));
    u64::try_from(permille).unwrap_or(u64::MAX)
}

/// Between two points of a line; what is outside gets the nearer point's.
fn between(at: u64, (from, from_value): (u64, u64), (to, to_value): (u64, u64)) -> u64 {
    let at = at.clamp(from, to);
    (from_value * (to - at) + to_value * (at - from)) / (to - from).max(1)
}

impl Pressure {
    /// How full memory is: 1000 with one table's bytes in memory besides what has been flushed of them.
    fn level_permille(&self) -> u64 {
        let of_range = permille(self.frozen_bytes + self.active_bytes, self.table_size_bytes);
        let of_budget = permille(self.used_bytes, self.used_bytes_max);
        if of_budget <= BUDGET_PERMILLE_MIN || of_range <= OWN_PERMILLE_MIN {
            return of_range;
        }
        let (low, high) = (FACTORS[0].0, FACTORS[FACTORS.len() - 1].0);
        of_range.max(between(of_budget, (BUDGET_PERMILLE_MIN, low), (WHOLE_PERMILLE, high)))
    }

    /// Whether compactions lag.
    fn has_debt(&self) -> bool {
        has_debt(self.checkpoint_count, self.compaction_count_min)
    }

    fn debt_factor_permille(&self) -> u64 {
        let count = |factor: usize| (self.compaction_count_min * factor) as u64;
        let from = (count(DEBT_COUNT_FACTOR_MIN), WHOLE_PERMILLE);
        between(self.checkpoint_count as u64, from, (count(DEBT_COUNT_FACTOR_MAX), DEBT_PERMILLE_MIN))
    }
}

/// Whether a range has so many checkpoints that its compactions lag.
pub(crate) fn has_debt(checkpoint_count: usize, compaction_count_min: usize) -> bool {
    checkpoint_count > compaction_count_min * DEBT_COUNT_FACTOR_MIN
}

/// Bytes of a table of `size_bytes` that a flush has passed which began so long ago, roughly.
pub(crate) fn flushed_bytes(size_bytes: u64, began_for: Duration, flush_bytes_per_second: u64) -> u64 {
    let passed = u128::from(flush_bytes_per_second) * began_for.as_micros() / 1_000_000;
    let most = u128::from(size_bytes) * u128::from(FLUSHED_PERMILLE_MAX) / u128::from(WHOLE_PERMILLE);
    u64::try_from(passed.min(most)).unwrap_or(size_bytes)
}

/// The rate, in bytes a second, at which writers are admitted. `None`: as they come.
pub(crate) fn choose_write_rate(pressure: &Pressure, flush_bytes_per_second: u64) -> Option<u64> {
    let level = pressure.level_permille();
    // How fast flushes are is not known before the first one.
    if flush_bytes_per_second == 0 || level <= FACTORS[0].0 && !pressure.has_debt() {
        return None;
    }
    let above = FACTORS.iter().position(|(from, _)| level < *from).unwrap_or(FACTORS.len() - 1).max(1);
    let factor = between(level, FACTORS[above - 1], FACTORS[above]);
    let factor = u128::from(factor) * u128::from(pressure.debt_factor_permille());
    let whole = u128::from(WHOLE_PERMILLE) * u128::from(WHOLE_PERMILLE);
    let rate = u128::from(flush_bytes_per_second) * factor / whole;
    Some(u64::try_from(rate).unwrap_or(u64::MAX).max(1))
}

/// How long so many bytes take at a rate.
pub(crate) fn time_of(size_bytes: u64, bytes_per_second: u64) -> Duration {
    let nanoseconds = u128::from(size_bytes) * 1_000_000_000 / u128::from(bytes_per_second.max(1));
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// When a write of `size_bytes` that comes `now` has its turn, after how long a delay, and when the next turn
/// is.
pub(crate) fn choose_write_delay(
    next_turn_at: Duration,
    now: Duration,
    size_bytes: u64,
    bytes_per_second: u64,
) -> (Duration, Duration) {
    let turn_at = next_turn_at.max(now);
    let delay = (turn_at - now).min(WRITE_DELAY_MAX);
    let next_turn_at = turn_at.saturating_add(time_of(size_bytes, bytes_per_second));
    let delay = if delay < WRITE_DELAY_MIN { Duration::ZERO } else { delay };
    (delay, next_turn_at.min(now + WRITE_DELAY_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const FLUSH_RATE: u64 = 40 * MIB;

    fn pressure(frozen_mib: u64, active_mib: u64) -> Pressure {
        Pressure {
            frozen_bytes: frozen_mib * MIB,
            active_bytes: active_mib * MIB,
            table_size_bytes: 32 * MIB,
            used_bytes: (frozen_mib + active_mib) * MIB,
            used_bytes_max: 512 * MIB,
            checkpoint_count: 10,
            compaction_count_min: 10,
        }
    }

    #[test]
    fn writers_are_slowed_the_more_the_fuller_memory_is() {
        let rate = |pressure: Pressure| choose_write_rate(&pressure, FLUSH_RATE).map(|rate| rate / MIB);
        for (frozen_mib, active_mib, expected) in [
            (0, 0, None),
            (0, 31, None),
            // One is being flushed, and the flush is as far as the table behind it.
            (32, 0, None),
            (16, 16, None),
            (32, 5, Some(58)),
            (32, 8, Some(40)),
            (32, 12, Some(30)),
            (32, 16, Some(20)),
            // Here they are about to be stopped.
            (64, 15, Some(20)),
            (64, 300, Some(20)),
        ] {
            assert_eq!(rate(pressure(frozen_mib, active_mib)), expected, "{frozen_mib} {active_mib}");
        }
        assert_eq!(choose_write_rate(&pressure(64, 16), 0), None, "how fast flushes are is not known");
    }

    #[test]
    fn a_full_budget_and_lagging_compactions_slow_writers_too() {
        let rate = |pressure: Pressure| choose_write_rate(&pressure, FLUSH_RATE).map(|rate| rate / MIB);
        let of_budget = |used_mib| rate(Pressure { used_bytes: used_mib * MIB, ..pressure(0, 17) });
        for (used_mib, expected) in
            [(0, None), (384, None), (448, Some(38)), (480, Some(29)), (512, Some(20)), (900, Some(20))]
        {
            assert_eq!(of_budget(used_mib), expected, "{used_mib}");
        }
        // Half a table or less: others fill the budget.
        assert_eq!(rate(Pressure { used_bytes: 900 * MIB, ..pressure(0, 16) }), None);
        let of_debt = |checkpoint_count, pressure| rate(Pressure { checkpoint_count, ..pressure });
        for (checkpoint_count, alone, beside_a_full_table) in [
            (40, None, Some(40)),
            (60, Some(50), Some(25)),
            (80, Some(20), Some(10)),
            (5000, Some(20), Some(10)),
        ] {
            assert_eq!(of_debt(checkpoint_count, pressure(0, 1)), alone, "{checkpoint_count}");
            assert_eq!(of_debt(checkpoint_count, pressure(32, 8)), beside_a_full_table, "{checkpoint_count}");
        }
    }

    #[test]
    fn a_flush_counts_as_done_as_far_as_it_should_be_and_never_quite() {
        let passed =
            |milliseconds, rate| flushed_bytes(40 * MIB, Duration::from_millis(milliseconds), rate) / MIB;
        assert_eq!((passed(0, FLUSH_RATE), passed(500, FLUSH_RATE), passed(750, FLUSH_RATE)), (0, 20, 30));
        assert_eq!((passed(1000, FLUSH_RATE), passed(1 << 40, u64::MAX)), (36, 36));
        assert_eq!(passed(1000, 0), 0);
    }

    #[test]
    fn each_write_has_a_turn_of_its_own_and_none_waits_for_ever() {
        let ms = Duration::from_millis;
        for (next_turn_at, now, size_bytes, expected) in [
            (0, 50, 40_000, (0, 51)),
            (50, 50, 40_000, (0, 51)),
            // Sooner than a timer would wake it, but the next one comes after it.
            (50, 50, 10_000, (0, 50)),
            (53, 50, 40_000, (3, 54)),
            (90, 50, 400_000, (40, 100)),
            (90_000, 50, 40_000, (1000, 1050)),
            (50, 50, 400_000_000, (0, 1050)),
        ] {
            let (delay, next) = choose_write_delay(ms(next_turn_at), ms(now), size_bytes, 40_000_000);
            assert_eq!(
                (delay, next.as_millis()),
                (ms(expected.0), expected.1),
                "{next_turn_at} {size_bytes}"
            );
        }
        let many = (0..100).scan(Duration::ZERO, |next, _| {
            let (delay, then) = choose_write_delay(*next, Duration::ZERO, 40_000, 40_000_000);
            *next = then;
            Some(delay)
        });
        let many: Vec<Duration> = many.collect();
        assert!(many.is_sorted_by(|one, other| *other == *one + ms(1)), "{many:?}");
    }

    /// Writers that are faster than the flushes, each with one write at a time, on one range.
    struct Writers {
        is_slowed: bool,
        count: u64,
        /// What a write takes besides its delay.
        service: Duration,
        seconds: u64,
    }

    #[derive(Debug)]
    struct Fared {
        p99: Duration,
        longest: Duration,
        bytes_per_second: u64,
    }

    const WRITE_SIZE_BYTES: u64 = 40_000;

    impl Writers {
        /// In virtual time: a memory table of 32 MiB is frozen when it is full, flushes take one after the
        /// other, and writers stop at two frozen ones and a half-full one.
        fn run(&self) -> Fared {
            let table = 32 * MIB;
            let (mut active, mut frozen, mut next_turn_at) = (0, 0u64, Duration::ZERO);
            let mut flush_began_at: Option<Duration> = None;
            // When each comes next, and when it began to.
            let mut due: std::collections::BTreeSet<(Duration, u64, Duration, bool)> =
                (0..self.count).map(|writer| (Duration::ZERO, writer, Duration::ZERO, false)).collect();
            let (mut took, mut written) = (Vec::new(), 0);
            let (end, flush_for) = (Duration::from_secs(self.seconds), time_of(table, FLUSH_RATE));
            while let Some((now, writer, began_at, has_turn)) = due.pop_first() {
                if now >= end {
                    break;
                }
                while let Some(began) = flush_began_at.filter(|began| *began + flush_for <= now) {
                    frozen -= 1;
                    flush_began_at = (frozen > 0).then_some(began + flush_for);
                }
                if frozen >= 2 && active >= table / 2 {
                    // It is stopped until the flush has ended.
                    let flushed_at = flush_began_at.unwrap_or(now) + flush_for;
                    due.insert((flushed_at, writer, began_at, has_turn));
                    continue;
                }
                if self.is_slowed && !has_turn {
                    let passed = flush_began_at
                        .map_or(0, |began| flushed_bytes(table, now.saturating_sub(began), FLUSH_RATE));
                    let pressed = Pressure {
                        frozen_bytes: frozen * table - passed,
                        active_bytes: active,
                        ..pressure(0, 0)
                    };
                    if let Some(rate) = choose_write_rate(&pressed, FLUSH_RATE) {
                        let (delay, next) = choose_write_delay(next_turn_at, now, WRITE_SIZE_BYTES, rate);
                        next_turn_at = next;
                        due.insert((now + delay, writer, began_at, true));
                        continue;
                    }
                }
                active += WRITE_SIZE_BYTES;
                written += WRITE_SIZE_BYTES;
                if active >= table {
                    (active, frozen) = (0, frozen + 1);
                    flush_began_at = flush_began_at.or(Some(now));
                }
                let done_at = now + self.service;
                took.push(done_at - began_at);
                due.insert((done_at, writer, done_at, false));
            }
            took.sort();
            Fared {
                p99: took[took.len() * 99 / 100],
                longest: *took.last().unwrap(),
                bytes_per_second: written / self.seconds,
            }
        }
    }

    /// They ran at full speed and then stopped for as long as a flush took, all of them.
    #[test]
    fn writers_that_are_slowed_have_flat_latency_at_the_speed_of_the_flushes() {
        for (count, service_ms) in [(8, 4), (16, 4), (16, 8), (64, 8), (256, 20)] {
            let writers = |is_slowed| Writers {
                is_slowed,
                count,
                service: Duration::from_millis(service_ms),
                seconds: 60,
            };
            let (stopped, slowed) = (writers(false).run(), writers(true).run());
            println!("{count} writers of {service_ms} ms: stopped {stopped:?}, slowed {slowed:?}");
            // What a write takes if the writers share the flushes' speed evenly.
            let fair = time_of(WRITE_SIZE_BYTES * count, FLUSH_RATE);
            assert!(stopped.longest > 10 * fair.min(Duration::from_millis(30)), "{stopped:?}");
            assert!(slowed.longest <= 2 * fair, "{fair:?} would be fair: {slowed:?}");
            assert!(slowed.longest <= slowed.p99 * 4 / 3, "it is not flat: {slowed:?}");
            assert!(slowed.bytes_per_second >= stopped.bytes_per_second / 100 * 98, "{slowed:?} {stopped:?}");
        }
    }

    #[test]
    fn writers_that_flushes_keep_up_with_are_not_slowed() {
        let writers = |is_slowed| {
            Writers { is_slowed, count: 8, service: Duration::from_millis(10), seconds: 20 }.run()
        };
        let (free, slowed) = (writers(false), writers(true));
        assert_eq!((free.longest, slowed.longest), (Duration::from_millis(10), Duration::from_millis(10)));
        assert_eq!(free.bytes_per_second, slowed.bytes_per_second);
    }
}
