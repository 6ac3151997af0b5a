//! What is asked of a table, and what comes back: queries, tokens, pages.

use crate::entity::{EntityRef, FORMAT, RawProperties, check_entity, stored_property_len};
use crate::filter::Filter;
use base::codec::DecodeError;
use partition::RowVersion;
use partition::key::row_names;
use std::ops::Range;

/// A query over the entities of one table.
#[derive(Clone, Debug)]
pub struct EntityQuery {
    /// Which entities; `None`: all.
    pub filter: Option<Filter>,
    /// Which properties; `None`: all.
    pub select: Option<Vec<String>>,
    /// Entities in a page at most: 1 to [`crate::limits::PAGE_ROWS_MAX`]; anything else is taken as the nearest of these.
    pub top: usize,
    /// Where to go on (inclusive).
    pub start: Option<EntityToken>,
}

/// Where a query goes on: the next row. Without a RowKey, at the start of the partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityToken {
    /// PartitionKey of the next row.
    pub partition_key: String,
    /// RowKey of the next row.
    pub row_key: Option<String>,
}

/// What a `$select` asks for.
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

    /// Bytes of the selected names, as of stored properties without values. An answer names them for each entity, whether
    /// it has them or not.
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
    fn put_projected(&self, out: &mut Vec<u8>, value: &[u8]) -> Result<(), DecodeError> {
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

/// How much of a table a query can touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueryClass {
    /// Single entities, each by both keys.
    Point,
    /// Rows of given partitions.
    RowRange,
    /// Ranges of partitions.
    PartitionRange,
    /// The whole table.
    TableScan,
}

impl QueryClass {
    /// The name in metrics and headers.
    pub fn name(self) -> &'static str {
        match self {
            QueryClass::Point => "point",
            QueryClass::RowRange => "row-range",
            QueryClass::PartitionRange => "partition-range",
            QueryClass::TableScan => "table-scan",
        }
    }
}

/// A page of results.
#[derive(Clone, Debug)]
pub struct EntityPage {
    pub(crate) entities: PageEntities,
    /// Where to go on, if there may be more.
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

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entities.len() == 0
    }

    /// The entities in key order, projected: own properties that were not selected are left out.
    pub fn entities(&self) -> impl ExactSizeIterator<Item = EntityRef<'_>> {
        self.entities.entries.iter().map(|entry| self.entities.entity(entry))
    }
}

/// Entities in three pieces of memory, however many they are.
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
        // Entities of one partition come one after the other and share its name.
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

/// A listing of an account's tables.
#[derive(Clone, Debug)]
pub struct TableListQuery {
    /// Which tables, by the property `TableName` (compared in lower case); `None`: all.
    pub filter: Option<Filter>,
    /// Tables in a page at most: 1 to [`crate::limits::PAGE_ROWS_MAX`]; anything else is taken as the nearest of these.
    pub top: usize,
    /// Name to go on at (inclusive), in any case.
    pub start: Option<String>,
}

/// A page of table names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableListPage {
    /// Names as created, in order of their lower-case forms.
    pub names: Vec<String>,
    /// Lower-case name to go on at, if there may be more.
    pub next: Option<String>,
}
