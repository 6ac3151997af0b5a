//! The records of a blob's content, as separated text or as JSON: read from portions, written one by one.
//!
//! What always holds: a reader keeps no more than one record and a portion, and a record is bounded.

use serde_json::Value;

/// Bytes of a record at most.
pub(super) const RECORD_SIZE_BYTES_MAX: usize = 1 << 20;

/// How separated text is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Separated {
    pub(super) column: Vec<u8>,
    pub(super) record: Vec<u8>,
    pub(super) quote: Option<u8>,
    pub(super) escape: Option<u8>,
    /// The first record has the columns' names.
    pub(super) has_headers: bool,
}

impl Default for Separated {
    fn default() -> Self {
        let (column, record) = (b",".to_vec(), b"\n".to_vec());
        Separated { column, record, quote: Some(b'"'), escape: None, has_headers: false }
    }
}

/// How records are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Separated(Separated),
    /// Each followed by this.
    Json(Vec<u8>),
}

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Record {
    Fields(Vec<String>),
    /// The value, and how it stood there.
    Json(Value, String),
}

/// Why a reader can't go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadRecord(pub(super) String);

/// Takes records out of portions.
pub(super) struct RecordReader {
    format: Format,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were taken.
    taken: usize,
    /// Nothing comes any more.
    ended: bool,
    /// Bytes before the buffer.
    before: u64,
}

impl RecordReader {
    pub(super) fn new(format: Format) -> Self {
        RecordReader { format, buffer: Vec::new(), taken: 0, ended: false, before: 0 }
    }

    /// Where in the content the next record begins.
    pub(super) fn position(&self) -> u64 {
        self.before + self.taken as u64
    }

    /// Adds the next bytes.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.before += self.taken as u64;
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Those were all.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// The next record; `None`: more bytes are needed, or it was the last.
    pub(super) fn next(&mut self) -> Result<Option<Record>, BadRecord> {
        let left = &self.buffer[self.taken..];
        let found = match &self.format {
            Format::Separated(separated) => separated.read(left, self.ended),
            Format::Json(separator) => read_json(left, separator, self.ended)?,
        };
        match found {
            Some((record, size)) => {
                self.taken += size;
                Ok(Some(record))
            }
            None if left.len() > RECORD_SIZE_BYTES_MAX => {
                Err(BadRecord(format!("A record is longer than {RECORD_SIZE_BYTES_MAX} bytes.")))
            }
            None => Ok(None),
        }
    }
}

impl Separated {
    /// The first record and its bytes with the separator after it; `None`: its end is not there yet.
    fn read(&self, bytes: &[u8], ended: bool) -> Option<(Record, usize)> {
        if bytes.is_empty() {
            return None;
        }
        let (mut fields, mut field, mut at, mut inside) = (Vec::new(), Vec::new(), 0, false);
        let text = |field: &mut Vec<u8>| String::from_utf8_lossy(&std::mem::take(field)).into_owned();
        loop {
            let rest = &bytes[at..];
            let Some(&byte) = rest.first() else {
                return ended.then(|| {
                    fields.push(text(&mut field));
                    (Record::Fields(fields), at)
                });
            };
            // A separator, or a doubled quote, may be cut off by the end of what is there.
            let longest = self.column.len().max(self.record.len()).max(2);
            if rest.len() < longest && !ended {
                return None;
            }
            if Some(byte) == self.escape && rest.len() > 1 {
                field.push(rest[1]);
                at += 2;
            } else if Some(byte) == self.quote && inside && rest.get(1) == Some(&byte) {
                field.push(byte);
                at += 2;
            } else if Some(byte) == self.quote && (inside || field.is_empty()) {
                inside = !inside;
                at += 1;
            } else if !inside && rest.starts_with(&self.record) {
                // Text from other systems ends its lines with one more character.
                if self.record == b"\n" && field.last() == Some(&b'\r') {
                    field.pop();
                }
                fields.push(text(&mut field));
                return Some((Record::Fields(fields), at + self.record.len()));
            } else if !inside && rest.starts_with(&self.column) {
                fields.push(text(&mut field));
                at += self.column.len();
            } else {
                field.push(byte);
                at += 1;
            }
        }
    }

