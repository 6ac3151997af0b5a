//! `larimar repair DIR`: makes a damaged folder whole again as far as can be, and says what is lost for that.
//!
//! The plan is made by carrying the repair out on a disk in memory over the folder; with `--apply` it is
//! carried out again, on the folder. What always holds: without `--apply` nothing is changed; nothing is
//! changed before the plan and copies of what may be replaced are durable in the folder (`run_folder.rs`);
//! what a run that was broken off may have lost, the next one tells again. The exit code is 0 if there is
//! nothing to do or all is done and whole, 3 if there is something to do, 1 if that could not be found out or
//! not be done.

mod deleted_again;
mod error;
mod plan;
mod run_folder;
#[cfg(test)]
mod tests;

pub(crate) use error::RepairError;
pub(crate) use plan::Plan;

use crate::Failure;
use crate::arguments::RepairArguments;
use crate::data_folder;
use crate::lasting_runtime::run_to_the_end;
use crate::output::progress::Progress;
use crate::places::ContainerNames;
use crate::places::container_names::container_names;
use base::overlay_disk::OverlayDisk;
use base::system::SystemDisk;
use base::{BoxFuture, Disk, Environment};
use blob::RemoveLostBlobs;
use deleted_again::delete_again;
use partition::{
    FolderCheck, FolderRepair, LossOutcome, LostKeys, ObjectTable, PartitionError, PartitionSettings,
    Partitions, RowLoss, check_folder, repair_folder,
};
use queue::{SettledMessage, recount_messages};
use run_folder::{RunFolder, close_unfinished, files_to_keep, rows_size, unfinished_runs};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use stream::{StreamSettings, Streams, check_streams};
use tokio::runtime::Builder;

/// Exit code for a folder that a repair would change.
const EXIT_TO_BE_REPAIRED: u8 = 3;
/// Exit code for a repair that has not made the folder whole, or has not done what was planned.
const EXIT_NOT_REPAIRED: u8 = 1;
/// What a plan says that counts messages.
const MESSAGES_COUNTED: &str = "the messages of all queues are counted anew";
/// What a plan says that deletes containers whose deletion was in what is lost.
const CONTAINERS_DELETED: &str = "tables, queues and containers whose deletion was lost are deleted again";
/// Bytes that must be free besides those that are counted: for plans and names.
const MARGIN_SIZE_BYTES: u64 = 1 << 20;

/// What repairs a folder; tests have others.
type Core = for<'a> fn(
    &'a Environment,
    &'a mut (dyn FnMut(&str) + Send),
) -> BoxFuture<'a, Result<FolderRepair, PartitionError>>;

/// A folder and how it is repaired.
struct Repair<'a> {
    env: &'a Environment,
    /// As it is called.
    folder: String,
    core: Core,
}

/// What a repair would do.
struct Planned {
    plan: Plan,
    repair: FolderRepair,
    /// Files that it may replace or remove, with their sizes.
    files: Vec<(String, u64)>,
}

/// How a run ended.
struct Ended {
    plan: Plan,
    /// What is to be said.
    text: String,
    exit_code: u8,
}

/// Repairs the folder; a stamp has no repair.
pub(crate) fn run(arguments: &RepairArguments) -> Result<ExitCode, Failure> {
    match &arguments.folder {
        Some(folder) if arguments.names_no_stamp() => {
            repair(folder, arguments).map_err(|error| Failure::of_work(&error))
        }
        _ => Err(Failure::of_words(
            "repair is for data folders: a stamp's bytes are mended in its object store, and larimar check \
             --stamp names the objects"
                .to_owned(),
        )),
    }
}

