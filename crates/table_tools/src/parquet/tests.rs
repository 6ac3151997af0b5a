//! Files are read back as the entities that were written; others' files are read by their types; bad ones are
//! refused with one line.

use super::read::ParquetFile;
use super::write::GROUP_ROWS_MAX;
use crate::conversion::Conversion;
use crate::error::ToolError;
use crate::files::window::WINDOW_SIZE_BYTES;
use crate::lines::row::Row;
use crate::lines::row::tests::{entities, shown};
use base::memory_disk::MemoryDisk;
use base::{Disk, OpenMode};
use bytes::Bytes;
use futures_util::FutureExt;
use parquet::basic::Compression;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use std::sync::Arc;
use storage_client::Entity;

const LINES: &str = "f";

/// Polls to the end: a disk in memory is never waited for.
fn done<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("it ends at once")
}

fn put(disk: &MemoryDisk, path: &str, content: &[u8]) {
    let file = done(disk.open(path, OpenMode::CreateNew)).expect("a file");
    done(file.write_at(0, Bytes::copy_from_slice(content))).expect("written");
}

/// The Parquet file of lines.
fn converted(lines: &[u8]) -> Result<Vec<u8>, ToolError> {
    let disk = MemoryDisk::new();
    put(&disk, LINES, lines);
    let mut watch = |_, _| Ok(());
    let path = done(Conversion { disk: &disk, lines: LINES, watch: &mut watch }.write_parquet())?;
    let file = done(disk.open(&path, OpenMode::Read)).expect("a file");
    let size = done(file.size()).expect("a size");
    Ok(done(file.read_at(0, size as usize)).expect("bytes").to_vec())
}

/// The lines of a file from a row on, with their numbers.
fn lines_from(content: &[u8], at: u64) -> Result<Vec<(String, u64)>, String> {
    let disk = MemoryDisk::new();
    put(&disk, "f.parquet", content);
    let mut file = done(ParquetFile::open(&disk, "f.parquet", at)).map_err(|error| error.to_string())?;
    let mut lines = Vec::new();
    while let Some(window) = done(file.next_window()).map_err(|error| error.to_string())? {
        for line in &window.lines {
            let text = String::from_utf8(window.text[line.at.clone()].to_vec()).expect("text");
            assert_eq!(line.file_end, line.number);
            lines.push((text, line.number));
        }
        assert_eq!((window.end, file.position()), (file.position().0, (window.end, 1 + window.end)));
    }
    assert_eq!(file.position().0, file.rows());
    Ok(lines)
}

fn lines_of(content: &[u8]) -> Result<Vec<String>, String> {
    Ok(lines_from(content, 0)?.into_iter().map(|(line, _)| line).collect())
}

/// The line that a whole round makes of one.
fn round(properties: &str) -> String {
    let line = format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"r\"{properties}}}\n");
    let back = lines_of(&converted(line.as_bytes()).expect("a file")).expect("lines").remove(0);
    back.replace("{\"PartitionKey\":\"p\",\"RowKey\":\"r\"", "").trim_end_matches('}').to_owned()
}

#[test]
fn all_types_come_back_at_their_ends() {
    for properties in [
        "",
        ",\"A\":\"\"",
        ",\"A\":\"a \\\"text\\\"\\n\u{1f600}\"",
        ",\"A\":true",
        ",\"A\":-2147483648",
        ",\"A@odata.type\":\"Edm.Int64\",\"A\":\"-9223372036854775808\"",
        ",\"A@odata.type\":\"Edm.Int64\",\"A\":\"9223372036854775807\"",
        ",\"A@odata.type\":\"Edm.Double\",\"A\":\"NaN\"",
        ",\"A@odata.type\":\"Edm.Double\",\"A\":\"Infinity\"",
        ",\"A@odata.type\":\"Edm.Double\",\"A\":\"-Infinity\"",
        ",\"A\":-0.0",
        ",\"A\":5e-324",
        ",\"A\":1.7976931348623157e308",
        ",\"A@odata.type\":\"Edm.DateTime\",\"A\":\"1601-01-01T00:00:00Z\"",
        ",\"A@odata.type\":\"Edm.DateTime\",\"A\":\"9999-12-31T23:59:59.9999999Z\"",
        ",\"A@odata.type\":\"Edm.Guid\",\"A\":\"c9da6455-213d-42c9-9a79-3e9149a57833\"",
        ",\"A@odata.type\":\"Edm.Binary\",\"A\":\"\"",
        ",\"A@odata.type\":\"Edm.Binary\",\"A\":\"AQI=\"",
    ] {
        assert_eq!(round(properties), properties);
    }
}

