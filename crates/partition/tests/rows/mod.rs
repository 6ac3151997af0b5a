//! Rows for tests: an operation that puts and deletes, and a look at everything that is there.
#![allow(dead_code)] // Each test program uses its part.

pub(crate) mod backward;
mod jumps;

use base::Environment;
use base::codec::Decoder;
use bytes::Bytes;
use partition::{
    Decision, KeyRange, ObjectTable, Operation, PartitionError, PartitionSettings, Partitions, Read,
    RowChange, RowKey, RowRef, RowStart, RowVersion, Rows, Scan, ScanEnd, Visit,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use stream::{StreamSettings, Streams};

pub(crate) const ACCOUNT: &str = "acct";
pub(crate) const TABLE: ObjectTable = ObjectTable::Entity;

/// Rows by key, each with version and value.
pub(crate) type Everything = BTreeMap<Vec<u8>, (RowVersion, Vec<u8>)>;

/// Puts rows of one partition name, and deletes those without a value. Replies with the version.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) changes: Vec<(RowKey, Option<Bytes>)>,
}

impl Operation for Write {
    type Reply = RowVersion;

    fn object_table(&self) -> ObjectTable {
        TABLE
    }

    fn reads(&self) -> Vec<Read> {
        self.changes.iter().map(|(key, _)| Read::Point(key.clone())).collect()
    }

    fn decide(&self, _rows: &Rows, version: RowVersion) -> Decision<RowVersion> {
        let changes = self.changes.iter().map(|(key, value)| change_of(key, value.as_ref()));
        Decision { changes: changes.collect(), reply: version }
    }
}

/// Puts the value, or deletes the row.
fn change_of(key: &RowKey, value: Option<&Bytes>) -> RowChange {
    let key = key.clone();
    match value {
        Some(value) => RowChange::Put { key, value: value.clone() },
        None => RowChange::Delete { key },
    }
}

/// Puts a row of the table with blob data, or deletes it. It reads the row's head, and says how much of the
/// row that was.
#[derive(Clone, Debug)]
pub(crate) struct WriteBlobRow {
    pub(crate) key: RowKey,
    pub(crate) value: Option<Bytes>,
}

impl Operation for WriteBlobRow {
    type Reply = (RowVersion, Option<Bytes>);

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Blob
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Head(self.key.clone())]
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<Self::Reply> {
        let changes = vec![change_of(&self.key, self.value.as_ref())];
        Decision { changes, reply: (version, rows.point(0).map(|row| row.value.clone())) }
    }
}

/// The value of a row with an overflow, which compresses if the tag is odd.
pub(crate) fn value_with_overflow(tag: u64, head_size: usize, overflow_size: usize) -> Bytes {
    let mut out = Vec::new();
    RowStart { pieces: Vec::new(), overflow_size_bytes: overflow_size }.put(&mut out);
    out.extend_from_slice(&value(tag, head_size));
    match tag % 2 {
        0 => out.extend_from_slice(&value(!tag, overflow_size)),
        _ => out.extend((0..overflow_size).map(|at| (at / 64 + tag as usize) as u8)),
    }
    out.into()
}

/// A value without its overflow.
pub(crate) fn head_of(value: &[u8]) -> &[u8] {
    let start = RowStart::take(&mut Decoder::new(value)).expect("a row's start");
    &value[..value.len() - start.overflow_size_bytes]
}

/// Puts a row with blob data and checks the head that was there.
pub(crate) async fn put_blob_row(
    partitions: &Partitions,
    expected: &mut Everything,
    key: RowKey,
    value: Option<Bytes>,
) -> Result<(), PartitionError> {
    let bytes = key.as_bytes().to_vec();
    let (version, found) = partitions.execute(WriteBlobRow { key, value: value.clone() }).await?;
    let before = match value {
        Some(value) => expected.insert(bytes, (version, value.to_vec())),
        None => expected.remove(&bytes),
    };
    let before = before.map(|(_, value)| value);
    let is_right = match (&found, &before) {
        (Some(found), Some(before)) => found == before || found == head_of(before),
        (found, before) => found.is_none() && before.is_none(),
    };
    assert!(is_right, "a decision saw {found:?}, there is {before:?}");
    Ok(())
}

pub(crate) fn key(container: u64, partition: &str, name: &str) -> RowKey {
    RowKey::new(ACCOUNT, container, partition, name)
}

/// A value of `size` bytes that tells where it belongs and does not compress.
pub(crate) fn value(tag: u64, size: usize) -> Bytes {
    let mut state = tag;
    let mut out = Vec::with_capacity(size + 8);
    while out.len() < size {
        out.extend_from_slice(&base::random::splitmix64(&mut state).to_le_bytes());
    }
    out.truncate(size);
    out.into()
}

pub(crate) async fn put(
    partitions: &Partitions,
    expected: &mut Everything,
    key: RowKey,
    value: Option<Bytes>,
) -> Result<(), PartitionError> {
    let bytes = key.as_bytes().to_vec();
    let version = partitions.execute(Write { changes: vec![(key, value.clone())] }).await?;
    match value {
        Some(value) => expected.insert(bytes, (version, value.to_vec())),
        None => expected.remove(&bytes),
    };
    Ok(())
}

pub(crate) async fn open(
    env: &Environment,
    settings: PartitionSettings,
) -> Result<(Arc<Streams>, Partitions), PartitionError> {
    let streams = Streams::open(env, StreamSettings::tiny()).await?;
    let partitions = Partitions::open(env, streams.clone(), settings).await?;
    Ok((streams, partitions))
}

