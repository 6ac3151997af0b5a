//! What the arguments of `larimar sas` mean: which account signs, what for, and on which terms. Nothing is
//! changed; the file with accounts is read.

use crate::arguments::sas_arguments::SasArguments;
use crate::configuration::accounts::{AccountsError, given_accounts};
use crate::sas::life::parse_instant;
use base::Ticks;
use base::clock::TICKS_PER_SECOND;
use front_end::accounts::{Account, Accounts, may_be_shown};
use front_end::{SasError, SasResourceType, SasScope, SasService, SasTerms};
use std::ffi::OsString;
use std::net::Ipv4Addr;

/// A signature to make, checked.
#[derive(Debug)]
pub(crate) struct SasSettings {
    pub(crate) account: Account,
    /// Which of the account's keys signs, from 0.
    pub(crate) key_index: usize,
    pub(crate) scope: SasScope,
    pub(crate) terms: SasTerms,
}

/// Why there is no such signature.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SasSettingError {
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    #[error("--account {name}: there is no account of this name; known are {known}")]
    UnknownAccount { name: String, known: String },
    #[error("--account: name one of the accounts {known}")]
    SeveralAccounts { known: String },
    #[error("--key 2: account {0} has one key only")]
    NoSecondKey(String),
    #[error("--service {0:?}: give blob, queue and table, with commas between them")]
    Service(String),
    #[error("--service: {resource} is of the {service} service")]
    OtherService { resource: String, service: &'static str },
    #[error(
        "--resource {0:?}: give service, container and object, with commas between them, or blob/CONTAINER, \
         blob/CONTAINER/BLOB, queue/NAME or table/NAME"
    )]
    Resource(String),
    #[error("--resource {resource}: {error}")]
    Name { resource: String, error: SasError },
    #[error("--permissions {letters:?}: {error}")]
    Permissions { letters: String, error: SasError },
    #[error("{flag} {text:?}: {why}")]
    Instant { flag: &'static str, text: String, why: String },
    #[error("--expiry {0}: that is over")]
    Expired(String),
    #[error("--start {start}: it would begin at its end ({expiry}) or after it")]
    StartsTooLate { start: String, expiry: String },
    #[error("--ip {0:?}: give an IPv4 address, or the first and the last one with a hyphen between them")]
    Addresses(String),
    #[error("--host: the address is missing; give an IP address or a name of the server's machine")]
    NoHost,
}

impl SasSettings {
    pub(crate) fn from_arguments(
        arguments: &SasArguments,
        environment: &dyn Fn(&str) -> Option<OsString>,
        now: Ticks,
    ) -> Result<Self, SasSettingError> {
        let account = chosen_account(arguments, environment)?;
        let key_index = usize::from(arguments.signer.key - 1);
        if key_index >= account.keys().len() {
            return Err(SasSettingError::NoSecondKey(account.name().to_owned()));
        }
        let scope = parse_scope(&arguments.scope.resource, arguments.scope.service.as_deref())?;
        scope
            .check()
            .map_err(|error| SasSettingError::Name { resource: arguments.scope.resource.clone(), error })?;
        let letters = arguments.scope.permissions.clone().unwrap_or_else(|| scope.served_permissions());
        let permissions = scope
            .sort_permissions(&letters)
            .map_err(|error| SasSettingError::Permissions { letters: letters.clone(), error })?;
        if arguments.server.host.is_empty() {
            return Err(SasSettingError::NoHost);
        }
        let (start, expiry) = parse_times(arguments, now)?;
        Ok(SasSettings {
            account,
            key_index,
            scope,
            terms: SasTerms {
                permissions,
                start,
                expiry,
                addresses: arguments.terms.ip.as_deref().map(parse_addresses).transpose()?,
                https_only: arguments.terms.https_only,
            },
        })
    }
}

