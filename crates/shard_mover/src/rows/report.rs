//! What is known of a table's rows on a side.

use serde::{Deserialize, Serialize};
use shard_backend::TableDigest;

/// A table's rows of a mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableReport {
    /// The table.
    pub table: String,
    /// How many rows.
    pub rows: u64,
    /// The sum of their hashes, in 32 hexadecimal digits.
    pub digest: String,
    /// The high-water mark: the greatest key, as texts; none without rows.
    pub high_water: Option<Vec<String>>,
}

impl TableReport {
    pub(crate) fn new(table: &str, digest: TableDigest, high_water: Option<Vec<String>>) -> Self {
        let sum = format!("{:032x}", digest.sum);
        TableReport { table: table.to_owned(), rows: digest.rows, digest: sum, high_water }
    }
}
