//! The columns of a file: which property, of which type.

use crate::lines::row::Row;
use crate::lines::token::EdmType;
use std::collections::BTreeMap;

/// Columns of a file, at most.
pub(crate) const COLUMNS_MAX: usize = 4096;

/// The columns behind the two keys, in the order of names, then types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    places: BTreeMap<String, BTreeMap<EdmType, usize>>,
    count: usize,
}

impl Columns {
    /// Takes what the entity has in addition; whether there is room.
    #[must_use]
    pub(crate) fn add(&mut self, row: &Row<'_>) -> bool {
        for property in &row.properties {
            let is_known = self
                .places
                .get(&*property.name)
                .is_some_and(|types| types.contains_key(&property.value.kind));
            if !is_known {
                let types = self.places.entry(property.name.to_string()).or_default();
                types.insert(property.value.kind, 0);
                self.count += 1;
            }
        }
        self.count <= COLUMNS_MAX
    }

    /// Gives each its place, once all are there.
    pub(crate) fn fix(&mut self) {
        let places = self.places.values_mut().flat_map(BTreeMap::values_mut);
        places.enumerate().for_each(|(index, place)| *place = index);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Name and type of each, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, EdmType)> {
        self.places.iter().flat_map(|(name, types)| types.keys().map(|kind| (name.as_str(), *kind)))
    }

    /// The place of a property.
    pub(crate) fn place(&self, name: &str, kind: EdmType) -> Option<usize> {
        self.places.get(name)?.get(&kind).copied()
    }
}
