//! What operators have done to ranges at once: flushes, compactions, splits; and how ranges look to them.

use super::rows::{Everything, key, open, put, read_everything, value};
use partition::{ObjectTable, PartitionSettings};

const TABLE: ObjectTable = ObjectTable::Entity;
const ROWS: u64 = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranges_are_flushed_compacted_and_split_at_request() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let env = base::system::environment(folder.path());
    let large = PartitionSettings { range_size_bytes_max: 64 << 20, ..PartitionSettings::tiny() };
    let (streams, partitions) = open(&env, large).await.unwrap();
    let mut expected = Everything::new();
    let details = async || partitions.range_details(TABLE).await;
    let before = details().await;
    let id = before[0].id;
    assert_eq!((before.len(), before[0].start.as_ref(), before[0].end.as_ref()), (1, None, None));
    assert!(!partitions.split_in_middle(TABLE, id).await.unwrap(), "nothing parts an empty range");
    for round in 0..3 {
        for number in 0..ROWS {
            let row = key(1, &format!("p{:02}", number % 10), &format!("r{number}"));
            put(&partitions, &mut expected, row, Some(value(round * ROWS + number, 200))).await.unwrap();
        }
        assert_eq!(partitions.flush_now(TABLE, Some(id)).await.unwrap(), 1);
    }
    let flushed = details().await[0].served.clone().expect("it is served");
    assert_eq!(flushed.memory_table_bytes, 0);
    assert!(flushed.size_bytes > Some(ROWS * 200) && flushed.checkpoints >= 1, "{flushed:?}");
    assert!(flushed.requests >= 3 * ROWS && flushed.epoch >= 1, "{flushed:?}");
    assert!(partitions.compact_now(TABLE, None).await.unwrap().is_some());
    let compacted = details().await[0].served.clone().expect("it is served");
    assert!(compacted.checkpoints <= flushed.checkpoints, "{compacted:?}");
    assert_eq!(partitions.flush_now(TABLE, Some(id + 1000)).await.unwrap(), 0);
    assert_eq!(partitions.compact_now(TABLE, Some(id + 1000)).await.unwrap(), None);
    assert!(!partitions.split_in_middle(TABLE, id + 1000).await.unwrap());
    assert!(partitions.split_in_middle(TABLE, id).await.unwrap());
    let split = details().await;
    assert_eq!((split.len(), &split[0].end), (2, &split[1].start));
    assert!(split[0].end.as_ref().is_some_and(|bound| bound.contains("\"p0")), "{split:?}");
    assert_eq!(read_everything(&partitions).await.unwrap(), expected);
    partitions.close().await;
    streams.close().await;
}
