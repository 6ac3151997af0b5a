//! Scans over several spans, and over what was deleted: a scan gets their number, and can end there.

use crate::rows::{Everything, TABLE, Write, key, open, put, value};
use bytes::Bytes;
use partition::{
    KeyRange, PartitionError, PartitionSettings, Partitions, RowRef, Scan, ScanEnd, Span, Visit,
};
use sim::World;
use stream::{StreamSettings, Streams};

/// Takes all it is shown, until it has been told of so many rows that it is not shown.
#[derive(Default)]
struct Bounded {
    shown: Vec<Vec<u8>>,
    unseen: u64,
    unseen_max: u64,
}

impl Scan for Bounded {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        self.shown.push(row.key.to_vec());
        Visit::Continue
    }

    fn pass_over(&mut self, unseen: u64) -> Visit {
        self.unseen += unseen;
        if self.unseen >= self.unseen_max { Visit::StopBefore } else { Visit::Continue }
    }
}

const DELETED: u64 = 1000;

/// `DELETED` rows that are deleted, still in memory, and one behind them that is there.
async fn one_behind_many(partitions: &Partitions) {
    for value in [Some(value(1, 10)), None] {
        for from in (0..DELETED).step_by(100) {
            let keys = (from..from + 100).map(|row| key(1, "p", &format!("{row:04}")));
            let changes = keys.map(|key| (key, value.clone())).collect();
            partitions.execute(Write { changes }).await.unwrap();
        }
    }
    partitions.execute(Write { changes: vec![(key(1, "p", "z"), Some(value(1, 10)))] }).await.unwrap();
}

