//! `larimar table schema`: what is in a table: properties and their types, sizes, largest entities and
//! partitions, keys and values beyond the protocol's bounds.
//!
//! What always holds: memory is bounded by the names of properties, of which there are [`PROPERTIES_MAX`] at
//! most, and by the partitions at the ends of ranges; those within a range are complete when the next one
//! begins.

use super::Selection;
use crate::environment::ToolEnvironment;
use crate::error::ToolError;
use crate::lines::row::Row;
use crate::lines::token::EdmType;
use crate::scan::worker::{Place, Sink};
use base::BoxFuture;
use futures_util::future::LocalBoxFuture;
use std::collections::BTreeMap;
use std::fmt;

/// Names of properties that are distinguished, at most.
const PROPERTIES_MAX: usize = 4096;
/// The largest ones that are shown.
const LARGEST_MAX: usize = 5;
/// Bounds of the service.
const KEY_UNITS_MAX: usize = 1024;
const ENTITY_SIZE_BYTES_MAX: u64 = 1 << 20;
const VALUE_SIZE_BYTES_MAX: u64 = 64 << 10;
const OWN_PROPERTIES_MAX: usize = 252;

/// What is in a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// Entities.
    pub entities: u64,
    /// Their bytes, as the service counts them.
    pub size_bytes: u64,
    /// By name.
    pub properties: BTreeMap<String, PropertySchema>,
    /// Properties beyond those that are distinguished by name.
    pub further_properties: u64,
    /// Fewest and most properties of an entity, beside keys and timestamp.
    pub property_count: Option<(usize, usize)>,
    /// Partitions.
    pub partitions: u64,
    /// The largest entities: bytes, `PartitionKey`, `RowKey`.
    pub largest_entities: Vec<(u64, String, String)>,
    /// The largest partitions: bytes, entities, `PartitionKey`.
    pub largest_partitions: Vec<(u64, u64, String)>,
    /// Beyond the service's bounds.
    pub beyond: Beyond,
}

/// A property of several entities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PropertySchema {
    /// How many of each type, by the type's name.
    pub types: BTreeMap<&'static str, u64>,
    /// Bytes of its values.
    pub size_bytes: u64,
    /// Bytes of its largest value.
    pub size_bytes_max: u64,
}

/// How many things are larger than the live service allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// Keys of more than 1,024 UTF-16 units.
    pub keys: u64,
    /// Entities of more than 1 MiB.
    pub entities: u64,
    /// Values of more than 64 KiB.
    pub values: u64,
    /// Entities of more than 252 properties.
    pub property_counts: u64,
}

/// Reads the selected entities and tells what is in them.
pub fn schema<'a, 'e: 'a>(
    selection: &'a Selection,
    environment: &'a mut ToolEnvironment<'e>,
) -> LocalBoxFuture<'a, Result<Schema, ToolError>> {
    Box::pin(async move {
        let sinks: Vec<Reader> = (0..selection.connections).map(|_| Reader::default()).collect();
        let read = selection.scan("reading", &[], sinks, environment).await;
        let (sinks, _) = read.map_err(|(error, _)| error)?;
        let mut all = Reader::default();
        sinks.into_iter().for_each(|sink| all.merge(sink));
        for (partition, (size_bytes, entities)) in std::mem::take(&mut all.edges) {
            all.schema.add_partition(size_bytes, entities, partition);
        }
        Ok(all.schema)
    })
}

/// What a worker has read.
#[derive(Default)]
struct Reader {
    schema: Schema,
    /// The partition at hand; whether the range began with it; its bytes and entities.
    current: Option<(String, bool, u64, u64)>,
    /// Partitions that other ranges may have parts of.
    edges: BTreeMap<String, (u64, u64)>,
    range: Option<u64>,
}

impl Reader {
    fn add(&mut self, row: &Row<'_>, is_first: bool) {
        let size_bytes = row.size_bytes();
        self.schema.add(row, size_bytes);
        match &mut self.current {
            Some((partition, _, bytes, entities)) if *partition == *row.partition_key => {
                *bytes += size_bytes;
                *entities += 1;
            }
            _ => {
                self.end_partition(false);
                self.current = Some((row.partition_key.to_string(), is_first, size_bytes, 1));
            }
        }
    }

