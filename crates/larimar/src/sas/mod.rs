//! `larimar sas`: makes a shared access signature, prints it with the addresses to use it at, and says in
//! words what it allows. Addresses and token go to standard output, for scripts; the words to standard error.

pub(crate) mod life;
mod settings;

use crate::arguments::sas_arguments::SasArguments;
use crate::sas::life::length_text;
use crate::sas::settings::{SasSettingError, SasSettings};
use base::Ticks;
use base::clock::TICKS_PER_SECOND;
use front_end::accounts::DEVELOPMENT_ACCOUNT_NAME;
use front_end::{SasError, SasResourceType, SasScope, SasService, make_sas};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Makes the signature that was asked for, and prints it.
pub(crate) fn sas(
    arguments: &SasArguments,
    environment: &dyn Fn(&str) -> Option<OsString>,
    now: Ticks,
) -> Result<(), SasSettingError> {
    let settings = SasSettings::from_arguments(arguments, environment, now)?;
    let token = make_sas(&settings.account, settings.key_index, &settings.scope, &settings.terms).map_err(
        |error: SasError| SasSettingError::Name { resource: arguments.scope.resource.clone(), error },
    )?;
    let mut out = format!("{token}\n");
    if !arguments.token_only {
        for address in addresses(arguments, &settings) {
            // Writing to a string does not fail.
            let _ = writeln!(out, "{address}?{token}");
        }
        // Neither may be open.
        let _ = std::io::stderr().write_all(words(&settings, now).as_bytes());
    }
    let _ = std::io::stdout().write_all(out.as_bytes());
    Ok(())
}

/// Where the resource is, at each service that the signature is for.
fn addresses(arguments: &SasArguments, settings: &SasSettings) -> Vec<String> {
    let scheme = if arguments.terms.https_only { "https" } else { "http" };
    let host = match arguments.server.host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => arguments.server.host.clone(),
    };
    let address = |service: &SasService| {
        let port = match service {
            SasService::Blob => arguments.server.blob_port,
            SasService::Queue => arguments.server.queue_port,
            SasService::Table => arguments.server.table_port,
        };
        format!("{scheme}://{host}:{port}/{}{}", settings.account.name(), settings.scope.path())
    };
    settings.scope.services().iter().map(address).collect()
}

fn scope_text(scope: &SasScope) -> String {
    match scope {
        SasScope::Account { services, resource_types } => {
            let services: Vec<&str> = services.iter().map(|service| service.label()).collect();
            let types = resource_types.iter().map(|kind| match kind {
                SasResourceType::Service => "the service itself (its properties and lists)",
                SasResourceType::Container => "containers, queues and tables",
                SasResourceType::Object => "blobs, messages and entities",
            });
            format!("{} service: {}", services.join(", "), types.collect::<Vec<_>>().join("; "))
        }
        SasScope::Container(name) => format!("all blobs of container {name}"),
        SasScope::Blob { container, blob } => format!("blob {blob} of container {container}"),
        SasScope::Queue(name) => format!("the messages of queue {name}"),
        SasScope::Table(name) => format!("the entities of table {name}"),
    }
}

/// What the signature allows.
fn words(settings: &SasSettings, now: Ticks) -> String {
    let SasSettings { account, scope, terms, .. } = settings;
    let name = account.name();
    let mut text = match scope {
        SasScope::Account { .. } => format!("Shared access signature of account {name}\n"),
        _ => format!("Shared access signature of a resource of account {name}\n"),
    };
    let mut line = |label: &str, value: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {label:<7} {value}");
    };
    line("for", &scope_text(scope));
    let granted = scope.permissions().into_iter().filter(|one| terms.permissions.contains(one.letter));
    for (index, permission) in granted.enumerate() {
        let note = if permission.is_served { "" } else { " (nothing is served that needs it)" };
        let label = if index == 0 { "allows" } else { "" };
        line(label, &format!("{} {}{note}", permission.letter, permission.meaning));
    }
    let instant = |at: Ticks| {
        // Rounded up, as the fraction of a second is left out of what is signed.
        let seconds = at.0.saturating_sub(now.0).div_ceil(TICKS_PER_SECOND);
        format!("{}, in {}", service::date_time_text(at), length_text(Duration::from_secs(seconds)))
    };
    match terms.start.filter(|start| *start > now) {
        Some(start) => line("from", &instant(start)),
        None => line("from", "now on"),
    }
    line("until", &instant(terms.expiry));
    let place = match terms.addresses {
        None => "any address".to_owned(),
        Some((first, last)) if first == last => format!("{first} only"),
        Some((first, last)) => format!("{first} to {last} only"),
    };
    line(
        "by",
        &format!(
            "whoever has it, from {place}, over {}",
            if terms.https_only { "TLS only" } else { "HTTP or TLS" }
        ),
    );
    if name == DEVELOPMENT_ACCOUNT_NAME {
        line("note", "the key of the development account is public: its signatures guard nothing");
    } else {
        line("note", "it ends earlier only if the account gets another key");
    }
    text
}