/// A scan was asked nothing while it was led over deleted rows: after a deletion of millions a page came too
/// late for its client, each time from the same place.
#[test]
fn a_scan_can_end_among_deleted_rows_and_goes_on_behind_them() {
    let settings = PartitionSettings {
        memory_table_size_bytes: 1 << 20,
        memory_tables_size_bytes_max: 8 << 20,
        ..PartitionSettings::tiny()
    };
    let finished = World::new(1).run(|env, _| async move {
        let (_, partitions) = open(&env, settings).await.unwrap();
        one_behind_many(&partitions).await;
        let (mut range, mut scans, mut shown) = (KeyRange::container("acct", 1), 0, Vec::new());
        loop {
            let bounded = Bounded { unseen_max: 200, ..Bounded::default() };
            let (scan, end) = partitions.scan(TABLE, range.clone(), bounded).await.unwrap();
            scans += 1;
            shown.extend(scan.shown);
            match end {
                ScanEnd::Complete => break,
                ScanEnd::More(key) => {
                    assert!((200..=400).contains(&scan.unseen), "{} deletions in one scan", scan.unseen);
                    assert!(key > range.start, "it gets on");
                    range.start = key;
                }
            }
        }
        assert_eq!(shown, [key(1, "p", "z").as_bytes().to_vec()]);
        assert_eq!(scans, 1 + DELETED / 256, "each had enough when it was told the second time");
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// Six partition names of ten rows, in range partitions that begin at these names.
async fn six_partition_names(partitions: &Partitions, begins: [&str; 3]) -> Everything {
    let mut expected = Everything::new();
    for partition in 0..6 {
        for row in 0..10 {
            let key = key(1, &format!("p{partition}"), &format!("r{row}"));
            put(partitions, &mut expected, key, Some(value(row, 50))).await.unwrap();
        }
    }
    for partition in begins {
        partitions.split(TABLE, &key(1, partition, "")).await.unwrap();
    }
    expected
}

fn range(from: (&str, &str), to: Option<(&str, &str)>) -> Span {
    let bytes = |(partition, row): (&str, &str)| key(1, partition, row).as_bytes().clone();
    Span::Range(KeyRange { start: bytes(from), end: to.map(bytes) })
}

/// The keys that lie in these spans.
fn keys_in(all: &Everything, spans: &[Span]) -> Vec<Vec<u8>> {
    let holds = |bytes: &[u8], span: &Span| match span {
        Span::Point(point) => point.as_bytes().as_ref() == bytes,
        Span::Range(range) => range.contains(bytes),
    };
    all.keys().filter(|bytes| spans.iter().any(|span| holds(bytes, span))).cloned().collect()
}

/// Wants nothing between the first row that it is shown and a key.
struct Jump {
    to: Bytes,
    shown: Vec<Vec<u8>>,
}

impl Scan for Jump {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        self.shown.push(row.key.to_vec());
        if self.shown.len() == 1 { Visit::SkipTo(self.to.clone()) } else { Visit::Continue }
    }
}

/// From a point and from a range, into a span, behind one, over ranges' bounds, to the end and backwards.
#[test]
fn a_jump_passes_over_spans_and_range_partitions() {
    let finished = World::new(4).run(|env, _| async move {
        let (_, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
        let expected = six_partition_names(&partitions, ["p1", "p3", "p4"]).await;
        let point = |partition: &str, row: &str| Span::Point(key(1, partition, row));
        let rest = vec![
            range(("p0", "r2"), Some(("p0", "r5"))),
            point("p0", "r7"),
            point("p1", "r1"),
            range(("p1", "r3"), Some(("p3", "r2"))),
            point("p3", "r5"),
            point("p3", "r7"),
            range(("p4", "r2"), Some(("p5", "r1"))),
            point("p5", "r8"),
        ];
        for first in [point("p0", "r1"), range(("p0", "r0"), Some(("p0", "r2")))] {
            let spans: Vec<Span> = std::iter::once(first).chain(rest.clone()).collect();
            let all = keys_in(&expected, &spans);
            let targets = expected.keys().cloned().chain([key(1, "p0", "").as_bytes().to_vec(), vec![0xff]]);
            for to in targets {
                let jump = Jump { to: to.clone().into(), shown: Vec::new() };
                let (jump, end) = partitions.scan_spans(TABLE, spans.clone(), jump).await.unwrap();
                let (shown, wanted) = all.split_first().unwrap();
                let wanted = wanted.iter().filter(|bytes| **bytes >= to);
                let wanted: Vec<_> = std::iter::once(shown).chain(wanted).cloned().collect();
                assert_eq!(jump.shown, wanted, "to {}", to.escape_ascii());
                assert_eq!(end, ScanEnd::Complete);
            }
        }
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

/// Within a block, to another block and to other parts of a checkpoint.
#[test]
fn a_jump_reads_no_blocks_in_between() {
    const ROWS: u64 = 2500;
    let finished = World::new(5).run(|env, _| async move {
        // Each row has a block of its own, and a part a thousand of them.
        let settings = || PartitionSettings {
            memory_table_size_bytes: 40 << 20,
            memory_tables_size_bytes_max: 160 << 20,
            cache_size_bytes_max: 1 << 20,
            range_size_bytes_max: 1 << 30,
            ..PartitionSettings::tiny()
        };
        let row = |at: u64| key(1, "p", &format!("{at:06}"));
        // Blocks go into extents that have room for many: their table would not fit the small journal
        // otherwise.
        let stream_settings = StreamSettings { extent_size_bytes_max: 4 << 20, ..StreamSettings::tiny() };
        let streams = Streams::open(&env, stream_settings).await.unwrap();
        let partitions = Partitions::open(&env, streams.clone(), settings()).await.unwrap();
        for from in (0..ROWS).step_by(100) {
            let changes = (from..from + 100).map(|at| (row(at), Some(value(at, 20_000)))).collect();
            partitions.execute(Write { changes }).await.unwrap();
        }
        env.clock.sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(partitions.range_statistics(TABLE)[0].checkpoints, 1);
        let read = || partitions.statistics().cache.row_blocks_read;
        for (from, to) in [(0, 1), (0, 2), (1, 1020), (3, 1030), (5, 2060)] {
            let range = KeyRange { start: row(from).as_bytes().clone(), end: Some(row(to).successor()) };
            let before = read();
            let jump = Jump { to: row(to).as_bytes().clone(), shown: Vec::new() };
            let (jump, _) = partitions.scan(TABLE, range, jump).await.unwrap();
            assert_eq!(jump.shown, [from, to].map(|at| row(at).as_bytes().to_vec()));
            // And the one behind, in which the range ends.
            assert!(read() - before <= 3, "{} blocks from {from} to {to}", read() - before);
        }
        partitions.close().await;
        streams.close().await;
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}

#[test]
fn spans_are_read_wherever_range_partitions_begin_and_end() {
    let finished = World::new(2).run(|env, _| async move {
        let (_, partitions) = open(&env, PartitionSettings::tiny()).await.unwrap();
        let expected = six_partition_names(&partitions, ["p1", "p3", "p5"]).await;
        let spans = vec![
            range(("p0", "r3"), Some(("p0", "r5"))),
            Span::Point(key(1, "p0", "r7")),
            Span::Point(key(1, "p0", "rx")),
            range(("p0", "rz"), Some(("p1", "r1"))),
            range(("p1", "r5"), Some(("p1", "r5"))),
            Span::Point(key(1, "p3", "r0")),
            range(("p3", "r9"), Some(("p5", "r2"))),
            Span::Point(key(1, "p5", "r4")),
            range(("p5", "r8"), None),
        ];
        let unbounded = || Bounded { unseen_max: u64::MAX, ..Bounded::default() };
        let (scan, end) = partitions.scan_spans(TABLE, spans.clone(), unbounded()).await.unwrap();
        assert_eq!(end, ScanEnd::Complete);
        assert_eq!(scan.shown, keys_in(&expected, &spans));
        assert_eq!(scan.shown.len(), 2 + 1 + 1 + 1 + 1 + 10 + 2 + 1 + 2);

        let backwards = vec![spans[1].clone(), spans[0].clone()];
        let refused = partitions.scan_spans(TABLE, backwards, unbounded()).await;
        assert!(
            matches!(refused, Err(PartitionError::Operation(_))),
            "a span would be left out without a trace"
        );
        let nothing = partitions.scan_spans(TABLE, vec![], unbounded()).await.unwrap();
        assert!(nothing.0.shown.is_empty() && nothing.1 == ScanEnd::Complete);
    });
    assert!(finished.is_some(), "the disk crashed unasked");
}
