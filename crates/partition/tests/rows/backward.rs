//! Scans backward: all that a scan forward shows, the other way round, in one go and in pages.

use super::Everything;
use partition::{
    KeyRange, ObjectTable, PartitionError, Partitions, RowKey, RowRef, RowVersion, Scan, ScanEnd, SnapshotOf,
    Span, Visit,
};

/// A key, and the version and value there.
type KeyedRow = (Vec<u8>, (RowVersion, Vec<u8>));

/// Takes so many rows.
struct Page {
    rows: Vec<KeyedRow>,
    row_count_max: usize,
}

impl Scan for Page {
    fn visit(&mut self, row: RowRef<'_>) -> Visit {
        if self.rows.len() == self.row_count_max {
            return Visit::StopBefore;
        }
        self.rows.push((row.key.to_vec(), (row.version, row.value.to_vec())));
        Visit::Continue
    }
}

/// The rows of spans from the last to the first, in pages of so many.
pub(crate) async fn read_backward(
    partitions: &Partitions,
    table: ObjectTable,
    spans: &[Span],
    snapshot: Option<&SnapshotOf>,
    row_count_max: usize,
) -> Result<Vec<(Vec<u8>, (RowVersion, Vec<u8>))>, PartitionError> {
    let (mut all, mut spans) = (Vec::new(), spans.to_vec());
    loop {
        let page = Page { rows: Vec::new(), row_count_max };
        let (page, end) = partitions.scan_backward(table, spans.clone(), snapshot, page).await?;
        all.extend(page.rows);
        let ScanEnd::More(key) = end else { return Ok(all) };
        let end = RowKey::from_bytes(key).successor();
        spans.retain(|span| *span.start() < end);
        if let Some(Span::Range(range)) = spans.last_mut()
            && range.end.as_ref().is_none_or(|last| *last > end)
        {
            range.end = Some(end);
        }
    }
}

/// All rows of a table, and some of them as spans, backward.
pub(crate) async fn check_backward(
    partitions: &Partitions,
    table: ObjectTable,
    rows: &Everything,
) -> Result<(), PartitionError> {
    let expected: Vec<_> = rows.iter().rev().map(|(key, row)| (key.clone(), row.clone())).collect();
    let all = [Span::Range(KeyRange::all())];
    for row_count_max in [usize::MAX, 1 + rows.len() / 3] {
        let found = read_backward(partitions, table, &all, None, row_count_max).await?;
        assert!(found == expected, "{} rows backward in pages of {row_count_max}", found.len());
    }
    // Some rows as points, and what is between others as ranges.
    let keys: Vec<RowKey> = rows.keys().map(|key| RowKey::from_bytes(key.clone().into())).collect();
    let mut spans = Vec::new();
    for few in keys.chunks(7) {
        match few {
            [point, _, first, _, end, ..] => {
                spans.push(Span::Point(point.clone()));
                let (start, end) = (first.as_bytes().clone(), Some(end.as_bytes().clone()));
                spans.push(Span::Range(KeyRange { start, end }));
            }
            few => spans.extend(few.iter().cloned().map(Span::Point)),
        }
    }
    let holds = |key: &[u8]| {
        spans.iter().any(|span| match span {
            Span::Point(point) => **point.as_bytes() == *key,
            Span::Range(range) => range.contains(key),
        })
    };
    let expected: Vec<_> = expected.into_iter().filter(|(key, _)| holds(key)).collect();
    let found = read_backward(partitions, table, &spans, None, 5).await?;
    assert!(found == expected, "{} rows of spans backward", found.len());
    Ok(())
}
