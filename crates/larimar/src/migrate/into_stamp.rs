//! A folder becomes a stamp, or what was copied of it is dropped.

use crate::Failure;
use crate::arguments::migrate_arguments::MigrateArguments;
use crate::configuration::stamp::StampConfiguration;
use crate::data_folder;
use crate::migrate::shown::Shown;
use crate::migrate::{failure, print, stopped, summary};
use crate::stamp::served_settings::unlike_lease;
use crate::stamp::stores::{StampFailure, Stores};
use base::Environment;
use base::system::SystemDisk;
use serde_json::json;
use stamp_stores::OpenError;
use stamp_streams::{MigrationError, abandon_migration, is_founded, migrate_into_stamp};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use stream::FolderSource;

/// Copies the folder into the stamp.
pub(super) async fn migrate(
    folder: &Path,
    stamp: &StampConfiguration,
    arguments: &MigrateArguments,
) -> Result<ExitCode, Failure> {
    let _held = data_folder::hold_for_reading(folder).map_err(|error| Failure::of_work(&error))?;
    let env = base::system::environment_on(Arc::new(SystemDisk::new(folder)));
    let began_at = env.clock.monotonic();
    let of_folder = |error| Failure {
        line: format!("{}: {}", folder.display(), MigrationError::Folder(error)),
        exit_code: crate::EXIT_FAILED,
    };
    let source = FolderSource::open(&env).await.map_err(of_folder)?;
    let stores = open(stamp, &env).await?;
    check_lease(&stores).await?;
    check_first_start(&stores).await?;
    let shown = Shown::new(arguments.quiet);
    let show = |phase, done, all| shown.show(phase, done, all);
    let migrated = migrate_into_stamp(&stores.surroundings, &source, &show, stopped()).await;
    shown.clear();
    source.close().await;
    let migrated = migrated.map_err(|error| failure(&error))?;
    let took = env.clock.monotonic().saturating_sub(began_at);
    let (from, to) = (folder.display().to_string(), format!("stamp {}", stamp.name));
    print(&match arguments.json {
        true => summary::json(&migrated, took),
        false => summary::text(&from, &to, &migrated, took),
    });
    Ok(ExitCode::SUCCESS)
}

/// Drops what was copied.
pub(super) async fn abandon(stamp: &StampConfiguration, is_json: bool) -> Result<ExitCode, Failure> {
    let env = base::system::environment_on(Arc::new(base::memory_disk::MemoryDisk::new()));
    let stores = open(stamp, &env).await?;
    check_lease(&stores).await?;
    let extents = abandon_migration(&stores.surroundings).await.map_err(|error| failure(&error))?;
    print(&match is_json {
        true => format!("{:#}\n", json!({ "extents": extents })),
        false => format!(
            "{extents} extents are dropped: stamp {} is empty, and the process that serves it sweeps their bytes\n",
            stamp.name
        ),
    });
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn open(stamp: &StampConfiguration, env: &Environment) -> Result<Stores, Failure> {
    Stores::open(stamp, env).await.map_err(|error| match error {
        StampFailure::Open(OpenError::Unavailable { .. }) => Failure::of_work(&error),
        // What was typed can't be.
        _ => Failure::of_settings(&error),
    })
}

/// By another lease than the stamp's it would count the silence of its owner too early.
pub(super) async fn check_lease(stores: &Stores) -> Result<(), Failure> {
    match unlike_lease(&stores.surroundings).await.map_err(|error| Failure::of_work(&error))? {
        None => Ok(()),
        Some(line) => Err(Failure { line, exit_code: crate::EXIT_FAILED }),
    }
}

/// A store that can't carry a stamp is refused before one is made.
async fn check_first_start(stores: &Stores) -> Result<(), Failure> {
    if is_founded(&stores.surroundings).await.map_err(|error| Failure::of_work(&error))? {
        return Ok(());
    }
    let warnings = stores.objects.check_first_start().await.map_err(|error| Failure::of_work(&error))?;
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    Ok(())
}
