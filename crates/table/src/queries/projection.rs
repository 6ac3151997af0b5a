//! `$select`: which properties of an entity a page shows.

use crate::entities::entity::{FORMAT, RawProperties, check_entity, stored_property_len};
use base::codec::DecodeError;

/// The properties that a `$select` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    /// Sorted, each once; `None`: everything.
    selected: Option<Vec<String>>,
}

impl Projection {
    /// From the names of a `$select`; `None`, or a list with `*`, selects all.
    pub fn new(select: Option<&[String]>) -> Self {
        let selected = select.filter(|names| !names.iter().any(|name| name == "*"));
        Projection {
            selected: selected.map(|names| {
                let mut names = names.to_vec();
                names.sort();
                names.dedup();
                names
            }),
        }
    }

    /// Whether the property `name` (own, key or `Timestamp`) is shown.
    pub fn includes(&self, name: &str) -> bool {
        self.includes_bytes(name.as_bytes())
    }

    /// Bytes of the selected names, as of stored properties without values. A response names them for each
    /// entity, whether it has them or not.
    pub(crate) fn names_size_bytes(&self) -> usize {
        let names = self.selected.as_deref().unwrap_or_default();
        names.iter().map(|name| stored_property_len(name.len(), 0)).sum()
    }

    fn includes_bytes(&self, name: &[u8]) -> bool {
        let Some(selected) = &self.selected else {
            return true;
        };
        let found = selected.binary_search_by(|selected| selected.as_bytes().cmp(name));
        found.is_ok()
    }

    /// Appends the stored entity `value` with the selected properties, checked.
    pub(crate) fn put_projected(&self, out: &mut Vec<u8>, value: &[u8]) -> Result<(), DecodeError> {
        if self.selected.is_none() {
            check_entity(value)?;
            out.extend_from_slice(value);
            return Ok(());
        }
        out.push(FORMAT);
        let mut properties = RawProperties::open(value)?;
        while let Some(property) = properties.next()? {
            if self.includes_bytes(property.name) {
                property.name_text()?;
                property.decode()?;
                out.extend_from_slice(property.encoded);
            }
        }
        Ok(())
    }
}
