//! Scans that pass over rows, compared with what a scan of all rows has shown.

use super::Everything;
use bytes::Bytes;
use partition::{
    KeyRange, ObjectTable, PartitionError, Partitions, RowRef, RowVersion, Scan, ScanEnd, Visit,
};
use std::sync::Arc;

type KnownRow = (Vec<u8>, (RowVersion, Vec<u8>));

/// A scan that jumps after some rows, short and long ways, to rows and to where none is.
struct Jumping {
    known: Arc<[KnownRow]>,
    salt: usize,
    shown: Vec<KnownRow>,
}

/// What such a scan wants after the row numbered `at`.
fn jump(known: &[KnownRow], at: usize, salt: usize) -> Visit {
    let way = [1, 0, 2, 9, 1, 40, 3, 300][(at * 7 + salt) % 8];
    let key = known.get(at + way).map_or(&[0xff][..], |(key, _)| key);
    match (way, (at + salt) % 3) {
        (1, 0) => Visit::Continue,
        (_, 1) => Visit::SkipTo(Bytes::copy_from_slice(key)),
        (_, 2) => Visit::SkipTo([key, &[0]].concat().into()),
        _ => Visit::SkipTo(Bytes::copy_from_slice(&key[..key.len() - 1])),
    }
}

impl Scan for Jumping {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        self.shown.push((row.key.to_vec(), (row.version, row.value.to_vec())));
        let at = self.known.partition_point(|(key, _)| key.as_slice() < row.key);
        jump(&self.known, at, self.salt)
    }
}

/// Jumps through a table, of which `all` is known, in several ways.
pub(super) async fn check_jumps(
    partitions: &Partitions,
    table: ObjectTable,
    all: &Everything,
) -> Result<(), PartitionError> {
    let known: Arc<[KnownRow]> = all.clone().into_iter().collect();
    for salt in 0..4 {
        let (mut expected, mut at) = (Vec::new(), 0);
        while let Some(row) = known.get(at) {
            expected.push(row.clone());
            at = match jump(&known, at, salt) {
                Visit::SkipTo(to) => known.partition_point(|(key, _)| **key < *to).max(at + 1),
                _ => at + 1,
            };
        }
        let scan = Jumping { known: known.clone(), salt, shown: Vec::new() };
        let (scan, end) = partitions.scan(table, KeyRange::all(), scan).await?;
        assert!(
            scan.shown == expected,
            "{} rows shown, not {}, salt {salt}",
            scan.shown.len(),
            expected.len()
        );
        assert_eq!(end, ScanEnd::Complete);
    }
    Ok(())
}
