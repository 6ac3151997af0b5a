//! Reads the head of a file, and makes lines of JSON of its records.
//!
//! What always holds: any bytes are read or refused; a record with too few or too many cells is refused.

use crate::files::columns::COLUMNS_MAX;
use crate::lines::json::put_text;
use crate::lines::token::{EdmType, Token};
use std::borrow::Cow;

/// A cell as it stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cell<'a> {
    text: Cow<'a, str>,
    /// An empty one is a text then, not an absent property.
    is_quoted: bool,
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RecordError {
    #[error("a quote is not closed")]
    OpenQuote,
    #[error("there is text beside the quotes of cell {0}")]
    BesideQuotes(usize),
    #[error("it has {found} cells, and the first line {wanted}")]
    Cells { found: usize, wanted: usize },
    #[error("it has no {0}")]
    NoKey(&'static str),
    #[error("the first line has no {0}")]
    NoKeyColumn(&'static str),
    #[error("the first line names {0} twice with the same type")]
    Twice(String),
    #[error("the second line is to give the types of the columns, and {0:?} is none; Edm.String is one")]
    UnknownType(String),
    #[error("the {0} has another type than Edm.String")]
    KeyType(&'static str),
    #[error("it has more than {COLUMNS_MAX} columns beside the keys")]
    TooManyColumns,
    #[error("the first line names a column {0:?}: no property can have an @ or odata. in its name")]
    NoName(String),
    #[error("the first line names a column {0:?}…, with more than {NAME_CHARACTERS_MAX} characters")]
    LongName(String),
    #[error("property {name}: {text} is no {}", kind.name())]
    Misfit { name: String, kind: EdmType, text: String },
}

/// Characters of a value that does not fit, at most.
const SHOWN_CHARACTERS_MAX: usize = 40;

/// Cells of a record: columns and both keys.
const CELLS_MAX: usize = COLUMNS_MAX + 2;
/// Characters of a property's name, at most: the service's bound.
const NAME_CHARACTERS_MAX: usize = 255;

/// Bytes of the first record with its line end; none if the end is not there.
pub(crate) fn record_size(bytes: &[u8]) -> Option<usize> {
    let mut is_in_quotes = false;
    for at in memchr::memchr2_iter(b'"', b'\n', bytes) {
        match bytes[at] {
            b'"' => is_in_quotes = !is_in_quotes,
            _ if !is_in_quotes => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The cells of a record, with or without its line end.
pub(crate) fn cells(record: &str) -> Result<Vec<Cell<'_>>, RecordError> {
    let record = record.strip_suffix('\n').unwrap_or(record);
    let mut rest = record.strip_suffix('\r').unwrap_or(record);
    let mut cells = Vec::new();
    loop {
        let (cell, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_cell(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (Cell { text: Cow::Borrowed(&rest[..end]), is_quoted: false }, &rest[end..])
            }
        };
        if cells.len() == CELLS_MAX {
            return Err(RecordError::TooManyColumns);
        }
        cells.push(cell);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(cells),
            None => return Err(RecordError::BesideQuotes(cells.len())),
        }
    }
}

/// A cell behind its opening quote, and what comes after it.
fn quoted_cell(quoted: &str) -> Result<(Cell<'_>, &str), RecordError> {
    let (mut at, mut has_quotes) = (0, false);
    loop {
        at += quoted[at..].find('"').ok_or(RecordError::OpenQuote)?;
        if quoted[at + 1..].starts_with('"') {
            has_quotes = true;
            at += 2;
            continue;
        }
        let text = &quoted[..at];
        let text = if has_quotes { Cow::Owned(text.replace("\"\"", "\"")) } else { Cow::Borrowed(text) };
        return Ok((Cell { text, is_quoted: true }, &quoted[at + 1..]));
    }
}

/// Name and type of each column of a file, keys among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    columns: Vec<(String, EdmType)>,
    partition_key: usize,
    row_key: usize,
}

impl Head {
    /// Of the line of names and that of types.
    pub(crate) fn parse(names: &str, types: &str) -> Result<Self, RecordError> {
        // Of programs that begin a file with it.
        let names = cells(names.strip_prefix('\u{feff}').unwrap_or(names))?;
        let types = cells(types)?;
        names.iter().try_for_each(|name| check_name(&name.text))?;
        let mut columns: Vec<(String, EdmType)> = Vec::new();
        for kind in &types {
            let unknown = || RecordError::UnknownType(kind.text.to_string());
            let kind = EdmType::parse(kind.text.trim()).ok_or_else(unknown)?;
            let name = names.get(columns.len()).map(|name| name.text.to_string()).unwrap_or_default();
            if columns.iter().any(|(other, of)| *other == name && *of == kind) {
                return Err(RecordError::Twice(name));
            }
            columns.push((name, kind));
        }
        if names.len() != types.len() {
            return Err(RecordError::Cells { found: types.len(), wanted: names.len() });
        }
        let key = |key: &'static str| {
            let place =
                columns.iter().position(|(name, _)| name == key).ok_or(RecordError::NoKeyColumn(key))?;
            if columns[place].1 == EdmType::String { Ok(place) } else { Err(RecordError::KeyType(key)) }
        };
        let (partition_key, row_key) = (key("PartitionKey")?, key("RowKey")?);
        Ok(Head { columns, partition_key, row_key })
    }

    /// Appends the line of a record, with the newline.
    pub(crate) fn put_line(&self, out: &mut Vec<u8>, record: &str) -> Result<(), RecordError> {
        let cells = cells(record)?;
        if cells.len() != self.columns.len() {
            return Err(RecordError::Cells { found: cells.len(), wanted: self.columns.len() });
        }
        let key = |place: usize, name| {
            let cell = &cells[place];
            // Without quotes a key is empty only if it is missing.
            if cell.text.is_empty() && !cell.is_quoted {
                Err(RecordError::NoKey(name))
            } else {
                Ok(&*cell.text)
            }
        };
        out.extend_from_slice(b"{\"PartitionKey\":");
        put_text(out, key(self.partition_key, "PartitionKey")?);
        out.extend_from_slice(b",\"RowKey\":");
        put_text(out, key(self.row_key, "RowKey")?);
        for (index, (cell, (name, kind))) in cells.iter().zip(&self.columns).enumerate() {
            let is_absent = cell.text.is_empty() && !cell.is_quoted;
            let is_key = index == self.partition_key || index == self.row_key || name == "Timestamp";
            if !is_absent && !is_key {
                put_property(out, name, *kind, &cell.text)?;
            }
        }
        out.extend_from_slice(b"}\n");
        Ok(())
    }
}

/// Values of such a property would be lost as an annotation's, or be written with a name that is too long.
fn check_name(name: &str) -> Result<(), RecordError> {
    if name.chars().nth(NAME_CHARACTERS_MAX).is_some() {
        return Err(RecordError::LongName(name.chars().take(SHOWN_CHARACTERS_MAX).collect()));
    }
    if name.contains('@') || name.starts_with("odata.") {
        return Err(RecordError::NoName(name.to_owned()));
    }
    Ok(())
}

fn put_property(out: &mut Vec<u8>, name: &str, kind: EdmType, text: &str) -> Result<(), RecordError> {
    let is_plain = match kind {
        EdmType::Boolean | EdmType::Int32 => true,
        EdmType::Double => !matches!(text, "NaN" | "Infinity" | "-Infinity"),
        _ => false,
    };
    let mut value = Vec::new();
    match is_plain {
        true => value.extend_from_slice(text.as_bytes()),
        false => put_text(&mut value, text),
    }
    let token = Token { kind, text: std::str::from_utf8(&value).unwrap_or_default() };
    if !token.check() {
        let text = text.chars().take(SHOWN_CHARACTERS_MAX).collect();
        return Err(RecordError::Misfit { name: name.to_owned(), kind, text });
    }
    out.push(b',');
    if token.needs_annotation() {
        put_text(out, &format!("{name}@odata.type"));
        out.push(b':');
        put_text(out, kind.name());
        out.push(b',');
    }
    put_text(out, name);
    out.push(b':');
    out.extend_from_slice(&value);
    Ok(())
}

#[cfg(test)]
mod tests;
