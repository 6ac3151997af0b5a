//! Making a shared access signature: the other side of `verify_sas`, with the same strings-to-sign.
//!
//! A token is written unsigned as the query of an address. What it signs is then what verification would find
//! in a request to that address, so a token that is made here verifies, whatever its names are.

use super::sas::{SasService, SasToken};
use super::sas_permissions::{
    ACCOUNT_PERMISSIONS, CONTAINER_PERMISSIONS, NOT_OF_A_BLOB, QUEUE_PERMISSIONS, SasPermission,
    TABLE_PERMISSIONS,
};
use super::verify_sas::{SignedResource, write_string};
use crate::accounts::Account;
use crate::blob_api::BlobApi;
use crate::pipeline::ServiceApi;
use crate::queue_api::QueueApi;
use crate::request::addressing::Address;
use crate::request::query_string::{MalformedQuery, QueryParameters};
use crate::table_api::TableApi;
use base::Ticks;
use base::clock::TICKS_PER_SECOND;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::net::Ipv4Addr;

/// The version that tokens are written in: the last one that has changed what is signed with an account key.
const SAS_VERSION: &str = "2020-12-06";

/// What may stand in a query's value as it is.
const IN_A_VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The same for a path; the dollar begins the names of special containers.
const IN_A_PATH: &AsciiSet = &IN_A_VALUE.remove(b'/').remove(b'$');

/// A kind of resource that an account signature is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SasResourceType {
    /// The services themselves: their properties and lists.
    Service,
    /// Containers, queues and tables.
    Container,
    /// Blobs, messages and entities.
    Object,
}

impl SasResourceType {
    fn letter(self) -> &'static str {
        match self {
            SasResourceType::Service => "s",
            SasResourceType::Container => "c",
            SasResourceType::Object => "o",
        }
    }
}

/// What a signature is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SasScope {
    /// The account: these services, and resources of these types in them.
    Account {
        /// At least one.
        services: Vec<SasService>,
        /// At least one.
        resource_types: Vec<SasResourceType>,
    },
    /// All blobs of a container.
    Container(String),
    /// One blob.
    Blob {
        /// Its container.
        container: String,
        /// Its name, not encoded.
        blob: String,
    },
    /// The messages of a queue.
    Queue(String),
    /// The entities of a table.
    Table(String),
}

/// What a signature allows, from when until when, and from where.
#[derive(Clone, Debug)]
pub struct SasTerms {
    /// Letters that the scope has; see [`SasScope::sort_permissions`].
    pub permissions: String,
    /// From when on, in whole seconds; without it at once.
    pub start: Option<Ticks>,
    /// Until when, in whole seconds.
    pub expiry: Ticks,
    /// The first and the last address that may use it; without them any may.
    pub addresses: Option<(Ipv4Addr, Ipv4Addr)>,
    /// Whether only encrypted connections may use it.
    pub https_only: bool,
}

/// Why there is no such signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SasError {
    /// A letter that the scope does not have.
    #[error("there is no permission {letter:?}; there are {known}")]
    UnknownPermission {
        /// The letter.
        letter: char,
        /// All that there are.
        known: String,
    },
    /// It would allow nothing.
    #[error("it would allow nothing")]
    NoPermission,
    /// A name that no container, blob, queue or table has.
    #[error("there can be no {kind} {name:?}")]
    Name {
        /// What it would be the name of.
        kind: &'static str,
        /// The name.
        name: String,
    },
}

impl SasScope {
    /// The services that it is for.
    pub fn services(&self) -> &[SasService] {
        match self {
            SasScope::Account { services, .. } => services,
            SasScope::Container(_) | SasScope::Blob { .. } => &[SasService::Blob],
            SasScope::Queue(_) => &[SasService::Queue],
            SasScope::Table(_) => &[SasService::Table],
        }
    }

    /// The permissions that it has, in the order in which they are written.
    pub fn permissions(&self) -> Vec<SasPermission> {
        match self {
            SasScope::Account { services, .. } => {
                let has = |letters: &str| services.iter().any(|service| letters.contains(service.letter()));
                let of_some = ACCOUNT_PERMISSIONS.iter().filter(|(_, letters)| has(letters));
                of_some.map(|(permission, _)| *permission).collect()
            }
            SasScope::Container(_) => CONTAINER_PERMISSIONS.to_vec(),
            SasScope::Blob { .. } => {
                let of_a_blob = |permission: &&SasPermission| !NOT_OF_A_BLOB.contains(&permission.letter);
                CONTAINER_PERMISSIONS.iter().filter(of_a_blob).copied().collect()
            }
            SasScope::Queue(_) => QUEUE_PERMISSIONS.to_vec(),
            SasScope::Table(_) => TABLE_PERMISSIONS.to_vec(),
        }
    }

    /// The letters of all permissions that an operation needs.
    pub fn served_permissions(&self) -> String {
        let permissions = self.permissions().into_iter();
        permissions.filter(|permission| permission.is_served).map(|permission| permission.letter).collect()
    }

    /// The same letters in the order in which the reference wants them, each once.
    pub fn sort_permissions(&self, letters: &str) -> Result<String, SasError> {
        let known: String = self.permissions().iter().map(|permission| permission.letter).collect();
        if let Some(letter) = letters.chars().find(|letter| !known.contains(*letter)) {
            return Err(SasError::UnknownPermission { letter, known });
        }
        match letters.is_empty() {
            true => Err(SasError::NoPermission),
            false => Ok(known.chars().filter(|letter| letters.contains(*letter)).collect()),
        }
    }

