//! A model of the folder of backups in the object store.
//!
//! What always holds: the objects that a restore may choose are all there; those that it can't choose any
//! more, because a newer complete one is there, are left out, so that fewer states differ.

use stamp::{Backup, BackupScope, RangeId, Revision};
use std::collections::BTreeMap;

/// The backup objects that are there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BackupStore {
    backups: Vec<Backup>,
    /// When each document of them was changed last: no backup has this, only a restore that is planted as a
    /// fault uses it.
    changed_at: BTreeMap<RangeId, Revision>,
}

impl BackupStore {
    /// A backup object is stored, unless it is there.
    pub fn store(&mut self, backup: Backup) {
        if self.backups.iter().any(|stored| stored.path() == backup.path()) {
            return;
        }
        self.backups.push(backup);
        let age = |backup: &Backup| (backup.restores, backup.revision);
        let complete = self.backups.iter().filter(|backup| backup.scope == BackupScope::Complete);
        let Some(newest) = complete.map(age).max() else { return };
        self.backups.retain(|backup| age(backup) >= newest);
    }

    /// All objects that a restore may choose.
    pub fn all(&self) -> &[Backup] {
        &self.backups
    }

    /// Keeps when a document was changed last.
    pub fn note_changed_at(&mut self, range: RangeId, revision: Revision) {
        self.changed_at.insert(range, revision);
    }

    /// When a document was changed last, as of the newest backup that has it.
    pub fn changed_at(&self, range: RangeId) -> Revision {
        self.changed_at.get(&range).copied().unwrap_or_default()
    }
}
