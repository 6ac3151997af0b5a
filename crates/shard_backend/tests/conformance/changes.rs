//! Schemas, deletes, refusals, and tables without shard keys.

use crate::rows::same_rows;
use crate::stage::{Home, Stage, key};
use base::Ticks;
use shard_backend::{
    Backend, BackendError, BatchBounds, DriftKind, FenceHold, Row, RowKey, Shardlet, Value, drift,
};
use shard_map::{Epoch, KeyValue};

pub(crate) async fn a_schema_is_as_declared_until_it_drifts(stage: &Stage) {
    let found = async || drift(&stage.schema, &stage.backend.actual_schema().await.expect("a schema"));
    assert_eq!(found().await, []);
    if matches!(stage.home, Home::Memory) {
        return;
    }
    stage.home.run("ALTER TABLE countries ADD COLUMN more integer");
    let drifted = found().await;
    assert_eq!(drifted.len(), 1);
    assert_eq!(drifted[0].kind, DriftKind::AdditionalColumn("more".to_owned()));
    stage.home.run("ALTER TABLE countries DROP COLUMN more");
    stage.home.run("ALTER TABLE countries RENAME TO nations");
    assert_eq!(found().await[0].kind, DriftKind::MissingTable);
    stage.home.run("ALTER TABLE nations RENAME TO countries");
    assert_eq!(found().await, []);
}

pub(crate) async fn deletes_are_as_the_model_does_them(stage: &Stage) {
    let table = stage.table("all_kinds");
    for (mapping, since) in stage.mappings() {
        let shardlet = stage.shardlet(&mapping);
        let rows = stage.rows_of(&shardlet);
        let keys = rows.iter().step_by(3).map(|row| table.check_row(row).expect("a row").0);
        let keys: Vec<RowKey> = keys.collect();
        for backend in [&stage.model, stage.backend.as_ref()] as [&dyn Backend; 2] {
            // Twice: a row that is not there is deleted.
            for _ in 0..2 {
                let deleted = backend.delete(table, &shardlet, FenceHold::Open(since), &keys).await;
                assert_eq!(deleted, Ok(()), "{shardlet}");
            }
        }
        same_rows(stage, &shardlet).await;
    }
    same_rows(stage, &Shardlet::all()).await;
}

pub(crate) async fn what_is_refused_changes_nothing(stage: &Stage) {
    let (table, backend) = (stage.table("all_kinds"), stage.backend.as_ref());
    let pin = stage.map().route(&key("b", &[0])).expect("a route").mapping;
    let since = stage.map().placement(&pin).expect("a placement").since;
    let (shardlet, open) = (stage.shardlet(&pin), FenceHold::Open(since));
    let good = stage.row("b", &[0], 77);
    let write = async |rows: &[Row]| backend.write(table, &shardlet, open, rows).await;
    let other = write(&[good.clone(), stage.row("b", &[1], 77)]).await;
    assert!(matches!(other, Err(BackendError::OtherShardlet { .. })), "{other:?}");
    let all = backend.write(table, &Shardlet::all(), open, std::slice::from_ref(&good)).await;
    assert!(matches!(all, Err(BackendError::OtherShardlet { .. })), "{all:?}");
    let many = write(&vec![good.clone(); 1001]).await;
    assert!(matches!(many, Err(BackendError::Batch { .. })), "{many:?}");
    let mut bad = good.clone();
    bad.values[0] = Value::Null;
    let none = write(&[good.clone(), bad]).await;
    assert!(matches!(none, Err(BackendError::Row { .. })), "{none:?}");
    let column =
        |name: &str| table.columns().iter().position(|column| column.name == name).expect("a column");
    let unstored: &[(&str, Value)] = match stage.home {
        Home::Memory => &[],
        Home::Sqlite(_) => &[("v_float", Value::Float64(f64::NAN))],
        Home::Postgres(_) => {
            &[("v_text", Value::Text(String::from("a\0"))), ("v_at", Value::DateTime(Ticks(1)))]
        }
    };
    for (name, value) in unstored {
        let mut bad = good.clone();
        bad.values[column(name)] = value.clone();
        let refused = write(&[good.clone(), bad]).await.expect_err("it can't be stored");
        assert!(matches!(refused, BackendError::Value { .. }) && !refused.may_be_done(), "{refused}");
    }
    // Keys that Postgres can't store are those of no row.
    let (mut gone, _) = table.check_row(&good).expect("a row");
    for value in &mut gone.values {
        if let KeyValue::DateTime(at) = value {
            at.0 += 1;
        }
    }
    assert_eq!(backend.delete(table, &shardlet, open, &[gone]).await, Ok(()));
    same_rows(stage, &Shardlet::all()).await;
}

pub(crate) async fn reference_tables_have_no_fence(stage: &Stage) {
    let (table, backend) = (stage.table("countries"), stage.backend.as_ref());
    let row = |code: &str, name: &str| Row { values: vec![code.into(), name.into()] };
    let rows = [row("fr", "France"), row("de", "one"), row("de", "Germany")];
    let hold = FenceHold::Closed(Epoch(99));
    assert_eq!(backend.write(table, &Shardlet::all(), hold, &rows).await, Ok(()));
    let found = stage.scan(backend, "countries", &Shardlet::all(), BatchBounds::default()).await;
    assert_eq!(found, [row("de", "Germany"), row("fr", "France")]);
    let (pin, since) = stage.mappings().swap_remove(0);
    let shardlet = stage.shardlet(&pin);
    let refused = backend.write(table, &shardlet, FenceHold::Open(since), &rows).await;
    assert!(matches!(refused, Err(BackendError::OtherShardlet { .. })), "{refused:?}");
    // A table that has nothing but its key.
    let (table, pin) =
        (stage.table("only keys"), stage.map().route(&key("b", &[0])).expect("a route").mapping);
    let open = FenceHold::Open(stage.map().placement(&pin).expect("a placement").since);
    let rows = [Row { values: vec!["b".into(), Value::Binary(vec![0])] }];
    for _ in 0..2 {
        assert_eq!(backend.write(table, &stage.shardlet(&pin), open, &rows).await, Ok(()));
    }
    assert_eq!(stage.scan(backend, "only keys", &Shardlet::all(), BatchBounds::default()).await, rows);
}
