//! Shards that are Postgres databases: connections, and the facade of their operations.
//!
//! What always holds: a password is neither printed nor in an error; a connection that failed, or whose
//! operation was abandoned, is closed, and the server rolls back what was open on it. One statement
//! ([`Router::execute`]) is sent with its commit: abandoned, it may be done.

use super::postgres_connection::{PostgresConnection, SESSION};
use super::postgres_error::{PostgresError, PostgresParameters, shown};
use super::postgres_statement;
use super::postgres_transaction::PostgresTransaction;
use crate::fan_out::part::{PartRefusal, ShardPart};
use crate::fenced::error::RouterError;
use crate::fenced::keys::Keys;
use crate::fenced::routed::Routed;
use crate::fenced::router::Router;
use crate::fenced::work::{AttemptError, ShardWork};
use crate::pool::connector::{ConnectError, ShardConnector};
use crate::pool::credentials::ShardCredentials;
use base::{BoxFuture, Connector, Socket, Spawner};
use shard_backend::Capabilities;
use shard_map::{KeyValue, Shard};
use shard_store::Access;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::Host;
use tokio_postgres::tls::NoTls;

/// Connects to Postgres databases: a shard's location is an address such as `postgres://host:port/database`,
/// its credentials are user and password.
pub struct PostgresConnector {
    connector: Arc<dyn Connector>,
    spawner: Arc<dyn Spawner>,
}

impl PostgresConnector {
    /// Over sockets that are handed in; each connection is a task.
    pub fn new(connector: Arc<dyn Connector>, spawner: Arc<dyn Spawner>) -> Self {
        PostgresConnector { connector, spawner }
    }
}

impl ShardConnector for PostgresConnector {
    type Connection = PostgresConnection;

    fn capabilities(&self) -> Capabilities {
        Capabilities::POSTGRES
    }

    fn connect<'a>(
        &'a self,
        shard: &'a Shard,
        credentials: &'a ShardCredentials,
    ) -> BoxFuture<'a, Result<PostgresConnection, ConnectError>> {
        Box::pin(async move {
            let config = config(shard, credentials)?;
            let (host, port) = host_of(&config)
                .ok_or_else(|| ConnectError::new("its location names no host, or more than one; name one"))?;
            let socket = self.connector.connect(&host, port).await.map_err(ConnectError::new)?;
            let connecting = config.connect_raw::<Box<dyn Socket>, NoTls>(socket, NoTls).await;
            let (client, connection) = connecting.map_err(|error| ConnectError(shown(&error)))?;
            // What ends a connection is an error of the operation that runs on it.
            let task = async move { drop(connection.await) };
            self.spawner.spawn("Postgres shard", Box::pin(task));
            client.batch_execute(SESSION).await.map_err(|error| ConnectError(shown(&error)))?;
            Ok(PostgresConnection::new(client))
        })
    }

    fn check_part<'a>(
        &'a self,
        connection: &'a mut PostgresConnection,
        part: &'a ShardPart,
        _now: Duration,
    ) -> BoxFuture<'a, Result<(), PartRefusal>> {
        Box::pin(async move {
            let rows = connection.fence_rows(part.map().name().as_str()).await;
            part.check_rows(rows.map_err(|error| PartRefusal::Unread(shown(&error)))?)
        })
    }

    fn is_usable(&self, connection: &PostgresConnection) -> bool {
        !connection.client.is_closed()
    }
}

fn config(shard: &Shard, credentials: &ShardCredentials) -> Result<Config, ConnectError> {
    // The driver's text does not repeat the address.
    let parsed = shard.location.parse::<Config>();
    let mut config = parsed.map_err(|error| ConnectError(format!("its location can't be used: {error}")))?;
    if !credentials.user.is_empty() {
        config.user(&credentials.user);
    }
    if !credentials.secret.is_empty() {
        config.password(&credentials.secret);
    }
    Ok(config)
}

fn host_of(config: &Config) -> Option<(String, u16)> {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    match config.get_hosts() {
        [Host::Tcp(name)] => Some((name.clone(), port)),
        _ => None,
    }
}

struct PostgresWork<F> {
    work: F,
}

impl<F, T, E> ShardWork<PostgresConnection> for PostgresWork<F>
where
    F: for<'t> Fn(&'t PostgresTransaction<'t>) -> BoxFuture<'t, Result<T, E>> + Send + Sync,
    T: Send,
    E: From<PostgresError> + Send,
{
    type Output = T;
    type Error = E;

    fn attempt<'a>(
        &'a mut self,
        connection: &'a mut PostgresConnection,
        routed: &'a Routed,
    ) -> BoxFuture<'a, Result<T, AttemptError<E>>> {
        Box::pin(async move {
            let transaction = PostgresTransaction::new(connection, routed);
            let outcome = (self.work)(&transaction).await;
            transaction.finish(outcome).await
        })
    }
}

/// One statement that is a transaction.
struct PostgresStatement<'w> {
    text: &'w str,
    parameters: PostgresParameters<'w>,
}

impl ShardWork<PostgresConnection> for PostgresStatement<'_> {
    type Output = u64;
    type Error = PostgresError;

    fn attempt<'a>(
        &'a mut self,
        connection: &'a mut PostgresConnection,
        routed: &'a Routed,
    ) -> BoxFuture<'a, Result<u64, AttemptError<PostgresError>>> {
        Box::pin(postgres_statement::run(connection, routed, self.text, self.parameters))
    }
}

impl Router<PostgresConnector> {
    /// Runs one statement on the shard of a key as a transaction; how many rows it changed. It may run twice.
    /// It costs one round trip, where [`Router::write`] costs two at least. Abandoned, it may be done.
    pub async fn execute(
        &self,
        keys: Keys<'_>,
        statement: &str,
        parameters: PostgresParameters<'_>,
    ) -> Result<u64, RouterError<PostgresError>> {
        self.run(keys, Access::Write, &mut PostgresStatement { text: statement, parameters }).await
    }

    /// Runs a transaction on the shard of a key, and commits it if the work succeeded. It may run twice.
    pub async fn write<F, T, E>(&self, keys: Keys<'_>, work: F) -> Result<T, RouterError<E>>
    where
        F: for<'t> Fn(&'t PostgresTransaction<'t>) -> BoxFuture<'t, Result<T, E>> + Send + Sync,
        T: Send,
        E: From<PostgresError> + Send,
    {
        self.run(keys, Access::Write, &mut PostgresWork { work }).await
    }

    /// Reads from the shard of a key, all of it in one snapshot. A statement that writes fails.
    pub async fn read<F, T, E>(&self, map: &str, key: &[KeyValue], work: F) -> Result<T, RouterError<E>>
    where
        F: for<'t> Fn(&'t PostgresTransaction<'t>) -> BoxFuture<'t, Result<T, E>> + Send + Sync,
        T: Send,
        E: From<PostgresError> + Send,
    {
        self.run(Keys::new(map, &[key]), Access::Read, &mut PostgresWork { work }).await
    }
}
