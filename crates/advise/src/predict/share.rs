//! The largest partition's share of all entities, from a sample.
//!
//! The largest count of a sample overrates: of many partitions of one size, the luckiest is seen as the
//! largest. So counts that the sample can't tell from the largest one are taken together, and what of their
//! differences is chance is taken out (James and Stein 1961): with variance `v` and mean `m` of these counts,
//! of which chance alone gives a variance of `m`, the largest is `m + (max - m) · (1 - m / v)`, or `m` if
//! `v ≤ m`.

/// Counts within so many standard deviations of the largest may be of partitions as large as it.
const APART: f64 = 4.0;
/// Standard deviations on each side of a 95 % interval.
const Z_95: f64 = 1.96;

/// A share of all entities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// From 0 to 1.
    pub share: f64,
    /// The interval that it lies in, 19 times of 20.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Entities of the sample that it rests on.
    pub seen: u64,
}

/// The largest share, from the counts of a sample.
pub(crate) fn largest_share(counts: impl Iterator<Item = u64>) -> Share {
    let counts: Vec<u64> = counts.collect();
    let total: u64 = counts.iter().sum();
    let seen = counts.iter().copied().max().unwrap_or(0);
    let max = seen as f64;
    let near = max - APART * max.sqrt();
    let group: Vec<f64> = counts.iter().map(|count| *count as f64).filter(|count| *count >= near).collect();
    let size = group.len().max(1) as f64;
    let mean = group.iter().sum::<f64>() / size;
    let variance = group.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (size - 1.0).max(1.0);
    let is_chance = group.len() > 1 && variance > 0.0;
    let kept = match is_chance {
        true => (1.0 - mean / variance).max(0.0),
        false => {
            if group.len() > 1 {
                0.0
            } else {
                1.0
            }
        }
    };
    let total = total.max(1) as f64;
    let share = (mean + (max - mean) * kept) / total;
    let deviation = Z_95 * (share * (1.0 - share) / total).sqrt();
    Share { share, low: (share - deviation).max(0.0), high: (share + deviation).min(1.0), seen }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_large_partition_is_taken_as_it_is_seen() {
        let share = largest_share([2000, 900, 600, 500].into_iter());
        assert_eq!((share.share, share.seen), (0.5, 2000));
        assert!(share.low < 0.49 && share.low > 0.48 && share.high < 0.52);
        assert_eq!(largest_share(std::iter::empty()).share, 0.0);
        assert_eq!(largest_share([7].into_iter()).share, 1.0);
    }

    /// 16 buckets of the same size: the luckiest is not larger than the others.
    #[test]
    fn what_is_chance_is_taken_out() {
        let counts = [625, 640, 610, 655, 600, 590, 630, 660, 620, 615, 645, 605, 635, 628, 612, 630];
        let share = largest_share(counts.into_iter());
        assert!((share.share - 1.0 / 16.0).abs() < 0.0005, "{share:?}");
        assert_eq!(largest_share([100; 10].into_iter()).share, 0.1);
    }
}
