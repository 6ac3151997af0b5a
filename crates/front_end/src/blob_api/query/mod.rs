//! Queries over a blob's content: records of separated text or JSON go in, those that are selected come out.
//!
//! ```text
//! answer  = an Avro file without compression, one message a block:
//!           "Obj" 1, metadata (schema, codec), sync marker, (varint 1, varint bytes, message, sync marker)*
//! message = union of   resultData {bytes data}, error {boolean fatal, string name, string description, long position},
//!           progress {long bytesScanned, long totalBytes}, end {long totalBytes}
//! ```
//!
//! What always holds: the content is read once and in constant memory; a record that can't be read ends the answer
//! with a fatal error, one that lacks a column is told and left out. Errors come after the results that are gathered
//! meanwhile, and never first: an official client reads its first message before it can tell an error.

mod expression;
mod records;

use super::BlobRequest;
use super::errors::from_blob;
use super::reply_headers::{put, put_lease, put_record};
use super::request_headers::conditions;
use crate::error::ApiError;
use crate::error_code::ErrorCode;
use crate::pipeline::{IncomingBody, RequestBody};
use crate::reply::Reply;
use crate::reply_body::ReplyStream;
use crate::xml::{XmlElement, parse_xml_with_blanks};
use blob::BlobReader;
use bytes::Bytes;
use expression::{BadExpression, Query, Selected};
use futures_util::stream;
use hyper::StatusCode;
use records::{Format, Record, RecordReader, Separated};
use serde_json::Value;
use std::io;

/// Bytes of the document that asks.
const QUERY_SIZE_BYTES_MAX: usize = expression::EXPRESSION_SIZE_BYTES_MAX + (64 << 10);
/// Bytes of results that are gathered for a message.
const MESSAGE_SIZE_BYTES: usize = 64 << 10;
/// Between the blocks of the answer: any 16 bytes will do, the same in each answer.
const SYNC_MARKER: &[u8; 16] = b"larimar-query-01";

const SCHEMA: &str = concat!(
    r#"[{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.resultData","#,
    r#""fields":[{"name":"data","type":"bytes"}]},"#,
    r#"{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.error","#,
    r#""fields":[{"name":"fatal","type":"boolean"},{"name":"name","type":"string"},"#,
    r#"{"name":"description","type":"string"},{"name":"position","type":"long"}]},"#,
    r#"{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.progress","#,
    r#""fields":[{"name":"bytesScanned","type":"long"},{"name":"totalBytes","type":"long"}]},"#,
    r#"{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.end","#,
    r#""fields":[{"name":"totalBytes","type":"long"}]}]"#
);

fn malformed() -> ApiError {
    ErrorCode::InvalidXmlDocument.into()
}

fn invalid_node() -> ApiError {
    ErrorCode::InvalidXmlNodeValue.into()
}

/// A format of the document; `None`: it is not given.
fn read_format(root: &XmlElement, name: &str) -> Result<Option<Format>, ApiError> {
    let Some(format) = root.child(name).and_then(|serialization| serialization.child("Format")) else {
        return Ok(None);
    };
    match format.child_text("Type").unwrap_or_default().trim() {
        "delimited" => {
            let Some(given) = format.child("DelimitedTextConfiguration") else {
                return Ok(Some(Format::Separated(Separated::default())));
            };
            let text = |name: &str| given.child_text(name).filter(|text| !text.is_empty());
            let byte = |name: &str| match text(name).map(str::as_bytes) {
                None => Ok(None),
                Some([byte]) => Ok(Some(*byte)),
                Some(_) => Err(invalid_node()),
            };
            let usual = Separated::default();
            Ok(Some(Format::Separated(Separated {
                column: text("ColumnSeparator").map_or(usual.column, |text| text.as_bytes().to_vec()),
                record: text("RecordSeparator").map_or(usual.record, |text| text.as_bytes().to_vec()),
                quote: byte("FieldQuote")?,
                escape: byte("EscapeChar")?,
                has_headers: matches!(text("HasHeaders").map(str::trim), Some("true" | "1")),
            })))
        }
        "json" => {
            let given = format.child("JsonTextConfiguration");
            let separator = given.and_then(|given| given.child_text("RecordSeparator"));
            let separator = separator.filter(|text| !text.is_empty()).unwrap_or("\n");
            Ok(Some(Format::Json(separator.as_bytes().to_vec())))
        }
        // Columnar formats are not built.
        "parquet" | "arrow" => Err(ErrorCode::NotImplemented.into()),
        _ => Err(invalid_node()),
    }
}

