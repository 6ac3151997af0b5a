//! The bodies of requests: small objects of JSON, checked whole.
//!
//! What always holds: what is not known is refused, so that nobody believes that something was done.

use crate::admin::route::Answer;
use crate::admin::sampled::TABLES_BY_NAME;
use partition::ObjectTable;
use serde_json::{Map, Value};

/// The fields of a body.
#[derive(Debug)]
pub(super) struct Fields(Map<String, Value>);

/// A refusal of a body.
fn wrong(message: &str) -> Answer {
    Answer::error(400, "bad_body", message)
}

impl Fields {
    /// Reads a body that may have these fields; an empty one has none.
    pub(super) fn parse(body: &[u8], known: &[&str]) -> Result<Self, Answer> {
        if body.is_empty() {
            return Ok(Fields(Map::new()));
        }
        let Ok(Value::Object(fields)) = serde_json::from_slice(body) else {
            return Err(wrong("the body has to be an object of JSON"));
        };
        match fields.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(Fields(fields)),
            Some(_) => Err(wrong(&match known {
                [] => "the object has no fields".to_owned(),
                known => format!("the object has a field that is none of {}", known.join(", ")),
            })),
        }
    }

    /// A text.
    pub(super) fn text(&self, key: &str) -> Result<Option<&str>, Answer> {
        match self.0.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong(&format!("{key} has to be a text"))),
        }
    }

    /// True or false, which has to be there.
    pub(super) fn bool(&self, key: &str) -> Result<bool, Answer> {
        let found = self.0.get(key).and_then(Value::as_bool);
        found.ok_or_else(|| wrong(&format!("{key} has to be there, true or false")))
    }

    /// The number of a range.
    pub(super) fn range(&self) -> Result<Option<u64>, Answer> {
        match self.0.get("range") {
            None => Ok(None),
            Some(number) => match number.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(wrong("range has to be the number of a range")),
            },
        }
    }

    /// An object table.
    pub(super) fn table(&self) -> Result<Option<(ObjectTable, &'static str)>, Answer> {
        let Some(name) = self.text("table")? else { return Ok(None) };
        match TABLES_BY_NAME.into_iter().find(|(_, known)| *known == name) {
            Some(found) => Ok(Some(found)),
            None => Err(wrong("table has to be map, container, entity, message or blob")),
        }
    }
}

/// What has to be there.
pub(super) fn required<T>(found: Option<T>, what: &str) -> Result<T, Answer> {
    found.ok_or_else(|| wrong(&format!("{what} is missing")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_checked_whole() {
        let known = ["table", "range"];
        for (body, is_good) in [
            ("", true),
            ("{}", true),
            (" {\"table\": \"entity\", \"range\": 7}", true),
            ("{\"tabel\": \"entity\"}", false),
            ("[]", false),
            ("null", false),
            ("{", false),
            ("{} {}", false),
        ] {
            assert_eq!(Fields::parse(body.as_bytes(), &known).is_ok(), is_good, "{body}");
        }
        let fields = |body: &str| Fields::parse(body.as_bytes(), &known).expect("an object");
        assert_eq!(fields("{\"table\":\"blob\"}").table(), Ok(Some((ObjectTable::Blob, "blob"))));
        assert_eq!(fields("{}").table(), Ok(None));
        for body in ["{\"table\":\"blobs\"}", "{\"table\":7}", "{\"table\":null}"] {
            assert!(fields(body).table().is_err(), "{body}");
        }
        assert_eq!(fields("{\"range\":7}").range(), Ok(Some(7)));
        for body in ["{\"range\":\"7\"}", "{\"range\":-1}", "{\"range\":1.5}", "{\"range\":null}"] {
            assert!(fields(body).range().is_err(), "{body}");
        }
    }
}
