//! What came of plans, moves and checks: as text for people, as JSON for programs, and whether something is
//! amiss.

use super::document::PlanDocument;
use serde_json::{Value, json};
use shard_map::{Catalog, MappingId, Name};
use shard_mover::{
    Balance, Finding, ForeignPlace, ForeignRows, IntegrityReport, Move, MoveState, Plan, RefusedMove,
    RepairPlan, RepairReport, RepairStep,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Findings that are shown as text; JSON has all that are kept.
const FINDINGS_SHOWN_MAX: usize = 50;

/// What came of it.
#[derive(Debug)]
pub enum MoveOutcome {
    /// A plan.
    Planned(Box<Planned>),
    /// A dry run of a plan that can be applied.
    WouldApply(PlanDocument),
    /// A dry run: moves that would be driven to their ends, or undone.
    WouldDrive(Vec<Move>),
    /// Moves that were driven to their ends.
    Moved {
        /// The moves.
        moves: Vec<Move>,
        /// Shards that could not be brought up to the map, and why.
        unreached: BTreeMap<Name, String>,
    },
    /// Moves that were undone.
    Undone(Vec<Move>),
    /// Moves as they are.
    Status {
        /// The moves.
        moves: Vec<Move>,
        /// Shards that the last `apply` could not bring up to the map, and why.
        unreached: BTreeMap<Name, String>,
    },
    /// Rules were checked.
    Checked(IntegrityReport),
    /// Copies of rows were deleted, or would be.
    Repaired {
        /// What was found.
        found: IntegrityReport,
        /// What is to be done about it.
        plan: RepairPlan,
        /// What was done; none: a dry run, or the map was changed meanwhile.
        done: Option<RepairReport>,
    },
}

/// A plan, and what it is of.
#[derive(Debug)]
pub struct Planned {
    /// The plan, as it is applied.
    pub document: PlanDocument,
    pub(crate) plan: Plan,
    pub(crate) after: Catalog,
}

impl MoveOutcome {
    /// Whether something is to be done yet.
    pub fn is_amiss(&self) -> bool {
        let is_failed = |of: &Move| matches!(of.state(), MoveState::Failed { .. });
        match self {
            MoveOutcome::Planned(planned) => {
                !planned.plan.refused.is_empty() || planned.plan.balance == Some(Balance::Uneven)
            }
            MoveOutcome::WouldApply(_) | MoveOutcome::WouldDrive(_) => false,
            MoveOutcome::Moved { moves, unreached } => {
                let is_done = |of: &Move| {
                    matches!(of.state(), MoveState::Done { .. } | MoveState::SourceDeleted { .. })
                };
                !moves.iter().all(is_done) || !unreached.is_empty()
            }
            MoveOutcome::Undone(moves) => {
                !moves.iter().all(|of| matches!(of.state(), MoveState::Undone { .. }))
            }
            MoveOutcome::Status { moves, unreached } => moves.iter().any(is_failed) || !unreached.is_empty(),
            MoveOutcome::Checked(report) => !report.is_clean() || report.is_of_old_map,
            MoveOutcome::Repaired { found, done, .. } => match done {
                None => !found.is_clean() || found.is_of_old_map,
                Some(done) => done.kept > 0 || !done.skipped.is_empty() || is_more_than_copies(found),
            },
        }
    }

    /// For people: lines.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut out);
        out
    }

    /// For programs.
    pub fn json(&self) -> Value {
        match self {
            MoveOutcome::Planned(planned) => {
                let refused = planned.plan.refused.iter().map(|one| {
                    json!({ "map": one.map, "mapping": one.mapping.to_string(), "why": one.why.to_string() })
                });
                json!({
                    "plan": planned.document, "refused": refused.collect::<Vec<_>>(),
                    "balance": planned.plan.balance.map(balance_text)
                })
            }
            MoveOutcome::WouldApply(document) => json!({ "dry_run": true, "plan": document }),
            MoveOutcome::WouldDrive(moves) => json!({ "dry_run": true, "moves": moves_json(moves) }),
            MoveOutcome::Undone(moves) => json!({ "moves": moves_json(moves) }),
            MoveOutcome::Moved { moves, unreached } | MoveOutcome::Status { moves, unreached } => {
                json!({ "moves": moves_json(moves), "unreached": unreached })
            }
            MoveOutcome::Checked(report) => report_json(report),
            MoveOutcome::Repaired { found, plan, done } => {
                let skipped = |(step, why): &(RepairStep, String)| json!({ "shard": step.shard, "mapping": step.mapping.to_string(), "why": why });
                let done = done.as_ref().map(|done| {
                    let skipped: Vec<Value> = done.skipped.iter().map(skipped).collect();
                    json!({ "deleted": done.deleted, "kept": done.kept, "skipped": skipped })
                });
                let copies: u64 = plan.steps.iter().map(|step| step.rows.copies).sum();
                json!({ "found": report_json(found), "to_delete": copies, "left": plan.left, "done": done })
            }
        }
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        match self {
            MoveOutcome::Planned(planned) => planned.write(out),
            MoveOutcome::WouldApply(document) => {
                writeln!(out, "dry run: {} moves would begin; nothing was changed", document.moves.len())
            }
            MoveOutcome::WouldDrive(moves) => {
                writeln!(out, "dry run: nothing was changed; these would be driven on:")?;
                all_lines(out, moves)
            }
            MoveOutcome::Undone(moves) => all_lines(out, moves),
            MoveOutcome::Moved { moves, unreached } | MoveOutcome::Status { moves, unreached } => {
                all_lines(out, moves)?;
                unreached.iter().try_for_each(|(shard, why)| {
                    writeln!(out, "shard {shard} does not have the map yet: {why}; apply tries again")
                })
            }
            MoveOutcome::Checked(report) => report_lines(out, report),
            MoveOutcome::Repaired { found, plan, done } => repair_lines(out, found, plan, done.as_ref()),
        }
    }
}

