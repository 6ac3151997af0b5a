//! Entities and the values of their properties.

use base::Ticks;
use base::date_time::date_time_text;
use base::guid::guid_text;
use bytes::Bytes;

/// A value of a property; its kind is its Edm type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `Edm.String`
    String(String),
    /// `Edm.Boolean`
    Boolean(bool),
    /// `Edm.Int32`
    Int32(i32),
    /// `Edm.Int64`
    Int64(i64),
    /// `Edm.Double`
    Double(f64),
    /// `Edm.DateTime`, from 1601 to 9999
    DateTime(Ticks),
    /// `Edm.Guid`, the bytes in the order of its text
    Guid([u8; 16]),
    /// `Edm.Binary`
    Binary(Bytes),
}

impl Value {
    /// The literal of this value in a `$filter`.
    ///
    /// ```
    /// let filter = format!("Name eq {}", storage_client::Value::from("O'Neil").literal());
    /// assert_eq!(filter, "Name eq 'O''Neil'");
    /// ```
    pub fn literal(&self) -> String {
        match self {
            Value::String(text) => format!("'{}'", text.replace('\'', "''")),
            Value::Boolean(value) => value.to_string(),
            Value::Int32(value) => value.to_string(),
            Value::Int64(value) => format!("{value}L"),
            // Always with a point or an exponent.
            Value::Double(value) => format!("{value:?}"),
            Value::DateTime(at) => format!("datetime'{}'", date_time_text(*at)),
            Value::Guid(guid) => format!("guid'{}'", guid_text(guid)),
            Value::Binary(bytes) => {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("X'{digits}'")
            }
        }
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::String(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::String(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Boolean(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Value::Int32(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Int64(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value::Double(value)
    }
}

impl From<Ticks> for Value {
    fn from(value: Ticks) -> Self {
        Value::DateTime(value)
    }
}

impl From<Bytes> for Value {
    fn from(value: Bytes) -> Self {
        Value::Binary(value)
    }
}

/// An entity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entity {
    /// The first part of its key. Empty if a query's selection left it out.
    pub partition_key: String,
    /// The second part of its key.
    pub row_key: String,
    /// Its version, as the service gave it; writes do not look at it, see [`IfMatch`].
    pub etag: Option<String>,
    /// When it was last changed; the service sets it.
    pub timestamp: Option<Ticks>,
    /// The other properties, in the order of the service's answer.
    pub properties: Vec<(String, Value)>,
}

impl Entity {
    /// Without properties.
    pub fn new(partition_key: impl Into<String>, row_key: impl Into<String>) -> Self {
        Entity { partition_key: partition_key.into(), row_key: row_key.into(), ..Entity::default() }
    }

    /// The same entity with one more property.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.properties.push((name.into(), value.into()));
        self
    }

    /// A property's value.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.properties.iter().find(|(one, _)| one == name).map(|(_, value)| value)
    }
}

/// An entity whose properties are all texts, lent.
#[derive(Clone, Copy, Debug)]
pub struct TextEntity<'a> {
    /// The first part of its key.
    pub partition_key: &'a str,
    /// The second part of its key.
    pub row_key: &'a str,
    /// Names and texts of the other properties.
    pub properties: &'a [(&'a str, &'a str)],
}

impl From<&TextEntity<'_>> for Entity {
    fn from(entity: &TextEntity<'_>) -> Self {
        let texts = entity.properties.iter().map(|(name, text)| ((*name).to_owned(), Value::from(*text)));
        Entity { properties: texts.collect(), ..Entity::new(entity.partition_key, entity.row_key) }
    }
}

/// Which version of an entity, or of a blob, a change is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IfMatch {
    /// Any, if it is there.
    Any,
    /// This one.
    ETag(String),
}

impl IfMatch {
    /// The header's value.
    pub(crate) fn header(&self) -> &str {
        match self {
            IfMatch::Any => "*",
            IfMatch::ETag(etag) => etag,
        }
    }
}
