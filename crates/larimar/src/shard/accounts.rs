//! Shards that are storage accounts: what opens them, and their rows.
//!
//! What always holds: a connection string is in a file or in the environment, never in the map or an error.

use super::connections::{self, Accounts};
use super::homes::{COPY_TABLE, Opener};
use super::input::file_text;
use crate::Failure;
use settings_file::FILE_SIZE_BYTES_MAX;
use shard_backend::{Backend, Schema, TableBackend, TablePlace};
use shard_map::Name;
use shard_store::LocalStore;
use std::path::Path;
use std::sync::Arc;
use storage_client::{AccountAddress, Credentials, Service, Settings, Surroundings};

/// What a variable with the connection string of a shard begins with.
const CONNECTION_PREFIX: &str = "LARIMAR_SHARD_CONNECTION_";

/// An account's copy of the map, and its rows.
type AccountRows = (Arc<dyn LocalStore>, Arc<dyn Backend>);

impl Opener<'_> {
    /// The connection strings of a file.
    pub(super) fn accounts(&self, file: Option<&Path>) -> Result<Accounts, Failure> {
        let Some(path) = file else { return Ok(Accounts::new()) };
        let wrong = |what: String| Failure::of_words(format!("{}: {what}", path.display()));
        connections::parse(&file_text(path, FILE_SIZE_BYTES_MAX)?).map_err(wrong)
    }

    /// What opens a shard if it is an account.
    pub(super) fn account_of(
        &self,
        shard: &Name,
        accounts: &Accounts,
    ) -> Result<Option<AccountAddress>, String> {
        if let Some(address) = accounts.get(shard) {
            return Ok(Some(address.clone()));
        }
        let variable = variable_of(shard);
        let Some(text) = self.variable(&variable) else { return Ok(None) };
        AccountAddress::parse(text.trim()).map(Some).map_err(|error| format!("{variable}: {error}"))
    }

    /// The rows and the copy of an account.
    pub(super) fn account_rows(
        &self,
        address: &AccountAddress,
        schema: &Arc<Schema>,
    ) -> Result<AccountRows, String> {
        let endpoint = address.endpoint_url(Service::Table);
        let endpoint = endpoint.ok_or("its connection string has no endpoint of the Table service")?;
        let Credentials::Key(key) = address.credentials() else {
            return Err(
                "its connection string has no AccountKey, with which its requests are signed".to_owned()
            );
        };
        let (account, key, copies) = (address.name().to_owned(), key.clone(), COPY_TABLE.to_owned());
        let at = TablePlace { account, endpoint, key, copies };
        let backend = TableBackend::new(at, schema.clone(), Settings::default(), Surroundings::system())?;
        Ok((backend.local(), Arc::new(backend)))
    }
}

/// The variable of a shard: its name in capitals, with `_` for all but letters and digits.
fn variable_of(shard: &Name) -> String {
    let capital = |one: char| if one.is_ascii_alphanumeric() { one.to_ascii_uppercase() } else { '_' };
    CONNECTION_PREFIX.chars().chain(shard.as_str().chars().map(capital)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shard_has_a_variable() {
        let variable = |name| variable_of(&Name::parse(name).expect("a name"));
        assert_eq!(variable("eu-1"), "LARIMAR_SHARD_CONNECTION_EU_1");
    }
}