#[test]
fn a_property_with_several_types_has_a_column_for_each() {
    let content = converted(
        b"{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"A\":1,\"B\":1}\n{\"PartitionKey\":\"p\",\"RowKey\":\"2\",\"A\":1.5}\n\
          {\"PartitionKey\":\"p\",\"RowKey\":\"3\"}\n",
    )
    .expect("a file");
    let reader = parquet::file::metadata::ParquetMetaDataReader::new();
    let metadata = reader.parse_and_finish(&Bytes::from(content.clone())).expect("metadata");
    let columns = metadata.file_metadata().schema_descr().columns().iter();
    let names: Vec<&str> = columns.map(|column| column.name()).collect();
    assert_eq!(names, ["PartitionKey", "RowKey", "A@Int32", "A@Double", "B"]);
    let expected = [
        "{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"A\":1,\"B\":1}",
        "{\"PartitionKey\":\"p\",\"RowKey\":\"2\",\"A\":1.5}",
        "{\"PartitionKey\":\"p\",\"RowKey\":\"3\"}",
    ];
    assert_eq!(lines_of(&content).expect("lines"), expected);
    assert_eq!(lines_of(&converted(b"").expect("a file")), Ok(Vec::new()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn entities_come_back(entities in proptest::collection::vec(entities(), 0..20)) {
        let lines: Vec<u8> = entities.iter().flat_map(|one| [one.to_json(), b"\n".to_vec()].concat()).collect();
        let back = lines_of(&converted(&lines).expect("a file")).expect("lines");
        prop_assert_eq!(back.len(), entities.len());
        for (line, entity) in back.iter().zip(&entities) {
            let row = Row::parse(line).expect("a row");
            row.check().expect("an entity");
            let mut back = Entity::parse_json(line.as_bytes()).expect("an entity");
            let mut entity = entity.clone();
            back.properties.sort_by(|one, other| one.0.cmp(&other.0));
            entity.properties.sort_by(|one, other| one.0.cmp(&other.0));
            prop_assert_eq!(shown(&back), shown(&entity));
        }
    }
}

/// Rows that each have two of the properties, and their file.
fn many(rows: usize, properties: usize) -> (Vec<u8>, Vec<String>) {
    let line = |number: usize| {
        let (first, second) = (number % properties, number % (properties - 1) + properties);
        format!(
            "{{\"PartitionKey\":\"p\",\"RowKey\":\"{number}\",\"P{first:03}\":{number},\"P{second:03}\":\"x\"}}"
        )
    };
    let lines: Vec<String> = (0..rows).map(line).collect();
    (converted((lines.join("\n") + "\n").as_bytes()).expect("a file"), lines)
}

#[test]
fn many_properties_and_row_groups_are_read_from_any_row_on() {
    for (rows, properties, starts) in [
        (2_100, 400, &[0, 1, 1023, 1024, 1025, 2_099, 2_100][..]),
        (GROUP_ROWS_MAX + 500, 2, &[0, GROUP_ROWS_MAX - 1, GROUP_ROWS_MAX, GROUP_ROWS_MAX + 1]),
    ] {
        let (content, lines) = many(rows, properties);
        for at in starts {
            let found = lines_from(&content, *at as u64).expect("lines");
            assert_eq!(found.len(), rows - at);
            let mut expected = lines[*at..].iter().zip(1 + *at as u64..);
            assert!(found.iter().all(|(line, number)| expected.next() == Some((line, *number))), "{at}");
        }
        let error = lines_from(&content, 1 + rows as u64).expect_err("too far");
        let said = 1 + rows;
        assert_eq!(
            error,
            format!("f.parquet: it has {rows} rows, and its state says {said}: it was changed")
        );
    }
}

#[test]
fn a_file_that_was_cut_off_or_changed_is_refused() {
    let lines: String = (0..40)
        .map(|number| {
            format!(
                "{{\"PartitionKey\":\"p\",\"RowKey\":\"{number}\",\"A\":\"text {number}\",\"B\":{number}.5,\
                 \"C@odata.type\":\"Edm.DateTime\",\"C\":\"2026-01-01T00:00:{number:02}Z\"}}\n"
            )
        })
        .collect();
    let content = converted(lines.as_bytes()).expect("a file");
    let whole = lines_of(&content).expect("lines");
    for size in 0..content.len() {
        let line = lines_of(&content[..size]).expect_err("a cut file");
        let expected = if size < 4 { "f.parquet: it is no Parquet file" } else { "f.parquet: " };
        assert!(line.starts_with(expected) && line.lines().count() == 1, "{size}: {line}");
    }
    let cut = lines_of(&content[..content.len() - 100]).expect_err("a cut file");
    assert_eq!(cut, "f.parquet: the end of the file is missing: it was cut off; get it again");
    for bit in 0..content.len() * 8 {
        let mut changed = content.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        match lines_of(&changed) {
            Ok(lines) => assert!(lines == whole, "bit {bit}"),
            Err(line) => assert!(line.starts_with("f.parquet: "), "{bit}: {line}"),
        }
    }
}

#[test]
fn a_conversion_is_stopped_between_windows() {
    let disk = MemoryDisk::new();
    put(&disk, LINES, b"{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}\n");
    for stops_at in [0, 1, 2] {
        let mut seen = Vec::new();
        let mut watch = |verb, rows| {
            seen.push((verb, rows));
            if seen.len() > stops_at { Err(ToolError::Stopped) } else { Ok(()) }
        };
        let ended = done(Conversion { disk: &disk, lines: LINES, watch: &mut watch }.write_parquet());
        assert_eq!(ended.is_ok(), stops_at == 2, "{ended:?}");
        let expected = [("finding columns", 1), ("writing columns", 1)];
        assert_eq!(seen, expected[..seen.len()]);
    }
}

/// A file of one row group, as another program writes it.
fn foreign(
    schema: &str,
    compression: Compression,
    mut write: impl FnMut(usize, &mut SerializedColumnWriter<'_>),
) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).expect("a writer");
    let mut group = writer.next_row_group().expect("a row group");
    let mut index = 0;
    while let Some(mut column) = group.next_column().expect("a column") {
        write(index, &mut column);
        column.close().expect("a column");
        index += 1;
    }
    group.close().expect("a row group");
    writer.into_inner().expect("bytes")
}

#[test]
fn files_of_others_are_read_by_their_types() {
    let schema = "message m {
        optional int32 Small (INT_8); required binary RowKey (UTF8); required boolean Flag; required int32 Day (DATE);
        required int64 Big; required int64 Ms (TIMESTAMP_MILLIS); required int64 Us (TIMESTAMP_MICROS);
        required int64 Ns (TIMESTAMP(NANOS,true)); required float Half; required double Whole; required binary Raw;
        required binary PartitionKey (STRING); required fixed_len_byte_array(3) Three;
        required fixed_len_byte_array(16) Id (UUID); required int64 At@DateTime; required int64 Timestamp; }";
    let write = |index, column: &mut SerializedColumnWriter<'_>| {
        let text = |text: &str| ByteArray::from(text.as_bytes().to_vec());
        let fixed = |bytes: &[u8]| FixedLenByteArray::from(bytes.to_vec());
        let mut ints = |value| column.typed::<Int64Type>().write_batch(&[value, value], None, None);
        match index {
            0 => column.typed::<Int32Type>().write_batch(&[-7], Some(&[0, 1]), None),
            1 => column.typed::<ByteArrayType>().write_batch(&[text("r1"), text("r2")], None, None),
            2 => column.typed::<BoolType>().write_batch(&[true, false], None, None),
            3 => column.typed::<Int32Type>().write_batch(&[-1, 0], None, None),
            4 => ints(1 << 40),
            5 => ints(-1),
            6 => ints(1),
            7 => ints(199),
            8 => column.typed::<FloatType>().write_batch(&[0.5, f32::NAN], None, None),
            9 => column.typed::<DoubleType>().write_batch(&[2.0, f64::INFINITY], None, None),
            10 => column.typed::<ByteArrayType>().write_batch(&[text("ab"), text("")], None, None),
            11 => column.typed::<ByteArrayType>().write_batch(&[text("p"), text("p")], None, None),
            12 => {
                let values = [fixed(b"abc"), fixed(b"abc")];
                column.typed::<FixedLenByteArrayType>().write_batch(&values, None, None)
            }
            13 => {
                let values = [fixed(&[1; 16]), fixed(&[2; 16])];
                column.typed::<FixedLenByteArrayType>().write_batch(&values, None, None)
            }
            _ => ints(10_000_001),
        }
        .expect("written");
    };
    for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::GZIP(Default::default())]
    {
        let lines = lines_of(&foreign(schema, compression, write)).expect("lines");
        assert_eq!(
            lines[0],
            "{\"PartitionKey\":\"p\",\"RowKey\":\"r1\",\"Flag\":true,\
             \"Day@odata.type\":\"Edm.DateTime\",\"Day\":\"1969-12-31T00:00:00Z\",\
             \"Big@odata.type\":\"Edm.Int64\",\"Big\":\"1099511627776\",\
             \"Ms@odata.type\":\"Edm.DateTime\",\"Ms\":\"1969-12-31T23:59:59.999Z\",\
             \"Us@odata.type\":\"Edm.DateTime\",\"Us\":\"1970-01-01T00:00:00.000001Z\",\
             \"Ns@odata.type\":\"Edm.DateTime\",\"Ns\":\"1970-01-01T00:00:00.0000001Z\",\
             \"Half\":0.5,\"Whole\":2.0,\"Raw@odata.type\":\"Edm.Binary\",\"Raw\":\"YWI=\",\
             \"Three@odata.type\":\"Edm.Binary\",\"Three\":\"YWJj\",\
             \"Id@odata.type\":\"Edm.Guid\",\"Id\":\"01010101-0101-0101-0101-010101010101\",\
             \"At@odata.type\":\"Edm.DateTime\",\"At\":\"1601-01-01T00:00:01.0000001Z\"}"
        );
        let row = Row::parse(&lines[1]).expect("a row");
        row.check().expect("an entity");
        assert!(lines[1].contains(",\"Small\":-7,") && lines[1].contains("\"Half\":\"NaN\""), "{}", lines[1]);
        assert!(
            lines[1].contains("\"Raw\":\"\"") && lines[1].contains("\"Whole\":\"Infinity\""),
            "{}",
            lines[1]
        );
    }
}