/// Plans the repair, and carries it out with `--apply`.
fn repair(path: &Path, arguments: &RepairArguments) -> Result<ExitCode, RepairError> {
    let mut held = data_folder::hold_for_reading(path)?;
    let mut progress = Progress::with_plain_lines(arguments.quiet);
    let outcome = run_to_the_end(Builder::new_current_thread(), async {
        let env = &base::system::environment_on(Arc::new(SystemDisk::new(path)));
        let refused = |error| RepairError::Refused { path: path.to_owned(), error };
        Streams::check_folder(env).await.map_err(refused)?;
        let repair = Repair { env, folder: path.display().to_string(), core: repair_all };
        let planned = repair.plan(&mut progress).await?;
        write_json(arguments.json.as_deref(), &planned.plan)?;
        if !arguments.apply || planned.plan.is_empty() {
            return Ok(planned.without_change());
        }
        progress.clear();
        print(&planned.plan.text(false));
        if held.is_none() {
            // Nobody has ever served it since it has a lock.
            held = Some(data_folder::lock(path)?);
        }
        repair.apply(planned, &mut progress).await
    });
    progress.clear();
    let ended = outcome.map_err(RepairError::Runtime)??;
    drop(held);
    write_json(arguments.json.as_deref(), &ended.plan)?;
    print(&ended.text);
    Ok(ExitCode::from(ended.exit_code))
}

/// Repairs what the layers keep, then deletes containers that are known to have been deleted, and counts
/// messages.
fn repair_all<'a>(
    env: &'a Environment,
    progress: &'a mut (dyn FnMut(&str) + Send),
) -> BoxFuture<'a, Result<FolderRepair, PartitionError>> {
    Box::pin(async move {
        let remove_lost = RemoveLostBlobs { clock: env.clock.clone() };
        let mut done = repair_folder(env, &remove_lost, progress).await?;
        let has_lost = |table| done.losses.iter().any(|loss: &RowLoss| loss.table == table);
        // An earlier run may have been broken off before it came to this.
        let counts = has_lost(ObjectTable::Message) || has_planned(&*env.disk, MESSAGES_COUNTED).await;
        let deletes = has_lost(ObjectTable::Container) || has_planned(&*env.disk, CONTAINERS_DELETED).await;
        if counts || deletes {
            progress("looking at containers and messages");
            let settings = StreamSettings { scrub_bytes_per_second: 0, ..StreamSettings::default() };
            let streams = Streams::open(env, settings).await?;
            let partitions = Partitions::open(env, streams.clone(), PartitionSettings::default()).await?;
            let ended = async {
                let deleted = if deletes { delete_again(&partitions).await? } else { Vec::new() };
                let recounted = if counts { Some(recount_messages(&partitions).await?) } else { None };
                Ok((deleted, recounted))
            };
            let ended: Result<_, PartitionError> = ended.await;
            partitions.close().await;
            streams.close().await;
            let (deleted, recounted) = ended?;
            if !deleted.is_empty() {
                done.actions.push(CONTAINERS_DELETED.to_owned());
                done.replaced_rows.extend(deleted.into_iter().map(|row| (ObjectTable::Container, row)));
            }
            if let Some(recounted) = recounted {
                put_settled(&mut done, recounted.settled);
                done.actions.push(MESSAGES_COUNTED.to_owned());
            }
        }
        Ok(done)
    })
}

/// Whether a run that was not ended was to do this: an earlier one, or this one, which has planned the same.
/// That a plan does not read is reported elsewhere.
async fn has_planned(disk: &dyn Disk, wanted: &str) -> bool {
    let runs = unfinished_runs(disk).await.unwrap_or_default();
    runs.iter().any(|run| run.plan.actions.iter().any(|action| action == wanted))
}

