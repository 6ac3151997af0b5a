//! Bounds of schemas, rows and batches. What breaks one is refused by name, or ends a batch.

use std::time::Duration;

/// Tables of a schema, at most.
pub const TABLES_MAX: usize = 1024;
/// Columns of a table, at most: what Postgres takes (1,600), rounded down.
pub const TABLE_COLUMNS_MAX: usize = 1024;
/// Bytes of a table's or column's name, at most: what Postgres takes.
pub const NAME_BYTES_MAX: usize = 63;

/// Bytes of a row's values, at most. A longer row is refused: it would not fit into memory some times over.
pub const ROW_BYTES_MAX: usize = 64 << 20;

/// Rows of a batch that is scanned, written or deleted, at most.
pub const BATCH_ROWS_MAX: usize = 1000;
/// Bytes of the values of a batch, at most; a row that is longer is a batch of its own.
pub const BATCH_BYTES_MAX: usize = 4 << 20;
/// Rows that a scan looks at for one batch, at most: of a virtual shard one row in many is found.
pub const BATCH_LOOKED_AT_ROWS_MAX: usize = 20_000;

/// How long a count of a SQL shard may take, which reads an index of the mapping's rows.
#[cfg(feature = "postgres")]
pub(crate) const COUNT_FOR_MAX: Duration = Duration::from_secs(3600);

/// T: how long after the claim, or the shard's copy, was read a write to a storage account may still come.
pub const SIGNED_FOR_MAX: Duration = Duration::from_secs(15);

// A batch is held in memory with its rows' encodings, and the longest row must be readable.
const _: () = assert!(BATCH_BYTES_MAX <= ROW_BYTES_MAX && BATCH_ROWS_MAX <= BATCH_LOOKED_AT_ROWS_MAX);
