//! What a backend can do, as plain data: what decides how rows may be moved from it and to it.

/// What a backend can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// What of it one transaction can change.
    pub transactions: Transactions,
    /// Whether rows are read in the order of their keys, from any key on.
    pub ordered_scan: bool,
    /// Whether a write can depend on what is there.
    pub conditional_write: bool,
    /// How it refuses writers whose map is old.
    pub fence: Fence,
    /// Whether the changes of rows can be read in their order, none left out.
    pub change_capture: bool,
}

/// What one transaction can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transactions {
    /// One row.
    Row,
    /// Rows of one partition.
    Partition,
    /// Any rows of the shard.
    Shard,
}

/// How a backend refuses writers whose map is old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fence {
    /// Not at all.
    None,
    /// The right to write ends some seconds after the map was read: a move waits that long.
    Expires,
    /// The mapping's epoch is checked in the transaction of the write, and held until its commit.
    HeldUntilCommit,
}

impl Capabilities {
    /// Those of SQLite: one writer at a time, whose transaction begins with the write lock.
    pub const SQLITE: Self = Capabilities {
        transactions: Transactions::Shard,
        ordered_scan: true,
        conditional_write: true,
        fence: Fence::HeldUntilCommit,
        change_capture: false,
    };

    /// Those of Postgres, as far as it is used: its logical decoding is not yet.
    pub const POSTGRES: Self = Capabilities {
        transactions: Transactions::Shard,
        ordered_scan: true,
        conditional_write: true,
        fence: Fence::HeldUntilCommit,
        change_capture: false,
    };

    /// Those of a storage account's tables: entities of one partition change together, and signatures that
    /// end fence late writers.
    pub const STORAGE_TABLES: Self = Capabilities {
        transactions: Transactions::Partition,
        ordered_scan: true,
        conditional_write: true,
        fence: Fence::Expires,
        change_capture: false,
    };
}
