//! A client: a map as one process has it, and a router for each kind of shard that share it.

use crate::model::{Key, row, text_of};
use crate::places::{
    Kind, POSTGRES_USER, Places, TABLE, client_settings, delete_statement, put_statement, surroundings,
};
use crate::settings::SIGNED_FOR;
use base::Environment;
use base::connector::SystemConnector;
use shard_backend::{EntityKey, RowKey, Schema, entity_of_row};
use shard_map::Name;
use shard_router::{
    CachedMap, Keys, MapSettings, PoolSettings, PostgresConnector, PostgresError, Router, RouterError,
    RouterParts, ShardConnector, ShardCredentials, SqliteConnector, TablesConnector,
};
use shard_store::{Access, CatalogHome};
use std::collections::BTreeMap;
use std::sync::Arc;
use storage_client::{DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME, GroupOperation, IfMatch};

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Done,
    /// Nothing was done.
    Refused(String),
    /// It may have been done.
    Unknown(String),
}

/// A client. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Client {
    kinds: Arc<BTreeMap<Name, Kind>>,
    schema: Arc<Schema>,
    postgres: Router<PostgresConnector>,
    sqlite: Router<SqliteConnector>,
    tables: Router<TablesConnector>,
}

fn router<C: ShardConnector>(
    (env, map): (&Environment, &CachedMap),
    connector: C,
    (user, secret): (&str, &str),
) -> Router<C> {
    let credentials = ShardCredentials { user: user.to_owned(), secret: secret.to_owned() };
    Router::new(RouterParts {
        map: map.clone(),
        connector: Arc::new(connector),
        credentials: Arc::new(credentials),
        clock: env.clock.clone(),
        spawner: env.spawner.clone(),
        pool: PoolSettings { connections_max: 8, ..PoolSettings::default() },
    })
}

impl Client {
    pub(crate) fn new(
        env: &Environment,
        home: CatalogHome,
        places: &Places,
        kinds: Arc<BTreeMap<Name, Kind>>,
        settings: MapSettings,
    ) -> Self {
        let map = CachedMap::new(home, env.clock.clone(), env.spawner.clone(), settings);
        let of = (env, &map);
        let tables = TablesConnector::new(client_settings(), surroundings(env)).signed_for(SIGNED_FOR);
        let postgres = PostgresConnector::new(Arc::new(SystemConnector), env.spawner.clone());
        Client {
            kinds,
            schema: places.schema.clone(),
            postgres: router(of, postgres, (POSTGRES_USER, "")),
            sqlite: router(of, SqliteConnector::new(env.spawner.clone()), ("", "")),
            tables: router(of, tables, (DEVELOPMENT_ACCOUNT_NAME, DEVELOPMENT_ACCOUNT_KEY)),
        }
    }

    /// The map that it has.
    pub(crate) fn map(&self) -> &CachedMap {
        self.tables.map()
    }

    /// Puts a row with a label, or deletes it, on the shard that its map names.
    pub(crate) async fn change(&self, key: Key, label: Option<&str>) -> Changed {
        let values = [key.0.into()];
        let keys: [&[shard_map::KeyValue]; 1] = [&values];
        let shard = match self.tables.route_of(Keys::new("m", &keys), Access::Write).await {
            Ok(routed) => routed.shard().name.clone(),
            Err(error) => return Changed::Refused(error.to_string()),
        };
        match self.kinds.get(&shard) {
            Some(Kind::Postgres) => self.in_postgres(key, label).await,
            Some(Kind::Sqlite) => self.in_sqlite(key, label).await,
            Some(Kind::Account) => self.in_account(key, label).await,
            None => Changed::Refused(format!("there is no shard {shard}")),
        }
    }

    async fn in_postgres(&self, (tenant, number): Key, label: Option<&str>) -> Changed {
        let text = label.map(text_of);
        let values = [tenant.into()];
        let keys: [&[shard_map::KeyValue]; 1] = [&values];
        let (put, delete) = (put_statement('$'), delete_statement('$'));
        let done = self.postgres.write(Keys::new("m", &keys), |transaction| {
            let (text, put, delete) = (text.clone(), put.clone(), delete.clone());
            Box::pin(async move {
                match &text {
                    Some(text) => transaction.execute(&put, &[&tenant, &number, text]).await,
                    None => transaction.execute(&delete, &[&tenant, &number]).await,
                }
            })
        });
        outcome::<u64, PostgresError>(done.await)
    }

    async fn in_sqlite(&self, (tenant, number): Key, label: Option<&str>) -> Changed {
        let text = label.map(text_of);
        let (put, delete) = (put_statement('?'), delete_statement('?'));
        let work = move |transaction: &rusqlite::Transaction<'_>| match &text {
            Some(text) => transaction.execute(&put, (tenant, number, text)),
            None => transaction.execute(&delete, (tenant, number)),
        };
        outcome(self.sqlite.write("m", &[tenant.into()], work).await)
    }

    async fn in_account(&self, key: Key, label: Option<&str>) -> Changed {
        let table = self.schema.table(TABLE).expect("it is declared");
        let row_key = RowKey { values: vec![key.0.into(), key.1.into()] };
        let EntityKey { partition_key, row_key } = EntityKey::of(table, &row_key).expect("a short key");
        let operation = match label {
            Some(label) => {
                GroupOperation::InsertOrReplace(entity_of_row(table, &row(key, label)).expect("a row"))
            }
            None => {
                let partition_key = partition_key.clone();
                GroupOperation::Delete { partition_key, row_key, if_match: IfMatch::Any }
            }
        };
        let done = self.tables.submit("m", &[key.0.into()], TABLE, &partition_key, &[operation]).await;
        match done {
            // A delete of what is not there is done.
            Err(RouterError::Failed { error, .. })
                if label.is_none() && error.to_string().contains("ResourceNotFound") =>
            {
                Changed::Done
            }
            done => outcome(done),
        }
    }
}

fn outcome<T, E: std::fmt::Display>(done: Result<T, RouterError<E>>) -> Changed {
    match done {
        Ok(_) => Changed::Done,
        Err(error) if error.may_be_done() => Changed::Unknown(error.to_string()),
        Err(error) => Changed::Refused(error.to_string()),
    }
}
