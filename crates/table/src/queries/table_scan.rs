//! The scan that fills a page of table names.

use crate::filter::{Filter, TableNameRow};
use crate::queries::page_budget::PageBudget;
use crate::queries::page_walk::PageScan;
use crate::tables::table_row::TableRow;
use base::codec::DecodeError;
use partition::{RowRef, Scan, Visit};

/// Collects tables that match.
pub(crate) struct TableNameScan {
    filter: Option<Filter>,
    budget: PageBudget,
    /// Names as created.
    pub(crate) names: Vec<String>,
    damage: Option<DecodeError>,
}

impl TableNameScan {
    /// A scan with an empty page.
    pub(crate) fn new(filter: Option<Filter>, budget: PageBudget) -> Self {
        TableNameScan { filter, budget, names: Vec::new(), damage: None }
    }

    fn take(&mut self, row: RowRef<'_>) -> Result<Visit, DecodeError> {
        if !self.budget.examine(self.names.len()) {
            return Ok(Visit::StopBefore);
        }
        let table = TableRow::open(row.value)?;
        if let Some(filter) = &self.filter
            && !filter.matches_table(TableNameRow { name: table.name })?
        {
            return Ok(Visit::Continue);
        }
        if !self.budget.fits(self.names.len(), 0) {
            return Ok(Visit::StopBefore);
        }
        self.names.push(table.name.to_owned());
        Ok(Visit::Continue)
    }
}

impl Scan for TableNameScan {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        self.take(row).unwrap_or_else(|damage| {
            self.damage = Some(damage);
            Visit::StopBefore
        })
    }

    fn pass_over(&mut self, tombstone_count: u64) -> Visit {
        if self.budget.pass_over(tombstone_count, self.names.len()) {
            Visit::Continue
        } else {
            Visit::StopBefore
        }
    }
}

impl PageScan for TableNameScan {
    fn budget(&mut self) -> &mut PageBudget {
        &mut self.budget
    }

    fn damage(&self) -> Option<&DecodeError> {
        self.damage.as_ref()
    }
}
