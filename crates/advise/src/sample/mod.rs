//! What is known of a table's entities: some of them, drawn evenly, and which share of all they are.
//!
//! What always holds: sizes are counted as the service counts them; a sample is in the order it was given in,
//! on which no prediction depends.

pub(crate) mod column;

use table::EdmValue;

/// Entities, at most: more would only make predictions slower.
pub const SAMPLE_ENTITIES_MAX: usize = 2_000_000;

/// An entity of a sample; its keys, if it has any yet, are properties like others.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleEntity {
    /// By name, each once.
    pub properties: Vec<(String, EdmValue)>,
}

/// Entities, drawn evenly.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// In any order.
    pub entities: Vec<SampleEntity>,
    /// Which share of all they are, more than 0 and at most 1.
    pub share: f64,
}

impl SampleEntity {
    /// A property's value.
    pub fn value(&self, name: &str) -> Option<&EdmValue> {
        self.properties.iter().find(|(one, _)| one == name).map(|(_, value)| value)
    }

    /// Its size as the service counts it, in bytes.
    pub fn size_bytes(&self) -> u64 {
        let of = |(name, value): &(String, EdmValue)| match (name.as_str(), value) {
            ("PartitionKey" | "RowKey", EdmValue::String(text)) => 2 * units(text),
            _ => 8 + 2 * units(name) + value_size(value),
        };
        4 + self.properties.iter().map(of).sum::<u64>()
    }
}

impl Sample {
    /// How many entities there are in all, about.
    pub fn whole_count(&self) -> f64 {
        self.entities.len() as f64 / self.share
    }

    /// The mean size of an entity, in bytes.
    pub fn mean_size_bytes(&self) -> f64 {
        let sum: u64 = self.entities.iter().map(SampleEntity::size_bytes).sum();
        sum as f64 / self.entities.len().max(1) as f64
    }
}

/// UTF-16 units.
pub(crate) fn units(text: &str) -> u64 {
    text.encode_utf16().count() as u64
}

/// What the size of an entity counts for a value.
fn value_size(value: &EdmValue) -> u64 {
    match value {
        EdmValue::String(text) => 4 + 2 * units(text),
        EdmValue::Binary(bytes) => 4 + bytes.len() as u64,
        EdmValue::Boolean(_) => 1,
        EdmValue::Int32(_) => 4,
        EdmValue::Int64(_) | EdmValue::Double(_) | EdmValue::DateTime(_) => 8,
        EdmValue::Guid(_) => 16,
    }
}
