//! The columns of a file that is read, whoever has written it: which property each one is, and its values.

use super::KEYS;
use super::layout::{GUID_SIZE_BYTES, split_name};
use super::value::{Meaning, Stored, needs_annotation};
use crate::lines::json::put_text;
use crate::lines::token::EdmType;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescriptor;

/// A column that is read.
pub(super) struct Column {
    /// Its place in the file's schema.
    pub(super) index: usize,
    /// The property.
    pub(super) name: String,
    meaning: Meaning,
    /// What comes before a value: `"N":`, and the same behind an annotation.
    head: Vec<u8>,
    annotated_head: Vec<u8>,
}

impl Column {
    /// The column at a place, unless it is one that is left out. `declared` is what the file's metadata say
    /// of its type.
    pub(super) fn of(
        index: usize,
        column: &ColumnDescriptor,
        declared: Option<&str>,
    ) -> Result<Option<Self>, String> {
        let parts = column.path().parts();
        let full_name = parts.first().map_or("", String::as_str);
        if full_name == "Timestamp" || full_name.starts_with("odata.") {
            return Ok(None);
        }
        let failed = |what: &str| format!("column {full_name}: {what}");
        if parts.len() > 1 || column.max_rep_level() > 0 || column.max_def_level() > 1 {
            return Err(failed("it is a list or a group, and a property has one value"));
        }
        let (name, named) = split_name(full_name).ok_or_else(|| failed("no property's name has an @"))?;
        let declared = match declared {
            Some(text) => {
                Some(EdmType::parse(text).ok_or_else(|| failed("its type in the metadata is none"))?)
            }
            None => named,
        };
        let meaning = meaning_of(column, declared).map_err(|what| failed(&what))?;
        if KEYS.contains(&name) && meaning.kind() != EdmType::String {
            return Err(failed("a key is a text"));
        }
        let (mut head, mut annotated_head) = (Vec::new(), Vec::new());
        put_text(&mut annotated_head, &format!("{name}@odata.type"));
        annotated_head.push(b':');
        put_text(&mut annotated_head, meaning.kind().name());
        annotated_head.push(b',');
        put_text(&mut head, name);
        head.push(b':');
        annotated_head.extend_from_slice(&head);
        Ok(Some(Column { index, name: name.to_owned(), meaning, head, annotated_head }))
    }

    /// Appends a value as a member of an object.
    pub(super) fn put(&self, out: &mut Vec<u8>, value: Stored<'_>) -> Result<(), String> {
        let kind = self.meaning.kind();
        let is_annotated = needs_annotation(kind, value);
        out.extend_from_slice(if is_annotated { &self.annotated_head } else { &self.head });
        let put = self.meaning.put(out, value);
        put.ok_or_else(|| format!("property {}: a value is no {}", self.name, kind.name()))
    }
}

/// What the values of a column mean, by its Parquet type and by what is declared of it.
fn meaning_of(column: &ColumnDescriptor, declared: Option<EdmType>) -> Result<Meaning, String> {
    let inferred = inferred(column);
    match (inferred, declared) {
        (Some(meaning), None) => Ok(meaning),
        (Some(meaning), Some(kind)) if meaning.kind() == kind => Ok(meaning),
        // No type of Parquet says it.
        (Some(Meaning::Plain(EdmType::Int64)), Some(EdmType::DateTime)) => {
            Ok(Meaning::Plain(EdmType::DateTime))
        }
        // As programs write it that know no UUIDs.
        (Some(Meaning::Plain(EdmType::Binary)), Some(EdmType::Guid))
            if column.physical_type() == Physical::FIXED_LEN_BYTE_ARRAY
                && column.type_length() == GUID_SIZE_BYTES as i32 =>
        {
            Ok(Meaning::Plain(EdmType::Guid))
        }
        (_, Some(kind)) => {
            Err(format!("it is to be {}, and its Parquet type is {}", kind.name(), shown(column)))
        }
        (None, None) => Err(format!("its Parquet type is {}, which is no type of a property", shown(column))),
    }
}

