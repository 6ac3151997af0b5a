//! Records are read back as the entities that were written.

use super::*;
use crate::csv::write::{put_head, put_record};
use crate::files::columns::Columns;
use crate::lines::row::Row;
use crate::lines::row::tests::{entities, shown};
use proptest::prelude::*;
use storage_client::Entity;

/// Writes entities as a file.
fn file(entities: &[Entity]) -> Vec<u8> {
    let lines: Vec<String> =
        entities.iter().map(|one| String::from_utf8(one.to_json()).expect("text")).collect();
    let rows: Vec<Row<'_>> = lines.iter().map(|line| Row::parse(line).expect("a row")).collect();
    let (mut columns, mut out) = (Columns::default(), Vec::new());
    assert!(rows.iter().all(|row| columns.add(row)));
    columns.fix();
    put_head(&mut out, &columns);
    rows.iter().for_each(|row| put_record(&mut out, row, &columns).expect("a record"));
    out
}

/// Reads a file; a line of JSON for each record.
fn read(mut bytes: &[u8]) -> Result<Vec<String>, RecordError> {
    let mut next = || {
        let size = record_size(bytes)?;
        let (record, rest) = bytes.split_at(size);
        bytes = rest;
        Some(std::str::from_utf8(record).expect("text"))
    };
    let head = Head::parse(next().unwrap_or_default(), next().unwrap_or_default())?;
    let mut lines = Vec::new();
    while let Some(record) = next() {
        let mut out = Vec::new();
        head.put_line(&mut out, record)?;
        lines.push(String::from_utf8(out).expect("text"));
    }
    Ok(lines)
}

#[test]
fn a_file_is_as_it_is_documented() {
    let entities = [
        Entity::new("p", "r").with("Score", 7).with("Name", "O\"Neil"),
        Entity::new("p", "s").with("Score", f64::NAN).with("Name", ""),
    ];
    let expected = "PartitionKey,RowKey,Name,Score,Score\n\
                    Edm.String,Edm.String,Edm.String,Edm.Int32,Edm.Double\n\
                    p,r,\"O\"\"Neil\",7,\np,s,\"\",,NaN\n";
    assert_eq!(String::from_utf8(file(&entities)).expect("text"), expected);
}

/// The text was written as an empty one.
#[test]
fn a_text_that_no_cell_can_hold_is_refused() {
    let row = Row::parse(r#"{"PartitionKey":"p","RowKey":"r","S":"\ud800"}"#).expect("a row");
    let (mut columns, mut out) = (Columns::default(), Vec::new());
    assert!(columns.add(&row));
    columns.fix();
    let refused = put_record(&mut out, &row, &columns);
    assert_eq!(refused, Err("\"p\" \"r\": property S: it has an escape that is no character".to_owned()));
}

#[test]
fn other_programs_files_are_read() {
    let text = "\u{feff}RowKey,PartitionKey,Timestamp,N,S\r\nEdm.String,Edm.String,Edm.DateTime,Edm.Int64,Edm.String\r\n\
                r,\"p,\nq\",2026-01-01T00:00:00Z,5,\"\"\r\n";
    let expected = "{\"PartitionKey\":\"p,\\nq\",\"RowKey\":\"r\",\"N@odata.type\":\"Edm.Int64\",\"N\":\"5\",\"S\":\"\"}\n";
    assert_eq!(read(text.as_bytes()), Ok(vec![expected.to_owned()]));
}

#[test]
fn mistakes_are_named() {
    let with = |types: &str, record: &str| {
        read(format!("PartitionKey,RowKey,N\n{types}\n{record}\n").as_bytes())
            .map_err(|error| error.to_string())
    };
    let types = "Edm.String,Edm.String,Edm.Int32";
    for (types, record, expected) in [
        (
            "p,r,1",
            "",
            "the second line is to give the types of the columns, and \"p\" is none; Edm.String is one",
        ),
        ("Edm.String,Edm.String", "", "it has 2 cells, and the first line 3"),
        ("Edm.Int32,Edm.String,Edm.Int32", "", "the PartitionKey has another type than Edm.String"),
        (types, "p,r", "it has 2 cells, and the first line 3"),
        (types, "p,r,1,2", "it has 4 cells, and the first line 3"),
        (types, "p,,1", "it has no RowKey"),
        (types, "p,r,1.5", "property N: 1.5 is no Edm.Int32"),
        (types, "p,r,\"1\"x", "there is text beside the quotes of cell 3"),
        (types, "p,r,1}", "property N: 1} is no Edm.Int32"),
    ] {
        assert_eq!(with(types, record), Err(expected.to_owned()), "{types} {record}");
    }
    assert_eq!(read(b"A,RowKey\nEdm.String,Edm.String\n"), Err(RecordError::NoKeyColumn("PartitionKey")));
    let twice = b"PartitionKey,RowKey,A,A\nEdm.String,Edm.String,Edm.Guid,Edm.Guid\n";
    assert_eq!(read(twice), Err(RecordError::Twice("A".to_owned())));
    for name in ["A@B", "odata.etag", &"a".repeat(256)] {
        let text = format!("PartitionKey,RowKey,{name}\nEdm.String,Edm.String,Edm.Guid\n");
        assert!(read(text.as_bytes()).is_err(), "{name}");
    }
    assert_eq!(cells(&",".repeat(CELLS_MAX)), Err(RecordError::TooManyColumns));
    assert_eq!(cells("\"a"), Err(RecordError::OpenQuote));
    assert_eq!(record_size(b"a,\"b\n"), None);
}

/// Properties in the order of their names.
fn sorted(mut entity: Entity) -> Entity {
    entity.properties.sort_by(|one, other| one.0.cmp(&other.0));
    entity
}

proptest! {
    #[test]
    fn entities_come_back(entities in proptest::collection::vec(entities(), 0..6)) {
        let lines = read(&file(&entities)).expect("a file");
        prop_assert_eq!(lines.len(), entities.len());
        for (line, entity) in lines.iter().zip(entities) {
            let back = Entity::parse_json(line.as_bytes()).expect("an entity");
            prop_assert_eq!(shown(&sorted(back)), shown(&sorted(entity)));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(text: String) {
        let _ = read(text.as_bytes());
        let head = Head::parse("PartitionKey,RowKey,A", "Edm.String,Edm.String,Edm.Double").expect("a head");
        let mut out = Vec::new();
        if head.put_line(&mut out, &text).is_ok() {
            prop_assert!(Row::parse(std::str::from_utf8(&out).expect("text")).is_ok_and(|row| row.check().is_ok()));
        }
    }
}
