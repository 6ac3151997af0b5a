//! Which backup objects a restore uses: a pure choice.
//!
//! The newest complete one, and on top of it, in order, the changes of the same generation that are younger.
//! What always holds: an older backup is never used while a newer complete one is there; its extents may have
//! been deleted.

use crate::backup::backup_object::{Backup, BackupScope};
use crate::document::range_document::RangeDocument;
use crate::extent::part_header::StampLife;
use crate::ids::RangeId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The documents that backups have, as of the newest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackedUp {
    /// The life of the metadata store that was lost.
    pub life: StampLife,
    /// How many restores came before it.
    pub restores: u64,
    /// The documents.
    pub documents: BTreeMap<RangeId, Arc<RangeDocument>>,
}

/// Chooses among all objects that are there; none if no complete one is.
pub fn choose_backup(objects: &[Backup]) -> Option<BackedUp> {
    let age = |backup: &Backup| (backup.restores, backup.revision);
    let complete = objects.iter().filter(|backup| backup.scope == BackupScope::Complete);
    let newest = complete.max_by_key(|backup| age(backup))?;
    let is_younger = |backup: &&Backup| backup.life == newest.life && backup.revision > newest.revision;
    let mut changes: Vec<&Backup> = objects.iter().filter(is_younger).collect();
    changes.sort_by_key(|backup| age(backup));
    let mut documents = BTreeMap::new();
    for backup in std::iter::once(newest).chain(changes) {
        if let BackupScope::Change { removed } = &backup.scope {
            documents.retain(|range, _| !removed.contains(range));
        }
        let written = backup.documents.iter().map(|document| (document.range, document.clone()));
        documents.extend(written);
    }
    Some(BackedUp { life: newest.life, restores: newest.restores, documents })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::range_document::{KeyLimits, OwnEntry};
    use crate::ids::{Generation, Incarnation, Mark, StampId};
    use crate::metadata::transaction::Revision;
    use stream::OwnerEpoch;

    fn range(counter: u64) -> RangeId {
        RangeId::new(Incarnation(1), counter)
    }

    /// An object of documents of these ranges, whose marks tell the object's revision.
    fn object(
        generation: u128,
        restores: u64,
        revision: u64,
        ranges: &[u64],
        removed: Option<u64>,
    ) -> Backup {
        let document = |counter: &u64| {
            let own = OwnEntry::released(OwnerEpoch(1));
            let mark = Mark::new(Incarnation(1), revision);
            Arc::new(RangeDocument::new(range(*counter), own, KeyLimits::default(), mark))
        };
        let scope = match removed {
            None => BackupScope::Complete,
            Some(removed) => BackupScope::Change { removed: vec![range(removed)] },
        };
        let life = StampLife { stamp: StampId(1), generation: Generation(generation) };
        let documents = ranges.iter().map(document).collect();
        Backup { life, restores, revision: Revision(revision), scope, documents }
    }

    fn chosen(objects: &[Backup]) -> Vec<(u64, u64)> {
        let documents = choose_backup(objects).map(|chosen| chosen.documents).unwrap_or_default();
        documents.values().map(|document| (document.range.0.counter, document.mark.0.counter)).collect()
    }

    #[test]
    fn the_newest_complete_backup_and_the_changes_after_it() {
        let split = object(5, 0, 30, &[2, 3], Some(1));
        type Case<'a> = (Vec<Backup>, &'a [(u64, u64)]);
        let cases: [Case<'_>; 6] = [
            (vec![], &[]),
            (vec![split.clone()], &[]),
            (vec![object(5, 0, 10, &[1], None), object(5, 0, 20, &[1], None)], &[(1, 20)]),
            (vec![split.clone(), object(5, 0, 20, &[1, 9], None)], &[(2, 30), (3, 30), (9, 20)]),
            (vec![split.clone(), object(5, 0, 40, &[2], None)], &[(2, 40)]),
            (vec![object(7, 1, 3, &[1], None), object(5, 0, 90, &[1], None), split], &[(1, 3)]),
        ];
        for (objects, expected) in cases {
            assert_eq!(chosen(&objects), expected, "{objects:?}");
        }
    }

    #[test]
    fn changes_build_on_each_other_in_order() {
        let objects = [
            object(5, 0, 30, &[4, 5], Some(2)),
            object(5, 0, 20, &[2, 3], Some(1)),
            object(5, 0, 10, &[1], None),
        ];
        assert_eq!(chosen(&objects), [(3, 20), (4, 30), (5, 30)]);
    }
}