    /// Whether there can be what it names.
    pub fn check(&self) -> Result<(), SasError> {
        let refused = |kind, name: &str| Err(SasError::Name { kind, name: name.to_owned() });
        match self {
            SasScope::Account { .. } => Ok(()),
            SasScope::Container(name) if blob::check_container(name).is_err() => refused("container", name),
            SasScope::Blob { container, .. } if blob::check_container(container).is_err() => {
                refused("container", container)
            }
            SasScope::Blob { blob, .. } if blob::check_blob(blob).is_err() => refused("blob", blob),
            SasScope::Queue(name) if service::check_container_name(name).is_err() => refused("queue", name),
            SasScope::Table(name) if table::check_table_name(name).is_err() => refused("table", name),
            _ => Ok(()),
        }
    }

    /// What follows the account in the address of the resource; nothing for the account itself.
    pub fn path(&self) -> String {
        let path = match self {
            SasScope::Account { .. } => String::new(),
            SasScope::Container(name) | SasScope::Queue(name) | SasScope::Table(name) => format!("/{name}"),
            SasScope::Blob { container, blob } => format!("/{container}/{blob}"),
        };
        utf8_percent_encode(&path, IN_A_PATH).to_string()
    }
}

/// The token, without question mark, signed with the key of that index (the first if there is none such).
pub fn make_sas(
    account: &Account,
    key_index: usize,
    scope: &SasScope,
    terms: &SasTerms,
) -> Result<String, SasError> {
    scope.check()?;
    let permissions = scope.sort_permissions(&terms.permissions)?;
    let unsigned = unsigned_token(scope, terms, &permissions);
    let address = format!("/{}{}", account.name(), scope.path());
    let query = format!("{unsigned}&sig=");
    let query = match QueryParameters::parse(Some(&query)) {
        Ok(query) => query,
        Err(MalformedQuery) => unreachable!("what was encoded above can be decoded: {unsigned}"),
    };
    let signature = sign(account, key_index, scope, &address, &query)?;
    Ok(format!("{unsigned}&sig={}", utf8_percent_encode(&signature, IN_A_VALUE)))
}

fn unsigned_token(scope: &SasScope, terms: &SasTerms, permissions: &str) -> String {
    let mut fields = vec![("sv", SAS_VERSION.to_owned())];
    match scope {
        SasScope::Account { services, resource_types } => {
            fields.push(("ss", services.iter().map(|service| service.letter()).collect()));
            fields.push(("srt", resource_types.iter().map(|kind| kind.letter()).collect()));
        }
        SasScope::Container(_) => fields.push(("sr", "c".to_owned())),
        SasScope::Blob { .. } => fields.push(("sr", "b".to_owned())),
        SasScope::Queue(_) => {}
        SasScope::Table(name) => fields.push(("tn", name.clone())),
    }
    fields.push(("sp", permissions.to_owned()));
    fields.extend(terms.start.map(|start| ("st", seconds_text(start))));
    fields.push(("se", seconds_text(terms.expiry)));
    if let Some((first, last)) = terms.addresses {
        let is_one = first == last;
        fields.push(("sip", if is_one { first.to_string() } else { format!("{first}-{last}") }));
    }
    fields.push(("spr", if terms.https_only { "https" } else { "https,http" }.to_owned()));
    let written: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, IN_A_VALUE)))
        .collect();
    written.join("&")
}

/// A date-time to the second: clients read no finer ones everywhere.
fn seconds_text(at: Ticks) -> String {
    service::date_time_text(Ticks(at.0 - at.0 % TICKS_PER_SECOND))
}

/// Signs what a request to that address with that query would be verified by.
fn sign(
    account: &Account,
    key_index: usize,
    scope: &SasScope,
    path: &str,
    query: &QueryParameters<'_>,
) -> Result<String, SasError> {
    let token = SasToken::of_query(query);
    // A container's address differs from a blob's by what else the request says, or by this.
    let path = if let SasScope::Container(_) = scope { format!("{path}/") } else { path.to_owned() };
    let resource = signed_resource(scope, &path, query);
    if let SasScope::Blob { blob, .. } = scope
        && !resource.name.contains('/')
    {
        // The service reads no blob's name in that address.
        return Err(SasError::Name { kind: "blob", name: blob.clone() });
    }
    let key = account.keys().get(key_index).unwrap_or(&account.keys()[0]);
    Ok(key.sign(|sink| write_string(token, &resource, account.name(), sink)))
}

fn signed_resource<'a>(
    scope: &SasScope,
    path: &'a str,
    query: &'a QueryParameters<'_>,
) -> SignedResource<'a> {
    // No host has an account's name in it, so that the path has.
    let address = |label| Address::parse("localhost", path, label);
    match scope {
        SasScope::Queue(_) => QueueApi::signed_resource(&address(QueueApi::LABEL), query),
        SasScope::Table(_) => TableApi::signed_resource(&address(TableApi::LABEL), query),
        // That of an account signature is not looked at.
        _ => BlobApi::signed_resource(&address(BlobApi::LABEL), query),
    }
}

#[cfg(test)]
mod tests;
