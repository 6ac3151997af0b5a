//! Answers in JSON at the three metadata levels, written straight into a byte buffer.
//!
//! ```text
//! member order: odata.metadata (once), odata.type, odata.id, odata.etag, odata.editLink, PartitionKey,
//!               RowKey, Timestamp, own properties, each after its annotation
//! ```
//!
//! Minimal metadata carries `odata.etag` and the types that JSON can't show; full adds ids and links. What
//! always holds: a Double has a point or an exponent, an Int64 is text, instants end in `Z`.

use super::text::{put_integer, put_json_double, put_json_escaped, put_json_string};
use crate::reply::negotiation::MetadataLevel;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use service::{DateTimeText, format_date_time};
use table::edm::format_guid;
use table::{EdmValueRef, Projection};

/// What is left unescaped in keys inside addresses.
const KEY_IN_ADDRESS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// What the answers of one request have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerContext<'a> {
    /// How much metadata.
    pub(crate) level: MetadataLevel,
    /// Scheme, host and, in path style, the account: `http://127.0.0.1:10002/devstoreaccount1`.
    pub(crate) base: &'a str,
    /// The account.
    pub(crate) account: &'a str,
    /// The table.
    pub(crate) table: &'a str,
    /// The raw `$select`, for `odata.metadata`.
    pub(crate) select: Option<&'a str>,
}

/// One entity to write.
pub(crate) struct EntityFields<'a, P> {
    /// The PartitionKey.
    pub(crate) partition_key: &'a str,
    /// The RowKey.
    pub(crate) row_key: &'a str,
    /// The row version as time.
    pub(crate) timestamp: &'a DateTimeText,
    /// The ETag's text.
    pub(crate) etag: &'a [u8],
    /// Own properties.
    pub(crate) properties: P,
}

/// Selected properties: names that an entity lacks are written as null.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    projection: Projection,
    names: Vec<String>,
}

impl Selection {
    /// From the names of a `$select`; `None`, or a list with `*`, selects all.
    pub(crate) fn new(select: Option<&[String]>) -> Self {
        let selected = select.filter(|names| !names.iter().any(|name| name == "*"));
        let mut names: Vec<String> = Vec::new();
        for name in selected.unwrap_or_default() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        Selection { projection: Projection::new(select), names }
    }
}

/// Appends the start of a list: the caller writes the entities and then `]}`.
pub(crate) fn put_list_start(out: &mut Vec<u8>, context: &AnswerContext<'_>) {
    out.push(b'{');
    if context.level != MetadataLevel::None {
        put_metadata(out, context, "");
        out.push(b',');
    }
    out.extend_from_slice(b"\"value\":[");
}

/// Appends an answer that is one entity. After an error, which is one of the properties', the answer is good
/// for nothing.
pub(crate) fn put_single_entity<'a, E>(
    out: &mut Vec<u8>,
    context: &AnswerContext<'_>,
    entity: EntityFields<'_, impl Iterator<Item = Result<(&'a str, EdmValueRef<'a>), E>>>,
    selection: &Selection,
) -> Result<(), E> {
    out.push(b'{');
    if context.level != MetadataLevel::None {
        put_metadata(out, context, "/@Element");
        out.push(b',');
    }
    put_members(out, context, entity, selection)?;
    out.push(b'}');
    Ok(())
}

/// Appends an entity of a list. After an error, which is one of the properties', the answer is good for
/// nothing.
pub(crate) fn put_listed_entity<'a, E>(
    out: &mut Vec<u8>,
    context: &AnswerContext<'_>,
    entity: EntityFields<'_, impl Iterator<Item = Result<(&'a str, EdmValueRef<'a>), E>>>,
    selection: &Selection,
) -> Result<(), E> {
    out.push(b'{');
    put_members(out, context, entity, selection)?;
    out.push(b'}');
    Ok(())
}

