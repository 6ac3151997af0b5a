//! `larimar table copy`: entities of one table into another, mapped on the way.
//!
//! A worker reads a page, maps it, writes it as an import does, and only then counts the page as read. What
//! always holds: a run that goes on repeats at most the pages that were under way, and knows that what it
//! finds of them may be its own.

use super::Selection;
use crate::access::TableAccess;
use crate::environment::ToolEnvironment;
use crate::error::ToolError;
use crate::files::state_file::StateFile;
use crate::files::window::{Line, Window};
use crate::import::batch::plan;
use crate::import::writer::{Counts, OnConflict, Source, write};
use crate::lines::row::Row;
use crate::mapping::Mapping;
use crate::place::TablePlace;
use crate::scan::ledger::Ledger;
use crate::scan::run::{Keeper, Kept, run};
use crate::scan::worker::{Book, Place, Scan, ScanRequest, Sink};
use base::BoxFuture;
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is copied.
pub struct CopyPlan {
    /// Where from.
    pub from: Selection,
    /// Where to.
    pub to: TablePlace,
    /// How keys and properties change.
    pub mapping: Mapping,
    /// What becomes of entities whose keys are there.
    pub on_conflict: OnConflict,
    /// The table is made unless it is there.
    pub creates_table: bool,
    /// Everything is read and mapped, and nothing is written.
    pub is_dry: bool,
    /// Where the state is kept, for a run that goes on; none without it.
    pub state: Option<String>,
    /// What an earlier run has done is forgotten.
    pub restarts: bool,
}

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Entities that were read; those of an earlier run, too.
    pub read: u64,
    /// Entities that this run has left out, because their keys were there.
    pub skipped: u64,
}

#[derive(Serialize, Deserialize)]
struct CopyState {
    ledger: Ledger,
}

/// Copies a table, or goes on with a copy that was stopped.
pub fn copy<'a, 'e: 'a>(
    plan: &'a CopyPlan,
    environment: &'a mut ToolEnvironment<'e>,
) -> LocalBoxFuture<'a, Result<Copied, ToolError>> {
    Box::pin(async move {
        let (from, connections) = (&plan.from, plan.from.connections);
        if from.place.is_same(&plan.to) && (plan.mapping.is_empty() || plan.mapping.sets_keys()) {
            let what = "a table is not copied onto itself: a copy with other keys would read what it writes; give \
                    another table, or --set of properties only";
            return Err(ToolError::refused(what));
        }
        // A dry run has none: it would end that of a copy that goes on.
        let state = plan.state.as_ref().filter(|_| !plan.is_dry);
        let state = state.map(|path| StateFile::new(environment.disk.clone(), path.clone(), plan.work()));
        let mut kept: Option<CopyState> = None;
        let held = state.as_ref().map(|state| state.hold(state.path(), &*environment.locks));
        let _held = held.transpose()?;
        if let Some(state) = &state {
            if plan.restarts {
                state.remove().await?;
            }
            kept = state.read().await?;
        }
        from.place.checked(from.filter.as_deref(), 1, environment).await?;
        let target = plan.to.client(&environment.surroundings, connections);
        match (plan.creates_table && !plan.is_dry, plan.creates_table) {
            (true, _) => {
                target.create_if_absent().await?;
            }
            (false, false) => {
                plan.to.checked(None, 1, environment).await?;
            }
            (false, true) => {}
        }
        let is_resumed = kept.is_some();
        let sink = || Copier {
            table: (!plan.is_dry).then(|| TableAccess::of(&target)),
            source: from.place.url(),
            mapping: plan.mapping.clone(),
            on_conflict: plan.on_conflict,
            is_resumed,
            counts: Counts::default(),
        };
        let sinks: Vec<Copier> = (0..connections).map(|_| sink()).collect();
        let ledger = kept.map_or_else(|| Ledger::new(from.range()), |kept| kept.ledger);
        let request = ScanRequest {
            url: from.place.url(),
            filter: from.filter.clone(),
            select: Vec::new(),
            snapshot: None,
            is_parallel: true,
        };
        let clock = environment.surroundings.clock.clone();
        let scan = Scan::new(Book { ledger, output: None }, request, clock, environment.stop.clone());
        let (scan, table) = (Arc::new(scan), from.place.client(&environment.surroundings, connections));
        let mut keeper = StateKeeper { state: state.clone() };
        let ran = run("copying", &scan, &table, sinks, environment, &mut keeper).await;
        let read = scan.book.lock().await.ledger.rows;
        match ran {
            Ok(sinks) => {
                if let Some(state) = &state {
                    state.remove().await?;
                }
                let skipped = sinks.iter().map(|sink| sink.counts.skipped).sum();
                Ok(Copied { read, skipped })
            }
            Err(error) if plan.is_dry => Err(error),
            Err(error) => {
                let to = plan.to.url();
                let how = match &state {
                    Some(state) => format!("the same command goes on from {}", state.path()),
                    None if plan.on_conflict == OnConflict::Fail => {
                        "without --state the same command ends at the first of them: give --on-conflict skip or \
                         replace, too"
                            .to_owned()
                    }
                    None => "without --state the same command begins anew".to_owned(),
                };
                Err(error.keeping(format!("{read} entities and perhaps some pages more are in {to}; {how}")))
            }
        }
    })
}

