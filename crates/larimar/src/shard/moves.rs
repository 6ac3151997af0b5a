//! `larimar shard plan`, `apply`, `undo`, `status`, `verify` and `repair`: opens, runs, shows.
//!
//! What always holds: Ctrl-C ends the process between two operations of a move, which its states outlive:
//! `status` shows where it is, and `apply` goes on. Progress goes to standard error.

use super::homes::Opener;
use super::input::{EXIT_AMISS, Lookup, file_text, name, schema};
use super::progress_lines::ProgressLines;
use crate::Failure;
use crate::arguments::shard_move_arguments::{
    ApplyArguments, PlanArguments, PlanCommand, RepairArguments, RowsArguments, StatusArguments,
    UndoArguments, VerifyArguments,
};
use crate::output::error_line::print_error;
use settings_file::FILE_SIZE_BYTES_MAX;
use shard_backend::{DigestKey, Schema};
use shard_command::{MoveOperation, MoveOutcome, MoveRun, PlanDocument, PlanRequest, Sinks};
use shard_map::Shard;
use shard_mover::{MoveId, Mover, MoverSettings, NamedDigestKey, PlanSettings, Rules, Shards};
use shard_store::CatalogHome;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// Exit code of a run that was stopped: what shells have for Ctrl-C.
const EXIT_INTERRUPTED: u8 = 130;
/// Bytes of a plan, at most.
const PLAN_SIZE_BYTES_MAX: usize = 64 << 20;

/// What a command works on.
struct Opened {
    run: MoveRun,
    schema: Arc<Schema>,
}

pub(super) async fn plan(command: &PlanCommand, environment: Lookup<'_>) -> Result<ExitCode, Failure> {
    let (request, arguments) = request_of(command)?;
    let opened = open(&arguments.rows, request.new_shard(), false, environment).await?;
    let settings = PlanSettings {
        is_offline_allowed: arguments.offline,
        tolerance_percent: arguments.tolerance.into(),
        crosses_tags: arguments.cross_tags,
        ..PlanSettings::default()
    };
    let outcome = run(&opened, &MoveOperation::Plan(request, settings)).await?;
    let Some(outcome) = outcome else { return Ok(ExitCode::from(EXIT_INTERRUPTED)) };
    if let (Some(path), MoveOutcome::Planned(planned)) = (&arguments.out, &outcome) {
        let failed = |error: std::io::Error| Failure::of_words(format!("{}: {error}", path.display()));
        std::fs::write(path, planned.document.to_json() + "\n").map_err(failed)?;
    }
    Ok(show(&outcome, arguments.rows.home.json))
}

pub(super) async fn apply(of: &ApplyArguments, environment: Lookup<'_>) -> Result<ExitCode, Failure> {
    let document = |path: &std::path::PathBuf| {
        let mistaken = |error| Failure::of_words(format!("{}: {error}", path.display()));
        PlanDocument::parse(&file_text(path, PLAN_SIZE_BYTES_MAX)?).map_err(mistaken)
    };
    let plan = of.plan.as_ref().map(document).transpose()?;
    let further = plan.as_ref().and_then(|plan| plan.request().new_shard());
    let opened = open(&of.rows, further, of.dry_run, environment).await?;
    let (plan, delete_sources) = (plan.clone().map(Box::new), of.delete_sources);
    finish(&opened, &of.rows, MoveOperation::Apply { plan, delete_sources }).await
}

pub(super) async fn undo(of: &UndoArguments, environment: Lookup<'_>) -> Result<ExitCode, Failure> {
    let ids = ids(&of.moves)?;
    let opened = open(&of.rows, None, of.dry_run, environment).await?;
    finish(&opened, &of.rows, MoveOperation::Undo(ids)).await
}

pub(super) async fn status(of: &StatusArguments, environment: Lookup<'_>) -> Result<ExitCode, Failure> {
    let (ids, opener) = (ids(&of.moves)?, Opener::new(environment));
    let outcome = shard_command::status(opener.records(&of.home)?, opener.outside(), &ids).await;
    Ok(show(&outcome.map_err(|error| Failure::of_work(&error))?, of.home.json))
}

pub(super) async fn verify(of: &VerifyArguments, environment: Lookup<'_>) -> Result<ExitCode, Failure> {
    let opened = open(&of.rows, None, false, environment).await?;
    finish(&opened, &of.rows, MoveOperation::Verify(rules(of, &opened)?)).await
}

pub(super) async fn repair(of: &RepairArguments, environment: Lookup<'_>) -> Result<ExitCode, Failure> {
    let opened = open(&of.verify.rows, None, of.dry_run, environment).await?;
    finish(&opened, &of.verify.rows, MoveOperation::Repair(rules(&of.verify, &opened)?)).await
}

