//! The home of a shard map, changed by compare-and-swap, and what the shards know of it.
//!
//! A [`CatalogHome`] keeps a catalog (crate `shard_map`) as a log of changes in a place for [`Records`]: a
//! table of a storage account, SQLite, Postgres, a file, or memory. Each shard has a copy of its part
//! ([`LocalCopy`]) in a [`LocalStore`], with a fence that writers pass ([`check_fence`]).
//! [`CatalogHome::publish`] brings copies up to the map; [`recover`] makes a map out of copies.
//!
//! ```
//! # use std::sync::Arc;
//! # async fn example(surroundings: base::Environment) -> Result<(), Box<dyn std::error::Error>> {
//! use shard_map::{Change, Name, Shard};
//! use shard_store::{CatalogHome, HomeError, LocalStores, MemoryRecords};
//!
//! let base::Environment { clock, random, .. } = surroundings;
//! let records = Arc::new(MemoryRecords::new("memory", random.clone()));
//! let home = CatalogHome::new(records, clock, random);
//! let catalog = home.create(&Name::parse("app")?).await?;
//! let one = Shard::new(Name::parse("one")?, "postgres://db1/app");
//! let add = |_: &_| Ok::<_, HomeError>(vec![Change::AddShard(one.clone())]);
//! let changed = home.change(&catalog, "the first shard", add).await?;
//! // With a `LocalStore` for each shard; without one the shard counts as out of reach.
//! let published = home.publish(&changed.catalog, &LocalStores::new()).await?;
//! assert!(!published.is_complete());
//! # Ok(())
//! # }
//! ```
//!
//! What always holds:
//!
//! * of several writers of one epoch one wins, and the others decide again over its change;
//! * at no time do two shards let writes of one key pass, whatever clients know and wherever a publish was
//!   cut off;
//! * a map that is older than a shard's copy, a shard of another catalog and a newer format are refused;
//! * every loop, wait and text has a bound; clock, chance, disk, tasks and sockets are handed in.
//!
//! Absent: data of shards, and connections of applications.
//!
//! | folder | content |
//! |---|---|
//! | `records/` | places for records |
//! | `home/` | the log, snapshots, history |
//! | `local/` | a shard's copy and fence |
//! | `recovery/` | from the map to the shards and back |

mod error;
mod home;
mod local;
mod on_thread;
#[cfg(feature = "postgres")]
mod postgres_database;
mod records;
mod recovery;
#[cfg(feature = "sqlite")]
mod sqlite_file;

pub use error::StoreError;
pub use home::collect::Collected;
pub use home::entry::Entry;
pub use home::home::CatalogHome;
pub use home::home_error::HomeError;
pub use local::copy::{LocalCopy, LocalMap, LocalMapping};
pub use local::copy_json::CopyError;
pub use local::fence::{Access, Refusal, check_fence};
pub use local::local_store::{LocalStore, Replaced, Revision, StoredCopy};
pub use local::memory::MemoryLocal;
#[cfg(feature = "postgres")]
pub use local::postgres::{POSTGRES_SHARD_TABLES, PostgresLocal};
#[cfg(feature = "sqlite")]
pub use local::sqlite::SqliteLocal;
pub use local::table::TableLocal;
#[cfg(feature = "postgres")]
pub use postgres_database::{PostgresDatabase, PostgresSurroundings};
pub use records::file::{FilePlace, FileRecords};
pub use records::memory::{MemoryFaults, MemoryRecords};
#[cfg(feature = "postgres")]
pub use records::postgres::PostgresRecords;
pub use records::records::{KEY_BYTES_MAX, Put, Record, Records, VALUE_BYTES_MAX};
#[cfg(feature = "sqlite")]
pub use records::sqlite::SqliteRecords;
pub use records::table::TableRecords;
pub use recovery::choose_writes::{CopyMismatch, Held, ShardCopy};
pub use recovery::detach::detach;
pub use recovery::differences::{Difference, DifferenceKind, differences};
pub use recovery::publish::{LocalStores, PublishError, Published, read_copies};
pub use recovery::recover::{LOST_EPOCHS_MAX, recover};
pub use recovery::recovered::{RecoverError, Recovery};
#[cfg(feature = "sqlite")]
pub use sqlite_file::SqliteFile;
