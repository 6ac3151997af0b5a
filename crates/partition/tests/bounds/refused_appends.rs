//! What the operating system refuses for certain, such as space, fails the group that asked for it and
//! nothing else: its rows are as they were, for readers and for decisions that had seen the changes.

use crate::rows::{ACCOUNT, Everything, TABLE, Write, key, open, put, read_everything, value};
use partition::{
    Decision, KeyRange, ObjectTable, Operation, PartitionError, PartitionSettings, Read, RowVersion, Rows,
};
use sim::{Faults, World};
use std::time::Duration;

/// Replies with the values of the rows it reads.
struct Look {
    reads: Vec<Read>,
}

impl Operation for Look {
    type Reply = Vec<Vec<u8>>;

    fn object_table(&self) -> ObjectTable {
        TABLE
    }

    fn reads(&self) -> Vec<Read> {
        self.reads.clone()
    }

    fn decide(&self, rows: &Rows, _version: RowVersion) -> Decision<Vec<Vec<u8>>> {
        let seen = (0..self.reads.len()).flat_map(|index| rows.range(index));
        Decision::unchanged(seen.map(|row| row.value.to_vec()).collect())
    }
}

/// An operation that had seen the change of a group, and so had not asked the checkpoints for that row, was
/// decided as if the row did not exist once the group was taken back.
#[test]
fn a_decision_sees_a_row_again_whose_change_was_taken_back_for_want_of_space() {
    const SEED_COUNT: u64 = 90;
    let settings = || PartitionSettings { compaction_count_min: 100, ..PartitionSettings::tiny() };
    let (early, late) = (key(1, "p", "r00"), key(1, "p", "r99"));
    let mut decided_afterwards = [0, 0];
    for seed in 0..SEED_COUNT {
        let world = World::new(seed);
        // Both rows go into a checkpoint, blocks apart.
        world.run(|env, _| async move {
            let (streams, partitions) = open(&env, settings()).await.unwrap();
            let mut all = Everything::new();
            put(&partitions, &mut all, key(1, "p", "r00"), Some(value(1, 100))).await.unwrap();
            put(&partitions, &mut all, key(1, "p", "r99"), Some(value(2, 100))).await.unwrap();
            for at in 10..40 {
                put(&partitions, &mut all, key(1, "p", &format!("r{at}")), Some(value(at, 3000)))
                    .await
                    .unwrap();
            }
            env.clock.sleep(Duration::from_secs(1)).await;
            partitions.close().await;
            streams.close().await;
        });
        let (disk, early, late) = (world.disk.clone(), early.clone(), late.clone());
        let (written, points, range) = world
            .run(|env, _| async move {
                let (_streams, partitions) = open(&env, settings()).await.unwrap();
                // The log has an open extent, and what leads to the early row is in the cache.
                put(&partitions, &mut Everything::new(), key(1, "q", "r"), Some(value(3, 100)))
                    .await
                    .unwrap();
                partitions.get(TABLE, &early).await.unwrap().unwrap();
                let used: u64 = disk.files().iter().map(|(_, size)| size).sum();
                disk.set_faults(Faults { capacity_bytes: used, slow_one_in: 1, ..Faults::default() });
                let write = Write { changes: vec![(early.clone(), Some(value(4, 12_000)))] };
                let points = Look { reads: vec![Read::Point(early), Read::Point(late)] };
                let range = Read::Range { range: KeyRange::partition(ACCOUNT, 1, "p"), limit: 100 };
                tokio::join!(
                    partitions.execute(write),
                    partitions.execute(points),
                    partitions.execute(Look { reads: vec![range] })
                )
            })
            .unwrap();
        assert_eq!(written, Err(PartitionError::DiskFull), "seed {seed}");
        let (first, last) = (value(1, 100).to_vec(), value(2, 100).to_vec());
        // What is decided before the refusal fails with the change that it has seen.
        if points != Err(PartitionError::DiskFull) {
            assert_eq!(points, Ok(vec![first.clone(), last]), "seed {seed}");
            decided_afterwards[0] += 1;
        }
        if range != Err(PartitionError::DiskFull) {
            let range = range.unwrap();
            assert!(range.len() == 32 && range[0] == first, "seed {seed}: {} rows", range.len());
            decided_afterwards[1] += 1;
        }
    }
    assert!(decided_afterwards.iter().all(|count| *count >= 5), "{decided_afterwards:?} of {SEED_COUNT}");
}

/// A process that had run out of file descriptors when a stream needed its next extent lost the range: it
/// took no more writes until the next start.
#[test]
fn a_range_goes_on_after_no_file_could_be_opened_for_its_next_extent() {
    for seed in 0..10 {
        let world = World::new(seed);
        let disk = world.disk.clone();
        let expected = world
            .run(|env, _| async move {
                let (_streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
                let mut all = Everything::new();
                put(&partitions, &mut all, key(1, "p", "first"), Some(value(1, 10))).await.unwrap();
                disk.set_faults(Faults { create_refused_one_in: 1, ..Faults::default() });
                let mut refused = 0;
                for at in 0..30 {
                    let row = key(1, "p", &format!("r{at:02}"));
                    match put(&partitions, &mut all, row, Some(value(at, 3000))).await {
                        Ok(()) => {}
                        Err(PartitionError::OutOfFiles(_)) => refused += 1,
                        Err(other) => panic!("seed {seed}: {other}"),
                    }
                }
                assert!(refused > 20, "seed {seed}: {refused} refused");
                assert_eq!(read_everything(&partitions).await.unwrap(), all, "seed {seed}: reads go on");
                disk.set_faults(Faults::default());
                // A flush that was refused is tried again after a pause.
                env.clock.sleep(Duration::from_secs(3)).await;
                for at in 0..30 {
                    let row = key(1, "p", &format!("s{at:02}"));
                    put(&partitions, &mut all, row, Some(value(at, 3000))).await.unwrap();
                }
                assert_eq!(read_everything(&partitions).await.unwrap(), all, "seed {seed}");
                all
            })
            .unwrap();
        let found = world.run(|env, _| async move {
            let (_streams, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
            read_everything(&partitions).await.unwrap()
        });
        assert!(found == Some(expected), "seed {seed}: after a restart");
    }
}