    /// Writes a record.
    pub(super) fn write<'a>(&self, fields: impl IntoIterator<Item = &'a str>, out: &mut Vec<u8>) {
        for (index, field) in fields.into_iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(&self.column);
            }
            let contains = |part: &[u8]| {
                !part.is_empty() && field.as_bytes().windows(part.len()).any(|window| window == part)
            };
            match self.quote {
                Some(quote) if contains(&self.column) || contains(&self.record) || contains(&[quote]) => {
                    out.push(quote);
                    for byte in field.bytes() {
                        if byte == quote {
                            out.push(self.escape.unwrap_or(quote));
                        }
                        out.push(byte);
                    }
                    out.push(quote);
                }
                _ => out.extend_from_slice(field.as_bytes()),
            }
        }
        out.extend_from_slice(&self.record);
    }
}

/// The first value and its bytes with what separates it from the one before.
fn read_json(bytes: &[u8], separator: &[u8], ended: bool) -> Result<Option<(Record, usize)>, BadRecord> {
    let mut start = 0;
    loop {
        let rest = &bytes[start..];
        if rest.first().is_some_and(u8::is_ascii_whitespace) {
            start += 1;
        } else if !separator.is_empty() && rest.starts_with(separator) {
            start += separator.len();
        } else {
            break;
        }
    }
    let rest = &bytes[start..];
    if rest.is_empty() {
        return Ok(None);
    }
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) => {
            let size = values.byte_offset();
            // A number may go on in what is not there yet.
            if size == rest.len() && !ended && !matches!(value, Value::Object(_) | Value::Array(_)) {
                return Ok(None);
            }
            let text = String::from_utf8_lossy(&rest[..size]).trim().to_owned();
            Ok(Some((Record::Json(value, text), start + size)))
        }
        Some(Err(error)) if error.is_eof() && !ended => Ok(None),
        Some(Err(error)) => Err(BadRecord(format!("The JSON can't be read: {error}"))),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(format: Format, content: &[u8], portion: usize) -> Result<Vec<Record>, BadRecord> {
        let mut reader = RecordReader::new(format);
        let mut records = Vec::new();
        for part in content.chunks(portion) {
            reader.put(part);
            while let Some(record) = reader.next()? {
                records.push(record);
            }
        }
        reader.end();
        while let Some(record) = reader.next()? {
            records.push(record);
        }
        Ok(records)
    }

    fn fields(record: &[&str]) -> Record {
        Record::Fields(record.iter().map(|field| (*field).to_owned()).collect())
    }

    #[test]
    fn separated_text_however_it_is_cut() {
        let content = b"a,b\r\n\"x,\"\"y\"\"\n\",,\nlast";
        let expected = vec![fields(&["a", "b"]), fields(&["x,\"y\"\n", "", ""]), fields(&["last"])];
        for portion in 1..content.len() {
            let read = read(Format::Separated(Separated::default()), content, portion);
            assert_eq!(read.as_ref(), Ok(&expected), "{portion}");
        }
    }

    #[test]
    fn what_is_written_is_quoted_where_it_must_be() {
        let other = Separated {
            column: b";".to_vec(),
            record: b".".to_vec(),
            quote: Some(b'\''),
            escape: Some(b'\\'),
            has_headers: false,
        };
        let mut out = Vec::new();
        other.write(["a,b", "1.0", "it's", ""], &mut out);
        assert_eq!(out, b"a,b;'1.0';'it\\'s';.");
        let read = read(Format::Separated(other), &out, 3);
        assert_eq!(read, Ok(vec![fields(&["a,b", "1.0", "it's", ""])]));
    }

    #[test]
    fn json_with_and_without_separators() {
        let content = b"{\"a\":1}\n{\"a\": 2};{\"b\":[3]}7 8";
        for portion in 1..content.len() {
            let read = read(Format::Json(b";".to_vec()), content, portion).unwrap();
            let texts: Vec<&str> = read
                .iter()
                .map(|record| match record {
                    Record::Json(_, text) => text.as_str(),
                    Record::Fields(_) => "fields",
                })
                .collect();
            assert_eq!(texts, ["{\"a\":1}", "{\"a\": 2}", "{\"b\":[3]}", "7", "8"], "{portion}");
        }
        assert!(read(Format::Json(b"\n".to_vec()), b"{name: owner}", 5).is_err());
    }

    proptest! {
        #[test]
        fn any_content_is_read_or_refused(content: Vec<u8>, portion in 1_usize..9, json: bool) {
            let format = if json { Format::Json(b"\n".to_vec()) } else { Format::Separated(Separated::default()) };
            let _ = read(format, &content, portion);
        }
    }
}
