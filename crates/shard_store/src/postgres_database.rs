//! A connection to a Postgres database, made when it is needed and made again when it broke.
//!
//! Sockets, tasks and the clock are handed in. What always holds: one transaction at a time on a connection;
//! an operation ends in [`OPERATION_FOR_MAX`], or in the time that it names, and its connection is dropped if
//! it ran out of time or was abandoned, so that nothing half done is left open; a password is neither printed
//! nor in an error.

use crate::error::StoreError;
use base::{BoxFuture, Clock, Connector, Socket, Spawner};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::NoTls;
use tokio_postgres::{Client, Config, IsolationLevel, Transaction};

/// How long an operation may take, with its connection.
const OPERATION_FOR_MAX: Duration = Duration::from_secs(30);

/// What is used of the outside.
#[derive(Clone)]
pub struct PostgresSurroundings {
    /// Makes connections.
    pub connector: Arc<dyn Connector>,
    /// Runs them, a task each.
    pub spawner: Arc<dyn Spawner>,
    /// Ends operations.
    pub clock: Arc<dyn Clock>,
}

/// A database. Cheap to clone; clones share one connection.
#[derive(Clone)]
pub struct PostgresDatabase {
    config: Config,
    place: Arc<str>,
    surroundings: PostgresSurroundings,
    client: Arc<Mutex<Option<Client>>>,
}

impl PostgresDatabase {
    /// The database of a configuration, which names one host.
    pub fn new(config: Config, surroundings: PostgresSurroundings) -> Self {
        let (host, port) = host_of(&config).unwrap_or_default();
        let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
        let place = format!("Postgres database {database} on {host}:{port}").into();
        PostgresDatabase { config, place, surroundings, client: Arc::default() }
    }

    /// Where it is, for messages.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The same database over a connection of its own, so that a long operation holds up no other one.
    pub fn apart(&self) -> Self {
        let PostgresDatabase { config, place, surroundings, .. } = self.clone();
        PostgresDatabase { config, place, surroundings, client: Arc::default() }
    }

    /// Runs a transaction and commits it.
    pub async fn run<T, F>(&self, change: F) -> Result<T, StoreError>
    where
        T: Send,
        F: for<'a> FnOnce(&'a Transaction<'a>) -> BoxFuture<'a, Result<T, tokio_postgres::Error>> + Send,
    {
        self.run_within(OPERATION_FOR_MAX, change).await
    }

    /// The same with another bound of time, which holds for the wait for the connection, too.
    pub async fn run_within<T, F>(&self, run_for_max: Duration, change: F) -> Result<T, StoreError>
    where
        T: Send,
        F: for<'a> FnOnce(&'a Transaction<'a>) -> BoxFuture<'a, Result<T, tokio_postgres::Error>> + Send,
    {
        let time = self.surroundings.clock.sleep(run_for_max);
        tokio::select! {
            outcome = self.run_untimed(change) => outcome,
            () = time => {
                let s = run_for_max.as_secs();
                Err(StoreError::uncertain(&self.place, format!("no answer in {s} s; is it locked or overloaded?")))
            }
        }
    }

    async fn run_untimed<T, F>(&self, change: F) -> Result<T, StoreError>
    where
        T: Send,
        F: for<'a> FnOnce(&'a Transaction<'a>) -> BoxFuture<'a, Result<T, tokio_postgres::Error>> + Send,
    {
        let mut slot = self.client.lock().await;
        // Taken out, so that it is dropped with an operation that fails or is abandoned.
        let mut client = match slot.take() {
            // The server may have ended it meanwhile; before anything is done that is no failure.
            Some(client) if client.check_connection().await.is_ok() => client,
            _ => self.connect().await?,
        };
        let refused = |error: tokio_postgres::Error| StoreError::refused(&self.place, shown(&error));
        // A fence that is read after a lock was waited for must see what was committed meanwhile. A role's
        // transactions may be read-only if they don't say what they are.
        let transaction = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted);
        let transaction = transaction.read_only(false);
        let transaction = transaction.start().await.map_err(refused)?;
        let outcome = change(&transaction).await.map_err(refused)?;
        let committed = transaction.commit().await;
        committed.map_err(|error| StoreError::uncertain(&self.place, shown(&error)))?;
        *slot = Some(client);
        Ok(outcome)
    }

    async fn connect(&self) -> Result<Client, StoreError> {
        let refused = |what: String| StoreError::refused(&self.place, what);
        let Some((host, port)) = host_of(&self.config) else {
            return Err(refused("its address names no host, or more than one; name one".to_owned()));
        };
        let connected = self.surroundings.connector.connect(&host, port).await;
        let socket = connected.map_err(|error: io::Error| refused(format!("no connection: {error}")))?;
        let connecting = self.config.connect_raw::<Box<dyn Socket>, NoTls>(socket, NoTls).await;
        let (client, connection) = connecting.map_err(|error| refused(shown(&error)))?;
        // What ends a connection is an error of the operation that runs on it.
        let task = Box::pin(async move { drop(connection.await) });
        self.surroundings.spawner.spawn("Postgres connection", task);
        Ok(client)
    }
}

/// The one host, by its name or address, and its port.
fn host_of(config: &Config) -> Option<(String, u16)> {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    match (config.get_hosts(), config.get_hostaddrs()) {
        ([Host::Tcp(name)], [] | [_]) => Some((name.clone(), port)),
        ([], [address]) => Some((address.to_string(), port)),
        _ => None,
    }
}

/// With what the database says, which the driver's own text leaves out.
fn shown(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) if *said.code() == SqlState::INSUFFICIENT_PRIVILEGE => {
            format!("{}; grant it, or use another user", said.message())
        }
        Some(said) => said.message().to_owned(),
        None => error.to_string(),
    }
}