    fn end_partition(&mut self, is_last: bool) {
        let Some((partition, is_first, size_bytes, entities)) = self.current.take() else { return };
        if is_first || is_last {
            self.add_edge(partition, (size_bytes, entities));
        } else {
            self.schema.add_partition(size_bytes, entities, partition);
        }
    }

    fn add_edge(&mut self, partition: String, (size_bytes, entities): (u64, u64)) {
        let edge = self.edges.entry(partition).or_default();
        *edge = (edge.0 + size_bytes, edge.1 + entities);
    }

    fn merge(&mut self, other: Self) {
        self.schema.merge(other.schema);
        other.edges.into_iter().for_each(|(partition, sums)| self.add_edge(partition, sums));
    }
}

impl Sink for Reader {
    fn take<'a>(
        &'a mut self,
        place: &'a Place<'a>,
        rows: &'a [Row<'a>],
    ) -> BoxFuture<'a, Result<Vec<u8>, ToolError>> {
        Box::pin(async move {
            for row in rows {
                let is_first = self.range != Some(place.range.id);
                self.range = Some(place.range.id);
                self.add(row, is_first);
            }
            if place.is_end {
                self.end_partition(true);
            }
            Ok(Vec::new())
        })
    }
}

impl Schema {
    fn add(&mut self, row: &Row<'_>, size_bytes: u64) {
        self.entities += 1;
        self.size_bytes += size_bytes;
        let count = row.properties.len();
        let (least, most) = self.property_count.unwrap_or((count, count));
        self.property_count = Some((least.min(count), most.max(count)));
        for property in &row.properties {
            self.add_property(&property.name, property.value.kind, property.value.size_bytes());
        }
        let is_long = |key: &str| key.encode_utf16().count() > KEY_UNITS_MAX;
        self.beyond.keys += u64::from(is_long(&row.partition_key)) + u64::from(is_long(&row.row_key));
        self.beyond.entities += u64::from(size_bytes > ENTITY_SIZE_BYTES_MAX);
        self.beyond.property_counts += u64::from(count > OWN_PROPERTIES_MAX);
        let is_among = self.largest_entities.len() < LARGEST_MAX
            || self.largest_entities.last().is_some_and(|last| last.0 < size_bytes);
        if is_among {
            self.largest_entities.push((size_bytes, row.partition_key.to_string(), row.row_key.to_string()));
            keep_largest(&mut self.largest_entities);
        }
    }

    fn add_property(&mut self, name: &str, kind: EdmType, size_bytes: u64) {
        // Beside a text's or binary's own 4 bytes of length.
        self.beyond.values += u64::from(size_bytes > VALUE_SIZE_BYTES_MAX + 4);
        if !self.properties.contains_key(name) {
            if self.properties.len() >= PROPERTIES_MAX {
                self.further_properties += 1;
                return;
            }
            self.properties.insert(name.to_owned(), PropertySchema::default());
        }
        if let Some(property) = self.properties.get_mut(name) {
            *property.types.entry(kind.name()).or_default() += 1;
            property.size_bytes += size_bytes;
            property.size_bytes_max = property.size_bytes_max.max(size_bytes);
        }
    }

    fn add_partition(&mut self, size_bytes: u64, entities: u64, partition: String) {
        self.partitions += 1;
        self.largest_partitions.push((size_bytes, entities, partition));
        keep_largest(&mut self.largest_partitions);
    }