/// Appends a table: an answer of its own if `single`, else an element of a list.
pub(crate) fn put_table(out: &mut Vec<u8>, context: &AnswerContext<'_>, name: &str, single: bool) {
    out.push(b'{');
    if single && context.level != MetadataLevel::None {
        put_metadata(out, context, "/@Element");
        out.push(b',');
    }
    if context.level == MetadataLevel::Full {
        out.extend_from_slice(b"\"odata.type\":\"");
        out.extend_from_slice(context.account.as_bytes());
        out.extend_from_slice(b".Tables\",\"odata.id\":\"");
        put_json_escaped(out, context.base.as_bytes());
        out.extend_from_slice(b"/Tables('");
        put_json_escaped(out, name.as_bytes());
        out.extend_from_slice(b"')\",\"odata.editLink\":\"Tables('");
        put_json_escaped(out, name.as_bytes());
        out.extend_from_slice(b"')\",");
    }
    out.extend_from_slice(b"\"TableName\":");
    put_json_string(out, name);
    out.push(b'}');
}

/// Appends an entity's address, `BASE/Name(PartitionKey='p',RowKey='r')`, keys percent-encoded.
pub(crate) fn put_entity_address(
    out: &mut Vec<u8>,
    base: Option<&str>,
    table: &str,
    partition_key: &str,
    row_key: &str,
) {
    if let Some(base) = base {
        out.extend_from_slice(base.as_bytes());
        out.push(b'/');
    }
    put_encoded(out, table);
    out.extend_from_slice(b"(PartitionKey='");
    put_key(out, partition_key);
    out.extend_from_slice(b"',RowKey='");
    put_key(out, row_key);
    out.extend_from_slice(b"')");
}

fn put_key(out: &mut Vec<u8>, key: &str) {
    for (index, part) in key.split('\'').enumerate() {
        if index > 0 {
            out.extend_from_slice(b"''");
        }
        put_encoded(out, part);
    }
}

fn put_encoded(out: &mut Vec<u8>, text: &str) {
    for part in utf8_percent_encode(text, KEY_IN_ADDRESS) {
        out.extend_from_slice(part.as_bytes());
    }
}

fn put_metadata(out: &mut Vec<u8>, context: &AnswerContext<'_>, element: &str) {
    out.extend_from_slice(b"\"odata.metadata\":\"");
    put_json_escaped(out, context.base.as_bytes());
    out.extend_from_slice(b"/$metadata#");
    put_json_escaped(out, context.table.as_bytes());
    out.extend_from_slice(element.as_bytes());
    if let Some(select) = context.select {
        out.extend_from_slice(b"&$select=");
        put_json_escaped(out, select.as_bytes());
    }
    out.push(b'"');
}

fn put_members<'a, E>(
    out: &mut Vec<u8>,
    context: &AnswerContext<'_>,
    entity: EntityFields<'_, impl Iterator<Item = Result<(&'a str, EdmValueRef<'a>), E>>>,
    selection: &Selection,
) -> Result<(), E> {
    let mut separator = Separator { first: true };
    if context.level == MetadataLevel::Full {
        separator.put(out);
        out.extend_from_slice(b"\"odata.type\":\"");
        out.extend_from_slice(context.account.as_bytes());
        out.push(b'.');
        put_json_escaped(out, context.table.as_bytes());
        out.extend_from_slice(b"\",\"odata.id\":\"");
        put_json_escaped(out, context.base.as_bytes());
        out.push(b'/');
        put_entity_address(out, None, context.table, entity.partition_key, entity.row_key);
        out.push(b'"');
    }
    if context.level != MetadataLevel::None {
        separator.put(out);
        out.extend_from_slice(b"\"odata.etag\":\"");
        put_json_escaped(out, entity.etag);
        out.push(b'"');
    }
    if context.level == MetadataLevel::Full {
        out.extend_from_slice(b",\"odata.editLink\":\"");
        put_entity_address(out, None, context.table, entity.partition_key, entity.row_key);
        out.push(b'"');
    }
    let projection = &selection.projection;
    if projection.includes("PartitionKey") {
        separator.put(out);
        out.extend_from_slice(b"\"PartitionKey\":");
        put_json_string(out, entity.partition_key);
    }
    if projection.includes("RowKey") {
        separator.put(out);
        out.extend_from_slice(b"\"RowKey\":");
        put_json_string(out, entity.row_key);
    }
    if projection.includes("Timestamp") {
        separator.put(out);
        if context.level == MetadataLevel::Full {
            out.extend_from_slice(b"\"Timestamp@odata.type\":\"Edm.DateTime\",");
        }
        out.extend_from_slice(b"\"Timestamp\":\"");
        out.extend_from_slice(entity.timestamp.as_bytes());
        out.push(b'"');
    }
    // Names seen, so that selected ones that are missing can be written as null.
    let mut present: Vec<&str> = Vec::new();
    for property in entity.properties {
        let (name, value) = property?;
        if !projection.includes(name) {
            continue;
        }
        if !selection.names.is_empty() {
            present.push(name);
        }
        separator.put(out);
        put_property(out, context.level, name, value);
    }
    for name in &selection.names {
        let is_system = matches!(name.as_str(), "PartitionKey" | "RowKey" | "Timestamp");
        if !is_system && !present.contains(&name.as_str()) {
            separator.put(out);
            put_json_string(out, name);
            out.extend_from_slice(b":null");
        }
    }
    Ok(())
}