/// Answers a query.
pub(super) async fn run<B: RequestBody>(
    context: &BlobRequest<'_>,
    body: IncomingBody<'_, B>,
) -> Result<Reply, ApiError> {
    let conditions = conditions(context.headers())?;
    let document = body.read_up_to(QUERY_SIZE_BYTES_MAX).await?;
    let root = parse_xml_with_blanks(&document.bytes).map_err(|_| malformed())?;
    if root.name != "QueryRequest" || root.child_text("QueryType").map(str::trim) != Some("SQL") {
        return Err(malformed());
    }
    let query = Query::parse(root.child_text("Expression").ok_or_else(malformed)?);
    let query = query.map_err(|BadExpression(why)| ApiError::with_message(ErrorCode::InvalidInput, why))?;
    let input = read_format(&root, "InputSerialization")?;
    let input = input.unwrap_or_else(|| Format::Separated(Separated::default()));
    let output = read_format(&root, "OutputSerialization")?.unwrap_or_else(|| input.clone());
    let at = context.blob().await?;
    let opened =
        context.service.read(&at, context.revision()?, &conditions, None).await.map_err(from_blob)?;
    let (found, (_, size), reader) = opened;
    let mut reply = Reply::new(StatusCode::OK);
    put_record(&mut reply, &found.record, true)?;
    put_lease(&mut reply, &found.lease, context.service.now());
    reply.headers.retain(|(name, _)| name != "content-type" && name != "content-encoding");
    put(&mut reply, "content-type", "avro/binary");
    let run = Run::new(query, input, output, size);
    reply.stream = Some(to_stream(reader, run));
    Ok(reply)
}

fn to_stream(reader: BlobReader, run: Run) -> ReplyStream {
    let mut begun = Vec::new();
    put_head(&mut begun);
    let state = Some((reader, run, begun));
    let bytes = stream::unfold(state, |state| async move {
        let (mut reader, mut run, mut out) = state?;
        loop {
            if out.len() >= MESSAGE_SIZE_BYTES || run.is_done {
                let next = if run.is_done { None } else { Some((reader, run, Vec::new())) };
                return Some((Ok(Bytes::from(out)), next));
            }
            match reader.next().await {
                Ok(Some(bytes)) => run.put(&bytes, &mut out),
                Ok(None) => run.end(&mut out),
                Err(error) => {
                    tracing::error!("a blob could not be read to its end: {error}");
                    return Some((Err::<Bytes, _>(io::Error::other(error)), None));
                }
            }
        }
    });
    ReplyStream { bytes: Box::pin(bytes), size: None }
}

/// A query on its way through the content.
struct Run {
    query: Query,
    reader: RecordReader,
    has_headers: bool,
    output: Format,
    headers: Option<Vec<String>>,
    results: Vec<u8>,
    /// Messages that come after the results.
    errors: Vec<u8>,
    has_sent_results: bool,
    count: u64,
    scanned: u64,
    total: u64,
    is_done: bool,
}

impl Run {
    fn new(query: Query, input: Format, output: Format, total: u64) -> Self {
        let has_headers = matches!(&input, Format::Separated(separated) if separated.has_headers);
        Run {
            query,
            reader: RecordReader::new(input),
            has_headers,
            output,
            headers: None,
            results: Vec::new(),
            errors: Vec::new(),
            has_sent_results: false,
            count: 0,
            scanned: 0,
            total,
            is_done: false,
        }
    }

