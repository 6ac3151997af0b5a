//! What a repair would do about a check's findings, and what it did.

use super::finding::{ForeignRows, IntegrityReport};
use shard_map::{MappingId, Name};

/// Rows of a mapping that are to be deleted from a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairStep {
    /// The shard that does not have the mapping.
    pub shard: Name,
    /// The mapping.
    pub mapping: MappingId,
    /// What a check found.
    pub rows: ForeignRows,
}

/// What a repair does, and what is left to people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairPlan {
    /// What is deleted.
    pub steps: Vec<RepairStep>,
    /// Rows that are not: another row is on their owner, or none.
    pub left: u64,
}

/// What a repair did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// Rows that were deleted.
    pub deleted: u64,
    /// Rows of the same mappings that stay: their owner has another row, or none.
    pub kept: u64,
    /// Steps that were not done, or not to their end, and why.
    pub skipped: Vec<(RepairStep, String)>,
}

/// What a repair would do about a check's findings.
pub fn plan_repair(report: &IntegrityReport) -> RepairPlan {
    let mut plan = RepairPlan::default();
    for ((shard, mapping), rows) in &report.foreign {
        plan.left = plan.left.saturating_add(rows.others);
        if rows.copies > 0 {
            plan.steps.push(RepairStep { shard: shard.clone(), mapping: mapping.clone(), rows: *rows });
        }
    }
    plan
}
