//! Which range owns a key: for each object table its ranges by their first keys.
//!
//! A set of routes never changes; a hand-over puts another in its place. What always holds for a set that
//! [`Routes::check`] accepts: each key of a table has exactly one owner.

use crate::key::KeyRange;
use crate::operation::ObjectTable;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Owners of key ranges.
#[derive(Clone, Debug)]
pub(crate) struct Routes<T> {
    tables: BTreeMap<ObjectTable, BTreeMap<Bytes, Route<T>>>,
}

#[derive(Clone, Debug)]
struct Route<T> {
    end: Option<Bytes>,
    owner: T,
}

impl<T> Default for Routes<T> {
    fn default() -> Self {
        Routes { tables: BTreeMap::new() }
    }
}

impl<T: Clone> Routes<T> {
    /// Adds an owner.
    pub(crate) fn add(&mut self, table: ObjectTable, range: KeyRange, owner: T) {
        self.tables.entry(table).or_default().insert(range.start, Route { end: range.end, owner });
    }

    /// Removes the owner of the range that starts at `start`.
    pub(crate) fn remove(&mut self, table: ObjectTable, start: &[u8]) {
        if let Some(ranges) = self.tables.get_mut(&table) {
            ranges.remove(start);
        }
    }

    /// The owner of `key`.
    pub(crate) fn owner(&self, table: ObjectTable, key: &[u8]) -> Option<&T> {
        let ranges = self.tables.get(&table)?;
        let (_, route) = ranges.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        route.end.as_ref().is_none_or(|end| key < end.as_ref()).then_some(&route.owner)
    }

    /// The owner of the last keys before `end`; without one, of the last keys that there are.
    pub(crate) fn owner_before(&self, table: ObjectTable, end: Option<&[u8]>) -> Option<&T> {
        let ranges = self.tables.get(&table)?;
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        let (_, route) = ranges.range::<[u8], _>((Bound::Unbounded, end)).next_back()?;
        Some(&route.owner)
    }

    /// Owners of a table, in key order.
    pub(crate) fn owners(&self, table: ObjectTable) -> impl Iterator<Item = &T> {
        self.tables.get(&table).into_iter().flat_map(|ranges| ranges.values().map(|route| &route.owner))
    }

    /// Owners of keys of `keys`, in key order.
    pub(crate) fn owners_of(&self, table: ObjectTable, keys: &KeyRange) -> impl Iterator<Item = &T> {
        let end = keys.end.clone();
        let ranges = self.tables.get(&table).filter(|_| !keys.is_empty());
        let found = ranges.into_iter().flat_map(move |ranges| {
            let before = ranges.range::<Bytes, _>(..=&keys.start).next_back();
            let is_in = before.filter(|(_, route)| route.end.as_ref().is_none_or(|end| *end > keys.start));
            let behind = (Bound::Excluded(&keys.start), Bound::Unbounded);
            is_in.into_iter().chain(ranges.range::<Bytes, _>(behind))
        });
        found
            .take_while(move |(start, _)| end.as_ref().is_none_or(|end| *start < end))
            .map(|(_, route)| &route.owner)
    }

    /// All owners, in the order of tables and keys.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.tables.values().flat_map(|ranges| ranges.values().map(|route| &route.owner))
    }

    /// Whether each key of `table` has exactly one owner; what is wrong if not.
    pub(crate) fn check(&self, table: ObjectTable) -> Result<(), String> {
        let empty = BTreeMap::new();
        let mut next = Some(Bytes::new());
        for (start, route) in self.tables.get(&table).unwrap_or(&empty) {
            if next.as_ref() != Some(start) {
                let found = start.escape_ascii();
                return Err(format!("ranges of table {} have a gap or overlap at {found}", table.name()));
            }
            if route.end.as_ref().is_some_and(|end| end <= start) {
                return Err(format!("a range of table {} ends before it starts", table.name()));
            }
            next.clone_from(&route.end);
        }
        if next.is_some() {
            return Err(format!("the end of table {} has no range", table.name()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: ObjectTable = ObjectTable::Entity;

    fn routes(bounds: &[(&'static str, Option<&'static str>)]) -> Routes<usize> {
        let mut routes = Routes::default();
        for (index, (start, end)) in bounds.iter().enumerate() {
            let range = KeyRange { start: Bytes::from_static(start.as_bytes()), end: end.map(Bytes::from) };
            routes.add(TABLE, range, index);
        }
        routes
    }

    #[test]
    fn each_key_has_the_owner_whose_range_it_is_in() {
        let routes = routes(&[("", Some("g")), ("g", Some("p")), ("p", None)]);
        assert_eq!(routes.check(TABLE), Ok(()));
        for (key, owner) in [("", 0), ("fzz", 0), ("g", 1), ("ozz", 1), ("p", 2), ("zz", 2)] {
            assert_eq!(routes.owner(TABLE, key.as_bytes()), Some(&owner), "{key}");
        }
        assert_eq!(routes.owner(ObjectTable::Container, b"a"), None);
        assert_eq!(routes.owners(TABLE).copied().collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn a_range_of_keys_has_the_owners_of_its_keys() {
        let routes = routes(&[("", Some("g")), ("g", Some("p")), ("p", None)]);
        for (start, end, expected) in [
            ("", None, vec![0, 1, 2]),
            ("a", Some("b"), vec![0]),
            ("a", Some("g"), vec![0]),
            ("a", Some("ga"), vec![0, 1]),
            ("g", Some("p"), vec![1]),
            ("h", None, vec![1, 2]),
            ("z", None, vec![2]),
            ("z", Some("z"), vec![]),
        ] {
            let keys = KeyRange { start: Bytes::from(start), end: end.map(Bytes::from) };
            let found: Vec<usize> = routes.owners_of(TABLE, &keys).copied().collect();
            assert_eq!(found, expected, "{start} {end:?}");
        }
        let gap = self::routes(&[("", Some("g")), ("p", None)]);
        let keys = KeyRange { start: Bytes::from_static(b"h"), end: None };
        assert_eq!(gap.owners_of(TABLE, &keys).copied().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn gaps_overlaps_and_missing_ends_are_noticed_and_own_no_key() {
        let gap = routes(&[("", Some("g")), ("h", None)]);
        assert!(gap.check(TABLE).is_err());
        assert_eq!(gap.owner(TABLE, b"gg"), None);
        assert!(routes(&[("", Some("h")), ("g", None)]).check(TABLE).is_err());
        assert!(routes(&[("", Some("h"))]).check(TABLE).is_err());
        assert!(routes(&[("a", None)]).check(TABLE).is_err());
        assert!(routes(&[]).check(TABLE).is_err());
    }
}
