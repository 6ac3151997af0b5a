//! A page of entities and the token of the next one.

use crate::entities::entity::EntityRef;
use crate::queries::projection::Projection;
use crate::queries::query_class::QueryClass;
use base::codec::DecodeError;
use partition::RowVersion;
use partition::key::row_names;
use std::ops::Range;

/// Where the next page of a query starts. Without a RowKey, at the start of the partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityToken {
    /// PartitionKey of the next row.
    pub partition_key: String,
    /// RowKey of the next row.
    pub row_key: Option<String>,
}

/// A page of results.
#[derive(Clone, Debug)]
pub struct EntityPage {
    pub(crate) entities: PageEntities,
    /// Where the next page starts, if more may match.
    pub next: Option<EntityToken>,
    /// How much of the table the query can touch.
    pub class: QueryClass,
    /// Rows examined for this page.
    pub rows_read: u64,
}

impl EntityPage {
    /// Entities in the page.
    pub fn len(&self) -> usize {
        self.entities.len()
    }

    /// Whether the page has no entities.
    pub fn is_empty(&self) -> bool {
        self.entities.len() == 0
    }

    /// The entities in the order of the query, projected: own properties that were not selected are left out.
    pub fn entities(&self) -> impl ExactSizeIterator<Item = EntityRef<'_>> {
        self.entities.entries.iter().map(|entry| self.entities.entity(entry))
    }
}

/// Entities of a page in three allocations, however many they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageEntities {
    keys: String,
    values: Vec<u8>,
    entries: Vec<PageEntry>,
}

#[derive(Clone, Debug)]
struct PageEntry {
    partition_key: Range<usize>,
    row_key: Range<usize>,
    version: RowVersion,
    value: Range<usize>,
}

impl PageEntities {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of keys and values.
    pub(crate) fn size_bytes(&self) -> usize {
        self.keys.len() + self.values.len()
    }

    /// Adds the entity that is stored at `key` as `value`.
    pub(crate) fn push(
        &mut self,
        key: &[u8],
        version: RowVersion,
        value: &[u8],
        projection: &Projection,
    ) -> Result<(), DecodeError> {
        let (partition_key, row_key) = row_names(key).ok_or(DecodeError("entity key"))?;
        let value_start = self.values.len();
        projection.put_projected(&mut self.values, value)?;
        // Entities of one partition are adjacent and share its name.
        let partition_key = match self.entries.last() {
            Some(last) if self.keys[last.partition_key.clone()] == *partition_key => {
                last.partition_key.clone()
            }
            _ => self.push_key(&partition_key),
        };
        let row_key = self.push_key(&row_key);
        self.entries.push(PageEntry {
            partition_key,
            row_key,
            version,
            value: value_start..self.values.len(),
        });
        Ok(())
    }

    fn push_key(&mut self, key: &str) -> Range<usize> {
        let start = self.keys.len();
        self.keys.push_str(key);
        start..self.keys.len()
    }

    fn entity(&self, entry: &PageEntry) -> EntityRef<'_> {
        EntityRef {
            partition_key: &self.keys[entry.partition_key.clone()],
            row_key: &self.keys[entry.row_key.clone()],
            version: entry.version,
            value: &self.values[entry.value.clone()],
        }
    }
}