    fn merge(&mut self, other: Self) {
        self.entities += other.entities;
        self.size_bytes += other.size_bytes;
        self.further_properties += other.further_properties;
        self.partitions += other.partitions;
        self.property_count = match (self.property_count, other.property_count) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        };
        for (name, other) in other.properties {
            let property = self.properties.entry(name).or_default();
            other
                .types
                .into_iter()
                .for_each(|(kind, count)| *property.types.entry(kind).or_default() += count);
            property.size_bytes += other.size_bytes;
            property.size_bytes_max = property.size_bytes_max.max(other.size_bytes_max);
        }
        self.largest_entities.extend(other.largest_entities);
        keep_largest(&mut self.largest_entities);
        self.largest_partitions.extend(other.largest_partitions);
        keep_largest(&mut self.largest_partitions);
        self.beyond.keys += other.beyond.keys;
        self.beyond.entities += other.beyond.entities;
        self.beyond.values += other.beyond.values;
        self.beyond.property_counts += other.beyond.property_counts;
    }
}

fn keep_largest<T: Ord>(largest: &mut Vec<T>) {
    largest.sort_by(|one, other| other.cmp(one));
    largest.truncate(LARGEST_MAX);
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Schema { entities, size_bytes, partitions, property_count, .. } = self;
        let mean = size_bytes.checked_div(*entities).unwrap_or(0);
        writeln!(f, "{entities} entities of {mean} bytes in the mean, in {partitions} partitions")?;
        if let Some((least, most)) = property_count {
            writeln!(f, "{least} to {most} properties beside keys and timestamp")?;
        }
        for (name, property) in &self.properties {
            let types: Vec<String> =
                property.types.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
            let max = property.size_bytes_max;
            writeln!(f, "  {name}: {}; {max} bytes at most", types.join(", "))?;
        }
        if self.further_properties > 0 {
            writeln!(f, "  and {} values of further names", self.further_properties)?;
        }
        for (size_bytes, partition, row) in &self.largest_entities {
            writeln!(f, "large entity: {size_bytes} bytes, {partition:?} {row:?}")?;
        }
        for (size_bytes, entities, partition) in &self.largest_partitions {
            writeln!(f, "large partition: {size_bytes} bytes, {entities} entities, {partition:?}")?;
        }
        let Beyond { keys, entities, values, property_counts } = self.beyond;
        writeln!(
            f,
            "beyond the live service's bounds: {keys} keys (1024 characters), {entities} entities (1 MiB), \
             {values} values (64 KiB), {property_counts} entities of more than 252 properties"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_share_a_partition_are_put_together() {
        let row = |partition: &str, row: &str, more: &str| {
            format!("{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\"{more}}}")
        };
        let mut readers = [Reader::default(), Reader::default()];
        let rows = [
            (0, true, row("a", "1", ",\"N\":1")),
            (0, false, row("b", "1", "")),
            (0, false, row("c", "1", ",\"N\":\"x\"")),
            (1, true, row("c", "2", "")),
            (1, false, row("d", "1", "")),
        ];
        for (reader, is_first, text) in &rows {
            readers[*reader].add(&Row::parse(text).expect("a row"), *is_first);
        }
        readers.iter_mut().for_each(|reader| reader.end_partition(true));
        assert_eq!(readers[0].schema.partitions, 1, "b is complete within its range");
        let [mut all, other] = readers;
        all.merge(other);
        for (partition, (size_bytes, entities)) in std::mem::take(&mut all.edges) {
            all.schema.add_partition(size_bytes, entities, partition);
        }
        let schema = all.schema;
        assert_eq!((schema.entities, schema.partitions, schema.property_count), (5, 4, Some((0, 1))));
        assert_eq!(schema.largest_partitions[0].2, "c");
        assert_eq!(schema.properties["N"].types, BTreeMap::from([("Edm.Int32", 1), ("Edm.String", 1)]));
        assert_eq!(schema.largest_entities.len(), LARGEST_MAX);
    }

    #[test]
    fn what_is_beyond_the_bounds_is_counted() {
        let long = "k".repeat(1025);
        let value = "x".repeat(32_769);
        let text = format!("{{\"PartitionKey\":\"{long}\",\"RowKey\":\"r\",\"S\":\"{value}\"}}");
        let (row, mut schema) = (Row::parse(&text).expect("a row"), Schema::default());
        schema.add(&row, row.size_bytes());
        assert_eq!(schema.beyond, Beyond { keys: 1, entities: 0, values: 1, property_counts: 0 });
    }
}
