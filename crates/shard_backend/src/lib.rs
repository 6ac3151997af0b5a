//! What holds the rows of shards: their declared schema, what a backend can do, digests of rows, and rows in
//! batches, which a move between shards needs.
//!
//! A [`Schema`] declares the tables of a map's shards; [`drift`] is what a database has instead. A
//! [`Backend`] scans, writes and deletes the rows of a [`Shardlet`] behind the shard's fence
//! ([`FenceHold`]); [`Capabilities`] say what it can do, and [`choose_move`] how rows may be moved from one
//! to another. A [`TableDigest`] is the same for the same rows on any backend.
//!
//! ```
//! use shard_backend::{Capabilities, DigestKey, MoveMode, Row, RowHasher, Schema, TableDigest, choose_move};
//!
//! let schema = Schema::parse(
//!     "map = \"tenants\"\n[sharded.notes]\nkey = \"tenant\"\nprimary_key = [\"tenant\", \"number\"]\n\
//!      columns = { tenant = \"int64\", number = \"int32\", note = \"text null\" }",
//! )?;
//! let notes = schema.table("notes").expect("it is declared");
//! // Values are in the order of the columns' names.
//! let row = Row { values: vec!["hello".into(), 1_i32.into(), 17_i64.into()] };
//! notes.check_row(&row)?;
//! let mut hasher = RowHasher::new(&DigestKey::new([7; 16]), notes);
//! let mut digest = TableDigest::default();
//! digest.add(hasher.hash(&row));
//! assert_eq!(digest.rows, 1);
//!
//! let choice = choose_move(&Capabilities::SQLITE, &Capabilities::POSTGRES);
//! assert_eq!(choice.mode, MoveMode::ReadOnly);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What always holds:
//!
//! * a schema that was read is right as a whole; each mistake is one error with its line, each difference of
//!   a database has the names of its table and column;
//! * a row's canonical encoding does not depend on the backend that gave it, and the digest of a set of rows
//!   not on their order;
//! * a sharded table's rows are written with the mapping that they are of; while clients may write a
//!   mapping's rows, nothing is copied over them; what is copied passes only while its move holds the claim;
//! * batches have bounds in rows, bytes and rows that are looked at.
//!
//! Absent: a clock, a runtime; connections of applications; what decides when rows are moved.
//!
//! | folder | content |
//! |---|---|
//! | `schema/` | declared tables, their TOML and fingerprint, drift |
//! | `value/` | kinds, values, rows and their keys |
//! | `capability/` | what backends can do, and how rows may be moved between two |
//! | `digest/` | canonical rows and their hash |
//! | `backend/` | the trait; rows in memory, in tables of storage accounts |
//! | `sql/` | what databases have in common |
//! | `sqlite/`, `postgres/` | rows in a database (features `sqlite`, `postgres`) |

mod backend;
mod capability;
mod digest;
mod limits;
#[cfg(feature = "postgres")]
mod postgres;
mod schema;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;
mod value;

pub use backend::backend::Backend;
pub use backend::batch::{Batch, BatchBounds};
pub use backend::claim::StoredClaim;
pub use backend::error::BackendError;
pub use backend::fence::FenceHold;
pub use backend::memory::MemoryBackend;
pub use backend::shardlet::Shardlet;
pub use backend::tables::entity::{EntityError, EntityKey, entity_of_row, row_of_entity};
pub use backend::tables::table_backend::{TableBackend, TablePlace};
pub use capability::capabilities::{Capabilities, Fence, Transactions};
pub use capability::choose_move::{Lack, MoveChoice, MoveMode, Reason, Side, choose_move};
pub use digest::row_hasher::{DigestKey, RowHash, RowHasher};
pub use digest::table_digest::TableDigest;
pub use limits::{
    BATCH_BYTES_MAX, BATCH_LOOKED_AT_ROWS_MAX, BATCH_ROWS_MAX, NAME_BYTES_MAX, ROW_BYTES_MAX, SIGNED_FOR_MAX,
    TABLE_COLUMNS_MAX, TABLES_MAX,
};
#[cfg(feature = "postgres")]
pub use postgres::backend::PostgresBackend;
pub use schema::drift::{ActualColumn, ActualSchema, ActualTable, Drift, DriftKind, drift};
pub use schema::fingerprint::Fingerprint;
pub use schema::schema::{Schema, SchemaMapError};
pub use schema::table::{Column, TableSchema};
#[cfg(feature = "sqlite")]
pub use sqlite::backend::SqliteBackend;
pub use value::column_kind::ColumnKind;
pub use value::row::{Row, RowError, RowKey};
pub use value::value::Value;
