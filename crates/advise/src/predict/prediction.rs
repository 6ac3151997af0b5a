//! Predictions as plain data, and what they are made from.

use super::facts::Facts;
use super::share::Share;
use crate::answers::Answers;
use crate::design::{KeyDesign, Part};
use crate::mix::Mix;
use table::PlanClass;

/// What is kept beside an entity's first row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Second {
    /// In another partition of another table, or in the same one.
    pub is_table: bool,
    /// Parts of its PartitionKey.
    pub partition: Vec<Part>,
    /// Parts of its RowKey.
    pub row: Vec<Part>,
    /// The query that it is for.
    pub query: String,
}

/// What a query does under a design.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryPrediction {
    /// The query.
    pub name: String,
    /// How much it touches.
    pub class: PlanClass,
    /// Which of the seconds it uses; none: the table itself.
    pub second: Option<usize>,
    /// Partitions that are read.
    pub fan_out: f64,
    /// Rows that are read, and that are wanted.
    pub rows_read: f64,
    /// Rows that are wanted.
    pub rows_wanted: f64,
    /// Requests of one query.
    pub requests: f64,
    /// How long one takes, with 10 ms a request and partitions in parallel.
    pub took_ms: f64,
    /// Whether that is within what is wanted.
    pub is_fast_enough: bool,
}

/// What a design would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The design.
    pub design: KeyDesign,
    /// Rows and tables beside it.
    pub seconds: Vec<Second>,
    /// The largest partition.
    pub largest: Share,
    /// The share of what is written at a time that the table's most written partition has.
    pub hot: Share,
    /// Entities a second that can be written at most, with their rows in index tables.
    pub rate_max: f64,
    /// In the mix's order.
    pub queries: Vec<QueryPrediction>,
    /// Transactions a day that fall apart.
    pub transactions_lost: f64,
    /// Bytes of second rows and index tables.
    pub duplicated_bytes: f64,
    /// Requests a day.
    pub requests_per_day: f64,
    /// What is wrong with it.
    pub warnings: Vec<Warning>,
}

/// What is given.
pub(crate) struct Given<'a> {
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) mix: &'a Mix,
    pub(crate) answers: &'a Answers,
    /// Properties that no two entities have in common.
    pub(crate) identity: &'a [Part],
}

impl Given<'_> {
    /// Entities written a second at the busiest time.
    pub(crate) fn peak_rate(&self) -> f64 {
        self.mix.written_per_day() * self.answers.growth / 86_400.0 * self.answers.peak_factor
    }
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// A design without it is better, whatever else it costs.
    pub is_serious: bool,
    /// In words.
    pub text: String,
}
