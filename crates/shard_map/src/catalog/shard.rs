//! Shards: databases or accounts that hold keys' data.
//!
//! What always holds: a location has no secret that this crate knows the form of; credentials come from
//! elsewhere.

use super::placement::{Epoch, State};
use crate::limits::{LOCATION_BYTES_MAX, TAG_BYTES_MAX, TAGS_MAX};
use crate::name::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A shard of a catalog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// Its name, by which mappings know it.
    pub name: Name,
    /// Where it is, in words that backends read: an address without credentials.
    pub location: String,
    /// What may be done with it, whatever its mappings' states are.
    #[serde(default, skip_serializing_if = "State::is_online")]
    pub state: State,
    /// Whether plans put nothing more on it.
    #[serde(default, rename = "draining", skip_serializing_if = "std::ops::Not::not")]
    pub is_draining: bool,
    /// What plans choose by: a region, a class of tenants.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<Name, String>,
    /// The epoch since which it is as it is.
    #[serde(default)]
    pub since: Epoch,
}

/// What is wrong with a shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// Its location is missing or too long.
    #[error("the location of shard `{0}` has {1} bytes; write 1 to {LOCATION_BYTES_MAX}")]
    Location(Name, usize),
    /// Its location has control characters.
    #[error("the location of shard `{0}` has a line break or another control character; write one line")]
    Control(Name),
    /// Its location has a password, a key or a signature.
    #[error(
        "the location of shard `{0}` has a secret (`{1}`); leave it out, and give credentials where they are asked for"
    )]
    Secret(Name, &'static str),
    /// Too many tags, or too long ones.
    #[error(
        "shard `{0}` has more than {TAGS_MAX} tags, or one with a value of more than {TAG_BYTES_MAX} bytes; use fewer \
         or shorter ones"
    )]
    Tags(Name),
}

/// What begins a secret in an address or connection string.
const SECRETS: [&str; 5] = ["password=", "pwd=", "accountkey=", "sharedaccesssignature=", "sig="];

impl Shard {
    /// An online shard without tags.
    pub fn new(name: Name, location: impl Into<String>) -> Self {
        Shard {
            name,
            location: location.into(),
            state: State::Online,
            is_draining: false,
            tags: BTreeMap::new(),
            since: Epoch(0),
        }
    }

    /// Whether all but the epoch is the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Shard { since: other.since, ..self.clone() } == *other
    }

    pub(crate) fn check(&self) -> Result<(), ShardError> {
        let name = || self.name.clone();
        if !(1..=LOCATION_BYTES_MAX).contains(&self.location.len()) {
            return Err(ShardError::Location(name(), self.location.len()));
        }
        if self.location.chars().any(char::is_control) {
            return Err(ShardError::Control(name()));
        }
        if let Some(secret) = secret_in(&self.location) {
            return Err(ShardError::Secret(name(), secret));
        }
        if self.tags.len() > TAGS_MAX || self.tags.values().any(|value| value.len() > TAG_BYTES_MAX) {
            return Err(ShardError::Tags(name()));
        }
        Ok(())
    }
}

/// What of a location looks like a secret: a known word before a value, or a password before a host.
fn secret_in(location: &str) -> Option<&'static str> {
    let sides: Vec<String> = location.split('=').map(|side| side.trim().to_ascii_lowercase()).collect();
    let settings = sides.join("=");
    let mut parts = settings.split(|one: char| one.is_whitespace() || matches!(one, ';' | '?' | '&'));
    let found = parts.find_map(|part| SECRETS.into_iter().find(|word| part.starts_with(word)));
    found.or_else(|| has_password(location).then_some("user:password@"))
}

/// Whether an address such as `postgres://user:password@host` has a password. All before the first `@` counts
/// as user and password, as Postgres drivers take it: a password may have `/`, `?` and `#` in it. So does all
/// before the last one that the host may follow.
pub fn has_password(address: &str) -> bool {
    let behind = address.split_once("://").map_or("", |(_, behind)| behind);
    let authority = behind.split(['/', '?', '#']).next().unwrap_or_default();
    let users = [behind.split_once('@'), authority.rsplit_once('@')];
    users.into_iter().flatten().any(|(user, _)| user.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(location: &str) -> Result<(), ShardError> {
        Shard::new(Name::parse("s").expect("a name"), location).check()
    }

    #[test]
    fn locations_without_secrets_are_taken() {
        for location in [
            "postgres://app@db1.example.org:5432/tenants?sslmode=verify-full",
            "sqlite:/var/lib/app/one.db",
            "https://account.table.core.windows.net",
            "host=db1 dbname=tenants user=app",
            "host=design=x",
            "AccountName=a;TableEndpoint=http://127.0.0.1:10002/a",
        ] {
            assert_eq!(checked(location), Ok(()), "{location}");
        }
    }

    #[test]
    fn secrets_and_what_is_no_line_are_refused() {
        for (location, secret) in [
            ("postgres://app:x@db1/tenants", "user:password@"),
            ("postgres://app:x/y@db1/tenants", "user:password@"),
            ("postgres://app:x?y@db1/tenants", "user:password@"),
            ("postgres://app:x#y@db1/tenants", "user:password@"),
            ("postgres://app:x@y@db1/tenants", "user:password@"),
            ("postgres://app:@db1/tenants", "user:password@"),
            ("postgres://app@x:y@db1/tenants", "user:password@"),
            ("host=db1 Password=x", "password="),
            ("host=db1 password = x", "password="),
            ("AccountName=a;AccountKey=Eby8", "accountkey="),
            ("https://a.table.core.windows.net?sv=2020&SIG=abc", "sig="),
        ] {
            let error = checked(location).expect_err(location);
            assert!(matches!(error, ShardError::Secret(_, found) if found == secret), "{location}: {error}");
        }
        assert!(matches!(checked(""), Err(ShardError::Location(_, 0))));
        assert!(matches!(checked(&"x".repeat(LOCATION_BYTES_MAX + 1)), Err(ShardError::Location(..))));
        assert!(matches!(checked("a\nb"), Err(ShardError::Control(_))));
    }

    #[test]
    fn tags_are_bounded() {
        let mut shard = Shard::new(Name::parse("s").expect("a name"), "x");
        shard.tags.insert(Name::parse("region").expect("a name"), "e".repeat(TAG_BYTES_MAX));
        assert_eq!(shard.check(), Ok(()));
        shard.tags.insert(Name::parse("class").expect("a name"), "e".repeat(TAG_BYTES_MAX + 1));
        assert!(matches!(shard.check(), Err(ShardError::Tags(_))));
    }
}
