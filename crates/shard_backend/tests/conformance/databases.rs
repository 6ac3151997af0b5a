//! What one kind of database alone can do wrong.

use crate::stage::Stage;
use shard_backend::{BatchBounds, FenceHold, Row, RowKey, Shardlet};
use shard_map::Epoch;

/// A column whose texts differ by nothing but their case is a legal one beside a key that orders by bytes;
/// the delete of one row took the other one, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_delete_in_sqlite_compares_keys_by_their_bytes() {
    let stage = Stage::sqlite().await;
    stage.home.run(
        "DROP TABLE countries;
         CREATE TABLE countries (code TEXT NOT NULL COLLATE NOCASE, name TEXT NOT NULL,
             PRIMARY KEY (code COLLATE BINARY));
         INSERT INTO countries VALUES ('de', 'one'), ('DE', 'two')",
    );
    let (table, all) = (stage.table("countries"), Shardlet::all());
    let key = RowKey { values: vec!["DE".into()] };
    stage.backend.delete(table, &all, FenceHold::Closed(Epoch(1)), &[key]).await.expect("deleted");
    let left = stage.scan(stage.backend.as_ref(), "countries", &all, BatchBounds::default()).await;
    assert_eq!(left, [Row { values: vec!["de".into(), "one".into()] }]);
}

/// Two rows that differ by a zone, or by the eighth digit of a second, had one digest, so a move that changed
/// their texts was certified.
#[tokio::test(flavor = "multi_thread")]
async fn a_date_time_in_sqlite_that_a_move_would_change_is_refused() {
    for text in ["2026-11-28T16:05:00+02:00", "2026-11-28T14:05:00.12345678Z"] {
        let stage = Stage::sqlite().await;
        stage.home.run(&format!(
            "INSERT INTO all_kinds (a, b, n, at, g, big, v_at)
             VALUES ('a', x'', 1, '2026-11-28T14:05:00.0000000Z', zeroblob(16), 1, '{text}')"
        ));
        let (table, all) = (stage.table("all_kinds"), Shardlet::all());
        let error = stage.backend.scan(table, &all, None, BatchBounds::default()).await.expect_err(text);
        assert!(error.to_string().contains("which a move would lose"), "{error}");
    }
}

/// The most memory that this process had at a time, in MiB. Each test has a process of its own.
fn memory_max_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is there");
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().expect("a number") / 1024
}

/// After short rows a chunk of many was read, which were long ones: all of them were in memory at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_scan_of_postgres_has_one_batch_in_memory_however_long_the_next_rows_are() {
    let stage = Stage::postgres().await;
    stage.home.run(
        "INSERT INTO countries SELECT 'a' || lpad(n::text, 4, '0'), 'short' FROM generate_series(1, 200) n;
         INSERT INTO countries SELECT 'b' || lpad(n::text, 4, '0'), repeat('x', 1 << 20)
             FROM generate_series(1, 400) n",
    );
    let (table, all) = (stage.table("countries"), Shardlet::all());
    let before = memory_max_mib();
    let (mut rows, mut after, mut batches) = (0, None, 0);
    loop {
        let batch = stage.backend.scan(table, &all, after.as_ref(), BatchBounds::default()).await;
        let batch = batch.expect("a batch");
        (rows, batches) = (rows + batch.rows.len(), batches + 1);
        after = batch.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(rows, 600);
    let more = memory_max_mib() - before;
    println!("{batches} batches, {more} MiB more");
    assert!(more < 64, "{more} MiB for batches of 4 MiB");
}

/// A count read whole rows, so that one of a large mapping never ended in time.
#[tokio::test(flavor = "multi_thread")]
async fn a_count_in_postgres_reads_no_rows() {
    let stage = Stage::postgres().await;
    // A row whose other columns can't be read is counted.
    stage.home.run(
        "INSERT INTO all_kinds SELECT 'a' || (n % 50), decode(to_hex(n % 7 + 16), 'hex'), n, '2026-11-28',
             '00000000-0000-0000-0000-000000000000', 1, true, 1, 'text', '', 'infinity'
         FROM generate_series(1, 5000) n",
    );
    let table = stage.table("all_kinds");
    let mut counted = 0;
    for (mapping, _) in stage.mappings() {
        counted += stage.backend.count(table, &stage.shardlet(&mapping)).await.expect("a count");
    }
    assert_eq!(counted, 5000);
    assert_eq!(stage.backend.count(table, &Shardlet::all()).await, Ok(5000));
    let error = stage.backend.scan(table, &Shardlet::all(), None, BatchBounds::default()).await;
    error.expect_err("infinity is no instant");
}

/// A count read all columns of all rows.
#[tokio::test(flavor = "multi_thread")]
async fn a_count_in_sqlite_reads_no_rows() {
    let stage = Stage::sqlite().await;
    // A row whose other columns can't be read is counted.
    stage.home.run(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 5000)
         INSERT INTO all_kinds (a, b, n, at, g, big, v_at)
         SELECT 'a' || (n % 50), CAST(char(n % 7 + 16) AS BLOB), n, '2026-11-28T14:05:00.0000000Z', zeroblob(16), 1,
             'no instant'
         FROM numbers",
    );
    let table = stage.table("all_kinds");
    let mut counted = 0;
    for (mapping, _) in stage.mappings() {
        counted += stage.backend.count(table, &stage.shardlet(&mapping)).await.expect("a count");
    }
    assert_eq!(counted, 5000);
    assert_eq!(stage.backend.count(table, &Shardlet::all()).await, Ok(5000));
    let error = stage.backend.scan(table, &Shardlet::all(), None, BatchBounds::default()).await;
    error.expect_err("no instant is one");
}
