//! Routes operations to the shards of their keys: a cached map, pooled connections, fenced writes and reads,
//! and questions to all shards.
//!
//! A [`CachedMap`] keeps the map of a home (crate `shard_store`) in memory. A [`Router`] finds the shard of a
//! key with it, takes a connection of the shard's pool, and runs an operation behind the shard's fence. If
//! the fence refuses because the map is late, the map is read anew and the operation tried once more.
//!
//! ```
//! use shard_router::{CachedMap, Keys, MapSettings, PoolSettings, Router, RouterParts, ShardConnector};
//! use shard_router::{ShardCredentials, ShardWork};
//! # use std::sync::Arc;
//! # async fn example<C: ShardConnector>(
//! #     home: shard_store::CatalogHome,
//! #     base::Environment { clock, spawner, .. }: base::Environment,
//! #     connector: C,
//! #     mut work: impl ShardWork<C::Connection>,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! let map = CachedMap::new(home, clock.clone(), spawner.clone(), MapSettings::default());
//! let credentials = ShardCredentials { user: "app".to_owned(), secret: "…".to_owned() };
//! let router = Router::new(RouterParts {
//!     map,
//!     connector: Arc::new(connector),
//!     credentials: Arc::new(credentials),
//!     clock,
//!     spawner,
//!     pool: PoolSettings::default(),
//! });
//! let tenant = [17_i64.into()];
//! let done = router.run(Keys::new("tenants", &[&tenant]), shard_store::Access::Write, &mut work).await;
//! if let Err(error) = &done {
//!     // Only then is it open whether it was done.
//!     println!("{}", error.may_be_done());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What always holds:
//!
//! * an operation is of one shard; keys of two are refused before anything is sent;
//! * nothing is written on a shard that gave the mapping away, if its kind has a fence
//!   ([`Router::capabilities`]): the fence is held until the commit, or the right to write ends T after the
//!   map's read;
//! * what may have been done is not tried again, and its error says so;
//! * an answer of all shards lacks no row, however old the cached map was, or is an error;
//! * a cached route takes no lock, and no allocation for keys of at most 32 bytes;
//! * of many requests that need a newer map one reads it; reads, waits, connections, batches and what is
//!   remembered have bounds; clock, tasks and sockets are handed in.
//!
//! Absent: SQL of any kind but that of the fence; transactions over shards; what moves rows.
//!
//! | folder | content |
//! |---|---|
//! | `map/` | the cached map, keys without a mapping |
//! | `pool/` | connections, credentials |
//! | `fenced/` | from keys to one shard; the two attempts |
//! | `backend/` | rows of any backend, Postgres, SQLite, storage accounts |
//! | `fan_out/` | all shards of a map: answers, merged rows, aggregates |

mod backend;
mod fan_out;
mod fenced;
mod map;
mod pool;

#[cfg(feature = "postgres")]
pub use backend::postgres::PostgresConnector;
#[cfg(feature = "postgres")]
pub use backend::postgres_connection::PostgresConnection;
#[cfg(feature = "postgres")]
pub use backend::postgres_error::{PostgresError, PostgresParameters};
#[cfg(feature = "postgres")]
pub use backend::postgres_transaction::PostgresTransaction;
pub use backend::rows::RowsConnector;
#[cfg(feature = "sqlite")]
pub use backend::sqlite::{SqliteConnection, SqliteConnector};
pub use backend::tables::{TablesConnection, TablesConnector, TablesError};
pub use fan_out::aggregate::{Aggregate, AggregateError, Sum};
pub use fan_out::error::{FanOutError, ShardFailure};
pub use fan_out::fan_out::{FanOut, PagedQuery, ShardQuery, query_shards};
pub use fan_out::merge::{BatchSource, SortedMerge};
pub use fan_out::part::{PartRefusal, ShardPart};
pub use fan_out::settings::{FanOutSettings, Needed};
pub use fenced::error::RouterError;
pub use fenced::keys::{Keys, OPERATION_KEYS_MAX};
pub use fenced::routed::{Routed, RoutedMapping};
pub use fenced::router::{Router, RouterParts};
pub use fenced::work::{AttemptError, ShardWork};
pub use map::cached_map::CachedMap;
pub use map::error::MapReadError;
pub use map::map_read::{LookupError, MapRead};
pub use map::settings::MapSettings;
pub use pool::connector::{ConnectError, MAP_FOR_MAX, ShardConnector};
pub use pool::credentials::{CredentialError, CredentialProvider, ShardCredentials};
pub use pool::lease::Lease;
pub use pool::pool::PoolError;
pub use pool::settings::PoolSettings;
