//! What operations waited for, as metrics: the log where they wrote, the disk where no cache had the block.

use super::rows::{Everything, key, open, put, value};
use base::Metrics;
use base::metrics::Value;
use partition::{ObjectTable, PartitionSettings};
use std::collections::BTreeMap;

/// How often was waited, by what for.
fn waits(metrics: &Metrics) -> BTreeMap<String, u64> {
    let readings = metrics.read();
    let reading = readings.iter().find(|reading| reading.family.name == "larimar_wait_seconds");
    let count = |value: &Value| match value {
        Value::Histogram { cumulative, .. } => cumulative.last().copied().unwrap_or(0),
        Value::Number(_) => unreachable!("a histogram"),
    };
    let series = reading.expect("the family").series.iter();
    series.map(|series| (series.labels.concat(), count(&series.value))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waits_for_log_and_disk_are_apart() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let env = base::system::environment(folder.path());
    let (streams, partitions) = open(&env, PartitionSettings::default()).await.unwrap();
    let before = waits(&env.metrics);
    let row = key(7, "p", "r");
    for number in 0..5 {
        put(&partitions, &mut Everything::new(), row.clone(), Some(value(number, 10))).await.unwrap();
    }
    let written = waits(&env.metrics);
    assert!(written["log"] >= before["log"] + 5, "{before:?} {written:?}");
    assert_eq!(written["disk"], before["disk"], "all of it is in memory");
    // Into a checkpoint, and read from it by a process whose cache has nothing.
    partitions.flush_now(ObjectTable::Entity, None).await.unwrap();
    partitions.close().await;
    streams.close().await;
    drop((partitions, streams));
    let env = base::system::environment(folder.path());
    let (streams, partitions) = open(&env, PartitionSettings::default()).await.unwrap();
    assert!(partitions.get(ObjectTable::Entity, &row).await.unwrap().is_some());
    assert!(waits(&env.metrics)["disk"] > 0);
    partitions.close().await;
    streams.close().await;
}
