//! Opens homes and shards. Drivers of databases are behind features: a place that this build can't open is
//! refused with the feature's name.

use super::connections::Accounts;
use super::input::{Lookup, file_text};
use crate::Failure;
use crate::arguments::shard_arguments::ReachArguments;
use crate::arguments::shard_home_arguments::HomeArguments;
use base::file_lock::SystemFileLock;
use base::system::{SystemClock, SystemDisk, SystemRandom, TokioSpawner};
use base::{Clock, Random, Spawner, TaskThread};
use settings_file::FILE_SIZE_BYTES_MAX;
use shard_backend::{Backend, Schema};
use shard_command::HomeAddress;
use shard_map::{Name, Shard};
use shard_mover::Backends;
use shard_store::{
    CatalogHome, FilePlace, FileRecords, HomeError, LocalStore, LocalStores, Records, TableLocal,
    TableRecords,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use storage_client::{AccountAddress, Service, Settings, StorageAccount, Surroundings};

/// The connection string of a home that is a table.
const CONNECTION_VARIABLE: &str = "LARIMAR_SHARD_CONNECTION";
/// The partition of a home in its table.
const HOME_PARTITION: &str = "map";
/// The table of a shard's copy in its account.
pub(super) const COPY_TABLE: &str = "LarimarShard";
/// What is said of a location that nothing opens.
const NO_LOCATION: &str = "its location is neither sqlite:PATH nor postgres://…; an account's connection string \
    goes into the file of --connections";

/// Opens places with what the process has.
pub(super) struct Opener<'a> {
    environment: Lookup<'a>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl<'a> Opener<'a> {
    /// On the current runtime.
    pub(super) fn new(environment: Lookup<'a>) -> Self {
        Opener { environment, clock: Arc::new(SystemClock::new()), random: Arc::new(SystemRandom::new()) }
    }

    /// The clock that homes have, too.
    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    /// The home that was named.
    pub(super) fn home(&self, arguments: &HomeArguments) -> Result<CatalogHome, Failure> {
        Ok(CatalogHome::new(self.records(arguments)?, self.clock.clone(), self.random.clone()))
    }

    /// A variable of the environment.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name).and_then(|text| text.into_string().ok())
    }

    /// Clock and chance.
    pub(super) fn outside(&self) -> (Arc<dyn Clock>, Arc<dyn Random>) {
        (self.clock.clone(), self.random.clone())
    }

    /// The rows of shards: those of accounts, and the others at their locations.
    pub(super) fn backends<'b>(
        &self,
        shards: impl Iterator<Item = &'b Shard>,
        schema: &Arc<Schema>,
        accounts: &Accounts,
    ) -> Result<(LocalStores, Backends), Failure> {
        let (mut locals, mut backends) = (LocalStores::new(), Backends::new());
        for shard in shards {
            let wrong = |what: String| Failure::of_words(format!("shard `{}`: {what}", shard.name));
            let (local, backend) = match self.account_of(&shard.name, accounts).map_err(wrong)? {
                Some(address) => self.account_rows(&address, schema).map_err(wrong)?,
                None => {
                    let local = self.local(&shard.location).map_err(wrong)?;
                    (local, self.backend(&shard.location).map_err(wrong)?)
                }
            };
            locals.insert(shard.name.clone(), local);
            backends.insert(shard.name.clone(), backend);
        }
        Ok((locals, backends))
    }

    fn backend(&self, location: &str) -> Result<Arc<dyn Backend>, String> {
        match HomeAddress::parse(location) {
            Ok(HomeAddress::Sqlite(path)) => self.sqlite_backend(&path),
            Ok(HomeAddress::Postgres(url)) => self.postgres_backend(&url),
            _ => Err(NO_LOCATION.to_owned()),
        }
    }

    /// The records of the home that was named, beside which moves are.
    pub(super) fn records(&self, arguments: &HomeArguments) -> Result<Arc<dyn Records>, Failure> {
        let wrong = |what: String| Failure::of_words(format!("--home: {what}"));
        Ok(match HomeAddress::parse(&arguments.home).map_err(|error| wrong(error.to_string()))? {
            HomeAddress::File(path) => Arc::new(FileRecords::new(self.file(&path).map_err(wrong)?)),
            HomeAddress::Sqlite(path) => self.sqlite_records(&path).map_err(wrong)?,
            HomeAddress::Postgres(url) => self.postgres_records(&url).map_err(wrong)?,
            HomeAddress::Table(table) => {
                let address = self.connection(arguments)?;
                let shown = address.name().to_owned();
                let account = StorageAccount::new(address, Settings::default(), Surroundings::system());
                Arc::new(TableRecords::new(&shown, account.table(table), HOME_PARTITION))
            }
        })
    }

    /// The shards of the home, and further ones, as far as they are to be reached.
    pub(super) async fn shards(
        &self,
        home: &CatalogHome,
        reach: &ReachArguments,
        further: &[(Name, String)],
    ) -> Result<LocalStores, Failure> {
        let accounts = self.accounts(reach.connections.as_deref())?;
        let mut located: BTreeMap<Name, String> = BTreeMap::new();
        match home.load().await {
            Ok(catalog) => {
                located.extend(catalog.shards().map(|one| (one.name.clone(), one.location.clone())))
            }
            // A lost map is recovered from shards that are named.
            Err(HomeError::NoCatalog { .. }) => {}
            Err(error) => return Err(Failure::of_work(&error)),
        }
        located.extend(further.iter().cloned());
        let mut stores = LocalStores::new();
        for (name, address) in accounts {
            stores.insert(name, self.account(address));
        }
        if reach.shards || !further.is_empty() {
            located.retain(|name, _| !stores.contains_key(name));
            for (name, location) in located {
                let wrong = |what: String| Failure::of_words(format!("shard `{name}`: {what}"));
                let store = match self.account_of(&name, &Accounts::new()).map_err(wrong)? {
                    Some(address) => self.account(address),
                    None => self.local(&location).map_err(wrong)?,
                };
                stores.insert(name, store);
            }
        }
        Ok(stores)
    }

    fn connection(&self, arguments: &HomeArguments) -> Result<AccountAddress, Failure> {
        let (text, source) = match &arguments.home_connection_file {
            Some(path) => (file_text(path, FILE_SIZE_BYTES_MAX)?, path.display().to_string()),
            None => match self.variable(CONNECTION_VARIABLE) {
                Some(text) => (text, CONNECTION_VARIABLE.to_owned()),
                None => {
                    let what =
                        format!("a home in a table needs {CONNECTION_VARIABLE} or --home-connection-file");
                    return Err(Failure::of_words(what));
                }
            },
        };
        let address = AccountAddress::parse(text.trim());
        let address = address.map_err(|error| Failure::of_words(format!("{source}: {error}")))?;
        match address.endpoint_url(Service::Table) {
            Some(_) => Ok(address),
            None => Err(Failure::of_words(format!("{source}: it has no endpoint of the Table service"))),
        }
    }

    fn account(&self, address: AccountAddress) -> Arc<dyn LocalStore> {
        let shown = address.name().to_owned();
        let account = StorageAccount::new(address, Settings::default(), Surroundings::system());
        let table = account.table(COPY_TABLE);
        Arc::new(TableLocal::new(&shown, table, self.clock.clone(), self.random.clone()))
    }

    fn local(&self, location: &str) -> Result<Arc<dyn LocalStore>, String> {
        match HomeAddress::parse(location) {
            Ok(HomeAddress::Sqlite(path)) => self.sqlite_local(&path),
            Ok(HomeAddress::Postgres(url)) => self.postgres_local(&url),
            _ => Err(NO_LOCATION.to_owned()),
        }
    }

    fn thread(&self) -> Result<Arc<dyn TaskThread>, String> {
        TokioSpawner::current().start_thread("shard map").map_err(|error| error.to_string())
    }

    fn file(&self, path: &Path) -> Result<FilePlace, String> {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| format!("{} names no file", path.display()))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            return Err(format!("{} is no folder", folder.display()));
        }
        Ok(FilePlace {
            disk: Arc::new(SystemDisk::new(folder)),
            name: name.to_owned(),
            lock: Arc::new(SystemFileLock::new(&folder.join(format!("{name}.lock")))),
            clock: self.clock.clone(),
            thread: self.thread()?,
            shown: path.display().to_string(),
        })
    }
}

