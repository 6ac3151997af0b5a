//! What the arguments of `larimar table` mean, checked: each mistake is one line that says what to give.

use crate::Failure;
use crate::arguments::table_arguments::{
    Conflict, FileFormat, ReachArguments, SelectionArguments, TableArguments,
};
use retry::{PROFILES, Policy};
use settings_file::{FILE_SIZE_BYTES_MAX, meant};
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use storage_client::{AccountAddress, Service, Settings, TlsRoots};
use table_tools::{Format, OnConflict, Selection, TablePlace};

/// Workers at most.
const CONNECTIONS_MAX: u64 = 1000;
/// Workers of an import, which wait for disks, and of all else.
pub(super) const IMPORT_CONNECTIONS: u64 = 64;
pub(super) const CONNECTIONS: u64 = 8;
/// How long a request is retried.
const RETRIED_FOR: Duration = Duration::from_secs(300);

fn mistake(line: impl Into<String>) -> Failure {
    Failure::of_words(line.into())
}

/// The table that is named.
pub(super) fn place(of: &TableArguments) -> Result<TablePlace, Failure> {
    Ok(TablePlace {
        address: address("--endpoint", &of.reach.endpoint, Service::Table)?,
        settings: settings(&of.reach)?,
        table: of.table.clone(),
    })
}

/// Another table, of the same account unless another one is given.
pub(super) fn other_place(
    first: &TablePlace,
    connection: Option<&str>,
    table: &str,
) -> Result<TablePlace, Failure> {
    let address = connection.map(|text| address("--to", text, Service::Table)).transpose()?;
    let address = address.unwrap_or_else(|| first.address.clone());
    Ok(TablePlace { address, settings: first.settings.clone(), table: table.to_owned() })
}

/// The entities that are named.
pub(super) fn selection(of: &TableArguments, which: &SelectionArguments) -> Result<Selection, Failure> {
    Ok(Selection {
        place: place(of)?,
        filter: which.filter.clone(),
        partition: which.partition.clone(),
        connections: connections(of, CONNECTIONS)?,
    })
}

/// The account of a connection string, which has the service.
pub(super) fn address(flag: &str, connection: &str, service: Service) -> Result<AccountAddress, Failure> {
    let address = AccountAddress::parse(connection).map_err(|error| mistake(format!("{flag}: {error}")))?;
    match address.endpoint_url(service) {
        Some(_) => Ok(address),
        None => Err(mistake(format!("{flag}: it has no {} endpoint", service.label()))),
    }
}

/// Retries and certificates.
pub(super) fn settings(reach: &ReachArguments) -> Result<Settings, Failure> {
    let mut settings = Settings::default();
    if let Some(given) = &reach.retry {
        let names = PROFILES.map(|(name, _)| name);
        settings.retry = Policy::named(given)
            .ok_or_else(|| {
                let meant = meant(given, names);
                mistake(format!("--retry {given}: there is no such policy ({}){meant}", names.join(", ")))
            })?
            .within(RETRIED_FOR);
    }
    if let Some(path) = &reach.ca {
        let failed = |error| mistake(format!("--ca {}: {error}", path.display()));
        let mut pem = Vec::new();
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(FILE_SIZE_BYTES_MAX as u64 + 1).read_to_end(&mut pem).map_err(failed)?;
        settings.tls_roots = TlsRoots::Pem(pem);
    }
    Ok(settings)
}

/// How many workers.
pub(super) fn connections(of: &TableArguments, usual: u64) -> Result<usize, Failure> {
    within_connections(of.connections.unwrap_or(usual))
}

/// The same, of a number that is given.
pub(super) fn within_connections(given: u64) -> Result<usize, Failure> {
    match given {
        count if (1..=CONNECTIONS_MAX).contains(&count) => Ok(count as usize),
        _ => Err(mistake(format!("--connections: give a number from 1 to {CONNECTIONS_MAX}"))),
    }
}

/// A path as the tools take it.
pub(super) fn path(path: &Path) -> Result<String, Failure> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| mistake(format!("{}: the name is no text", path.display())))
}

/// The format that is given, or that the file's name says.
pub(super) fn format(given: Option<FileFormat>, file: &str) -> Result<Format, Failure> {
    match given {
        Some(FileFormat::Jsonl) => Ok(Format::JsonLines),
        Some(FileFormat::Csv) => Ok(Format::Csv),
        Some(FileFormat::Parquet) => Ok(Format::Parquet),
        None => Format::of_name(file).ok_or_else(|| {
            let names =
                "its name tells no format (.jsonl, .csv, .parquet); give --format jsonl, csv or parquet";
            mistake(format!("{file}: {names}"))
        }),
    }
}

/// What becomes of entities whose keys are there.
pub(super) fn on_conflict(given: Conflict) -> OnConflict {
    match given {
        Conflict::Fail => OnConflict::Fail,
        Conflict::Replace => OnConflict::Replace,
        Conflict::Merge => OnConflict::Merge,
        Conflict::Skip => OnConflict::Skip,
    }
}