/// Whether a check found what a repair does not mend.
fn is_more_than_copies(found: &IntegrityReport) -> bool {
    // A copy is a duplicate as well, which its deletion ends.
    found.counts.keys().any(|kind| !matches!(*kind, "stale-copy" | "duplicate"))
}

fn balance_text(balance: Balance) -> String {
    match balance {
        Balance::Fewest => "even, with the fewest moves".to_owned(),
        Balance::AtLeast(count) => format!("even; at least {count} moves are needed"),
        Balance::Uneven => "not even: no plan was found that makes the shards so".to_owned(),
    }
}

impl Planned {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        let Planned { document, plan, after } = self;
        let changes = plan.changes.len();
        if changes > 0 {
            writeln!(out, "first {changes} changes of the map, which move nothing")?;
        }
        for (line, planned) in document.moves.iter().zip(&plan.moves) {
            writeln!(
                out,
                "  map {}: {}  {} -> {}  {}  about {} rows, {} bytes, writers wait {} s",
                line.map,
                mapping_text(after, &line.map, &planned.mapping),
                line.from,
                line.to,
                line.mode,
                line.rows,
                line.bytes,
                planned.pause.as_secs_f64().ceil()
            )?;
        }
        for RefusedMove { map, mapping, why } in &plan.refused {
            writeln!(out, "  not moved: map {map}: {}: {why}", mapping_text(after, map, mapping))?;
        }
        if let Some(balance) = plan.balance {
            writeln!(out, "shards are {} then", balance_text(balance))?;
        }
        writeln!(
            out,
            "{} moves, about {} rows, {} bytes; plan of epoch {}, nothing was changed",
            plan.moves.len(),
            plan.rows(),
            plan.bytes(),
            document.epoch
        )
    }
}

fn mapping_text(catalog: &Catalog, map: &Name, mapping: &MappingId) -> String {
    catalog.map(map.as_str()).map_or_else(|| mapping.to_string(), |map| map.mapping_text(mapping))
}

fn moves_json(moves: &[Move]) -> Value {
    let one = |of: &Move| json!({ "id": of.id.as_str(), "order": of.order, "states": of.states });
    Value::Array(moves.iter().map(one).collect())
}