fn shown(column: &ColumnDescriptor) -> String {
    let physical = column.physical_type();
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(logical), _) => format!("{physical} with {logical:?}"),
        (None, ConvertedType::NONE) => physical.to_string(),
        (None, converted) => format!("{physical} with {converted}"),
    }
}

/// What the Parquet type alone says; none if no property has it.
fn inferred(column: &ColumnDescriptor) -> Option<Meaning> {
    use EdmType::{Binary, Boolean, Double, Guid, Int64, String};
    let converted = column.converted_type();
    // A column that has nothing but nulls is of an unknown type.
    let logical = column.logical_type_ref().filter(|logical| **logical != LogicalType::Unknown);
    let is_plain = logical.is_none() && converted == ConvertedType::NONE;
    let kind = match column.physical_type() {
        Physical::BOOLEAN if is_plain => Boolean,
        Physical::FLOAT | Physical::DOUBLE if is_plain => Double,
        Physical::INT32 => return inferred_of_int32(logical, converted),
        Physical::INT64 if is_plain => Int64,
        Physical::INT64 => match (logical, converted) {
            (Some(LogicalType::Integer(int)), _) if int.is_signed => Int64,
            (Some(LogicalType::Timestamp(timestamp)), _) => {
                let per_second = match timestamp.unit {
                    TimeUnit::MILLIS => 1000,
                    TimeUnit::MICROS => 1_000_000,
                    TimeUnit::NANOS => 1_000_000_000,
                };
                return Some(Meaning::Timestamp { per_second });
            }
            (None, ConvertedType::INT_64) => Int64,
            (None, ConvertedType::TIMESTAMP_MILLIS) => return Some(Meaning::Timestamp { per_second: 1000 }),
            (None, ConvertedType::TIMESTAMP_MICROS) => {
                return Some(Meaning::Timestamp { per_second: 1_000_000 });
            }
            _ => return None,
        },
        // The library has no values of no bytes.
        Physical::FIXED_LEN_BYTE_ARRAY if column.type_length() < 1 => return None,
        Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY if is_plain => Binary,
        Physical::BYTE_ARRAY => match (logical, converted) {
            (Some(LogicalType::String | LogicalType::Enum | LogicalType::Json), _) => String,
            (None, ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON) => String,
            _ => return None,
        },
        Physical::FIXED_LEN_BYTE_ARRAY
            if logical == Some(&LogicalType::Uuid) && column.type_length() == GUID_SIZE_BYTES as i32 =>
        {
            Guid
        }
        _ => return None,
    };
    Some(Meaning::Plain(kind))
}