/// The account that is named. One that is given with its key counts beside those of the file, as for the
/// server.
fn chosen_account(
    arguments: &SasArguments,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Account, SasSettingError> {
    let given = arguments.signer.account.as_deref();
    let with_key: Vec<String> =
        given.filter(|text| text.contains(':')).map(str::to_owned).into_iter().collect();
    let given_accounts = given_accounts(&with_key, arguments.signer.accounts_file.as_deref(), environment)?;
    let accounts = given_accounts.accounts.unwrap_or_else(Accounts::development);
    let known = || accounts.names().collect::<Vec<_>>().join(", ");
    let name = match given.map(|text| text.split(':').next().unwrap_or_default().trim()) {
        Some(name) => name,
        None => match accounts.names().next() {
            Some(only) if accounts.names().count() == 1 => only,
            _ => return Err(SasSettingError::SeveralAccounts { known: known() }),
        },
    };
    accounts.find(name).cloned().ok_or_else(|| SasSettingError::UnknownAccount {
        name: if may_be_shown(name) { name } else { "..." }.to_owned(),
        known: known(),
    })
}

fn parse_scope(resource: &str, services: Option<&str>) -> Result<SasScope, SasSettingError> {
    let Some((kind, name)) = resource.split_once('/') else {
        let services = services.map(parse_services).transpose()?;
        let all = || vec![SasService::Blob, SasService::Queue, SasService::Table];
        return Ok(SasScope::Account {
            services: services.unwrap_or_else(all),
            resource_types: parse_resource_types(resource)?,
        });
    };
    let (scope, service) = match (kind, name.split_once('/')) {
        ("blob", None) => (SasScope::Container(name.to_owned()), SasService::Blob),
        ("blob", Some((container, blob))) => {
            (SasScope::Blob { container: container.to_owned(), blob: blob.to_owned() }, SasService::Blob)
        }
        ("queue", None) => (SasScope::Queue(name.to_owned()), SasService::Queue),
        ("table", None) => (SasScope::Table(name.to_owned()), SasService::Table),
        _ => return Err(SasSettingError::Resource(resource.to_owned())),
    };
    match services.map(parse_services).transpose()? {
        Some(named) if named != [service] => {
            Err(SasSettingError::OtherService { resource: resource.to_owned(), service: service.label() })
        }
        _ => Ok(scope),
    }
}

/// Services in the order in which tokens have them, each once.
fn parse_services(text: &str) -> Result<Vec<SasService>, SasSettingError> {
    let known = [("blob", SasService::Blob), ("queue", SasService::Queue), ("table", SasService::Table)];
    parse_list(text, &known).ok_or_else(|| SasSettingError::Service(text.to_owned()))
}

fn parse_resource_types(text: &str) -> Result<Vec<SasResourceType>, SasSettingError> {
    let known = [
        ("service", SasResourceType::Service),
        ("container", SasResourceType::Container),
        ("object", SasResourceType::Object),
    ];
    parse_list(text, &known).ok_or_else(|| SasSettingError::Resource(text.to_owned()))
}

/// Those of the known words that a list has, at least one; `None`: it has others.
fn parse_list<T: Copy>(text: &str, known: &[(&str, T)]) -> Option<Vec<T>> {
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    let all_known = words.iter().all(|word| known.iter().any(|(name, _)| name == word));
    let named = known.iter().filter(|(name, _)| words.contains(name));
    all_known.then(|| named.map(|(_, value)| *value).collect())
}

fn parse_times(arguments: &SasArguments, now: Ticks) -> Result<(Option<Ticks>, Ticks), SasSettingError> {
    let parse = |flag, text: &str| match parse_instant(text, now) {
        // No fractions of a second are signed.
        Ok(at) => Ok(Ticks(at.0 - at.0 % TICKS_PER_SECOND)),
        Err(why) => Err(SasSettingError::Instant { flag, text: text.to_owned(), why }),
    };
    let expiry = parse("--expiry", &arguments.terms.expiry)?;
    if expiry <= now {
        return Err(SasSettingError::Expired(arguments.terms.expiry.clone()));
    }
    let start = arguments.terms.start.as_deref().map(|text| parse("--start", text)).transpose()?;
    match start {
        Some(start) if start >= expiry => Err(SasSettingError::StartsTooLate {
            start: service::date_time_text(start),
            expiry: service::date_time_text(expiry),
        }),
        start => Ok((start, expiry)),
    }
}

fn parse_addresses(text: &str) -> Result<(Ipv4Addr, Ipv4Addr), SasSettingError> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok((first, last)),
        _ => Err(SasSettingError::Addresses(text.to_owned())),
    }
}