#[test]
fn a_column_that_no_property_can_be_is_named() {
    let keys = "required binary PartitionKey (UTF8); required binary RowKey (UTF8);";
    for (columns, expected) in [
        ("required int96 Old;", "column Old: its Parquet type is INT96, which is no type of a property"),
        ("required int64 Big (UINT_64);", "column Big: its Parquet type is INT64 with "),
        ("required int32 Money (DECIMAL(9,2));", "column Money: its Parquet type is INT32 with "),
        ("required int32 At (TIME_MILLIS);", "column At: its Parquet type is INT32 with "),
        (
            "optional group Tags (LIST) { repeated group list { optional binary element (UTF8); } }",
            "column Tags: it is a list or a group, and a property has one value",
        ),
        ("repeated int32 Many;", "column Many: it is a list or a group, and a property has one value"),
        ("required int32 A@B;", "column A@B: no property's name has an @"),
        ("required int32 A@Guid;", "column A@Guid: it is to be Edm.Guid, and its Parquet type is INT32"),
        ("required binary RowKey@String (UTF8);", "it has the column RowKey twice"),
    ] {
        let schema = format!("message m {{ {keys} {columns} }}");
        let schema = Arc::new(parse_message_type(&schema).expect("a schema"));
        let writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).expect("a writer");
        let line = lines_of(&writer.into_inner().expect("bytes")).expect_err("it is refused");
        assert!(line.starts_with(&format!("f.parquet: {expected}")), "{line}");
    }
    let text = |column: &mut SerializedColumnWriter<'_>| {
        let written = column.typed::<ByteArrayType>().write_batch(&[ByteArray::from(vec![0xff])], None, None);
        written.expect("written");
    };
    let one = |schema: &str| {
        let schema = format!("message m {{ {schema} }}");
        lines_of(&foreign(&schema, Compression::UNCOMPRESSED, |_, column| text(column)))
    };
    assert_eq!(
        one("required binary RowKey (UTF8);"),
        Err("f.parquet: it has no column PartitionKey".to_owned())
    );
    let expected = "f.parquet: column PartitionKey: a key is a text";
    assert_eq!(one("required binary PartitionKey;"), Err(expected.to_owned()));
    let expected = "f.parquet: line 1: property PartitionKey: a value is no Edm.String";
    assert_eq!(one(keys), Err(expected.to_owned()));
    let error = lines_of(b"PartitionKey,RowKey\n").expect_err("no Parquet");
    assert_eq!(error, "f.parquet: it is no Parquet file, which begins with PAR1");
}

