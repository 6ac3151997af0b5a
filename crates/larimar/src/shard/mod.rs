//! `larimar shard`: the thin end of crate `shard_command`: arguments, homes, shards and the terminal.
//!
//! What always holds: what makes no sense is refused before a home is opened; no secret is printed.

mod accounts;
mod connections;
mod fan_out;
mod homes;
mod input;
mod moves;
#[cfg(feature = "postgres")]
mod password_file;
mod progress_lines;
mod serve_map;

use crate::Failure;
use crate::arguments::shard_arguments::{
    ChangeArguments, DescribedArguments, LintArguments, MapCommand, ReadArguments, RecoverArguments,
    ShardCommand,
};
use crate::arguments::shard_home_arguments::HomeArguments;
use homes::Opener;
use input::{EXIT_AMISS, Lookup, file_text, name};
use settings_file::FILE_SIZE_BYTES_MAX;
use shard_command::{Description, Operation, Run, Sample, lint};
use shard_map::{Epoch, Name};
use shard_store::LocalStores;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// Bytes of a sample of keys, at most.
const SAMPLE_SIZE_BYTES_MAX: usize = 256 << 20;

/// Does what was asked for.
pub(crate) fn shard(command: &ShardCommand, environment: Lookup<'_>) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::of_work(&error))?;
    match command {
        ShardCommand::ServeMap(arguments) => runtime.block_on(serve_map::serve(arguments, environment)),
        ShardCommand::Plan(command) => runtime.block_on(moves::plan(command, environment)),
        ShardCommand::Apply(arguments) => runtime.block_on(moves::apply(arguments, environment)),
        ShardCommand::Undo(arguments) => runtime.block_on(moves::undo(arguments, environment)),
        ShardCommand::Status(arguments) => runtime.block_on(moves::status(arguments, environment)),
        ShardCommand::Fanout(arguments) => runtime.block_on(fan_out::fan_out(arguments, environment)),
        ShardCommand::Verify(arguments) => runtime.block_on(moves::verify(arguments, environment)),
        ShardCommand::Repair(arguments) => runtime.block_on(moves::repair(arguments, environment)),
        ShardCommand::Map(command) => match &**command {
            MapCommand::Lint(arguments) => run_lint(arguments),
            command => runtime.block_on(run_operation(command, environment)),
        },
    }
}

/// An operation, and on what.
struct Task<'a> {
    operation: Operation,
    home: &'a HomeArguments,
    /// Which shards are to be reached.
    read: Option<&'a ReadArguments>,
    /// Shards that the home does not know, each with its location.
    further: Vec<(Name, String)>,
    is_dry: bool,
}

impl<'a> Task<'a> {
    fn of(operation: Operation, home: &'a HomeArguments, is_dry: bool) -> Self {
        Task { operation, home, read: None, further: Vec::new(), is_dry }
    }

    fn with_shards(operation: Operation, arguments: &'a ReadArguments, is_dry: bool) -> Self {
        Task { read: Some(arguments), ..Task::of(operation, &arguments.home, is_dry) }
    }
}

async fn run_operation(command: &MapCommand, environment: Lookup<'_>) -> Result<ExitCode, Failure> {
    let task = task_of(command)?;
    let opener = Opener::new(environment);
    let home = opener.home(task.home)?;
    let shards = match task.read {
        None => LocalStores::new(),
        Some(read) => opener.shards(&home, &read.reach, &task.further).await?,
    };
    let needs_shards = matches!(task.operation, Operation::Publish | Operation::Recover(_));
    if needs_shards && shards.is_empty() {
        return Err(Failure::of_words(
            "no shard is to be reached; give --shards, or --connections FILE".to_owned(),
        ));
    }
    let run = Run { home, shards, is_dry: task.is_dry };
    let outcome = task.operation.run(&run).await.map_err(|error| Failure::of_work(&error))?;
    let text = match task.home.json {
        true => outcome.json().to_string() + "\n",
        false => outcome.text(),
    };
    // A closed standard output changes nothing about the exit code.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(if outcome.is_amiss() { ExitCode::from(EXIT_AMISS) } else { ExitCode::SUCCESS })
}

