//! Rows of all kinds come back as they were written, in the order of their keys.

use crate::stage::Stage;
use shard_backend::{Backend, BatchBounds, DigestKey, FenceHold, Row, RowHasher, Shardlet, TableDigest};

pub(crate) async fn rows_are_read_as_the_model_reads_them(stage: &Stage) {
    write_all(stage).await;
    let mut shardlets: Vec<Shardlet> =
        stage.mappings().iter().map(|(mapping, _)| stage.shardlet(mapping)).collect();
    shardlets.push(Shardlet::all());
    let mut found = 0;
    for shardlet in &shardlets {
        found += same_rows(stage, shardlet).await;
        resume_from_each_key(stage, shardlet).await;
    }
    assert_eq!(found, 2 * stage.rows().len());
}

async fn write_all(stage: &Stage) {
    let table = stage.table("all_kinds");
    for (mapping, since) in stage.mappings() {
        let shardlet = stage.shardlet(&mapping);
        let rows = stage.rows_of(&shardlet);
        // Twice: a write puts rows in the place of those that are there.
        for backend in [&stage.model, stage.backend.as_ref()] as [&dyn Backend; 2] {
            for rows in rows.chunks(7).chain(rows.chunks(13)) {
                let written = backend.write(table, &shardlet, FenceHold::Open(since), rows).await;
                assert_eq!(written, Ok(()), "{shardlet}");
            }
        }
    }
}

/// Gives how many rows there are.
pub(crate) async fn same_rows(stage: &Stage, shardlet: &Shardlet) -> usize {
    let (table, subject) = (stage.table("all_kinds"), stage.backend.as_ref());
    let expected = stage.scan(&stage.model, "all_kinds", shardlet, BatchBounds::default()).await;
    let keys: Vec<_> = expected.iter().map(|row| table.check_row(row).expect("a row").1).collect();
    assert!(keys.is_sorted(), "the model is in order");
    let default = BatchBounds::default();
    for bounds in [
        default,
        BatchBounds { rows_max: 1, ..default },
        BatchBounds { rows_max: 5, ..default },
        BatchBounds { looked_at_rows_max: 3, ..default },
        BatchBounds { bytes_max: 700, ..default },
    ] {
        assert_eq!(
            stage.scan(subject, "all_kinds", shardlet, bounds).await,
            expected,
            "{shardlet} {bounds:?}"
        );
    }
    assert_eq!(subject.count(table, shardlet).await, Ok(expected.len() as u64), "{shardlet}");
    let digest = |rows: &[Row]| {
        let mut hasher = RowHasher::new(&DigestKey::new([3; 16]), table);
        let mut digest = TableDigest::default();
        rows.iter().for_each(|row| digest.add(hasher.hash(row)));
        digest
    };
    let found = stage.scan(subject, "all_kinds", shardlet, default).await;
    assert_eq!(digest(&found), digest(&expected), "{shardlet}");
    expected.len()
}

async fn resume_from_each_key(stage: &Stage, shardlet: &Shardlet) {
    let table = stage.table("all_kinds");
    let default = BatchBounds::default();
    for row in stage.rows() {
        let (after, _) = table.check_row(&row).expect("a row");
        let expected = stage.model.scan(table, shardlet, Some(&after), default).await.expect("a batch");
        let found = stage.backend.scan(table, shardlet, Some(&after), default).await.expect("a batch");
        assert_eq!(found.rows, expected.rows, "{shardlet} after {after}");
    }
}