/// Two rows with a text that is in a dictionary, a number that may be null, and another text.
fn two_foreign_rows(compression: Compression) -> Vec<u8> {
    let schema = "message m { required binary PartitionKey (UTF8); required binary RowKey (UTF8);
        optional int64 Big; required fixed_len_byte_array(3) Three; required boolean Flag; }";
    foreign(schema, compression, |index, column| {
        let text = |text: &str| ByteArray::from(text.as_bytes().to_vec());
        let written = match index {
            0 => column.typed::<ByteArrayType>().write_batch(&[text("p"), text("p")], None, None),
            1 => column.typed::<ByteArrayType>().write_batch(&[text("r1"), text("r2")], None, None),
            2 => column.typed::<Int64Type>().write_batch(&[7], Some(&[0, 1]), None),
            3 => {
                let three = FixedLenByteArray::from(vec![1, 2, 3]);
                column.typed::<FixedLenByteArrayType>().write_batch(&[three.clone(), three], None, None)
            }
            _ => column.typed::<BoolType>().write_batch(&[true, false], None, None),
        };
        written.expect("written");
    })
}

/// Without checksums a value may be another one, but nothing is read that is not there.
#[test]
fn whatever_a_damaged_file_of_others_says_is_read_or_refused() {
    let mut refused = 0;
    for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY] {
        let content = two_foreign_rows(compression);
        assert_eq!(lines_of(&content).map(|lines| lines.len()), Ok(2));
        for bit in 0..content.len() * 8 {
            let mut changed = content.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            if let Err(line) = lines_of(&changed) {
                assert!(line.starts_with("f.parquet: "), "bit {bit}: {line}");
                refused += 1;
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

/// A dictionary makes long texts short in the file, and says nothing of the lines.
#[test]
fn a_window_is_bounded_whatever_a_dictionary_saves() {
    let (rows, columns) = (600, 8);
    let texts: String = (0..columns).map(|number| format!("required binary T{number} (UTF8);")).collect();
    let schema = format!(
        "message m {{ required binary PartitionKey (UTF8); required binary RowKey (UTF8); {texts} }}"
    );
    let content = foreign(&schema, Compression::UNCOMPRESSED, |index, column| {
        let value = |row: usize| match index {
            1 => format!("{row:04}"),
            _ => "x".repeat(60_000),
        };
        let values: Vec<ByteArray> = (0..rows).map(|row| ByteArray::from(value(row).into_bytes())).collect();
        column.typed::<ByteArrayType>().write_batch(&values, None, None).expect("written");
    });
    assert!(content.len() < 2 << 20, "{} bytes", content.len());
    let disk = MemoryDisk::new();
    put(&disk, "f.parquet", &content);
    let mut file = done(ParquetFile::open(&disk, "f.parquet", 0)).expect("a file");
    let mut lines = 0;
    while let Some(window) = done(file.next_window()).expect("a window") {
        assert!(window.text.len() < WINDOW_SIZE_BYTES + (1 << 20), "{} bytes", window.text.len());
        lines += window.lines.len();
    }
    assert_eq!(lines, rows);
}
