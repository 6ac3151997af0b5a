//! Which keys are hot, of ranges that are split, merged and opened anew; and when writes are said to go to an
//! end of a range.

use super::rows::{Everything, key, open, put, value};
use partition::{
    HeatQuery, KeyRange, ObjectTable, PartitionSettings, Partitions, RangeEnd, RangeHeatReport, RowRef, Scan,
    Visit,
};
use std::time::Duration;

const TABLE: ObjectTable = ObjectTable::Entity;

fn settings() -> PartitionSettings {
    PartitionSettings { heat_sample_one_in: 1, ..PartitionSettings::default() }
}

async fn heat(partitions: &Partitions) -> Vec<RangeHeatReport> {
    let query =
        HeatQuery { window: Duration::from_secs(3600), table: Some(TABLE), range: None, rows_max: 64 };
    partitions.heat(&query).await.ranges
}

async fn put_rows(partitions: &Partitions, partition: &str, numbers: impl Iterator<Item = u64>) {
    for number in numbers {
        let row = key(7, partition, &format!("{number:06}"));
        put(partitions, &mut Everything::new(), row, Some(value(number, 10))).await.unwrap();
    }
}

struct Nothing;

impl Scan for Nothing {
    fn visit(&mut self, _: RowRef<'_>) -> Visit {
        Visit::Continue
    }
}

/// Names and writes of the hottest partitions, over all ranges.
fn partitions_of(ranges: &[RangeHeatReport]) -> Vec<(String, u64)> {
    let all = ranges.iter().flat_map(|range| &range.partitions);
    let name = |heat: &partition::PartitionHeat| heat.start.partition_name.clone().unwrap_or_default();
    let mut all: Vec<_> = all.map(|heat| (name(heat), heat.sampled.writes)).collect();
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heirs_of_splits_and_merges_know_what_their_parents_did() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let env = base::system::environment(folder.path());
    let (streams, partitions) = open(&env, settings()).await.unwrap();
    for (partition, count) in [("a", 30), ("b", 20), ("c", 40)] {
        put_rows(&partitions, partition, 0..count).await;
    }
    partitions.scan(TABLE, KeyRange::partition("acct", 7, "b"), Nothing).await.unwrap();
    let expected: Vec<(String, u64)> = vec![("a".into(), 30), ("b".into(), 20), ("c".into(), 40)];
    let before = heat(&partitions).await;
    assert_eq!((before.len(), partitions_of(&before)), (1, expected.clone()));
    assert_eq!((before[0].sampled.writes, before[0].sampled.reads), (90, 1));
    assert_eq!((before[0].partitions[0].text.as_str(), before[0].others_max), ("(acct, 7, \"c\")", 0));
    let cells = |ranges: &[RangeHeatReport]| -> f64 {
        let rows = ranges.iter().flat_map(|range| &range.rows);
        rows.flat_map(|row| &row.cells).map(|cell| cell.reads + cell.writes).sum()
    };
    assert!((90.5..91.5).contains(&cells(&before)), "{before:?}");
    assert!(partitions.split(TABLE, &key(7, "b", "")).await.unwrap());
    let split = heat(&partitions).await;
    assert_eq!((split.len(), partitions_of(&split)), (2, expected.clone()));
    assert!((90.5..91.5).contains(&cells(&split)), "{split:?}");
    put_rows(&partitions, "c", 40..50).await;
    assert!(partitions.merge(TABLE, &key(7, "a", "")).await.unwrap());
    let merged = heat(&partitions).await;
    assert_eq!(partitions_of(&merged)[2], ("c".into(), 50));
    assert_eq!((merged.len(), merged[0].sampled.total()), (1, 101));
    partitions.close().await;
    streams.close().await;
}

/// After a restart nothing is known of the rows that are there, so appends in their middle looked like
/// appends at the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_go_to_an_end_only_if_hardly_a_row_is_beyond_them() {
    const ROWS: u64 = 1100;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let env = base::system::environment(folder.path());
    let (streams, partitions) = open(&env, settings()).await.unwrap();
    put_rows(&partitions, "z", 0..ROWS).await;
    assert_eq!(heat(&partitions).await[0].writes_go_to, Some(RangeEnd::Last));
    partitions.close().await;
    streams.close().await;
    let (streams, partitions) = open(&env, settings()).await.unwrap();
    put_rows(&partitions, "m", 0..100).await;
    let end = async || heat(&partitions).await[0].writes_go_to;
    assert_eq!(end().await, None, "the rows of z are behind them");
    put_rows(&partitions, "a", (0..ROWS).rev()).await;
    assert_eq!(end().await, Some(RangeEnd::First));
    partitions.close().await;
    streams.close().await;
    let off = PartitionSettings { heat_sample_one_in: 0, ..settings() };
    let (streams, partitions) = open(&env, off).await.unwrap();
    put_rows(&partitions, "m", 0..10).await;
    assert_eq!(heat(&partitions).await, []);
    partitions.close().await;
    streams.close().await;
}
