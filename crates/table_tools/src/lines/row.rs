//! One entity as its members stand in JSON: of a service's page, or of a line.
//!
//! ```text
//! {"PartitionKey":"p","RowKey":"r","N@odata.type":"Edm.Int64","N":"5","S":""}      a line, with its newline
//! ```
//!
//! It is what the protocol writes with minimal metadata, without ETag and timestamp, so it can be a request's
//! body. What always holds: an annotation may be before or behind its value; `null` is an absent property;
//! what is written is read back with the same types, texts and order, the keys first.

use super::json::{Malformed, Scanner, put_text, text_of};
use super::token::{EdmType, Token};
use std::borrow::Cow;

const TYPE: &str = "@odata.type";
/// Properties of an entity, and annotations whose values have not come, at most: a service has far fewer.
const PROPERTIES_MAX: usize = 4096;

/// An entity that borrows the text it was read from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row<'a> {
    pub(crate) partition_key: Cow<'a, str>,
    pub(crate) row_key: Cow<'a, str>,
    /// All other properties but the timestamp.
    pub(crate) properties: Vec<Property<'a>>,
    /// Its version as a JSON text; empty without one.
    pub(crate) etag: &'a str,
}

/// A property.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Property<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) value: Token<'a>,
}

/// Why a text is no entity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RowError {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("it has no {0}")]
    NoKey(&'static str),
    #[error("its {0} is no text")]
    KeyType(&'static str),
    #[error("a name or a key has an escape that is no character")]
    Escape,
    #[error("property {0}: {1} is no type")]
    UnknownType(String, String),
    #[error("property {name}: {text} is no {}", kind.name())]
    Misfit { name: String, kind: EdmType, text: String },
    #[error("property {0} is there twice")]
    Twice(String),
    #[error("it has more than {PROPERTIES_MAX} properties")]
    TooMany,
}

/// Characters of a value that does not fit, at most.
const SHOWN_CHARACTERS_MAX: usize = 40;

impl<'a> Row<'a> {
    /// The entity of a line.
    pub(crate) fn parse(line: &'a str) -> Result<Self, RowError> {
        let mut scanner = Scanner::new(line);
        let row = Row::read(&mut scanner)?;
        if !scanner.is_at_end() {
            return Err(RowError::Malformed(Malformed {
                at: scanner.at(),
                what: "there is more behind the entity",
            }));
        }
        Ok(row)
    }

    /// The next entity.
    pub(crate) fn read(scanner: &mut Scanner<'a>) -> Result<Self, RowError> {
        let mut row = Row { properties: Vec::with_capacity(16), ..Row::default() };
        let (mut partition_key, mut row_key) = (None, None);
        // Annotations whose values have not come yet: most often one at a time.
        let mut types: Vec<(Cow<'a, str>, EdmType)> = Vec::new();
        scanner.expect(b'{', "an entity begins with {")?;
        if !scanner.take(b'}') {
            loop {
                let name = text_of(scanner.string()?).ok_or(RowError::Escape)?;
                scanner.expect(b':', "a colon is missing")?;
                row.member(scanner, name, &mut types, [&mut partition_key, &mut row_key])?;
                if !scanner.take(b',') {
                    break;
                }
            }
            scanner.expect(b'}', "a comma or } is missing")?;
        }
        row.partition_key = partition_key.ok_or(RowError::NoKey("PartitionKey"))?;
        row.row_key = row_key.ok_or(RowError::NoKey("RowKey"))?;
        Ok(row)
    }

    fn member(
        &mut self,
        scanner: &mut Scanner<'a>,
        name: Cow<'a, str>,
        types: &mut Vec<(Cow<'a, str>, EdmType)>,
        [partition_key, row_key]: [&mut Option<Cow<'a, str>>; 2],
    ) -> Result<(), RowError> {
        if name.contains('@') || name.starts_with("odata.") {
            return self.annotation(scanner, name, types);
        }
        let text = scanner.scalar()?;
        let key = |name| {
            let is_text = text.starts_with('"');
            if is_text { text_of(text).ok_or(RowError::Escape) } else { Err(RowError::KeyType(name)) }
        };
        match &*name {
            "PartitionKey" | "RowKey" => {
                let (place, name) = match &*name {
                    "RowKey" => (row_key, "RowKey"),
                    _ => (partition_key, "PartitionKey"),
                };
                if place.replace(key(name)?).is_some() {
                    return Err(RowError::Twice(name.to_owned()));
                }
            }
            "Timestamp" => {}
            _ if text == "null" => {}
            _ if self.properties.len() == PROPERTIES_MAX => return Err(RowError::TooMany),
            _ => {
                let at = types.iter().position(|(of, _)| *of == name);
                let value = match at {
                    Some(at) => Token { kind: types.swap_remove(at).1, text },
                    None => Token::inferred(text),
                };
                self.properties.push(Property { name, value });
            }
        }
        Ok(())
    }

    fn annotation(
        &mut self,
        scanner: &mut Scanner<'a>,
        name: Cow<'a, str>,
        types: &mut Vec<(Cow<'a, str>, EdmType)>,
    ) -> Result<(), RowError> {
        if name == "odata.etag" && scanner.peek() == Some(b'"') {
            self.etag = scanner.string()?;
            return Ok(());
        }
        let of = name.strip_suffix(TYPE).filter(|of| !of.is_empty());
        let Some(of) = of else { return Ok(scanner.skip()?) };
        let text = scanner.scalar()?;
        let of: Cow<'a, str> = match name {
            Cow::Borrowed(name) => Cow::Borrowed(&name[..of.len()]),
            Cow::Owned(_) => Cow::Owned(of.to_owned()),
        };
        let kind = text_of(text).and_then(|text| EdmType::parse(&text));
        let Some(kind) = kind else {
            return Err(RowError::UnknownType(of.into_owned(), text.to_owned()));
        };
        match &*of {
            "PartitionKey" | "RowKey" if kind != EdmType::String => {
                Err(RowError::KeyType(if of == "RowKey" { "RowKey" } else { "PartitionKey" }))
            }
            "PartitionKey" | "RowKey" | "Timestamp" => Ok(()),
            _ => {
                let is_twice = types.iter().any(|(other, _)| *other == of);
                match self.properties.iter_mut().find(|property| property.name == of) {
                    _ if is_twice => return Err(RowError::Twice(of.into_owned())),
                    // It was annotated before.
                    Some(Property { value, .. }) if value.kind != Token::inferred(value.text).kind => {
                        return Err(RowError::Twice(of.into_owned()));
                    }
                    Some(property) => property.value.kind = kind,
                    None if types.len() == PROPERTIES_MAX => return Err(RowError::TooMany),
                    None => types.push((of, kind)),
                }
                Ok(())
            }
        }
    }

    /// Whether each value fits its type, and no property is there twice.
    pub(crate) fn check(&self) -> Result<(), RowError> {
        for Property { name, value } in &self.properties {
            if !value.check() {
                let text = value.text.chars().take(SHOWN_CHARACTERS_MAX).collect();
                return Err(RowError::Misfit { name: name.to_string(), kind: value.kind, text });
            }
        }
        let mut names: Vec<&str> = self.properties.iter().map(|property| &*property.name).collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
        twice.map_or(Ok(()), |pair| Err(RowError::Twice(pair[0].to_owned())))
    }

    /// Appends its line, with the newline.
    pub(crate) fn put_line(&self, out: &mut Vec<u8>) {
        self.put_json(out);
        out.push(b'\n');
    }

    /// Appends its JSON.
    pub(crate) fn put_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"PartitionKey\":");
        put_text(out, &self.partition_key);
        out.extend_from_slice(b",\"RowKey\":");
        put_text(out, &self.row_key);
        for Property { name, value } in &self.properties {
            out.push(b',');
            if value.needs_annotation() {
                put_text(out, name);
                // The name's closing quote makes room.
                out.pop();
                out.extend_from_slice(b"@odata.type\":\"");
                out.extend_from_slice(value.kind.name().as_bytes());
                out.extend_from_slice(b"\",");
            }
            put_text(out, name);
            out.push(b':');
            out.extend_from_slice(value.text.as_bytes());
        }
        out.push(b'}');
    }

    /// Bytes as the service counts them.
    pub(crate) fn size_bytes(&self) -> u64 {
        let units = |text: &str| text.encode_utf16().count() as u64;
        let keys = 4 + 2 * (units(&self.partition_key) + units(&self.row_key));
        let property = |one: &Property<'_>| 8 + 2 * units(&one.name) + one.value.size_bytes();
        keys + self.properties.iter().map(property).sum::<u64>()
    }
}

/// The entities of a query's page.
pub(crate) fn rows_of_page(body: &[u8]) -> Result<Vec<Row<'_>>, String> {
    let text = simdutf8::basic::from_utf8(body).map_err(|_| "the page is not UTF-8".to_owned())?;
    let mut scanner = Scanner::new(text);
    let mut rows = Vec::new();
    let refused = |error: RowError| format!("the page can't be read: {error}");
    let malformed = |error: Malformed| refused(error.into());
    scanner.expect(b'{', "a page begins with {").map_err(malformed)?;
    loop {
        let name = scanner.string().map_err(malformed)?;
        scanner.expect(b':', "a colon is missing").map_err(malformed)?;
        if name == "\"value\"" && scanner.take(b'[') {
            while scanner.peek() == Some(b'{') {
                rows.push(Row::read(&mut scanner).map_err(refused)?);
                if !scanner.take(b',') {
                    break;
                }
            }
            scanner.expect(b']', "a comma or ] is missing").map_err(malformed)?;
        } else {
            scanner.skip().map_err(malformed)?;
        }
        if !scanner.take(b',') {
            break;
        }
    }
    scanner.expect(b'}', "a comma or } is missing").map_err(malformed)?;
    Ok(rows)
}

#[cfg(test)]
pub(crate) mod tests;
