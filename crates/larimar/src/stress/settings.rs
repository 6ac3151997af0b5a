//! What the arguments of `larimar stress` mean, checked: each mistake is one line that says what to give.

use crate::arguments::stress_arguments::{StressArguments, StressedService};
use ::stress::{Distribution, KeyPlan, LOADED_MAX, Load, Mix, Plan, ZIPF_EXPONENT, parse_mix_file};
use base::nearest::nearest;
use base::system::raise_open_files_max;
use retry::{PROFILES, Policy};
use settings_file::{FILE_SIZE_BYTES_MAX, SettingsFileError, meant};
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use storage_client::{AccountAddress, ConnectionStringError, Service, Settings, TlsRoots};

/// Clients at most.
const CLIENTS_MAX: u64 = 10_000;
/// Threads at most.
const THREADS_MAX: u64 = 256;
/// A day.
const SECONDS_MAX: u64 = 86_400;
const RATE_MAX: f64 = 1e6;
const PARTITIONS_MAX: u64 = 10_000;
/// How long an operation is retried.
const RETRIED_FOR: Duration = Duration::from_secs(300);
/// Open files beside the clients' connections.
const OPEN_FILES: u64 = 64;

/// Why there is no run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StressSettingError {
    #[error("--endpoint: {0}")]
    Connection(#[from] ConnectionStringError),
    #[error("--endpoint: it has no {service} endpoint", service = .0.label())]
    NoEndpoint(Service),
    #[error("{flag} {}: {error}", path.display())]
    Output { flag: &'static str, path: PathBuf, error: io::Error },
    #[error("--mix {given}: there is no such mix of a {} ({}) and no file of this name{meant}", service.label(), names.join(", "))]
    NoMix { given: String, service: Service, names: Vec<&'static str>, meant: String },
    #[error("--mix {}: {error}", path.display())]
    MixUnread { path: PathBuf, error: io::Error },
    #[error("--mix {}: {error}", path.display())]
    MixFile { path: PathBuf, error: SettingsFileError },
    #[error("--ca {}: {error}", path.display())]
    Certificates { path: PathBuf, error: io::Error },
    #[error("{flag}: give a number from {from} to {to}")]
    OutOfRange { flag: &'static str, from: String, to: String },
    #[error("{flag} has no meaning for a {}", service.label())]
    NotOfService { flag: &'static str, service: Service },
    #[error("--keys {0}: give uniform, zipf, zipf:EXPONENT up to 10, append or prepend")]
    Keys(String),
    #[error("--size: {0}")]
    Size(String),
    #[error("--partitions: {partitions} partitions can't hold {rows} rows: give --key-count more")]
    FewRows { partitions: u64, rows: u64 },
    #[error("--retry {given}: there is no such policy ({}){meant}", PROFILES.map(|(name, _)| name).join(", "))]
    Retry { given: String, meant: String },
    #[error(
        "--clients: {clients} need more open files than the system allows this process ({allowed}): see ulimit -n"
    )]
    OpenFiles { clients: u64, allowed: u64 },
}

/// The run that the arguments ask for.
pub(super) fn plan_of(arguments: &StressArguments) -> Result<Plan, StressSettingError> {
    let service = match arguments.place.service {
        StressedService::Table => Service::Table,
        StressedService::Queue => Service::Queue,
        StressedService::Blob => Service::Blob,
    };
    let address = AccountAddress::parse(&arguments.place.endpoint)?;
    if address.endpoint_url(service).is_none() {
        return Err(StressSettingError::NoEndpoint(service));
    }
    let (retry_name, retry) = retry_of(arguments.load.retry.as_deref())?;
    let load = &arguments.load;
    let clients = within("--clients", load.clients, 1..=CLIENTS_MAX)?;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let threads = within("--threads", load.threads.unwrap_or(cores.min(THREADS_MAX)), 1..=THREADS_MAX)?;
    let allowed = raise_open_files_max();
    if clients + OPEN_FILES > allowed {
        return Err(StressSettingError::OpenFiles { clients, allowed });
    }
    let ceiling = load.ceiling.map(|seconds| within("--ceiling", seconds, 1..=SECONDS_MAX)).transpose()?;
    let warm_up = within("--warm-up", load.warm_up, 0..=SECONDS_MAX)?;
    Ok(Plan {
        service,
        address,
        settings: Settings {
            retry,
            tls_roots: tls_roots(arguments.place.ca.as_deref())?,
            ..Settings::default()
        },
        retry_name,
        mix: mix_of(arguments, service)?,
        keys: keys_of(arguments, service)?,
        load: load_of(arguments)?,
        ceiling_for: ceiling.map(Duration::from_secs),
        warm_up_for: Duration::from_secs(warm_up),
        clients,
        workers: threads.min(clients),
        seed: arguments.work.seed,
    })
}

fn within(flag: &'static str, number: u64, range: RangeInclusive<u64>) -> Result<u64, StressSettingError> {
    let (from, to) = (range.start().to_string(), range.end().to_string());
    if range.contains(&number) { Ok(number) } else { Err(StressSettingError::OutOfRange { flag, from, to }) }
}

fn retry_of(given: Option<&str>) -> Result<(String, Policy), StressSettingError> {
    let Some(given) = given else {
        return Ok(("dotnet, for repeatable operations".to_owned(), Settings::default().retry));
    };
    match Policy::named(given) {
        Some(policy) => Ok((given.to_owned(), policy.within(RETRIED_FOR))),
        None => {
            let meant = meant(given, PROFILES.map(|(name, _)| name));
            Err(StressSettingError::Retry { given: given.to_owned(), meant })
        }
    }
}

fn tls_roots(path: Option<&Path>) -> Result<TlsRoots, StressSettingError> {
    let Some(path) = path else { return Ok(TlsRoots::System) };
    let pem = read_bounded(path);
    let pem = pem.map_err(|error| StressSettingError::Certificates { path: path.to_owned(), error })?;
    Ok(TlsRoots::Pem(pem.into_bytes()))
}

/// Reads no more than tells that the file is too large.
fn read_bounded(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(FILE_SIZE_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

fn mix_of(arguments: &StressArguments, service: Service) -> Result<Mix, StressSettingError> {
    let given = &arguments.work.mix;
    let mut mix = match Mix::named(service, given) {
        Some(mix) => mix,
        None => mix_file(service, given)?,
    };
    if !arguments.work.size.is_empty() {
        mix.sizes.item_size_bytes.clone_from(&arguments.work.size);
    }
    mix.check(service).map_err(StressSettingError::Size)?;
    Ok(mix)
}

fn mix_file(service: Service, given: &str) -> Result<Mix, StressSettingError> {
    let path = PathBuf::from(given);
    let text = read_bounded(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let names = Mix::names(service);
            let near = nearest(given, names.iter().copied());
            let meant = near.map_or_else(String::new, |name| format!("; did you mean {name}?"));
            StressSettingError::NoMix { given: given.to_owned(), service, names, meant }
        }
        _ => StressSettingError::MixUnread { path: path.clone(), error },
    })?;
    parse_mix_file(service, given, &text).map_err(|error| StressSettingError::MixFile { path, error })
}

fn keys_of(arguments: &StressArguments, service: Service) -> Result<KeyPlan, StressSettingError> {
    let work = &arguments.work;
    let loaded = work.key_count.unwrap_or(match service {
        Service::Table => 10_000,
        Service::Queue => 1_000,
        Service::Blob => 100,
    });
    let loaded = within("--key-count", loaded, 1..=LOADED_MAX)?;
    let partitions = within("--partitions", work.partitions.unwrap_or(1), 1..=PARTITIONS_MAX)?;
    if work.partitions.is_some() && service != Service::Table {
        return Err(StressSettingError::NotOfService { flag: "--partitions", service });
    }
    if work.keys.is_some() && service == Service::Queue {
        return Err(StressSettingError::NotOfService { flag: "--keys", service });
    }
    if partitions > loaded {
        return Err(StressSettingError::FewRows { partitions, rows: loaded });
    }
    let distribution = distribution_of(work.keys.as_deref().unwrap_or("uniform"))?;
    Ok(KeyPlan { distribution, loaded, partitions })
}

/// Zipf's exponent at most: beyond it one key has all the load.
const EXPONENT_MAX: f64 = 10.0;

fn distribution_of(given: &str) -> Result<Distribution, StressSettingError> {
    let wrong = || StressSettingError::Keys(given.to_owned());
    match given.split_once(':') {
        None if given == "uniform" => Ok(Distribution::Uniform),
        None if given == "zipf" => Ok(Distribution::Zipf(ZIPF_EXPONENT)),
        None if given == "append" => Ok(Distribution::Append),
        None if given == "prepend" => Ok(Distribution::Prepend),
        Some(("zipf", exponent)) => {
            let exponent: f64 = exponent.parse().map_err(|_| wrong())?;
            let is_usable = (0.0..=EXPONENT_MAX).contains(&exponent);
            if is_usable { Ok(Distribution::Zipf(exponent)) } else { Err(wrong()) }
        }
        _ => Err(wrong()),
    }
}

fn load_of(arguments: &StressArguments) -> Result<Load, StressSettingError> {
    let load = &arguments.load;
    let seconds =
        |usual| within("--seconds", load.seconds.unwrap_or(usual), 1..=SECONDS_MAX).map(Duration::from_secs);
    let checked = |flag, rate: f64| {
        let wrong =
            StressSettingError::OutOfRange { flag, from: "0.01".to_owned(), to: RATE_MAX.to_string() };
        if (0.01..=RATE_MAX).contains(&rate) { Ok(rate) } else { Err(wrong) }
    };
    match (load.rate, load.until_rate) {
        (_, Some(rate)) => Ok(Load::Until { rate: checked("--until-rate", rate)?, step_for: seconds(5)? }),
        (Some(rate), None) => Ok(Load::Open { rate: checked("--rate", rate)?, counted_for: seconds(30)? }),
        (None, None) => Ok(Load::Closed { counted_for: seconds(30)? }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use crate::arguments::Chore;
    use clap::Parser;

    fn plan(typed: &[&str]) -> Result<Plan, String> {
        let words = ["larimar", "stress", "--endpoint", "UseDevelopmentStorage=true"];
        let arguments =
            Arguments::try_parse_from(words.iter().chain(typed)).map_err(|error| error.to_string())?;
        let Chore::Stress(arguments) = arguments.chore() else { panic!("another command") };
        plan_of(&arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_become_a_plan() {
        let usual = plan(&[]).expect("a plan");
        assert_eq!((usual.service, usual.mix.name.as_str(), usual.clients), (Service::Table, "mixed", 64));
        assert_eq!(
            usual.keys,
            KeyPlan { distribution: Distribution::Uniform, loaded: 10_000, partitions: 1 }
        );
        assert_eq!(usual.load, Load::Closed { counted_for: Duration::from_secs(30) });
        let typed = "--service blob --mix range --size 4KiB,1MiB --keys zipf:1.5 --key-count 7 --clients 3 \
            --threads 8 --rate 12.5 --seconds 4 --warm-up 0 --ceiling 2 --retry storage-1 --seed 9";
        let full = plan(&typed.split_whitespace().collect::<Vec<_>>()).expect("a plan");
        assert_eq!((full.service, full.mix.sizes.item_size_bytes), (Service::Blob, vec![4096, 1 << 20]));
        assert_eq!(full.keys, KeyPlan { distribution: Distribution::Zipf(1.5), loaded: 7, partitions: 1 });
        assert_eq!(full.load, Load::Open { rate: 12.5, counted_for: Duration::from_secs(4) });
        assert_eq!((full.clients, full.workers, full.seed), (3, 3, 9), "no thread is without a client");
        assert_eq!((full.retry_name.as_str(), full.ceiling_for), ("storage-1", Some(Duration::from_secs(2))));
        let until = plan(&["--until-rate", "100"]).expect("a plan");
        assert_eq!(until.load, Load::Until { rate: 100.0, step_for: Duration::from_secs(5) });
    }

    #[test]
    fn each_mistake_says_what_to_give() {
        for (typed, expected) in [
            (
                &["--mix", "gett"][..],
                "--mix gett: there is no such mix of a table (insert, update, get, batch, query, mixed) and no file of this name; did you mean get?",
            ),
            (&["--mix", "peek"], "--mix peek: there is no such mix of a table"),
            (&["--keys", "zipf:x"], "--keys zipf:x: give uniform"),
            (&["--keys", "zipf:11"], "--keys zipf:11: give uniform"),
            (&["--keys", "random"], "--keys random: give uniform"),
            (&["--service", "queue", "--keys", "append"], "--keys has no meaning for a queue"),
            (&["--service", "blob", "--partitions", "2"], "--partitions has no meaning for a blob"),
            (&["--partitions", "20", "--key-count", "10"], "--partitions: 20 partitions can't hold 10 rows"),
            (&["--key-count", "0"], "--key-count: give a number from 1 to 1000000"),
            (&["--clients", "0"], "--clients: give a number from 1 to 10000"),
            (&["--rate", "0"], "--rate: give a number from 0.01 to 1000000"),
            (&["--rate", "nan"], "--rate: give a number from 0.01 to 1000000"),
            (&["--seconds", "0"], "--seconds: give a number from 1 to 86400"),
            (&["--size", "1"], "--size: a size of 1 bytes is not possible; give 256 to 32768 for a table"),
            (
                &["--mix", "batch", "--size", "32KiB"],
                "--size: 100 entities of 32768 bytes are more than a batch can hold",
            ),
            (&["--retry", "storage-12"], "--retry storage-12: there is no such policy (none, storage-1, "),
            (&["--ca", "/no/such/file"], "--ca /no/such/file: No such file"),
        ] {
            let error = plan(typed).expect_err("a mistake");
            assert!(error.starts_with(expected), "{typed:?}\n found {error}\nwanted {expected}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn a_mix_may_come_from_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mine.toml");
        let path = path.to_str().expect("text");
        std::fs::write(path, "[operations]\nget = 3\nquery = 1\n").expect("a file");
        let mix = plan(&["--mix", path]).expect("a plan").mix;
        assert_eq!((mix.name.as_str(), mix.weights().len()), (path, 2));
        std::fs::write(path, "[operations]\ngett = 3\n").expect("a file");
        let error = plan(&["--mix", path]).expect_err("a mistake");
        assert!(
            error.ends_with("mine.toml: line 2: operations has no key \"gett\"; did you mean get?"),
            "{error}"
        );
    }
}
