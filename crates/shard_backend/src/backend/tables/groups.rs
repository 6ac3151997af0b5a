//! Changes of entities in groups: each of one partition, of bounded count and size.
//!
//! What always holds: an entity is changed once in all groups, by its last change.

use std::collections::BTreeMap;
use storage_client::{Entity, GROUP_OPERATIONS_MAX};

/// Bytes of a group, about, at most: a service takes 4 MiB with all that is around the values.
const GROUP_BYTES_MAX: usize = 3 << 20;
/// What an entity takes in a group beside its values, about.
const AROUND_BYTES: usize = 1024;

/// A change of an entity.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    Put(Entity),
    Delete,
}

/// Changes of one partition, by row keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Group {
    pub(super) partition_key: String,
    pub(super) changes: Vec<(String, Change)>,
}

/// A change, its entity's keys and the bytes of its values.
pub(super) type SizedChange = ((String, String), Change, usize);

/// Groups of all changes.
pub(super) fn groups(changes: impl IntoIterator<Item = SizedChange>) -> Vec<Group> {
    let last: BTreeMap<(String, String), (Change, usize)> =
        changes.into_iter().map(|(key, change, size_bytes)| (key, (change, size_bytes))).collect();
    let (mut groups, mut group, mut group_bytes) = (Vec::new(), Group::default(), 0);
    for ((partition_key, row_key), (change, size_bytes)) in last {
        // Base64, escapes and names make values longer.
        let size_bytes = 2 * size_bytes + AROUND_BYTES;
        let is_full = group.partition_key != partition_key
            || group.changes.len() >= GROUP_OPERATIONS_MAX
            || group_bytes + size_bytes > GROUP_BYTES_MAX;
        if is_full {
            if !group.changes.is_empty() {
                groups.push(std::mem::take(&mut group));
            }
            (group.partition_key, group_bytes) = (partition_key, 0);
        }
        group.changes.push((row_key, change));
        group_bytes += size_bytes;
    }
    if !group.changes.is_empty() {
        groups.push(group);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_of_one_partition_and_bounded() {
        let change = |partition: &str, row: usize, size_bytes| {
            let key = (partition.to_owned(), format!("{row:03}"));
            (key, Change::Delete, size_bytes)
        };
        let sizes = |changes: Vec<SizedChange>| -> Vec<(String, usize)> {
            groups(changes).into_iter().map(|group| (group.partition_key, group.changes.len())).collect()
        };
        let many: Vec<_> = (0..250).map(|row| change("a", row, 10)).chain([change("b", 0, 10)]).collect();
        let expected = [("a", 100), ("a", 100), ("a", 50), ("b", 1)];
        assert_eq!(sizes(many), expected.map(|(partition, count)| (partition.to_owned(), count)));
        let long: Vec<_> = (0..4).map(|row| change("a", row, 700 << 10)).collect();
        assert_eq!(sizes(long), [("a".to_owned(), 2), ("a".to_owned(), 2)]);
        assert_eq!(sizes(vec![change("a", 0, 9 << 20)]), [("a".to_owned(), 1)]);
        assert!(sizes(Vec::new()).is_empty());
        let entity = |text: &str| Entity::new("a", "000").with("T", text);
        let put = |text| (("a".to_owned(), "000".to_owned()), Change::Put(entity(text)), 1);
        let last = groups([put("first"), put("last")]);
        let changes = vec![("000".to_owned(), Change::Put(entity("last")))];
        assert_eq!(last, [Group { partition_key: "a".to_owned(), changes }]);
    }
}
