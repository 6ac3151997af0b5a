//! Counts entities instead of returning them: rows and bytes, for one page of a query.
//!
//! What always holds: a page has counted exactly the entities that match among the rows that it examined; it
//! ends after as many rows or as much time as any page, however large the table is. The rows of one range
//! partition are of one snapshot; between pages, and between range partitions, writes may come.

use crate::edm::utf16_len;
use crate::entities::entity::RawProperties;
use crate::filter::{EntityRow, Filter, Scratch};
use crate::limits::{SizedValue, entity_base_size, property_name_size};
use crate::queries::entity_page::EntityToken;
use crate::queries::page_budget::PageBudget;
use crate::queries::page_walk::PageScan;
use crate::queries::query_class::QueryClass;
use base::codec::DecodeError;
use partition::key::row_names;
use partition::{RowRef, Scan, Visit};

/// What one page has counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityCount {
    /// Entities that match.
    pub entities: u64,
    /// Their sizes in bytes, as [`crate::limits`] counts the size of an entity.
    pub size_bytes: u64,
    /// Where the next page starts, if more may match.
    pub next: Option<EntityToken>,
    /// How much of the table the query can touch.
    pub class: QueryClass,
    /// Rows examined for this page.
    pub rows_read: u64,
}

/// Counts entities that match.
pub(crate) struct CountScan {
    filter: Option<Filter>,
    /// Bytes of each key before the partition name.
    container_len: usize,
    budget: PageBudget,
    pub(crate) entities: u64,
    pub(crate) size_bytes: u64,
    scratch: Scratch,
    damage: Option<DecodeError>,
}

impl CountScan {
    /// Of nothing yet. A page is never full: the budget's other bounds end it.
    pub(crate) fn new(filter: Option<Filter>, container_len: usize, budget: PageBudget) -> Self {
        let scratch = Scratch::default();
        CountScan { filter, container_len, budget, entities: 0, size_bytes: 0, scratch, damage: None }
    }

    fn take(&mut self, row: RowRef<'_>) -> Result<Visit, DecodeError> {
        if !self.budget.examine(0) {
            return Ok(Visit::StopBefore);
        }
        let entity = EntityRow {
            key: row.key,
            container_len: self.container_len,
            version: row.version,
            value: row.value,
        };
        let matches = match &self.filter {
            Some(filter) => filter.matches(entity, &mut self.scratch)?,
            None => true,
        };
        if matches {
            self.size_bytes += entity_size(row.key, row.value)? as u64;
            self.entities += 1;
        }
        Ok(Visit::Continue)
    }
}

/// The size of the entity that is stored at `key` as `value`, in bytes.
fn entity_size(key: &[u8], value: &[u8]) -> Result<usize, DecodeError> {
    let (partition_key, row_key) = row_names(key).ok_or(DecodeError("entity key"))?;
    let mut size = entity_base_size(utf16_len(partition_key.as_bytes()) + utf16_len(row_key.as_bytes()));
    let mut properties = RawProperties::open(value)?;
    while let Some(property) = properties.next()? {
        let sized = SizedValue::stored(property.type_code, property.value);
        size += property_name_size(utf16_len(property.name)) + sized.counted(sized.value_bytes());
    }
    Ok(size)
}

impl Scan for CountScan {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        self.take(row).unwrap_or_else(|damage| {
            self.damage = Some(damage);
            Visit::StopBefore
        })
    }

    fn pass_over(&mut self, tombstone_count: u64) -> Visit {
        if self.budget.pass_over(tombstone_count, 0) { Visit::Continue } else { Visit::StopBefore }
    }
}

impl PageScan for CountScan {
    fn budget(&mut self) -> &mut PageBudget {
        &mut self.budget
    }

    fn damage(&self) -> Option<&DecodeError> {
        self.damage.as_ref()
    }
}
