//! Aggregates of shards, merged: count, sum, least, greatest and mean. Pure.
//!
//! What always holds: a mean is made of sums and counts, never of means; a shard without rows changes
//! nothing; a sum that does not fit is an error, not another number.

use std::cmp::Ordering;

/// A sum. Whole numbers are added exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sum {
    /// Of whole numbers.
    Whole(i64),
    /// Of doubles: its last digits depend on the order of addition.
    Double(f64),
}

/// What one shard, or several, have of the rows of a query. `T` is what is compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate<T> {
    /// Rows with a value.
    pub count: u64,
    /// Their sum; none without rows, or if it is not asked for.
    pub sum: Option<Sum>,
    /// The least value.
    pub least: Option<T>,
    /// The greatest value.
    pub greatest: Option<T>,
}

/// Aggregates that can't be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AggregateError {
    /// The sum, or the count, is larger than its type.
    #[error("the sum over all shards is too large for its type; sum it as a double, or in parts")]
    Overflow,
    /// One shard sums whole numbers and another doubles.
    #[error("one shard sums whole numbers and another doubles; their columns differ in type")]
    Mixed,
    /// A value is not a number, and so neither less nor greater.
    #[error("a least or greatest value is NaN, which has no place in an order; leave such rows out")]
    Unordered,
}

impl<T> Default for Aggregate<T> {
    /// Of no rows.
    fn default() -> Self {
        Aggregate { count: 0, sum: None, least: None, greatest: None }
    }
}

impl<T: PartialOrd> Aggregate<T> {
    /// That of all these together.
    pub fn merge(parts: impl IntoIterator<Item = Self>) -> Result<Self, AggregateError> {
        parts.into_iter().try_fold(Self::default(), Self::and)
    }

    fn and(self, other: Self) -> Result<Self, AggregateError> {
        Ok(Aggregate {
            count: self.count.checked_add(other.count).ok_or(AggregateError::Overflow)?,
            sum: match (self.sum, other.sum) {
                (Some(one), Some(other)) => Some(one.and(other)?),
                (one, other) => one.or(other),
            },
            least: chosen(self.least, other.least, Ordering::Less)?,
            greatest: chosen(self.greatest, other.greatest, Ordering::Greater)?,
        })
    }

    /// The mean; none without rows or a sum. Of whole numbers beyond 2^53 it is rounded.
    pub fn mean(&self) -> Option<f64> {
        let sum = match self.sum? {
            Sum::Whole(sum) => sum as f64,
            Sum::Double(sum) => sum,
        };
        (self.count > 0).then(|| sum / self.count as f64)
    }
}

impl Sum {
    fn and(self, other: Self) -> Result<Self, AggregateError> {
        match (self, other) {
            (Sum::Whole(one), Sum::Whole(other)) => {
                one.checked_add(other).map(Sum::Whole).ok_or(AggregateError::Overflow)
            }
            (Sum::Double(one), Sum::Double(other)) => {
                let sum = one + other;
                let overflows = sum.is_infinite() && one.is_finite() && other.is_finite();
                if overflows { Err(AggregateError::Overflow) } else { Ok(Sum::Double(sum)) }
            }
            _ => Err(AggregateError::Mixed),
        }
    }
}

fn chosen<T: PartialOrd>(
    one: Option<T>,
    other: Option<T>,
    wanted: Ordering,
) -> Result<Option<T>, AggregateError> {
    Ok(match (one, other) {
        (Some(one), Some(other)) => {
            let order = other.partial_cmp(&one).ok_or(AggregateError::Unordered)?;
            Some(if order == wanted { other } else { one })
        }
        (one, other) => one.or(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[i64]) -> Aggregate<i64> {
        Aggregate {
            count: values.len() as u64,
            sum: (!values.is_empty()).then(|| Sum::Whole(values.iter().sum())),
            least: values.iter().min().copied(),
            greatest: values.iter().max().copied(),
        }
    }

    #[test]
    fn merged_parts_are_the_aggregate_of_all_rows() {
        let all = [[3, -4].as_slice(), &[], &[10], &[-7, 7, 8], &[]];
        let merged = Aggregate::merge(all.iter().map(|values| of(values))).expect("merged");
        assert_eq!(merged, of(&all.concat()));
        // The mean of the shards' means would be 4.1.
        assert_eq!(merged.mean(), Some(17.0 / 6.0));
        let none = Aggregate::merge([of(&[]), of(&[])]).expect("merged");
        assert_eq!((none.clone(), none.mean()), (of(&[]), None));
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let sum = |sum| Aggregate::<f64> { count: 1, sum: Some(sum), ..Aggregate::default() };
        let least = |least| Aggregate { count: 1, least: Some(least), ..Aggregate::default() };
        let merge = |parts: [Aggregate<f64>; 2]| Aggregate::merge(parts).map(|merged| merged.sum);
        let overflow = Err(AggregateError::Overflow);
        assert_eq!(merge([sum(Sum::Whole(i64::MAX)), sum(Sum::Whole(1))]), overflow);
        assert_eq!(merge([sum(Sum::Whole(i64::MIN)), sum(Sum::Whole(-1))]), overflow);
        assert_eq!(merge([sum(Sum::Whole(i64::MAX)), sum(Sum::Whole(0))]), Ok(Some(Sum::Whole(i64::MAX))));
        assert_eq!(merge([sum(Sum::Double(f64::MAX)), sum(Sum::Double(f64::MAX))]), overflow);
        assert_eq!(merge([sum(Sum::Whole(1)), sum(Sum::Double(1.0))]), Err(AggregateError::Mixed));
        assert_eq!(merge([least(1.0), least(f64::NAN)]), Err(AggregateError::Unordered));
        let counts = [u64::MAX, 1].map(|count| Aggregate::<f64> { count, ..Aggregate::default() });
        assert_eq!(merge(counts), overflow);
    }
}