/// Tells which messages had several rows.
fn put_settled(done: &mut FolderRepair, settled: Vec<SettledMessage>) {
    if settled.is_empty() {
        return;
    }
    done.actions.push("messages that were there twice are there once".to_owned());
    let of_messages = done.losses.iter().filter(|loss| loss.table == ObjectTable::Message);
    let told: BTreeSet<&[u8]> = of_messages
        .filter_map(|loss| match &loss.keys {
            LostKeys::Row(key) => Some(&key[..]),
            LostKeys::PartitionName(_) | LostKeys::Unknown(_) => None,
        })
        .collect();
    // All rows of a message have the same name.
    let is_told = |settled: &SettledMessage| {
        let removed = settled.removed.iter().map(|row| &row.key);
        removed.chain([&settled.kept]).any(|key| told.contains(&key.as_bytes()[..]))
    };
    let removed = settled.iter().flat_map(|settled| &settled.removed);
    let removed: Vec<_> = removed.map(|row| (ObjectTable::Message, row.clone())).collect();
    let untold = settled.into_iter().filter(|settled| !is_told(settled));
    let losses: Vec<RowLoss> = untold
        .map(|settled| RowLoss {
            table: ObjectTable::Message,
            keys: LostKeys::Row(settled.kept.as_bytes().clone()),
            outcome: LossOutcome::Uncertain,
            reason: "it was there twice: that it had been moved from one of the places is lost".to_owned(),
        })
        .collect();
    done.losses.extend(losses);
    done.replaced_rows.extend(removed);
}

/// A closed standard output changes nothing about what is done.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn write_json(path: Option<&Path>, plan: &Plan) -> Result<(), RepairError> {
    let Some(path) = path else { return Ok(()) };
    std::fs::write(path, plan.to_json()).map_err(|error| RepairError::Json { path: path.to_owned(), error })
}

/// What a repair of the folder of `env` would do, in words; for who only looks, and has found these places
/// damaged.
pub(crate) async fn plan_for(
    env: &Environment,
    folder: String,
    damaged: Vec<String>,
    progress: &mut Progress,
) -> Result<(Plan, ContainerNames), RepairError> {
    let repair = Repair { env, folder, core: repair_all };
    let (plan, _, names) = repair.try_out(damaged, progress).await?;
    Ok((plan, names))
}

/// The same on a disk in memory over it.
fn overlay(env: &Environment) -> Environment {
    Environment { disk: Arc::new(OverlayDisk::new(env.disk.clone())), ..env.clone() }
}

/// Whether nothing was done and nothing is lost that was not planned. It may be less: rows of deleted
/// containers go meanwhile.
fn is_within(done: &FolderRepair, planned: &FolderRepair) -> bool {
    done.actions.iter().all(|action| planned.actions.contains(action))
        && done.losses.iter().all(|loss| planned.losses.contains(loss))
}

fn places_of(found: &FolderCheck) -> Vec<String> {
    found.damages.iter().map(|damage| format!("{}: {}", damage.place, damage.problem)).collect()
}

