//! Whether rows come in the order of keys, within their range: what dividing ranges relies on.
//!
//! A service with another order would end a range too early or too late, so that rows were missing or there
//! twice. The order is that of UTF-16 code units or that of code points; both divide ranges in the same way,
//! because they are divided at plain texts only ([`super::midpoint`]).
//!
//! What always holds: rows that pass rise strictly by one of the two orders, the same from the first row to
//! the last one, and are in the range.

use super::key::{Key, is_plain, text_cmp};
use super::range::KeyRange;
use std::cmp::Ordering;

/// The order of a range's rows so far.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    last: Option<Key>,
    by_units: bool,
    by_points: bool,
}

impl Order {
    /// Of a range whose rows up to `last` were read before.
    pub(crate) fn behind(last: Option<Key>) -> Self {
        Order { last, by_units: true, by_points: true }
    }

    /// Takes the keys of a page. The error says which are out of order.
    pub(crate) fn take<'a>(
        &mut self,
        range: &KeyRange,
        keys: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), String> {
        for (partition, row) in keys {
            if !holds(range, partition, row) {
                return Err(format!(
                    "the query for {} was answered with {partition:?} {row:?}, which is not in it by the order \
                     of keys: rows would be missing, or there twice",
                    range.filter().unwrap_or_default()
                ));
            }
            if let Some(last) = &self.last {
                let (old, key) = ((last.partition.as_str(), last.row.as_str()), (partition, row));
                self.by_units &= compare(old, key, text_cmp) == Ordering::Less;
                self.by_points &= compare(old, key, str::cmp) == Ordering::Less;
                if !self.by_units && !self.by_points {
                    let Key { partition: old_partition, row: old_row } = last;
                    return Err(format!(
                        "{partition:?} {row:?} comes behind {old_partition:?} {old_row:?}, out of the order of \
                         keys: rows would be missing, or there twice"
                    ));
                }
            }
            match &mut self.last {
                Some(last) => last.replace(partition, row),
                None => self.last = Some(Key::new(partition, row)),
            }
        }
        Ok(())
    }

    /// The last row that was taken.
    pub(crate) fn last(&self) -> Option<&Key> {
        self.last.as_ref()
    }
}

fn compare(one: (&str, &str), other: (&str, &str), by: impl Fn(&str, &str) -> Ordering) -> Ordering {
    by(one.0, other.0).then_with(|| by(one.1, other.1))
}

/// Whether a key is in a range, as far as both orders agree on it.
fn holds(range: &KeyRange, partition: &str, row: &str) -> bool {
    let (text, from, before) = match range {
        KeyRange::Partitions { from, before } => (partition, from, before),
        KeyRange::Rows { partition: of, .. } if of != partition => return false,
        KeyRange::Rows { from, before, .. } => (row, from, before),
    };
    let bound = |bound: &Option<String>, is_kept: fn(Ordering) -> bool| {
        let bound = bound.as_ref().filter(|bound| is_plain(bound));
        bound.is_none_or(|bound| is_kept(text_cmp(text, bound)))
    };
    bound(from, Ordering::is_ge) && bound(before, Ordering::is_lt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(range: &KeyRange, last: Option<Key>, keys: &[(&str, &str)]) -> Result<(), String> {
        let mut order = Order::behind(last);
        // Each in a page of its own: the order goes on over pages.
        keys.iter().try_for_each(|key| order.take(range, std::iter::once(*key)))
    }

    /// Only `diff` looked at the order; a service that sorts otherwise made the other commands leave rows
    /// out.
    #[test]
    fn rows_out_of_order_are_named() {
        let all = KeyRange::all();
        let rest = "out of the order of keys: rows would be missing, or there twice";
        let behind = |key: &str, old: &str| Err(format!("{key} comes behind {old}, {rest}"));
        let (low, high) = ("\u{e000}", "\u{10000}");
        for (keys, expected) in [
            (&[("a", "1"), ("a", "2"), ("b", ""), ("b", "1")][..], Ok(())),
            (&[("B", "1"), ("a", "1")], Ok(())),
            (&[("a", "1"), ("B", "1")], behind("\"B\" \"1\"", "\"a\" \"1\"")),
            (&[("a", "2"), ("a", "10")], behind("\"a\" \"10\"", "\"a\" \"2\"")),
            (&[("a", "1"), ("a", "1")], behind("\"a\" \"1\"", "\"a\" \"1\"")),
            // Either order, but one of them.
            (&[("a", high), ("a", low)], Ok(())),
            (&[("a", low), ("a", high)], Ok(())),
            (&[("a", high), ("a", low), ("b", high), ("b", low)], Ok(())),
            (
                &[("a", high), ("a", low), ("b", low), ("b", high)],
                behind("\"b\" \"\u{10000}\"", "\"b\" \"\\u{e000}\""),
            ),
        ] {
            assert_eq!(taken(&all, None, keys), expected, "{keys:?}");
        }
        let last = Some(Key::new("b", "1"));
        assert_eq!(taken(&all, last, &[("b", "1")]), behind("\"b\" \"1\"", "\"b\" \"1\""), "an earlier run");
    }

    #[test]
    fn rows_of_another_range_are_named() {
        let range = KeyRange::all().from("b").before(Some("d"));
        for (key, is_in) in [("b", true), ("c\u{ffff}", true), ("C", false), ("d", false)] {
            assert_eq!(taken(&range, None, &[(key, "r")]).is_ok(), is_in, "{key}");
        }
        let rows = KeyRange::partition("p").from("1");
        for (key, is_in) in [(("p", "1"), true), (("p", "0"), false), (("q", "1"), false)] {
            assert_eq!(taken(&rows, None, &[key]).is_ok(), is_in, "{key:?}");
        }
        let refusal = taken(&range, None, &[("a", "1")]).expect_err("a refusal");
        assert!(
            refusal.starts_with("the query for PartitionKey ge 'b' and PartitionKey lt 'd' was"),
            "{refusal}"
        );
    }
}
