//! Designs of keys: which properties make a PartitionKey and a RowKey, and what is kept beside them.
//!
//! Vocabulary: a *part* is a piece of a key that one property makes; parts are joined by `|`. A *second row*
//! is another row of the same entity in the same partition, under another RowKey; an *index table* has
//! another row of it under another PartitionKey, which no transaction spans.

pub(crate) mod candidates;
pub(crate) mod characters;
pub(crate) mod part;

pub use part::{Part, Period};

use crate::sample::SampleEntity;
use std::fmt;

/// Between the parts of a key: no part holds it, because it is escaped.
pub(crate) const SEPARATOR: char = '|';

/// Which kind of design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The keys that the entities have.
    AsItIs,
    /// One property is the PartitionKey.
    Single,
    /// Several properties are.
    Composite,
    /// A hash's bucket is a part of it.
    Hashed,
}

impl Kind {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Kind::AsItIs => "as it is",
            Kind::Single => "single property",
            Kind::Composite => "composite",
            Kind::Hashed => "hashed prefix",
        }
    }
}

/// A design of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDesign {
    /// Of which kind.
    pub kind: Kind,
    /// Parts of the PartitionKey.
    pub partition: Vec<Part>,
    /// Parts of the RowKey.
    pub row: Vec<Part>,
}

impl KeyDesign {
    /// The PartitionKey of an entity; none if it lacks a property.
    pub fn partition_key(&self, entity: &SampleEntity) -> Option<String> {
        key_of(&self.partition, entity)
    }

    /// The RowKey of an entity; none if it lacks a property.
    pub fn row_key(&self, entity: &SampleEntity) -> Option<String> {
        key_of(&self.row, entity)
    }
}

/// A key of these parts.
pub(crate) fn key_of(parts: &[Part], entity: &SampleEntity) -> Option<String> {
    let mut key = String::new();
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            key.push(SEPARATOR);
        }
        key.push_str(&part.text(entity)?);
    }
    Some(key)
}

/// Parts as they are shown: `CustomerId | month of At`.
pub(crate) fn parts_text(parts: &[Part]) -> String {
    let texts: Vec<String> = parts.iter().map(Part::to_string).collect();
    if texts.is_empty() { "(empty)".to_owned() } else { texts.join(" | ") }
}

impl fmt::Display for KeyDesign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (partition, row) = (parts_text(&self.partition), parts_text(&self.row));
        write!(f, "PartitionKey = {partition}; RowKey = {row}")
    }
}