    fn put(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.reader.put(bytes);
        self.scanned += bytes.len() as u64;
        self.take_records(out);
        if !self.is_done {
            put_progress(out, self.scanned, self.total);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.reader.end();
        self.take_records(out);
        if !self.is_done {
            self.finish(out);
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if self.query.selected == Selected::Count {
            let count = self.count.to_string();
            self.write(&[("_1".to_owned(), Some(Value::from(self.count)), count)]);
        }
        self.put_results(out);
        put_progress(out, self.total, self.total);
        put_message(out, 3, |message| put_long(message, self.total as i64));
        self.is_done = true;
    }

    fn put_results(&mut self, out: &mut Vec<u8>) {
        let (results, errors) = (std::mem::take(&mut self.results), std::mem::take(&mut self.errors));
        if !results.is_empty() || (!errors.is_empty() && !self.has_sent_results) {
            put_message(out, 0, |message| put_bytes(message, &results));
            self.has_sent_results = true;
        }
        out.extend_from_slice(&errors);
    }

    fn put_error(&mut self, (is_fatal, name, why): (bool, &str, &str), position: u64) {
        put_message(&mut self.errors, 1, |message| {
            message.push(u8::from(is_fatal));
            put_bytes(message, name.as_bytes());
            put_bytes(message, why.as_bytes());
            put_long(message, position as i64);
        });
    }

    fn take_records(&mut self, out: &mut Vec<u8>) {
        while !self.is_done {
            let is_counting = self.query.selected == Selected::Count;
            if !is_counting && self.query.limit.is_some_and(|limit| self.count >= limit) {
                return self.finish(out);
            }
            let position = self.reader.position();
            match self.reader.next() {
                Ok(None) => return,
                Ok(Some(Record::Fields(names))) if self.has_headers && self.headers.is_none() => {
                    self.write_headers(&names);
                    self.headers = Some(names);
                }
                Ok(Some(record)) => {
                    self.take(&record, position);
                    if self.results.len() + self.errors.len() >= MESSAGE_SIZE_BYTES {
                        self.put_results(out);
                    }
                }
                Err(records::BadRecord(why)) => {
                    self.put_error((true, "ParseError", &why), position);
                    self.put_results(out);
                    put_progress(out, self.scanned, self.total);
                    put_message(out, 3, |message| put_long(message, self.total as i64));
                    self.is_done = true;
                }
            }
        }
    }

    /// Names of columns go out with their columns, if the output wants them.
    fn write_headers(&mut self, names: &[String]) {
        let Format::Separated(output) = &self.output else { return };
        if !output.has_headers {
            return;
        }
        let names: Vec<&str> = match &self.query.selected {
            Selected::All => names.iter().map(String::as_str).collect(),
            Selected::Count => return,
            Selected::Columns(columns) => columns.iter().map(|(_, name)| name.as_str()).collect(),
        };
        output.write(names, &mut self.results);
    }

    fn take(&mut self, record: &Record, position: u64) {
        let headers = self.headers.as_deref();
        let text = |name: &str| find(record, headers, name).map(|(_, text)| text);
        if !self.query.condition.as_ref().is_none_or(|condition| condition.holds(&text)) {
            return;
        }
        let mut selected = Vec::new();
        match &self.query.selected {
            Selected::Count => {}
            Selected::All => match (record, &self.output) {
                (Record::Json(_, text), Format::Json(separator)) => {
                    self.results.extend_from_slice(text.as_bytes());
                    self.results.extend_from_slice(separator);
                }
                (Record::Json(Value::Object(members), _), _) => {
                    selected.extend(members.iter().map(|(name, value)| {
                        (name.clone(), Some(value.clone()), plain(value).unwrap_or_default())
                    }));
                }
                (Record::Json(value, _), _) => {
                    selected.push(("_1".to_owned(), Some(value.clone()), plain(value).unwrap_or_default()));
                }
                (Record::Fields(fields), _) => {
                    selected.extend(fields.iter().enumerate().map(|(index, field)| {
                        let named = headers.and_then(|headers| headers.get(index).cloned());
                        let name = named.unwrap_or_else(|| format!("_{}", index + 1));
                        (name, Some(Value::String(field.clone())), field.clone())
                    }));
                }
            },
            Selected::Columns(columns) => {
                for (column, name) in columns {
                    match (find(record, headers, column), record) {
                        (Some((value, text)), _) => selected.push((name.clone(), Some(value), text)),
                        (None, Record::Json(..)) => selected.push((name.clone(), None, String::new())),
                        (None, Record::Fields(_)) => {
                            let why = format!("The record has no column {column}.");
                            self.put_error((false, "InvalidColumnOrdinal", &why), position);
                            return;
                        }
                    }
                }
            }
        }
        self.count += 1;
        if !selected.is_empty() {
            self.write(&selected);
        }
    }

    /// Writes names, values (`None`: missing) and their texts as one record.
    fn write(&mut self, columns: &[(String, Option<Value>, String)]) {
        match &self.output {
            Format::Separated(output) => {
                output.write(columns.iter().map(|(_, _, text)| text.as_str()), &mut self.results);
            }
            Format::Json(separator) => {
                let members = columns.iter().filter_map(|(name, value, _)| {
                    value.as_ref().map(|value| format!("{}:{value}", Value::String(name.clone())))
                });
                let members: Vec<String> = members.collect();
                self.results.extend_from_slice(format!("{{{}}}", members.join(",")).as_bytes());
                self.results.extend_from_slice(separator);
            }
        }
    }
}

/// A column's value and its text: by its place, as `_1`, by its name, or by a path of names.
fn find(record: &Record, headers: Option<&[String]>, name: &str) -> Option<(Value, String)> {
    match record {
        Record::Fields(fields) => {
            let place = name.strip_prefix('_').and_then(|digits| digits.parse::<usize>().ok());
            let index = match place {
                Some(place) => place.checked_sub(1)?,
                None => headers?.iter().position(|header| header == name)?,
            };
            fields.get(index).map(|field| (Value::String(field.clone()), field.clone()))
        }
        Record::Json(value, _) => {
            let found = value.get(name)?;
            plain(found).map(|text| (found.clone(), text))
        }
    }
}

/// The text of a JSON value; `None`: it is null.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn put_long(out: &mut Vec<u8>, number: i64) {
    let mut rest = (number.wrapping_shl(1) ^ (number >> 63)) as u64;
    while rest > 0x7f {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_long(out, bytes.len() as i64);
    out.extend_from_slice(bytes);
}

fn put_head(out: &mut Vec<u8>) {
    out.extend_from_slice(b"Obj\x01");
    put_long(out, 2);
    put_bytes(out, b"avro.schema");
    put_bytes(out, SCHEMA.as_bytes());
    put_bytes(out, b"avro.codec");
    put_bytes(out, b"null");
    put_long(out, 0);
    out.extend_from_slice(SYNC_MARKER);
}

/// A block with one message, `kind` of the union.
fn put_message(out: &mut Vec<u8>, kind: i64, write: impl FnOnce(&mut Vec<u8>)) {
    let mut message = Vec::new();
    put_long(&mut message, kind);
    write(&mut message);
    put_long(out, 1);
    put_bytes(out, &message);
    out.extend_from_slice(SYNC_MARKER);
}

fn put_progress(out: &mut Vec<u8>, scanned: u64, total: u64) {
    put_message(out, 2, |message| {
        put_long(message, scanned as i64);
        put_long(message, total as i64);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(query: &str, input: Format, output: Format, content: &[u8]) -> Vec<u8> {
        let mut run = Run::new(Query::parse(query).unwrap(), input, output, content.len() as u64);
        let mut out = Vec::new();
        content.chunks(7).for_each(|part| run.put(part, &mut out));
        run.end(&mut out);
        assert!(run.is_done);
        out
    }

    /// The data of all messages, and the names of errors.
    fn messages(mut bytes: &[u8]) -> (String, Vec<String>) {
        fn long(bytes: &mut &[u8]) -> i64 {
            let (mut number, mut shift) = (0_u64, 0);
            loop {
                let byte = bytes[0];
                *bytes = &bytes[1..];
                number |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return (number >> 1) as i64 ^ -((number & 1) as i64);
                }
            }
        }
        fn take<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
            let size = long(bytes) as usize;
            let (taken, rest) = bytes.split_at(size);
            *bytes = rest;
            taken
        }
        let (mut data, mut errors) = (Vec::new(), Vec::new());
        while !bytes.is_empty() {
            assert_eq!(long(&mut bytes), 1);
            let mut message = take(&mut bytes);
            bytes = bytes.strip_prefix(SYNC_MARKER).unwrap();
            match long(&mut message) {
                0 => data.extend_from_slice(take(&mut message)),
                1 => {
                    let is_fatal = message[0] == 1;
                    message = &message[1..];
                    let name = String::from_utf8(take(&mut message).to_vec()).unwrap();
                    errors.push(format!("{name} {is_fatal}"));
                }
                _ => {}
            }
        }
        (String::from_utf8(data).unwrap(), errors)
    }

    fn separated(has_headers: bool) -> Format {
        Format::Separated(Separated { has_headers, ..Separated::default() })
    }

    #[test]
    fn queries() {
        let json = || Format::Json(b"\n".to_vec());
        let people = "name,age\nann,30\nbob\ncem,9\n";
        for (query, input, output, content, expected, failed) in [
            (
                "SELECT * FROM BlobStorage",
                separated(false),
                separated(false),
                "a,b\r\nc",
                "a,b\nc\n",
                &[][..],
            ),
            (
                "SELECT name FROM BlobStorage WHERE age > 10",
                separated(true),
                separated(true),
                people,
                "name\nann\n",
                &[],
            ),
            (
                "SELECT age FROM BlobStorage",
                separated(true),
                separated(false),
                people,
                "30\n9\n",
                &["InvalidColumnOrdinal false"],
            ),
            (
                "SELECT _1 AS n, _2 FROM BlobStorage LIMIT 1",
                separated(true),
                json(),
                people,
                "{\"n\":\"ann\",\"_2\":\"30\"}\n",
                &[],
            ),
            ("SELECT COUNT(*) FROM BlobStorage", separated(true), separated(true), people, "3\n", &[]),
            (
                "SELECT * FROM BlobStorage WHERE b IS NULL",
                json(),
                json(),
                "{\"a\": 1}{\"b\":2}",
                "{\"a\": 1}\n",
                &[],
            ),
            ("SELECT b, a FROM BlobStorage", json(), json(), "{\"a\": [1]}", "{\"a\":[1]}\n", &[]),
            (
                "SELECT * FROM BlobStorage",
                json(),
                separated(false),
                "{\"a\":1,\"b\":\"x,y\"}",
                "1,\"x,y\"\n",
                &[],
            ),
            (
                "SELECT * FROM BlobStorage",
                json(),
                json(),
                "{\"a\":1}\n{a}",
                "{\"a\":1}\n",
                &["ParseError true"],
            ),
        ] {
            let (data, errors) = messages(&answer(query, input, output, content.as_bytes()));
            assert_eq!(
                (data.as_str(), errors),
                (expected, failed.iter().map(|name| (*name).to_owned()).collect()),
                "{query} {content}"
            );
        }
    }

    #[test]
    fn the_schema_is_json() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        assert_eq!(schema.as_array().map(Vec::len), Some(4));
    }
}