impl CopyPlan {
    fn work(&self) -> String {
        let Selection { filter, partition, .. } = &self.from;
        format!(
            "copy of {} to {}, filter {filter:?}, partition {partition:?}, {:?}, on conflict {:?}",
            self.from.place.url(),
            self.to.url(),
            self.mapping,
            self.on_conflict
        )
    }
}

struct Copier {
    /// None writes nothing.
    table: Option<TableAccess>,
    source: String,
    mapping: Mapping,
    on_conflict: OnConflict,
    is_resumed: bool,
    counts: Counts,
}

impl Copier {
    /// The mapped rows, as a window of a file has them.
    fn window(&self, rows: &[Row<'_>]) -> Result<Window, ToolError> {
        let (mut text, mut lines) = (Vec::new(), Vec::new());
        for row in rows {
            let start = text.len();
            match self.mapping.is_empty() {
                true => row.put_json(&mut text),
                false => {
                    let mapped = self.mapping.apply(row).map_err(|what| {
                        let key = format!("{:?} {:?}", row.partition_key, row.row_key);
                        ToolError::Refused(format!("{}: {key}: {what}", self.source))
                    })?;
                    text.extend_from_slice(&mapped.to_json());
                }
            }
            let number = lines.len() as u64 + 1;
            lines.push(Line { at: start..text.len(), number, file_end: text.len() as u64 });
        }
        Ok(Window { end: text.len() as u64, text, lines })
    }
}

impl Sink for Copier {
    fn take<'a>(
        &'a mut self,
        _: &'a Place<'a>,
        rows: &'a [Row<'a>],
    ) -> BoxFuture<'a, Result<Vec<u8>, ToolError>> {
        Box::pin(async move {
            let window = self.window(rows)?;
            let source = Source {
                path: &self.source,
                window: &window,
                on_conflict: self.on_conflict,
                doubtful_to: if self.is_resumed { u64::MAX } else { 0 },
                has_lines: false,
            };
            let mut start = 0;
            while start < window.lines.len() {
                let portion = plan(&window, &self.source, start, |_| false);
                let portion = portion.map_err(|error| of_entity(error, &self.source, rows))?;
                start = portion.end;
                for batch in &portion.batches {
                    if let Some(table) = &mut self.table {
                        self.counts += write(&source, table, batch).await?;
                    }
                }
            }
            Ok(Vec::new())
        })
    }
}

/// Lines of a page mean nothing to its user: the error names the entity, as it was read.
fn of_entity(error: ToolError, source: &str, rows: &[Row<'_>]) -> ToolError {
    let ToolError::Line { line, what, path } = error else { return error };
    match rows.get((line as usize).wrapping_sub(1)) {
        Some(Row { partition_key, row_key, .. }) => {
            ToolError::Refused(format!("{source}: {partition_key:?} {row_key:?}: {what}"))
        }
        None => ToolError::Line { line, what, path },
    }
}

struct StateKeeper {
    state: Option<StateFile>,
}

impl Keeper for StateKeeper {
    fn keep<'a>(&'a mut self, kept: Kept) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            match &self.state {
                Some(state) => state.write(&CopyState { ledger: kept.ledger }).await,
                None => Ok(()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_line_names_the_entity() {
        let text = r#"{"PartitionKey":"p","RowKey":"r"}"#;
        let rows = [Row::parse(text).expect("a row")];
        let error = |line| ToolError::Line { path: "url".to_owned(), line, what: "wrong".to_owned() };
        assert_eq!(of_entity(error(1), "url", &rows).to_string(), "url: \"p\" \"r\": wrong");
        assert_eq!(of_entity(error(2), "url", &rows).to_string(), "url: line 2: wrong");
    }
}