fn inferred_of_int32(logical: Option<&LogicalType>, converted: ConvertedType) -> Option<Meaning> {
    match (logical, converted) {
        (Some(LogicalType::Integer(int)), _) if int.is_signed || int.bit_width < 32 => {
            Some(Meaning::Plain(EdmType::Int32))
        }
        (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => Some(Meaning::Days),
        (
            None,
            ConvertedType::NONE
            | ConvertedType::INT_8
            | ConvertedType::INT_16
            | ConvertedType::INT_32
            | ConvertedType::UINT_8
            | ConvertedType::UINT_16,
        ) => Some(Meaning::Plain(EdmType::Int32)),
        _ => None,
    }
}

/// The values of a column in a row group, some rows at a time.
pub(super) struct Cursor {
    /// 1 for each row with a value; empty if each row has one.
    levels: Vec<i16>,
    values: Typed,
    /// The next row, and the next value.
    row: usize,
    value: usize,
}

type Of<T> = (ColumnReaderImpl<T>, Vec<<T as DataType>::T>);

enum Typed {
    Boolean(Of<BoolType>),
    Int32(Of<Int32Type>),
    Int64(Of<Int64Type>),
    Float(Of<FloatType>),
    Double(Of<DoubleType>),
    Bytes(Of<ByteArrayType>),
    Fixed(Of<FixedLenByteArrayType>),
}

impl Cursor {
    /// At the first row.
    pub(super) fn new(reader: ColumnReader) -> Result<Self, ParquetError> {
        let values = match reader {
            ColumnReader::BoolColumnReader(reader) => Typed::Boolean((reader, Vec::new())),
            ColumnReader::Int32ColumnReader(reader) => Typed::Int32((reader, Vec::new())),
            ColumnReader::Int64ColumnReader(reader) => Typed::Int64((reader, Vec::new())),
            ColumnReader::FloatColumnReader(reader) => Typed::Float((reader, Vec::new())),
            ColumnReader::DoubleColumnReader(reader) => Typed::Double((reader, Vec::new())),
            ColumnReader::ByteArrayColumnReader(reader) => Typed::Bytes((reader, Vec::new())),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => Typed::Fixed((reader, Vec::new())),
            ColumnReader::Int96ColumnReader(_) => return Err(ParquetError::General("an INT96".to_owned())),
        };
        Ok(Cursor { levels: Vec::new(), values, row: 0, value: 0 })
    }

    /// Leaves rows out.
    pub(super) fn skip(&mut self, rows: usize) -> Result<(), ParquetError> {
        let skipped = match &mut self.values {
            Typed::Boolean((reader, _)) => reader.skip_records(rows),
            Typed::Int32((reader, _)) => reader.skip_records(rows),
            Typed::Int64((reader, _)) => reader.skip_records(rows),
            Typed::Float((reader, _)) => reader.skip_records(rows),
            Typed::Double((reader, _)) => reader.skip_records(rows),
            Typed::Bytes((reader, _)) => reader.skip_records(rows),
            Typed::Fixed((reader, _)) => reader.skip_records(rows),
        };
        check_count(skipped?, rows)
    }

    /// Reads the values of so many rows.
    pub(super) fn read(&mut self, rows: usize) -> Result<(), ParquetError> {
        (self.row, self.value) = (0, 0);
        self.levels.clear();
        let levels = &mut self.levels;
        match &mut self.values {
            Typed::Boolean(of) => read(of, levels, rows),
            Typed::Int32(of) => read(of, levels, rows),
            Typed::Int64(of) => read(of, levels, rows),
            Typed::Float(of) => read(of, levels, rows),
            Typed::Double(of) => read(of, levels, rows),
            Typed::Bytes(of) => read(of, levels, rows),
            Typed::Fixed(of) => read(of, levels, rows),
        }
    }

    /// The value of the next row, if it has one.
    pub(super) fn next(&mut self) -> Option<Stored<'_>> {
        let is_there = self.levels.get(self.row).is_none_or(|level| *level == 1);
        self.row += 1;
        if !is_there {
            return None;
        }
        let at = self.value;
        self.value += 1;
        match &self.values {
            Typed::Boolean((_, values)) => values.get(at).map(|value| Stored::Boolean(*value)),
            Typed::Int32((_, values)) => values.get(at).map(|value| Stored::Integer((*value).into())),
            Typed::Int64((_, values)) => values.get(at).map(|value| Stored::Integer(*value)),
            Typed::Float((_, values)) => values.get(at).map(|value| Stored::Float((*value).into())),
            Typed::Double((_, values)) => values.get(at).map(|value| Stored::Float(*value)),
            Typed::Bytes((_, values)) => values.get(at).map(|value| Stored::Bytes(value.data())),
            Typed::Fixed((_, values)) => values.get(at).map(|value| Stored::Bytes(value.data())),
        }
    }
}

fn read<T: DataType>(of: &mut Of<T>, levels: &mut Vec<i16>, rows: usize) -> Result<(), ParquetError> {
    let (reader, values) = of;
    values.clear();
    let (records, _, _) = reader.read_records(rows, Some(levels), None, values)?;
    check_count(records, rows)
}

fn check_count(found: usize, wanted: usize) -> Result<(), ParquetError> {
    if found == wanted {
        return Ok(());
    }
    Err(ParquetError::General(format!("a column has {found} values where {wanted} rows are")))
}
