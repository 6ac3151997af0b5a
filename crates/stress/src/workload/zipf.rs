//! Zipf's law: the n-th of the keys by popularity is drawn with a weight of 1 / n^exponent.
//!
//! A table of sums, searched by halves: exact, and some 20 steps for a million keys.

use super::chance::Chance;

/// The law over some number of keys.
#[derive(Debug)]
pub(crate) struct Zipf {
    /// The share of the draws that have this rank or a better one; the last one is 1.
    up_to: Vec<f64>,
}

impl Zipf {
    /// Over `count` keys, at least one.
    pub(crate) fn new(count: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let mut up_to: Vec<f64> = (1..=count.max(1))
            .map(|rank| {
                sum += (rank as f64).powf(-exponent);
                sum
            })
            .collect();
        up_to.iter_mut().for_each(|one| *one /= sum);
        Zipf { up_to }
    }

    /// A rank from 0, the most popular.
    pub(crate) fn draw(&self, chance: &mut Chance) -> usize {
        let unit = chance.unit();
        self.up_to.partition_point(|up_to| *up_to <= unit).min(self.up_to.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_the_shares_of_the_law() {
        const DRAWS: usize = 200_000;
        let zipf = Zipf::new(1000, 1.0);
        let mut chance = Chance::of(3, 0);
        let mut counts = vec![0usize; 1000];
        for _ in 0..DRAWS {
            counts[zipf.draw(&mut chance)] += 1;
        }
        let harmonic: f64 = (1..=1000).map(|rank| 1.0 / f64::from(rank)).sum();
        for rank in [1usize, 2, 10, 100] {
            let expected = DRAWS as f64 / harmonic / rank as f64;
            let found = counts[rank - 1] as f64;
            assert!((found / expected - 1.0).abs() < 0.15, "rank {rank}: {found}, expected {expected}");
        }
    }

    #[test]
    fn an_exponent_of_0_is_even_and_one_key_is_always_drawn() {
        let mut chance = Chance::of(3, 0);
        let even = Zipf::new(4, 0.0);
        assert_eq!(even.up_to, [0.25, 0.5, 0.75, 1.0]);
        let one = Zipf::new(1, 2.0);
        assert!((0..100).all(|_| one.draw(&mut chance) == 0));
    }
}
