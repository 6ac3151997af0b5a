//! Every backend under the same tests, beside the model in memory: SQLite, and Postgres of Debian's packages,
//! started and ended here.
#![allow(clippy::disallowed_methods)] // Tests open the sockets and files that production code is handed.

mod changes;
mod databases;
mod fences;
#[path = "../../../shard_store/tests/places/postgres_server.rs"]
mod postgres_server;
mod rows;
mod stage;
mod waits;

use stage::Stage;

/// All contracts of a backend.
async fn keep_contracts(stage: &mut Stage) {
    changes::a_schema_is_as_declared_until_it_drifts(stage).await;
    rows::rows_are_read_as_the_model_reads_them(stage).await;
    changes::deletes_are_as_the_model_does_them(stage).await;
    changes::what_is_refused_changes_nothing(stage).await;
    changes::reference_tables_have_no_fence(stage).await;
    fences::fence_and_claim_decide_which_writes_pass(stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_a_backend() {
    keep_contracts(&mut Stage::memory().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_is_a_backend() {
    keep_contracts(&mut Stage::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_a_backend() {
    let mut stage = Stage::postgres().await;
    keep_contracts(&mut stage).await;
    waits::a_publish_and_a_claim_wait_for_the_write_of_a_copy(&mut stage).await;
}