#[cfg(feature = "sqlite")]
impl Opener<'_> {
    fn sqlite_records(&self, path: &Path) -> Result<Arc<dyn Records>, String> {
        let file = shard_store::SqliteFile::new(path, self.thread()?);
        Ok(Arc::new(shard_store::SqliteRecords::new(file)))
    }

    fn sqlite_backend(&self, path: &Path) -> Result<Arc<dyn Backend>, String> {
        let file = shard_store::SqliteFile::new(path, self.thread()?);
        Ok(Arc::new(shard_backend::SqliteBackend::new(file)))
    }

    fn sqlite_local(&self, path: &Path) -> Result<Arc<dyn LocalStore>, String> {
        let file = shard_store::SqliteFile::new(path, self.thread()?);
        Ok(Arc::new(shard_store::SqliteLocal::new(file)))
    }
}

#[cfg(not(feature = "sqlite"))]
impl Opener<'_> {
    fn sqlite_records(&self, _: &Path) -> Result<Arc<dyn Records>, String> {
        Err(without("SQLite", "sqlite"))
    }

    fn sqlite_backend(&self, _: &Path) -> Result<Arc<dyn Backend>, String> {
        Err(without("SQLite", "sqlite"))
    }

    fn sqlite_local(&self, _: &Path) -> Result<Arc<dyn LocalStore>, String> {
        Err(without("SQLite", "sqlite"))
    }
}

