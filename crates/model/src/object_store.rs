//! A model of the object store: names to headers, create-only. Backups are in `backup_store.rs`.
//!
//! A body is one number, which is the checksum in its header. What always holds: an object is never
//! overwritten; a read sees every create and delete before it.

use stamp::{ExtentName, Found, PartHeader, PartPath, PutAnswer};
use std::collections::{BTreeMap, BTreeSet};

/// The objects that are there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ObjectStore {
    objects: BTreeMap<PartPath, PartHeader>,
}

impl ObjectStore {
    /// A PUT that creates or is refused has arrived.
    pub fn create(&mut self, path: PartPath, header: PartHeader) -> PutAnswer {
        if self.objects.contains_key(&path) {
            return PutAnswer::Refused;
        }
        self.objects.insert(path, header);
        PutAnswer::Created
    }

    /// What a read of the header of this name finds.
    pub fn read(&self, extent: ExtentName, offset: u64) -> Found {
        let path = PartPath { extent, offset };
        self.objects.get(&path).map_or(Found::NotThere, |header| Found::Header(*header))
    }

    /// Whether the name is taken.
    pub fn has(&self, path: PartPath) -> bool {
        self.objects.contains_key(&path)
    }

    /// The object is gone.
    pub fn delete(&mut self, path: PartPath) {
        self.objects.remove(&path);
    }

    /// All names of objects of extents.
    pub fn list(&self) -> BTreeSet<PartPath> {
        self.objects.keys().copied().collect()
    }

    /// The objects of an extent, in order of their offsets.
    pub fn objects_of(&self, extent: ExtentName) -> impl Iterator<Item = &PartHeader> {
        let (from, to) = (PartPath { extent, offset: 0 }, PartPath { extent, offset: u64::MAX });
        self.objects.range(from..=to).map(|(_, header)| header)
    }

    /// All first objects of extents.
    pub fn first_objects(&self) -> Vec<PartHeader> {
        let first = self.objects.iter().filter(|(path, _)| path.offset == 0);
        first.map(|(_, header)| *header).collect()
    }
}
