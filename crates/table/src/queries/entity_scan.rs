//! The scan that fills a page of entities: filter and projection where the rows are.

use crate::filter::{EntityRow, Filter, Scratch};
use crate::queries::entity_page::PageEntities;
use crate::queries::page_budget::PageBudget;
use crate::queries::page_walk::PageScan;
use crate::queries::projection::Projection;
use base::codec::DecodeError;
use partition::{RowRef, Scan, Visit};

/// Collects entities that match.
pub(crate) struct EntityScan {
    filter: Option<Filter>,
    projection: Projection,
    /// Bytes that each entity counts besides its own.
    names_size_bytes: usize,
    /// Bytes of each key before the partition name.
    container_len: usize,
    budget: PageBudget,
    /// The entities that match.
    pub(crate) entities: PageEntities,
    scratch: Scratch,
    damage: Option<DecodeError>,
}

impl EntityScan {
    /// A scan with an empty page.
    pub(crate) fn new(
        filter: Option<Filter>,
        projection: Projection,
        container_len: usize,
        budget: PageBudget,
    ) -> Self {
        EntityScan {
            filter,
            names_size_bytes: projection.names_size_bytes(),
            projection,
            container_len,
            budget,
            entities: PageEntities::default(),
            scratch: Scratch::default(),
            damage: None,
        }
    }

    fn take(&mut self, row: RowRef<'_>) -> Result<Visit, DecodeError> {
        if !self.budget.examine(self.entities.len()) {
            return Ok(Visit::StopBefore);
        }
        if let Some(filter) = &self.filter {
            let entity = EntityRow {
                key: row.key,
                container_len: self.container_len,
                version: row.version,
                value: row.value,
            };
            if !filter.matches(entity, &mut self.scratch)? {
                return Ok(Visit::Continue);
            }
        }
        let rows = self.entities.len();
        let names = (rows + 1) * self.names_size_bytes;
        let bytes = self.entities.size_bytes() + row.key.len() + row.value.len() + names;
        if !self.budget.fits(rows, bytes) {
            return Ok(Visit::StopBefore);
        }
        self.entities.push(row.key, row.version, row.value, &self.projection)?;
        Ok(Visit::Continue)
    }
}

impl Scan for EntityScan {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        self.take(row).unwrap_or_else(|damage| {
            self.damage = Some(damage);
            Visit::StopBefore
        })
    }

    fn pass_over(&mut self, tombstone_count: u64) -> Visit {
        if self.budget.pass_over(tombstone_count, self.entities.len()) {
            Visit::Continue
        } else {
            Visit::StopBefore
        }
    }
}

impl PageScan for EntityScan {
    fn budget(&mut self) -> &mut PageBudget {
        &mut self.budget
    }

    fn damage(&self) -> Option<&DecodeError> {
        self.damage.as_ref()
    }
}
