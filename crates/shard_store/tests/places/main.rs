//! Every place for a map's home and for shards' copies under the same tests: memory, which is the model, a
//! file, SQLite, a table of the real front end over sockets, and Postgres of Debian's packages, started and
//! ended here.
#![allow(clippy::disallowed_methods)] // Tests open the sockets and files that production code is handed.

mod homes;
mod locals;
mod place;
mod postgres_server;
mod publishing;
mod records;
mod served_account;

use place::Place;

/// All contracts of a place.
async fn keep_contracts(place: &dyn Place) {
    records::one_place_is_as_the_model(place).await;
    records::of_many_puts_of_a_key_one_is_done(place).await;
    homes::a_home_is_created_changed_and_read(place).await;
    homes::writers_of_one_home_lose_no_change(place).await;
    homes::long_changes_snapshots_and_pruning(place).await;
    homes::a_home_of_a_recovered_catalog_is_seen_by_old_clients(place).await;
    locals::a_copy_is_replaced_as_a_whole_or_not(place).await;
    publishing::moves_are_published_and_recovered(place).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_a_place() {
    keep_contracts(&place::Memory::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_a_place() {
    keep_contracts(&place::File::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_is_a_place() {
    let place = place::Sqlite::default();
    keep_contracts(&place).await;
    locals::fence_rows_in_sqlite_are_those_of_the_copy(&place).await;
    homes::a_reader_makes_no_sqlite_database(&place).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_a_place() {
    keep_contracts(&place::Table::serve().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_a_place() {
    let place = place::Postgres::start();
    keep_contracts(&place).await;
    locals::a_replacement_in_postgres_waits_for_writers(&place).await;
    homes::a_database_that_is_not_there_is_named(&place).await;
    homes::a_reader_in_postgres_needs_no_right_to_write(&place).await;
    homes::a_connection_that_postgres_ended_is_made_again(&place).await;
}