impl Repair<'_> {
    /// Finds out what is to be done, by doing it in memory.
    async fn plan(&self, progress: &mut Progress) -> Result<Planned, RepairError> {
        let disk = &*self.env.disk;
        let overlay = overlay(self.env);
        let found = check_streams(&overlay, &mut |read, all| progress.bar(read, all)).await?;
        if found.is_fresh {
            let plan = Plan { folder: self.folder.clone(), ..Plan::default() };
            return Ok(Planned { plan, repair: FolderRepair::default(), files: Vec::new() });
        }
        let files = files_to_keep(disk, &found.damages).await?;
        let damaged = found.damages.into_iter().map(|damage| damage.place).collect();
        let (mut plan, repair, _) = self.try_out(damaged, progress).await?;
        let kept_bytes: u64 =
            files.iter().map(|(_, size)| size).sum::<u64>() + rows_size(&repair.replaced_rows);
        plan.needed_bytes = plan.needed_bytes.saturating_add(kept_bytes).saturating_add(MARGIN_SIZE_BYTES);
        for run in unfinished_runs(disk).await? {
            plan.add_unfinished(&run.path, &run.plan.losses);
        }
        Ok(Planned { plan, repair, files })
    }

    /// Repairs the folder in memory, and checks what comes of it.
    async fn try_out(
        &self,
        damaged: Vec<String>,
        progress: &mut Progress,
    ) -> Result<(Plan, FolderRepair, ContainerNames), RepairError> {
        let overlay = overlay(self.env);
        let repair = (self.core)(&overlay, &mut |text| progress.line(text)).await?;
        let names = container_names(&overlay).await;
        let after = check_folder(&overlay, &mut |read, all| progress.bar(read, all)).await?;
        let folder = self.folder.clone();
        let mut plan = Plan { folder, needed_bytes: repair.needed_bytes, ..Plan::default() };
        plan.put(&repair, &names);
        plan.still_damaged = places_of(&after);
        if plan.actions.is_empty() && plan.still_damaged.is_empty() {
            // Opening the folder has mended it.
            let mended =
                damaged.into_iter().map(|place| format!("{place}: it is made anew, as a start does it"));
            plan.actions = mended.collect();
        }
        Ok((plan, repair, names))
    }

    /// Carries out what was planned.
    async fn apply(&self, planned: Planned, progress: &mut Progress) -> Result<Ended, RepairError> {
        let (env, disk) = (self.env, &*self.env.disk);
        let Planned { plan: intended, repair: expected, files } = planned;
        let free_bytes =
            disk.free_bytes().await.map_err(|error| RepairError::Run { path: ".".to_owned(), error })?;
        if free_bytes < intended.needed_bytes {
            return Err(RepairError::TooLittleSpace { needed_bytes: intended.needed_bytes, free_bytes });
        }
        let run = RunFolder::make(disk, env.clock.now()).await?;
        run.keep(disk, &files, &mut |text| progress.line(text)).await?;
        run.keep_rows(disk, &expected.replaced_rows).await?;
        run.write_plan(disk, "plan", &intended).await?;
        let broken_off =
            |error| RepairError::BrokenOff { run: format!("{}/{}", self.folder, run.path()), error };
        let done = (self.core)(env, &mut |text| progress.line(text)).await.map_err(broken_off)?;
        let names = container_names(env).await;
        let after = check_folder(env, &mut |read, all| progress.bar(read, all)).await.map_err(broken_off)?;
        let mut plan = Plan { is_applied: true, is_finished: true, ..intended.clone() };
        plan.put(&done, &names);
        plan.still_damaged = places_of(&after);
        if plan.actions.is_empty() {
            plan.actions.clone_from(&intended.actions);
        }
        // A loss that was printed stays listed, also if it turned out otherwise.
        plan.add_losses(intended.losses.iter().cloned());
        run.write_plan(disk, "result", &plan).await?;
        run.finish(disk).await?;
        for unfinished in &intended.unfinished_runs {
            close_unfinished(disk, unfinished).await?;
        }
        let agrees = is_within(&done, &expected);
        let is_whole = after.damages.is_empty();
        let folder = &self.folder;
        // What was planned was printed already.
        let mut text = match agrees && is_whole {
            true => format!("{folder}: done as planned\n"),
            false => plan.text(false),
        };
        text += &format!(
            "{folder}: the plan, what was done, and copies of what was replaced are in {folder}/{}\n",
            run.path()
        );
        if !agrees {
            text += &format!(
                "{folder}: more was done or lost than was planned: compare plan.txt and result.txt\n"
            );
        }
        text += &match is_whole {
            true => format!("{folder}: repaired; no damage is left\n"),
            false => format!("{folder}: still damaged\n"),
        };
        let exit_code = if agrees && is_whole { 0 } else { EXIT_NOT_REPAIRED };
        Ok(Ended { plan, text, exit_code })
    }
}

impl Planned {
    /// What is said where nothing was changed.
    fn without_change(self) -> Ended {
        let plan = self.plan;
        let folder = &plan.folder;
        let (verdict, exit_code) = match (plan.is_empty(), plan.still_damaged.is_empty()) {
            (true, true) => (format!("{folder}: no damage; nothing was changed\n"), 0),
            (true, false) => (format!("{folder}: nothing was changed\n"), EXIT_TO_BE_REPAIRED),
            (false, _) => (
                format!("{folder}: nothing was changed; run again with --apply to do it\n"),
                EXIT_TO_BE_REPAIRED,
            ),
        };
        Ended { text: plan.text(false) + &verdict, exit_code, plan }
    }
}
