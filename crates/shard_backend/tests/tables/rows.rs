//! Rows are read as they were written, in the order of their keys.

use crate::setup::{Setup, note, scan};
use base::Ticks;
use shard_backend::{Backend, BackendError, FenceHold, Row, RowKey, Shardlet, Value, drift};
use shard_map::Epoch;
use storage_client::Entity;

const CLAIM: FenceHold = FenceHold::Closed(Epoch(5));

#[tokio::test(flavor = "multi_thread")]
async fn all_kinds_of_values_are_read_as_they_were_written() {
    let setup = Setup::serve().await;
    let backend = setup.backend(0);
    let (table, shardlet) = (setup.schema.table("notes").expect("it"), setup.shardlet("a"));
    assert_eq!(drift(&setup.schema, &backend.actual_schema().await.expect("tables")), []);
    backend.claim(&shardlet, Epoch(5)).await.expect("claimed");
    // at, bytes, id, long, note, number, real, tenant, yes
    let row = |number: i32, real: f64, text: &str, bytes: &[u8]| Row {
        values: vec![
            Value::DateTime(Ticks(133_456_789_012_345_678)),
            Value::Binary(bytes.to_vec()),
            Value::Guid(*b"0123456789abcdef"),
            i64::MIN.into(),
            text.into(),
            number.into(),
            Value::Float64(real),
            "a/b\\c#d?e'f%é\u{1}".into(),
            Value::Bool(number > 0),
        ],
    };
    let nan = row(7, f64::NAN, "", &[]);
    let rows = [
        row(i32::MIN, -0.0, "it's\r\n<&>\u{0}\u{7f}é😀", &[0, 1, 255]),
        row(-1, f64::NEG_INFINITY, " ", &[0; 1000]),
        row(0, 5e-324, "", &[]),
        nan,
        note("b", 1, "others are NULL"),
    ];
    backend.write(table, &shardlet, CLAIM, &rows).await.expect("written");
    assert_eq!(scan(&backend, (&setup.schema, "notes"), &shardlet, 2).await, rows);
    // Written again a row takes the place of the former one: all of it.
    let again = note("a/b\\c#d?e'f%é\u{1}", 7, "only this");
    backend.write(table, &shardlet, CLAIM, &[rows[3].clone(), again.clone()]).await.expect("written");
    assert_eq!(scan(&backend, (&setup.schema, "notes"), &shardlet, 1000).await[3], again);
    let reference = setup.schema.table("countries").expect("it");
    let countries = ["at", "de", "fr"].map(|code| Row { values: vec![code.into(), "a name".into()] });
    backend.write(reference, &Shardlet::all(), CLAIM, &countries).await.expect("written");
    assert_eq!(scan(&backend, (&setup.schema, "countries"), &Shardlet::all(), 2).await, countries);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_gives_a_shardlet_s_rows_in_order_and_goes_on_anywhere() {
    let setup = Setup::serve().await;
    let backend = setup.backend(0);
    let (notes, tenants) = ("notes", "tenants");
    let mut expected = std::collections::BTreeMap::new();
    for of in ["a", "m", "x"] {
        let shardlet = setup.shardlet(of);
        backend.claim(&shardlet, Epoch(5)).await.expect("claimed");
        let all: Vec<String> = match of {
            "m" => vec!["m".to_owned()],
            of => ["", "-", "0", "Z", "z", "zz", " ", "~", "é"].map(|end| format!("{of}{end}")).into(),
        };
        let mut all_notes: Vec<Row> = Vec::new();
        for tenant in &all {
            all_notes.extend((-60..60).map(|number| note(tenant, number, "text")));
        }
        let table = setup.schema.table(notes).expect("it");
        for rows in all_notes.chunks(1000) {
            backend.write(table, &shardlet, CLAIM, rows).await.expect("written");
        }
        let table = setup.schema.table(tenants).expect("it");
        let rows: Vec<Row> =
            all.iter().map(|tenant| Row { values: vec!["text".into(), tenant.as_str().into()] }).collect();
        backend.write(table, &shardlet, CLAIM, &rows).await.expect("written");
        expected.insert(of, (all_notes.len(), rows.len()));
    }
    for (of, (note_count, tenant_count)) in expected {
        let shardlet = setup.shardlet(of);
        for rows_max in [1000, 70] {
            assert_eq!(scan(&backend, (&setup.schema, notes), &shardlet, rows_max).await.len(), note_count);
        }
        for rows_max in [1000, 1] {
            assert_eq!(
                scan(&backend, (&setup.schema, tenants), &shardlet, rows_max).await.len(),
                tenant_count
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_deleted_whether_they_are_there_or_not() {
    let setup = Setup::serve().await;
    let backend = setup.backend(0);
    let (table, shardlet) = (setup.schema.table("notes").expect("it"), setup.shardlet("a"));
    backend.claim(&shardlet, Epoch(5)).await.expect("claimed");
    let rows: Vec<Row> = (0..5).map(|number| note("a", number, "text")).collect();
    backend.write(table, &shardlet, CLAIM, &rows).await.expect("written");
    let key = |number: i32| RowKey { values: vec!["a".into(), number.into()] };
    for keys in [vec![key(1), key(2)], vec![key(3), key(9), key(3)], vec![key(9)], Vec::new()] {
        backend.delete(table, &shardlet, CLAIM, &keys).await.expect("deleted");
    }
    let left = scan(&backend, (&setup.schema, "notes"), &shardlet, 1000).await;
    assert_eq!(left, [rows[0].clone(), rows[4].clone()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_row_is_named_and_nothing_is_lost() {
    let setup = Setup::serve().await;
    let backend = setup.backend(0);
    let (table, shardlet) = (setup.schema.table("notes").expect("it"), setup.shardlet("a"));
    backend.claim(&shardlet, Epoch(5)).await.expect("claimed");
    let error = backend.write(table, &shardlet, CLAIM, &[note("z", 1, "")]).await.expect_err("another's");
    assert!(matches!(error, BackendError::OtherShardlet { .. }), "{error}");
    let long = note(&"é".repeat(100), 1, "");
    let error = backend.write(table, &setup.shardlet("é"), CLAIM, &[long]).await.expect_err("too long");
    assert!(matches!(&error, BackendError::Value { column, .. } if column == "PartitionKey"), "{error}");
    // A property that is not declared would be lost in a move.
    let client = setup.account.client().table("notes");
    for (entity, named) in [
        (Entity::new("a", "0000000001").with("more", 1), "more"),
        (Entity::new("a", "1"), "RowKey"),
        (Entity::new("a", "0000000001").with("note", 1), "note"),
    ] {
        client.insert(&entity).await.expect("inserted");
        let error = backend.scan(table, &shardlet, None, Default::default()).await.expect_err("no row");
        assert!(error.to_string().contains(named) && !error.may_be_done(), "{error}");
        client.delete_entity("a", &entity.row_key, &storage_client::IfMatch::Any).await.expect("deleted");
    }
}
