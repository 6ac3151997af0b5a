//! What a repair has done, and what is lost.

use crate::key::KeyRange;
use crate::operation::{ObjectTable, Row};
use bytes::Bytes;

/// What a repair does, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderRepair {
    /// What is done, each in words that name the place: "range 2 of table entity: its log is written anew".
    pub actions: Vec<String>,
    /// What is lost or may be, for each object table in the order of the keys.
    pub losses: Vec<RowLoss>,
    /// Bytes that are written anew: so many, and a little more, must be free.
    pub needed_bytes: u64,
    /// Rows that read, and are removed or changed for what they name or belong to, as they were.
    pub replaced_rows: Vec<(ObjectTable, Row)>,
}

impl FolderRepair {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty() && self.losses.is_empty()
    }
}

/// Rows that are lost or may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLoss {
    /// Whose rows.
    pub table: ObjectTable,
    /// Which.
    pub keys: LostKeys,
    /// What is wrong with them.
    pub outcome: LossOutcome,
    /// Which damage is the reason.
    pub reason: String,
}

/// Which rows a loss is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LostKeys {
    /// The row of this key (see `key::parse_row_key`).
    Row(Bytes),
    /// All rows of the partition name that this key's row is in: they make one whole, as those of a blob do.
    PartitionName(Bytes),
    /// Rows of these keys whose names are lost.
    Unknown(KeyRange),
}

/// What became of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossOutcome {
    /// They are gone, or gone if there were any.
    Lost,
    /// An older state of them is there.
    Older,
    /// They are there; whether a later change or deletion of them is lost, is unknown.
    Uncertain,
}

impl LossOutcome {
    /// As a plan names it.
    pub fn name(self) -> &'static str {
        match self {
            LossOutcome::Lost => "lost",
            LossOutcome::Older => "older",
            LossOutcome::Uncertain => "uncertain",
        }
    }
}
