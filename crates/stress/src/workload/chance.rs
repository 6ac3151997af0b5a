//! Seeded chance: the same seed gives the same draws.

use base::random::splitmix64;

/// A generator of a client. Clients differ by their number.
#[derive(Clone, Debug)]
pub(crate) struct Chance {
    state: u64,
}

impl Chance {
    /// The generator of one of the clients of a run.
    pub(crate) fn of(seed: u64, number: u64) -> Self {
        // Two draws apart, so that neighbouring numbers have nothing in common.
        let mut state = seed;
        let seed = splitmix64(&mut state);
        let mut state = number;
        Chance { state: seed ^ splitmix64(&mut state) }
    }

    /// 64 random bits.
    pub(crate) fn next_u64(&mut self) -> u64 {
        splitmix64(&mut self.state)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        // The high half of the product is even but for 2^-64 of `end`.
        ((u128::from(self.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// A number from 0 up to 1, which it never is.
    pub(crate) fn unit(&mut self) -> f64 {
        const BITS: u32 = f64::MANTISSA_DIGITS;
        (self.next_u64() >> (u64::BITS - BITS)) as f64 / (1u64 << BITS) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_repeat_and_clients_differ() {
        let draws = |seed, number| {
            let mut chance = Chance::of(seed, number);
            (0..4).map(|_| chance.next_u64()).collect::<Vec<u64>>()
        };
        assert_eq!(draws(7, 1), draws(7, 1));
        assert_ne!(draws(7, 1), draws(7, 2));
        assert_ne!(draws(7, 1), draws(8, 1));
    }

    #[test]
    fn numbers_keep_their_bounds_and_are_even() {
        let mut chance = Chance::of(1, 1);
        let mut counts = [0; 10];
        for _ in 0..10_000 {
            counts[chance.below(10) as usize] += 1;
            let unit = chance.unit();
            assert!((0.0..1.0).contains(&unit), "{unit}");
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        assert_eq!(chance.below(1), 0);
    }
}
