//! The short names of extents, by which upper layers store where blocks lie.
//!
//! What always holds: a short name stands for one extent, as long as the process holds the range; two extents
//! of a document with one short name are an error when the document is read, and none is made.

use parking_lot::Mutex;
use stamp::{ExtentName, RangeDocument, StoredError};
use std::collections::BTreeMap;
use stream::{ExtentId, StreamError};

/// Which extents the short names stand for: those of the document, and those that were in it since it was
/// taken, about 50 bytes each.
#[derive(Default)]
pub(crate) struct ExtentIds(Mutex<BTreeMap<ExtentId, ExtentName>>);

impl ExtentIds {
    /// Learns of all extents of a document.
    pub(crate) fn learn(&self, document: &RangeDocument) -> Result<(), StoredError> {
        let mut ids = self.0.lock();
        for entry in document.streams.values().flat_map(|stream| &stream.extents) {
            let other = ids.insert(entry.name.short(), entry.name);
            if let Some(other) = other.filter(|other| *other != entry.name) {
                let why = format!("extents {other} and {} have one short name", entry.name);
                return Err(StoredError::Malformed { what: format!("range {}", document.range), why });
            }
        }
        Ok(())
    }

    /// An extent that this process writes to. False: another has its short name.
    pub(super) fn note(&self, name: ExtentName) -> bool {
        *self.0.lock().entry(name.short()).or_insert(name) == name
    }

    /// The extent of a short name.
    pub(crate) fn name(&self, id: ExtentId) -> Result<ExtentName, StreamError> {
        self.0.lock().get(&id).copied().ok_or(StreamError::NoExtent(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stamp::Incarnation;

    #[test]
    fn names_come_back_and_others_are_not_there() {
        let ids = ExtentIds::default();
        let name = ExtentName::new(Incarnation(3), 9);
        assert_eq!(ids.name(name.short()), Err(StreamError::NoExtent(name.short())));
        assert!(ids.note(name) && ids.note(name));
        assert_eq!(ids.name(name.short()), Ok(name));
    }
}
