//! Three processes of a stamp in one seeded run: the real code over models of both stores, in virtual time.
//!
//! Each process serves ranges with a small replicated log of writes for each key, decided over what was
//! written before. Hosts are killed, paused for longer than their lease, cut off from a store; clocks drift
//! within the bound; requests arrive late, twice, never, and answers are lost; the object store is full, down
//! or does not answer for a name; the metadata store changes its leader, ends leases that live, is lost and
//! restored.
//!
//! What is checked: each acknowledged write is there, once, and none that was refused; reads are
//! linearizable; each write stands behind what it was decided over; no extent that a document names is
//! deleted, and none that none names stays; in the end every range has an owner that takes writes. `cargo
//! xtask sim cluster` runs many seeds; a failure names its seed, and `LARIMAR_SIM_SEED` runs it alone.
#![allow(clippy::disallowed_methods)] // Clocks and tasks of the simulated hosts are made here.

mod application;
mod bad_input;
mod bundles;
mod checks;
mod clients;
mod faults;
mod full_document;
mod held_range;
mod histories;
mod host;
mod keys;
mod ledger;
mod migration;
mod migration_back;
mod nemesis;
mod network;
mod objects;
mod operator;
mod partitions;
mod record;
mod server;
mod snapshot;
mod sweeps;
mod world;
