//! Classes of queries and writes, as plain data.

/// A query, as a class of many.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// What it is called.
    pub name: String,
    /// Properties that are compared with eq.
    pub equal: Vec<String>,
    /// A property of which a range is wanted.
    pub range: Option<String>,
    /// How long that range is: of times in seconds, of numbers in themselves; without it to the end.
    pub length: Option<f64>,
    /// So many entities are wanted, those with the latest `range`; without it all.
    pub newest: Option<u64>,
    /// How many a day.
    pub per_day: f64,
    /// How long one may take.
    pub within_ms: f64,
}

/// A write, as a class of many.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// What it is called.
    pub name: String,
    /// How many entities a day.
    pub per_day: f64,
    /// Entities that have these properties in common are written in one transaction.
    pub together: Vec<String>,
    /// How many entities a transaction has.
    pub group: f64,
}

/// What is done with a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mix {
    /// Queries.
    pub queries: Vec<Query>,
    /// Writes.
    pub writes: Vec<Write>,
    /// What is not known of it, one sentence each.
    pub unknown: Vec<String>,
}

impl Mix {
    /// Entities written a day.
    pub fn written_per_day(&self) -> f64 {
        // A sum of nothing is 0 and not -0.
        self.writes.iter().fold(0.0, |sum, write| sum + write.per_day)
    }
}
