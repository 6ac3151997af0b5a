//! Rows in the tables of a storage account, served by the real front end over sockets: all kinds of values,
//! order, resumed scans, groups, claims, and signatures that have ended.
#![allow(clippy::disallowed_methods)] // Tests open the sockets that production code is handed.

mod fences;
mod rows;
mod scripted;
mod setup;

#[path = "../../../shard_store/tests/places/served_account.rs"]
mod served_account;
