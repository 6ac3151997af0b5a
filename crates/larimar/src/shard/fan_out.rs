//! `larimar shard fanout`: opens the home and all shards, asks, prints.

use super::homes::Opener;
use super::input::{EXIT_AMISS, Lookup, schema};
use crate::Failure;
use crate::arguments::shard_fan_out_arguments::{ComputedArguments, FanOutArguments};
use crate::output::error_line::print_error;
use base::system::TokioSpawner;
use shard_command::{AggregateFunction, AggregateRequest, FanOutFailure, FanOutRequest, FanOutRun};
use shard_router::{FanOutSettings, Needed};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

pub(super) async fn fan_out(of: &FanOutArguments, environment: Lookup<'_>) -> Result<ExitCode, Failure> {
    let schema = Arc::new(schema(&of.rows.schema)?);
    let opener = Opener::new(environment);
    let home = opener.home(&of.rows.home)?;
    let catalog = home.load().await.map_err(|error| Failure::of_work(&error))?;
    let accounts = opener.accounts(of.rows.connections.as_deref())?;
    let (copies, backends) = opener.backends(catalog.shards(), &schema, &accounts)?;
    let settings = FanOutSettings {
        shards_at_once: usize::from(of.bounds.shards_at_once),
        shard_for_max: Duration::from_secs(of.bounds.shard_timeout.into()),
        needed: if of.bounds.partial { Needed::SomeShards } else { Needed::AllShards },
    };
    let (clock, spawner) = (opener.clock(), Arc::new(TokioSpawner::current()));
    let run = FanOutRun { home, copies, backends, clock, spawner, settings };
    let outcome = request(of).run(&schema, run).await.map_err(|error| match error {
        FanOutFailure::Mistake(mistake) => Failure::of_words(mistake.to_string()),
        error => Failure::of_work(&error),
    })?;
    let json = of.rows.home.json;
    if !json {
        let failed = outcome.failed().iter();
        failed.for_each(|(shard, why)| print_error(&format!("shard {shard}: {why}")));
    }
    let text = if json { outcome.json().to_string() + "\n" } else { outcome.text() };
    // A closed standard output changes nothing about the exit code.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(if outcome.is_amiss() { ExitCode::from(EXIT_AMISS) } else { ExitCode::SUCCESS })
}

fn request(of: &FanOutArguments) -> FanOutRequest {
    FanOutRequest {
        table: of.table.clone(),
        columns: of.wanted.columns.clone(),
        conditions: of.wanted.conditions.clone(),
        order_by: of.wanted.order_by.clone(),
        is_descending: of.wanted.descending,
        rows_max: of.wanted.limit,
        aggregates: aggregates(&of.computed),
    }
}

fn aggregates(of: &ComputedArguments) -> Vec<AggregateRequest> {
    let wanted = [
        (AggregateFunction::Count, &of.count),
        (AggregateFunction::Sum, &of.sum),
        (AggregateFunction::Min, &of.min),
        (AggregateFunction::Max, &of.max),
        (AggregateFunction::Avg, &of.avg),
    ];
    let each = wanted.into_iter().flat_map(|(function, columns)| {
        columns.iter().map(move |column| {
            let column = (column != "*").then(|| column.clone());
            AggregateRequest { function, column }
        })
    });
    each.collect()
}
