//! A stamp that nobody serves becomes a folder.

use crate::Failure;
use crate::arguments::migrate_arguments::MigrateArguments;
use crate::configuration::stamp::StampConfiguration;
use crate::data_folder;
use crate::migrate::into_stamp::{check_lease, open};
use crate::migrate::shown::Shown;
use crate::migrate::{failure, print, stopped, summary};
use crate::stamp_commands::check_parts::Look;
use crate::stamp_commands::holes::{find_holes, judge};
use crate::stamp_commands::opened::failed;
use base::system::SystemDisk;
use stamp_streams::{StampSnapshot, Surroundings, list_extent_objects, migrate_into_folder};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use stream::StreamSettings;

/// Copies the stamp into the folder.
pub(super) async fn migrate(
    folder: &Path,
    stamp: &StampConfiguration,
    arguments: &MigrateArguments,
) -> Result<ExitCode, Failure> {
    // Before the folder: a stamp that can't be read leaves none behind.
    let nowhere = base::system::environment_on(Arc::new(base::memory_disk::MemoryDisk::new()));
    let stores = open(stamp, &nowhere).await?;
    check_lease(&stores).await?;
    refuse_holes(&stores.surroundings).await?;
    data_folder::create(folder).map_err(|error| Failure::of_work(&error))?;
    let _held = data_folder::lock(folder).map_err(|error| Failure::of_work(&error))?;
    let env = base::system::environment_on(Arc::new(SystemDisk::new(folder)));
    let began_at = env.clock.monotonic();
    // As a fresh folder there would have them.
    let disk_bytes = env.disk.total_bytes().await.unwrap_or(u64::MAX / 2);
    let settings = StreamSettings::default().for_disk(disk_bytes);
    let shown = Shown::new(arguments.quiet);
    let show = |phase, done, all| shown.show(phase, done, all);
    let migrated = migrate_into_folder(&stores.surroundings, &env, settings, &show, stopped()).await;
    shown.clear();
    let migrated = migrated.map_err(|error| failure(&error))?;
    let took = env.clock.monotonic().saturating_sub(began_at);
    let (from, to) = (format!("stamp {}", stamp.name), folder.display().to_string());
    print(&match arguments.json {
        true => summary::json(&migrated, took),
        false => summary::text(&from, &to, &migrated, took),
    });
    Ok(ExitCode::SUCCESS)
}

/// An open extent ends where its chain of parts does. Where more lies behind than a writer can have left, a
/// part has gone, and what is acknowledged with it: the stamp must not be given up for such a copy.
async fn refuse_holes(surroundings: &Surroundings) -> Result<(), Failure> {
    let objects = list_extent_objects(surroundings).await.map_err(|error| Failure::of_work(&error))?;
    let Some(snapshot) = StampSnapshot::read(surroundings).await.map_err(|error| Failure::of_work(&error))?
    else {
        // Said by the migration.
        return Ok(());
    };
    let look = Look::read(surroundings, Some(snapshot)).await.map_err(|error| Failure::of_work(&error))?;
    let settings = &surroundings.settings;
    let holes = find_holes(&objects, &look.open(), settings.stamp);
    match judge(holes, settings.window.parts_max, &look).0.first() {
        Some(damage) => Err(failed(format!(
            "the stamp is damaged: {}: {}; larimar check tells what else is",
            damage.place, damage.problem
        ))),
        None => Ok(()),
    }
}