fn task_of(command: &MapCommand) -> Result<Task<'_>, Failure> {
    let described = |arguments: &DescribedArguments| description(&arguments.description);
    Ok(match command {
        MapCommand::Init(of) => Task::of(Operation::Init(described(of)?), &of.home, of.dry_run),
        MapCommand::Add(of) => {
            let (described, of, has_no_data) = (described(&of.described)?, &of.described, of.data.no_data);
            Task::of(Operation::Add { described, has_no_data }, &of.home, of.dry_run)
        }
        MapCommand::Pin(of) => {
            let (map, shard) = (name(&of.map)?, Some(name(&of.shard)?));
            let (key, has_no_data) = (of.key.clone(), of.data.no_data);
            Task::of(Operation::Pin { map, key, shard, has_no_data }, &of.home, of.dry_run)
        }
        MapCommand::Unpin(of) => {
            let map = name(&of.map)?;
            let (key, has_no_data) = (of.key.clone(), of.data.no_data);
            Task::of(Operation::Pin { map, key, shard: None, has_no_data }, &of.home, of.dry_run)
        }
        MapCommand::Show(of) => {
            Task::of(Operation::Show(of.map.as_deref().map(name).transpose()?), &of.home, false)
        }
        MapCommand::Export(home) => Task::of(Operation::Export, home, false),
        MapCommand::Check(read) => Task::with_shards(Operation::Check, read, false),
        MapCommand::History(of) => {
            Task::of(Operation::History(Epoch(of.after), usize::from(of.count)), &of.home, false)
        }
        MapCommand::Publish(ChangeArguments { read, dry_run }) => {
            Task::with_shards(Operation::Publish, read, *dry_run)
        }
        MapCommand::Recover(of) => recovery(of)?,
        MapCommand::Lint(_) => return Err(Failure::of_words("lint needs no home".to_owned())),
    })
}

fn recovery(of: &RecoverArguments) -> Result<Task<'_>, Failure> {
    let believed: BTreeSet<Name> = of.believe.iter().map(|text| name(text)).collect::<Result<_, _>>()?;
    let believed = (!believed.is_empty()).then_some(believed);
    let located = |text: &String| match text.split_once('=') {
        Some((shard, location)) => Ok((name(shard)?, location.to_owned())),
        None => Err(Failure::of_words("--shard: write NAME=LOCATION".to_owned())),
    };
    let further = of.shard.iter().map(located).collect::<Result<_, _>>()?;
    let task = Task::with_shards(Operation::Recover(believed), &of.change.read, of.change.dry_run);
    Ok(Task { further, ..task })
}

fn description(path: &Path) -> Result<Description, Failure> {
    let mistaken = |error| Failure::of_words(format!("{}: {error}", path.display()));
    Description::parse(&file_text(path, FILE_SIZE_BYTES_MAX)?).map_err(mistaken)
}

fn run_lint(arguments: &LintArguments) -> Result<ExitCode, Failure> {
    let described = description(&arguments.description)?;
    let only = arguments.map.as_deref().map(name).transpose()?;
    let maps = described.maps.iter().filter(|one| only.as_ref().is_none_or(|only| only == one.map.name()));
    let maps: Vec<_> = maps.collect();
    if maps.is_empty() {
        return Err(Failure::of_words("the description has no such map".to_owned()));
    }
    if maps.len() > 1 && arguments.sample.is_some() {
        return Err(Failure::of_words(
            "the description has several maps; name the sample's with --map".to_owned(),
        ));
    }
    let mut advice = Vec::new();
    for map in maps {
        let sample = arguments.sample.as_deref().map(|path| {
            let mistaken = |error| Failure::of_words(format!("{}: {error}", path.display()));
            Sample::parse(&file_text(path, SAMPLE_SIZE_BYTES_MAX)?, map.map.key_type()).map_err(mistaken)
        });
        advice.extend(lint(map, sample.transpose()?.as_ref()));
    }
    let text = match arguments.json {
        true => {
            let one = |one: &shard_command::Advice| serde_json::json!({ "map": one.map.as_str(), "rule": one.rule, "text": one.text });
            serde_json::Value::Array(advice.iter().map(one).collect()).to_string() + "\n"
        }
        false if advice.is_empty() => "no advice\n".to_owned(),
        false => advice.iter().map(|one| format!("{one}\n")).collect(),
    };
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(if advice.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_AMISS) })
}