fn request_of(command: &PlanCommand) -> Result<(PlanRequest, &PlanArguments), Failure> {
    Ok(match command {
        PlanCommand::Rebalance(plan) => (PlanRequest::Rebalance, plan),
        PlanCommand::Drain(of) => (PlanRequest::Drain { shard: name(&of.shard)? }, &of.plan),
        PlanCommand::Move(of) => {
            let (map, to) = (name(&of.map)?, name(&of.shard)?);
            (PlanRequest::Move { map, key: of.key.clone(), to, alone: of.alone }, &of.plan)
        }
        PlanCommand::Split(of) => {
            let (map, to) = (name(&of.map)?, of.to.as_deref().map(name).transpose()?);
            (PlanRequest::Split { map, key: of.key.clone(), to }, &of.plan)
        }
        PlanCommand::Add(of) => {
            let mut shard = Shard::new(name(&of.shard)?, of.location.as_str());
            for tag in &of.tag {
                let (key, value) = tag
                    .split_once('=')
                    .ok_or_else(|| Failure::of_words("--tag: write NAME=VALUE".to_owned()))?;
                shard.tags.insert(name(key)?, value.to_owned());
            }
            (PlanRequest::Add { shard }, &of.plan)
        }
    })
}

fn ids(texts: &[String]) -> Result<Vec<MoveId>, Failure> {
    let read = |text: &String| {
        let wrong = || Failure::of_words(format!("{text:?} is no id of a move: 32 hexadecimal digits"));
        MoveId::parse(text).ok_or_else(wrong)
    };
    texts.iter().map(read).collect()
}

fn rules(of: &VerifyArguments, opened: &Opened) -> Result<Rules, Failure> {
    let Some(path) = &of.rules else { return Ok(Rules::of_placement(&opened.schema)) };
    let mistaken = |error| Failure::of_words(format!("{}: {error}", path.display()));
    Rules::parse(&file_text(path, FILE_SIZE_BYTES_MAX)?, &opened.schema).map_err(mistaken)
}

/// Opens the home and all shards, and one that the home does not have yet.
async fn open(
    rows: &RowsArguments,
    further: Option<&Shard>,
    is_dry: bool,
    environment: Lookup<'_>,
) -> Result<Opened, Failure> {
    let schema = Arc::new(schema(&rows.schema)?);
    let opener = Opener::new(environment);
    let (records, (clock, random)) = (opener.records(&rows.home)?, opener.outside());
    let home = CatalogHome::new(records.clone(), clock.clone(), random.clone());
    let catalog = home.load().await.map_err(|error| Failure::of_work(&error))?;
    let further = further.filter(|shard| catalog.shard(shard.name.as_str()).is_none());
    let accounts = opener.accounts(rows.connections.as_deref())?;
    let (locals, backends) = opener.backends(catalog.shards().chain(further), &schema, &accounts)?;
    // A key of a digest is drawn anew each time, and is its own name in the certificate.
    let bytes = (u128::from(random.next_u64()) << 64 | u128::from(random.next_u64())).to_be_bytes();
    let id = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let settings = MoverSettings::new(NamedDigestKey { id, key: DigestKey::new(bytes) });
    let shards = Shards { locals, backends };
    let mover = Mover::new(records, shards, schema.clone(), settings, (clock, random));
    let (map, fingerprint) = (schema.map().clone(), schema.fingerprint().to_string());
    Ok(Opened { run: MoveRun { mover, map, schema: fingerprint, is_dry }, schema })
}

async fn finish(
    opened: &Opened,
    rows: &RowsArguments,
    operation: MoveOperation,
) -> Result<ExitCode, Failure> {
    Ok(match run(opened, &operation).await? {
        Some(outcome) => show(&outcome, rows.home.json),
        None => ExitCode::from(EXIT_INTERRUPTED),
    })
}

/// Runs until the end, or until a signal; none after a signal.
async fn run(opened: &Opened, operation: &MoveOperation) -> Result<Option<MoveOutcome>, Failure> {
    let lines = Arc::new(ProgressLines::new());
    let (of_moves, of_checks) = (lines.clone(), lines.clone());
    let moves = move |of: shard_mover::Progress| of_moves.of_move(&of);
    let checks = move |of: shard_mover::CheckProgress| of_checks.of_check(&of);
    let sinks = Sinks { moves: &moves, checks: &checks };
    let mut ended = signal(SignalKind::terminate()).map_err(|error| Failure::of_work(&error))?;
    let outcome = tokio::select! {
        outcome = operation.run(&opened.run, sinks) => Some(outcome),
        _ = tokio::signal::ctrl_c() => None,
        _ = ended.recv() => None,
    };
    lines.clear();
    match outcome {
        Some(outcome) => outcome.map(Some).map_err(|error| Failure::of_work(&error)),
        None => {
            print_error("stopped; larimar shard status shows where moves are, and apply goes on with them");
            Ok(None)
        }
    }
}

fn show(outcome: &MoveOutcome, json: bool) -> ExitCode {
    let text = if json { outcome.json().to_string() + "\n" } else { outcome.text() };
    // A closed standard output changes nothing about the exit code.
    let _ = std::io::stdout().write_all(text.as_bytes());
    if outcome.is_amiss() { ExitCode::from(EXIT_AMISS) } else { ExitCode::SUCCESS }
}
