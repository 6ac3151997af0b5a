//! The schema of a file that is written: names and Parquet types of its columns.

use super::{COLUMNS_KEY, KEYS};
use crate::files::columns::Columns;
use crate::lines::token::EdmType;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::schema::types::{Type, TypePtr};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bytes of a Guid.
pub(super) const GUID_SIZE_BYTES: usize = 16;

/// The name of a column that says its type: one of several of a property, or one that Parquet has not.
pub(super) fn name_with_type(name: &str, kind: EdmType) -> String {
    format!("{name}@{}", short_name(kind))
}

/// The property of a column, and the type that its name says.
pub(super) fn split_name(column: &str) -> Option<(&str, Option<EdmType>)> {
    match column.split_once('@') {
        None => Some((column, None)),
        Some((name, kind)) => Some((name, Some(EdmType::parse(&format!("Edm.{kind}"))?))),
    }
}

fn short_name(kind: EdmType) -> &'static str {
    kind.name().trim_start_matches("Edm.")
}

/// Name and type of each column, keys first.
pub(super) fn columns_of(columns: &Columns) -> Vec<(String, EdmType)> {
    let (mut once, mut several) = (BTreeSet::new(), BTreeSet::new());
    for (name, _) in columns.iter() {
        if !once.insert(name) {
            several.insert(name);
        }
    }
    let keys = KEYS.iter().map(|key| (key.to_string(), EdmType::String));
    // No type of Parquet has all instants, so a DateTime is a number there: were that only said beside the
    // columns, a program that rewrites the file would lose it.
    let is_named = |name, kind| several.contains(name) || kind == EdmType::DateTime;
    let others = columns.iter().map(|(name, kind)| match is_named(name, kind) {
        true => (name_with_type(name, kind), kind),
        false => (name.to_owned(), kind),
    });
    keys.chain(others).collect()
}

/// The schema of a file with these columns.
pub(super) fn schema_of(columns: &[(String, EdmType)]) -> Result<TypePtr, ParquetError> {
    let fields: Result<Vec<TypePtr>, ParquetError> =
        columns.iter().map(|(name, kind)| field(name, *kind).map(Arc::new)).collect();
    Ok(Arc::new(Type::group_type_builder("entity").with_fields(fields?).build()?))
}

fn field(name: &str, kind: EdmType) -> Result<Type, ParquetError> {
    let (physical, logical) = match kind {
        EdmType::String => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        EdmType::Boolean => (Physical::BOOLEAN, None),
        EdmType::Int32 => (Physical::INT32, None),
        EdmType::Int64 | EdmType::DateTime => (Physical::INT64, None),
        EdmType::Double => (Physical::DOUBLE, None),
        EdmType::Guid => (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid)),
        EdmType::Binary => (Physical::BYTE_ARRAY, None),
    };
    let is_key = KEYS.contains(&name);
    let repetition = if is_key { Repetition::REQUIRED } else { Repetition::OPTIONAL };
    let size = if kind == EdmType::Guid { GUID_SIZE_BYTES as i32 } else { 0 };
    let builder = Type::primitive_type_builder(name, physical).with_repetition(repetition);
    builder.with_logical_type(logical).with_length(size).build()
}

/// The metadata that say each column's type.
pub(super) fn types_of(columns: &[(String, EdmType)]) -> KeyValue {
    let types: BTreeMap<&str, &str> =
        columns.iter().map(|(name, kind)| (name.as_str(), kind.name())).collect();
    KeyValue::new(COLUMNS_KEY.to_owned(), serde_json::json!(types).to_string())
}
