//! The router over places in memory in virtual time, and over real shards: SQLite, Postgres that the test
//! starts and ends, and an account of the real front end over sockets.
#![allow(clippy::disallowed_methods)] // Tests open the sockets and files that production code is handed.

mod account;
mod cached_map;
mod fan_out;
mod fan_out_moves;
mod histories;
mod model;
mod outbox;
mod postgres;
#[path = "../../../shard_store/tests/places/postgres_server.rs"]
#[allow(dead_code)] // Tests of the store use more of it.
mod postgres_server;
mod rows;
#[path = "../../../shard_store/tests/places/served_account.rs"]
mod served_account;
mod setup;
mod sqlite;