fn all_lines(out: &mut String, moves: &[Move]) -> std::fmt::Result {
    if moves.is_empty() {
        return out.write_str("no moves\n");
    }
    moves.iter().try_for_each(|of| move_lines(out, of))
}

fn move_lines(out: &mut String, of: &Move) -> std::fmt::Result {
    let order = &of.order;
    let (state, at) = (of.state(), of.states.last().map_or("", |record| record.at.as_str()));
    writeln!(
        out,
        "{}  map {}: {}  {} -> {}  {}  {at}",
        of.id,
        order.map,
        order.mapping,
        order.from,
        order.to,
        state.name()
    )?;
    match state {
        MoveState::Failed { reason } => writeln!(out, "  {reason}; undo it"),
        MoveState::Undoing { reason } => writeln!(out, "  {reason}; apply goes on with it"),
        MoveState::Undone { note: Some(note) } | MoveState::SourceDeleted { note: Some(note), .. } => {
            writeln!(out, "  {note}")
        }
        MoveState::Done { certificate } => {
            let rows: u64 = certificate.tables.iter().map(|table| table.rows).sum();
            let tables = certificate.tables.len();
            writeln!(out, "  {rows} rows of {tables} tables are equal on both; the source's are still there")
        }
        MoveState::SourceDeleted { .. } | MoveState::Undone { .. } => Ok(()),
        MoveState::Placed { .. }
        | MoveState::Switched { .. }
        | MoveState::SourceDeleting
        | MoveState::SourceCleared { .. }
        | MoveState::TargetCleared { .. } => writeln!(out, "  apply goes on with it"),
        _ => writeln!(out, "  apply goes on with it, undo ends it"),
    }
}

fn report_json(report: &IntegrityReport) -> Value {
    let finding = |finding: &Finding| {
        json!({
            "shard": finding.shard, "table": finding.table, "key": finding.key, "kind": finding.kind.name(),
            "text": finding.to_string()
        })
    };
    let foreign = |((shard, mapping), rows): (&ForeignPlace, &ForeignRows)| json!({ "shard": shard, "mapping": mapping.to_string(), "copies": rows.copies, "others": rows.others });
    let moves: Vec<&str> = report.moves.iter().map(shard_mover::MoveId::as_str).collect();
    json!({
        "epoch": report.epoch, "map_changed": report.is_of_old_map, "rows": report.rows, "counts": report.counts,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "foreign": report.foreign.iter().map(foreign).collect::<Vec<_>>(), "moves_not_judged": moves
    })
}

fn report_lines(out: &mut String, report: &IntegrityReport) -> std::fmt::Result {
    for finding in report.findings.iter().take(FINDINGS_SHOWN_MAX) {
        writeln!(out, "{finding}")?;
    }
    let all: u64 = report.counts.values().sum();
    let shown = report.findings.len().min(FINDINGS_SHOWN_MAX) as u64;
    if all > shown {
        writeln!(out, "and {} more", all - shown)?;
    }
    for id in &report.moves {
        writeln!(out, "move {id} is not at its end: rows of its mapping on its shards were not judged")?;
    }
    if report.is_of_old_map {
        writeln!(out, "the map was changed meanwhile, so findings may be wrong; check again")?;
    }
    let counts: Vec<String> = report.counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let counts = if counts.is_empty() { "no finding".to_owned() } else { counts.join(", ") };
    writeln!(out, "{} rows at epoch {}: {counts}", report.rows, report.epoch)
}

fn repair_lines(
    out: &mut String,
    found: &IntegrityReport,
    plan: &RepairPlan,
    done: Option<&RepairReport>,
) -> std::fmt::Result {
    report_lines(out, found)?;
    let copies: u64 = plan.steps.iter().map(|step| step.rows.copies).sum();
    let Some(done) = done else {
        return match found.is_of_old_map {
            true => writeln!(out, "nothing was repaired"),
            false => writeln!(out, "dry run: {copies} copies would be deleted, {} rows stay", plan.left),
        };
    };
    for (step, why) in &done.skipped {
        writeln!(out, "shard {}: {}: {why}", step.shard, step.mapping)?;
    }
    let left = plan.left;
    writeln!(out, "{} copies deleted; {left} rows that are no copies stay", done.deleted)
}