struct Separator {
    first: bool,
}

impl Separator {
    fn put(&mut self, out: &mut Vec<u8>) {
        if !self.first {
            out.push(b',');
        }
        self.first = false;
    }
}

fn put_property(out: &mut Vec<u8>, level: MetadataLevel, name: &str, value: EdmValueRef<'_>) {
    let needs_type = match value {
        EdmValueRef::String(_) | EdmValueRef::Boolean(_) | EdmValueRef::Int32(_) => false,
        EdmValueRef::Double(value) => !value.is_finite(),
        EdmValueRef::Binary(_) | EdmValueRef::Int64(_) | EdmValueRef::Guid(_) | EdmValueRef::DateTime(_) => {
            true
        }
    };
    if needs_type && level != MetadataLevel::None {
        out.push(b'"');
        put_json_escaped(out, name.as_bytes());
        out.extend_from_slice(b"@odata.type\":\"");
        out.extend_from_slice(value.edm_type().name().as_bytes());
        out.extend_from_slice(b"\",");
    }
    put_json_string(out, name);
    out.push(b':');
    put_value(out, value);
}

fn put_value(out: &mut Vec<u8>, value: EdmValueRef<'_>) {
    match value {
        EdmValueRef::String(text) => put_json_string(out, text),
        EdmValueRef::Boolean(true) => out.extend_from_slice(b"true"),
        EdmValueRef::Boolean(false) => out.extend_from_slice(b"false"),
        EdmValueRef::Int32(value) => put_integer(out, value),
        EdmValueRef::Double(value) if value.is_nan() => out.extend_from_slice(b"\"NaN\""),
        EdmValueRef::Double(f64::INFINITY) => out.extend_from_slice(b"\"Infinity\""),
        EdmValueRef::Double(f64::NEG_INFINITY) => out.extend_from_slice(b"\"-Infinity\""),
        EdmValueRef::Double(value) => put_json_double(out, value),
        EdmValueRef::Int64(value) => {
            out.push(b'"');
            put_integer(out, value);
            out.push(b'"');
        }
        EdmValueRef::Binary(bytes) => {
            out.push(b'"');
            put_base64(out, bytes);
            out.push(b'"');
        }
        EdmValueRef::Guid(guid) => {
            out.push(b'"');
            format_guid(&guid, out);
            out.push(b'"');
        }
        EdmValueRef::DateTime(at) => {
            out.push(b'"');
            format_date_time(at, out);
            out.push(b'"');
        }
    }
}

fn put_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    // The capacity is exact for padded Base64; were it not, the property would be empty rather than wrong.
    let size = STANDARD.encode_slice(bytes, &mut out[start..]).unwrap_or(0);
    out.truncate(start + size);
}

#[cfg(test)]
mod tests;
