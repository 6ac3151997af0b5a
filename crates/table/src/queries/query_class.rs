//! How much of a table a query reads, for metrics and headers.

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
