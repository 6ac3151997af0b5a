//! Settings of the server from everywhere: flags beat the environment, the environment beats the file of
//! `--config`, the file beats the defaults.
//!
//! `table.rs` is the one list of settings (`stamp_table.rs` has those of a stamp). `typed.rs` and `file.rs`
//! read what was given, `merge.rs` decides which value holds, `sources.rs` puts them together, and hands the
//! result on as a command line: what a value means is checked at one place, wherever it comes from.
//! `command.rs` is `larimar config`, `reload.rs` applies a changed file while the server runs.
//!
//! What always holds: each mistake names its file and line, its variable or its flag; no key of an account is
//! printed.

pub(crate) mod command;
mod example;
mod file;
mod kind;
pub(crate) mod live;
mod merge;
pub(crate) mod reload;
pub(crate) mod setting;
pub(crate) mod sources;
mod stamp_table;
pub(crate) mod table;
mod toml_text;
mod typed;
