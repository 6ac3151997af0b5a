//! `$filter`: a text becomes an expression, the expression a predicate over stored rows and the key ranges
//! that can hold matching rows.
//!
//! ```text
//! text -> lexer -> parser -> Expression -> Predicate   evaluated on each row, on the stored bytes
//!                                       -> KeyRanges   which rows to read
//! ```
//!
//! What always holds: parsing any text ends in bounded time, memory and stack; a row outside the key ranges
//! never matches the predicate, so a scan of the ranges alone loses nothing.

mod bounds;
mod error;
mod expression;
mod key_ranges;
mod lexer;
mod parser;
mod plan;
mod predicate;

pub use bounds::{FILTER_BYTES_MAX, FILTER_COMPARISONS_MAX, FILTER_DEPTH_MAX};
pub use error::FilterError;
pub(crate) use key_ranges::KeyRanges;
pub use plan::{FilterPlan, KeyBounds, PlanClass, PlannedComparison, PlannedRange};
pub(crate) use predicate::{EntityRow, Scratch, TableNameRow};

use crate::limits::TABLE_NAME_LEN_MAX;
use base::codec::DecodeError;
use expression::{Expression, Grammar};
use predicate::Predicate;
use std::sync::Arc;

/// A parsed `$filter`. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Filter {
    compiled: Arc<CompiledFilter>,
}

#[derive(Debug)]
struct CompiledFilter {
    /// `None` matches everything.
    predicate: Option<Predicate>,
    ranges: KeyRanges,
    table_names: Option<Vec<String>>,
}

impl Filter {
    /// Parses a `$filter` of the protocol. An empty one matches everything.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        parser::parse(text, Grammar::Protocol).map(Self::of)
    }

    /// The same, and `startswith(property,'text')` is served, which the protocol does not have: a text that
    /// begins so, by its UTF-16 units. Of a key it is a range of keys; a property that is missing or no text
    /// does not match. There is none of `Timestamp`.
    pub fn parse_extended(text: &str) -> Result<Filter, FilterError> {
        parser::parse(text, Grammar::Extended).map(Self::of)
    }

    fn of(expression: Option<Expression>) -> Filter {
        let compiled = match expression {
            None => CompiledFilter { predicate: None, ranges: KeyRanges::all(), table_names: None },
            Some(expression) => {
                let table_names = expression.table_names(TABLE_NAME_LEN_MAX);
                let predicate = Predicate::compile(expression);
                CompiledFilter {
                    ranges: KeyRanges::derive(&predicate),
                    predicate: Some(predicate),
                    table_names,
                }
            }
        };
        Filter { compiled: Arc::new(compiled) }
    }

    /// Whether it is blank, and matches everything.
    pub fn is_empty(&self) -> bool {
        self.compiled.predicate.is_none()
    }

    /// Which rows can match.
    pub(crate) fn ranges(&self) -> &KeyRanges {
        &self.compiled.ranges
    }

    /// The lower-cased names of all tables that can match, if the filter names them.
    pub(crate) fn table_names(&self) -> Option<&[String]> {
        self.compiled.table_names.as_deref()
    }

    /// Whether an entity matches.
    pub(crate) fn matches(&self, row: EntityRow<'_>, scratch: &mut Scratch) -> Result<bool, DecodeError> {
        match &self.compiled.predicate {
            None => Ok(true),
            Some(predicate) => predicate.matches_entity(row, scratch),
        }
    }

    /// Whether a table matches, by its `TableName`.
    pub(crate) fn matches_table(&self, row: TableNameRow<'_>) -> Result<bool, DecodeError> {
        match &self.compiled.predicate {
            None => Ok(true),
            Some(predicate) => predicate.matches_table(row),
        }
    }
}

#[cfg(test)]
mod tests;