#[cfg(feature = "postgres")]
impl Opener<'_> {
    fn postgres_records(&self, url: &str) -> Result<Arc<dyn Records>, String> {
        Ok(Arc::new(shard_store::PostgresRecords::new(self.postgres(url)?)))
    }

    fn postgres_backend(&self, url: &str) -> Result<Arc<dyn Backend>, String> {
        Ok(Arc::new(shard_backend::PostgresBackend::new(self.postgres(url)?)))
    }

    fn postgres_local(&self, url: &str) -> Result<Arc<dyn LocalStore>, String> {
        Ok(Arc::new(shard_store::PostgresLocal::new(self.postgres(url)?)))
    }

    fn postgres(&self, url: &str) -> Result<shard_store::PostgresDatabase, String> {
        let config = super::password_file::config_of(url, self.environment)?;
        let surroundings = shard_store::PostgresSurroundings {
            connector: Arc::new(base::connector::SystemConnector),
            spawner: Arc::new(TokioSpawner::current()),
            clock: self.clock.clone(),
        };
        Ok(shard_store::PostgresDatabase::new(config, surroundings))
    }
}

#[cfg(not(feature = "postgres"))]
impl Opener<'_> {
    fn postgres_records(&self, _: &str) -> Result<Arc<dyn Records>, String> {
        Err(without("Postgres", "postgres"))
    }

    fn postgres_backend(&self, _: &str) -> Result<Arc<dyn Backend>, String> {
        Err(without("Postgres", "postgres"))
    }

    fn postgres_local(&self, _: &str) -> Result<Arc<dyn LocalStore>, String> {
        Err(without("Postgres", "postgres"))
    }
}

#[cfg(not(all(feature = "postgres", feature = "sqlite")))]
fn without(what: &str, feature: &str) -> String {
    format!("this build has no {what}; build it with cargo build --release --features {feature}")
}
