//! What a `$filter` makes a query read, in words of keys: for explanations and advice, not for queries.
//!
//! Vocabulary: a *class* says how much of a table a query touches, finer than [`QueryClass`], which headers
//! and metrics have; a *range* is a pair of intervals, of PartitionKeys and of RowKeys, as
//! [`super::key_ranges`] derives them. What always holds: it is derived from what queries run on, so it can't
//! say another class than an answer does; nothing here depends on what is stored.

use super::error::FilterError;
use super::expression::{Expression, Grammar, Operator};
use super::key_ranges::{Interval, KeyBox, KeyRanges};
use super::parser;
use super::predicate::Predicate;
use crate::edm::EdmValue;
use crate::queries::query_class::QueryClass;
use partition::KeyRange;
use partition::key::{parse_key_start, put_text};
use std::collections::BTreeSet;
use std::ops::Bound;

/// How much of a table a filter makes a query touch, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanClass {
    /// Nothing can match, so nothing is read.
    Nothing,
    /// One entity, by both keys.
    Point,
    /// Several entities, each by both keys, joined by `or`.
    Points,
    /// Rows of one partition between two RowKeys.
    RowRange,
    /// All rows of one partition.
    PartitionScan,
    /// Several partitions, each named, joined by `or`.
    Partitions,
    /// All partitions between two PartitionKeys.
    PartitionRange,
    /// The whole table.
    TableScan,
}

impl PlanClass {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            PlanClass::Nothing => "nothing",
            PlanClass::Point => "point",
            PlanClass::Points => "several points",
            PlanClass::RowRange => "row range",
            PlanClass::PartitionScan => "partition scan",
            PlanClass::Partitions => "several partitions by or",
            PlanClass::PartitionRange => "partition range",
            PlanClass::TableScan => "table scan",
        }
    }
}

/// An interval of keys.
pub type KeyBounds = (Bound<String>, Bound<String>);

/// Rows that are read: those in both intervals, and with several partitions some more (see
/// [`PlannedRange::reads_between`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRange {
    /// Of which partitions.
    pub partition: KeyBounds,
    /// Of which rows in them.
    pub row: KeyBounds,
    /// How much it touches.
    pub class: PlanClass,
}

impl PlannedRange {
    /// Whether the RowKey is bounded and yet all rows of the inner partitions are read: bounds of rows narrow
    /// a range of partitions only in its first and last one.
    pub fn reads_between(&self) -> bool {
        let is_bounded = self.row != (Bound::Unbounded, Bound::Unbounded);
        is_bounded && self.class >= PlanClass::PartitionRange
    }
}

/// A comparison of a filter.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedComparison {
    /// A key, `Timestamp` or a property.
    pub property: String,
    /// As it is written: `eq`.
    pub operator: &'static str,
    /// With what.
    pub constant: EdmValue,
    /// It is within an `or`.
    pub is_alternative: bool,
    /// It is within a `not`.
    pub is_negated: bool,
}

impl PlannedComparison {
    /// Whether it is about a key.
    pub fn is_of_key(&self) -> bool {
        matches!(self.property.as_str(), "PartitionKey" | "RowKey")
    }
}

/// What a filter makes a query read.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterPlan {
    /// How much of a table.
    pub class: PlanClass,
    /// What answers say of it.
    pub query_class: QueryClass,
    /// Which rows, in the order of keys.
    pub ranges: Vec<PlannedRange>,
    /// Reads that are next to each other are one: so many are left.
    pub span_count: usize,
    /// Partitions, if all are named.
    pub partition_count: Option<usize>,
    /// In the order of the text.
    pub comparisons: Vec<PlannedComparison>,
}