#[derive(Default)]
pub(crate) struct Collect {
    pub(crate) rows: Everything,
}

impl Scan for Collect {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        self.rows.insert(row.key.to_vec(), (row.version, row.value.to_vec()));
        Visit::Continue
    }
}

/// Sees heads.
#[derive(Default)]
struct CollectHeads(Collect);

impl Scan for CollectHeads {
    fn needs_overflow(&self) -> bool {
        false
    }

    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        self.0.visit(row)
    }
}

/// The rows of a range, by scan.
pub(crate) async fn scan_range(
    partitions: &Partitions,
    table: ObjectTable,
    range: KeyRange,
) -> Result<Everything, PartitionError> {
    let (scan, end) = partitions.scan(table, range, Collect::default()).await?;
    assert_eq!(end, ScanEnd::Complete);
    Ok(scan.rows)
}

/// All rows, also those with blob data.
pub(crate) async fn read_everything(partitions: &Partitions) -> Result<Everything, PartitionError> {
    let mut all = read_table(partitions, TABLE).await?;
    all.extend(read_table(partitions, ObjectTable::Blob).await?);
    Ok(all)
}

/// All rows of a table by scan, each once more by get, and some by scans that jump; and of those with blob
/// data the heads by a scan of their own.
pub(crate) async fn read_table(
    partitions: &Partitions,
    table: ObjectTable,
) -> Result<Everything, PartitionError> {
    let (scan, end) = partitions.scan(table, KeyRange::all(), Collect::default()).await?;
    assert_eq!(end, ScanEnd::Complete);
    for (key, (version, value)) in &scan.rows {
        let row = partitions.get(table, &RowKey::from_bytes(Bytes::copy_from_slice(key))).await?;
        let row = row.expect("a row that a scan shows");
        assert_eq!((row.version, &row.value[..]), (*version, &value[..]), "get and scan differ");
    }
    jumps::check_jumps(partitions, table, &scan.rows).await?;
    backward::check_backward(partitions, table, &scan.rows).await?;
    if table == ObjectTable::Blob {
        let (heads, _) = partitions.scan(table, KeyRange::all(), CollectHeads::default()).await?;
        let heads = heads.0.rows;
        assert!(heads.keys().eq(scan.rows.keys()), "a scan of heads shows other rows");
        for ((version, found), (_, value)) in heads.values().zip(scan.rows.values()) {
            assert!(found == value || found == head_of(value), "version {version:?}");
        }
    }
    Ok(scan.rows)
}

/// The container of rows with blob data in [`varied_life`].
const BLOB_CONTAINER: u64 = 100;

/// A folder with something of everything: checkpoints, merges of them, split and merged ranges, deleted rows,
/// a retired container, rows that are only in the log. Returns what must be there.
pub(crate) async fn varied_life(env: &Environment, value_size_max: u64) -> Everything {
    let (streams, partitions) = open(env, PartitionSettings::tiny()).await.unwrap();
    let mut expected = Everything::new();
    let random = |bound: u64| env.random.next_u64() % bound;
    for round in 0..6u64 {
        for at in 0..40u64 {
            let partition = format!("p{}", random(6));
            let name = format!("r{:02}", random(30));
            let gone = random(8) == 0;
            let value = (!gone).then(|| value(round * 100 + at, 20 + random(value_size_max) as usize));
            put(&partitions, &mut expected, key(1 + random(2), &partition, &name), value).await.unwrap();
        }
        for at in 0..20u64 {
            let key = key(BLOB_CONTAINER, &format!("b{}", random(12)), "h");
            let (tag, overflow_size) = (round * 100 + at, random(3) * random(3000));
            let value = (random(8) > 0).then(|| value_with_overflow(tag, 20, overflow_size as usize));
            put_blob_row(&partitions, &mut expected, key, value).await.unwrap();
        }
        match round {
            1 | 2 => {
                let at = key(1, &format!("p{}", 1 + round), "");
                partitions.split(TABLE, &at).await.unwrap();
            }
            3 => {
                partitions.merge(TABLE, &key(1, "p0", "")).await.unwrap();
            }
            4 => {
                let doomed = key(9, "p", "r");
                put(&partitions, &mut expected, doomed.clone(), Some(value(9, 100))).await.unwrap();
                expected.remove(&doomed.as_bytes()[..]);
                partitions.retire_container(TABLE, ACCOUNT, 9).await.unwrap();
                // Its row is still shown until a checkpoint forgets it: nobody asks for a container that is
                // gone.
                put(&partitions, &mut Everything::new(), doomed, None).await.unwrap();
            }
            _ => {}
        }
        env.clock.sleep(std::time::Duration::from_millis(50)).await;
    }
    // Long enough for the marks behind the last records of journal and stream manager.
    env.clock.sleep(std::time::Duration::from_secs(1)).await;
    if random(2) == 0 {
        partitions.close().await;
        streams.close().await;
    }
    expected
}

/// Puts or deletes a row of blob data.
pub(crate) struct NameBlob {
    pub key: RowKey,
    pub value: Option<Bytes>,
}

impl Operation for NameBlob {
    type Reply = ();

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Blob
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn decide(&self, _rows: &Rows, _version: RowVersion) -> Decision<()> {
        let key = self.key.clone();
        let change = match &self.value {
            Some(value) => RowChange::Put { key, value: value.clone() },
            None => RowChange::Delete { key },
        };
        Decision { changes: vec![change], reply: () }
    }
}
