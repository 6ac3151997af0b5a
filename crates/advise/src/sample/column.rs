//! What a sample says of each property: its type, how many values it has, whether it can be a key.

use super::{Sample, units};
use crate::design::characters::is_bad;
use crate::design::part::value_text;
use std::collections::{BTreeMap, BTreeSet};
use table::{EdmType, EdmValue};

/// Distinct values that are kept of a property, at most; one with more has "many".
const DISTINCT_MAX: usize = 1 << 20;
/// A property with at most so many values, each seen often, can be enumerated by a client.
const ENUMERABLE_MAX: usize = 64;
/// Entities that each value of such a property has in the sample, on the average at least.
const ENUMERABLE_SEEN_MIN: usize = 20;

/// A property.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    /// The type of most of its values.
    pub(crate) kind: EdmType,
    /// Entities that have it.
    pub(crate) present: usize,
    /// Different values.
    pub(crate) distinct: usize,
    /// Least and greatest value of numbers and times.
    pub(crate) span: Option<(f64, f64)>,
    /// All digits, and not all of the same length.
    pub(crate) is_unpadded: bool,
    /// A text with characters that keys can't hold.
    pub(crate) has_bad_characters: bool,
    /// UTF-16 units of the longest text.
    pub(crate) units_max: u64,
    /// Rises with time or is dense: a sequence, a clock.
    pub(crate) is_rising: bool,
}

impl Column {
    /// Whether all entities have it, each another value.
    pub(crate) fn is_unique(&self, entities: usize) -> bool {
        self.present == entities && self.distinct == entities
    }

    /// Whether its values can be a part of a key.
    pub(crate) fn can_be_key(&self, entities: usize) -> bool {
        self.present == entities && !matches!(self.kind, EdmType::Double | EdmType::Binary)
    }

    /// Whether a client can know all values.
    pub(crate) fn is_enumerable(&self, entities: usize) -> bool {
        let seen = entities >= self.distinct.saturating_mul(ENUMERABLE_SEEN_MIN);
        self.distinct <= ENUMERABLE_MAX && seen && self.kind != EdmType::DateTime
    }
}

/// All properties of a sample, by name.
pub(crate) fn columns(sample: &Sample) -> BTreeMap<String, Column> {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for entity in &sample.entities {
        names.extend(entity.properties.iter().map(|(name, _)| name.as_str()));
    }
    names.into_iter().map(|name| (name.to_owned(), column(sample, name))).collect()
}

fn column(sample: &Sample, name: &str) -> Column {
    let mut kinds: BTreeMap<&str, (usize, EdmType)> = BTreeMap::new();
    let (mut distinct, mut lengths) = (BTreeSet::new(), BTreeSet::new());
    let mut column = Column {
        kind: EdmType::String,
        present: 0,
        distinct: 0,
        span: None,
        is_unpadded: true,
        has_bad_characters: false,
        units_max: 0,
        is_rising: false,
    };
    for value in sample.entities.iter().filter_map(|entity| entity.value(name)) {
        column.present += 1;
        kinds.entry(value.edm_type().name()).or_insert((0, value.edm_type())).0 += 1;
        if let (Some(text), true) = (value_text(value), distinct.len() < DISTINCT_MAX) {
            distinct.insert(text);
        }
        if let Some(number) = number_of(value) {
            let (low, high) = column.span.unwrap_or((number, number));
            column.span = Some((low.min(number), high.max(number)));
        }
        let EdmValue::String(text) = value else { continue };
        column.units_max = column.units_max.max(units(text));
        column.has_bad_characters |= text.chars().any(is_bad);
        column.is_unpadded &= !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        lengths.insert(text.len());
    }
    column.distinct = distinct.len();
    column.kind = kinds.values().max_by_key(|(count, _)| *count).map_or(EdmType::String, |(_, kind)| *kind);
    let is_text = column.kind == EdmType::String;
    column.is_unpadded &= is_text && lengths.len() > 1;
    column.is_rising = is_rising(sample, &column);
    column
}

/// Numbers that are dense are a sequence; times rise with themselves.
fn is_rising(sample: &Sample, column: &Column) -> bool {
    match (column.kind, column.span) {
        (EdmType::DateTime, _) => true,
        (EdmType::Int32 | EdmType::Int64, Some((low, high))) => {
            let is_unique = column.is_unique(sample.entities.len());
            let whole = sample.whole_count();
            is_unique && column.present > 1 && (0.8..=1.25).contains(&((high - low + 1.0) / whole))
        }
        _ => false,
    }
}

/// A value as a number, on which ranges have a length: times in seconds.
pub(crate) fn number_of(value: &EdmValue) -> Option<f64> {
    match value {
        EdmValue::Int32(value) => Some(f64::from(*value)),
        EdmValue::Int64(value) => Some(*value as f64),
        EdmValue::Double(value) => Some(*value).filter(|value| value.is_finite()),
        EdmValue::DateTime(ticks) => Some(ticks.0 as f64 / 1e7),
        _ => None,
    }
}