impl FilterPlan {
    /// The plan of a filter; an empty one reads the whole table.
    pub fn parse(text: &str) -> Result<FilterPlan, FilterError> {
        let (mut comparisons, mut ranges) = (Vec::new(), KeyRanges::all());
        if let Some(expression) = parser::parse(text, Grammar::Protocol)? {
            put_comparisons(&expression, (false, false), &mut comparisons);
            ranges = KeyRanges::derive(&Predicate::compile(expression));
        }
        let mut boxes: Vec<&KeyBox> = ranges.boxes().iter().collect();
        boxes.sort_by(|a, b| (&a.partition.low, &a.row.low).cmp(&(&b.partition.low, &b.row.low)));
        boxes.dedup();
        let are_named = boxes.iter().all(|key_box| key_box.partition.is_point());
        let names: BTreeSet<&[u8]> = boxes.iter().map(|key_box| key_box.partition.low.as_slice()).collect();
        // Any container will do: its bounds are the same in all spans.
        let spans = ranges.spans(&KeyRange::container("a", 1), None);
        Ok(FilterPlan {
            class: class_of(&boxes, are_named, names.len()),
            query_class: ranges.class(),
            partition_count: are_named.then_some(names.len()),
            ranges: boxes.into_iter().map(planned).collect(),
            span_count: spans.len(),
            comparisons,
        })
    }
}

fn class_of(boxes: &[&KeyBox], are_named: bool, partition_count: usize) -> PlanClass {
    let most = boxes.iter().map(|key_box| class_of_box(key_box)).max();
    match most {
        None => PlanClass::Nothing,
        Some(PlanClass::Point) if boxes.len() > 1 => PlanClass::Points,
        Some(PlanClass::RowRange | PlanClass::PartitionScan) if are_named && partition_count > 1 => {
            PlanClass::Partitions
        }
        Some(class) => class,
    }
}

fn class_of_box(key_box: &KeyBox) -> PlanClass {
    match key_box.class() {
        QueryClass::Point => PlanClass::Point,
        QueryClass::RowRange if key_box.row.has_bound() => PlanClass::RowRange,
        QueryClass::RowRange => PlanClass::PartitionScan,
        QueryClass::PartitionRange => PlanClass::PartitionRange,
        QueryClass::TableScan => PlanClass::TableScan,
    }
}

fn planned(key_box: &KeyBox) -> PlannedRange {
    PlannedRange {
        partition: bounds(&key_box.partition),
        row: bounds(&key_box.row),
        class: class_of_box(key_box),
    }
}

/// The texts that an interval's encoded bounds are of.
fn bounds(interval: &Interval) -> KeyBounds {
    let low = match text_of(&interval.low) {
        // No key is less than the empty one.
        Some((text, false)) if text.is_empty() => Bound::Unbounded,
        Some((text, false)) => Bound::Included(text),
        Some((text, true)) => Bound::Excluded(text),
        None => Bound::Unbounded,
    };
    let high = interval.high.as_ref().and_then(|high| text_of(high)).map(|(text, is_after)| match is_after {
        true => Bound::Included(text),
        false => Bound::Excluded(text),
    });
    (low, high.unwrap_or(Bound::Unbounded))
}

/// The text that a bound is of, and whether the bound is right after it.
fn text_of(encoded: &[u8]) -> Option<(String, bool)> {
    // A whole bound has an account and a container in front.
    let mut bound = Vec::with_capacity(encoded.len() + 16);
    put_text(&mut bound, "a");
    bound.extend_from_slice(&[0; 8]);
    bound.extend_from_slice(encoded);
    let text = parse_key_start(&bound).partition_name?;
    Some((text, encoded.ends_with(&[0, 2])))
}

/// Appends the comparisons of an expression, which is within an `or`, within a `not`. No deeper than the
/// expression, whose depth is bounded.
fn put_comparisons(
    expression: &Expression,
    (is_alternative, is_negated): (bool, bool),
    out: &mut Vec<PlannedComparison>,
) {
    match expression {
        Expression::And(terms) => {
            terms.iter().for_each(|term| put_comparisons(term, (is_alternative, is_negated), out))
        }
        Expression::Or(terms) => terms.iter().for_each(|term| put_comparisons(term, (true, is_negated), out)),
        Expression::Not(inner) => put_comparisons(inner, (is_alternative, !is_negated), out),
        Expression::Compare { property, operator, constant } => out.push(PlannedComparison {
            property: property.clone(),
            operator: word(*operator),
            constant: constant.clone(),
            is_alternative,
            is_negated,
        }),
        // Not in the grammar that plans are made of.
        Expression::StartsWith { .. } | Expression::Constant(_) => {}
    }
}

fn word(operator: Operator) -> &'static str {
    match operator {
        Operator::Equal => "eq",
        Operator::NotEqual => "ne",
        Operator::Less => "lt",
        Operator::LessOrEqual => "le",
        Operator::Greater => "gt",
        Operator::GreaterOrEqual => "ge",
    }
}
