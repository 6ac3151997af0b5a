//! What of the Table service a path names.
//!
//! ```text
//! /                                     the service       (empty too)
//! /Tables, /Tables()                    the set of tables
//! /Tables('Name')                       one table
//! /Name, /Name()                        the entities of a table
//! /Name(PartitionKey='p',RowKey='r')    one entity; keys in either order, blanks around them allowed
//! /$batch                               entity group transactions
//! /Name/…                               nothing: the mistake of a client whose account address names a table
//! /Name//…                              nothing: the mistake of a client that takes `Name/` for a table
//! ```
//!
//! Percent escapes are decoded first, then doubled quotes inside keys become one. Keys may be empty. What
//! always holds: any bytes are a resource or are refused.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use memchr::{memchr, memchr2};
use percent_encoding::percent_decode_str;

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TableResource {
    /// The service of the account.
    Service,
    /// The set of tables.
    Tables,
    /// One table.
    Table(String),
    /// The entities of a table.
    Entities(String),
    /// One entity.
    Entity(EntityAddress),
    /// A batch.
    Batch,
    /// Something below a table, where nothing is.
    BelowTable {
        /// The table.
        table: String,
        /// Whether it was given keys.
        has_keys: bool,
    },
}

impl TableResource {
    /// The table that it is, or is in.
    pub(crate) fn table(self) -> Option<String> {
        match self {
            TableResource::Service | TableResource::Tables | TableResource::Batch => None,
            TableResource::Table(table)
            | TableResource::Entities(table)
            | TableResource::Entity(EntityAddress { table, .. })
            | TableResource::BelowTable { table, .. } => Some(table),
        }
    }
}

/// Where one entity is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntityAddress {
    /// The table as named in the path.
    pub(crate) table: String,
    /// The PartitionKey.
    pub(crate) partition_key: String,
    /// The RowKey.
    pub(crate) row_key: String,
}

impl TableResource {
    /// Reads the raw path below the account.
    pub(crate) fn parse(path: &str) -> Result<Self, ApiError> {
        let raw = path.strip_prefix('/').unwrap_or(path);
        let decoded = match memchr(b'%', raw.as_bytes()) {
            Some(_) => {
                percent_decode_str(raw).decode_utf8().map_err(|_| ApiError::new(ErrorCode::InvalidUri))?
            }
            None => raw.into(),
        };
        let text = decoded.as_ref();
        let (name, arguments) = match memchr(b'(', text.as_bytes()) {
            Some(at) => (&text[..at], Some(arguments_of(&text[at..])?)),
            None => (text, None),
        };
        let name = if arguments.is_none() { name.strip_suffix('/').unwrap_or(name) } else { name };
        if name.contains('\\') || name.starts_with('/') {
            return Err(ErrorCode::InvalidUri.into());
        }
        if let Some((table, rest)) = name.split_once('/') {
            if rest.is_empty() || rest.starts_with('/') {
                return Err(ApiError::with_message(
                    ErrorCode::InvalidResourceName,
                    "The specified resource name contains invalid characters.",
                ));
            }
            let has_keys = arguments.is_some_and(|arguments| !arguments.is_empty());
            return Ok(TableResource::BelowTable { table: table.to_owned(), has_keys });
        }
        let is_tables = name.eq_ignore_ascii_case("Tables");
        match arguments {
            None if name.is_empty() => Ok(TableResource::Service),
            None if name == "$batch" => Ok(TableResource::Batch),
            None | Some("") if is_tables => Ok(TableResource::Tables),
            None | Some("") if !name.is_empty() => Ok(TableResource::Entities(name.to_owned())),
            Some(arguments) if is_tables => table_of(arguments).map(TableResource::Table),
            Some(arguments) if !name.is_empty() => entity_of(name, arguments).map(TableResource::Entity),
            _ => Err(ErrorCode::InvalidUri.into()),
        }
    }
}

fn syntax_error() -> ApiError {
    ApiError::with_message(ErrorCode::InvalidInput, "Bad Request - Error in query syntax.")
}

/// What stands between the outer parentheses, trimmed.
fn arguments_of(text: &str) -> Result<&str, ApiError> {
    text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).map(str::trim).ok_or_else(syntax_error)
}

fn table_of(arguments: &str) -> Result<String, ApiError> {
    let (name, rest) = quoted(arguments)?;
    if !rest.trim().is_empty() {
        return Err(syntax_error());
    }
    Ok(name)
}

fn entity_of(table: &str, arguments: &str) -> Result<EntityAddress, ApiError> {
    let mut partition_key = None;
    let mut row_key = None;
    let mut rest = arguments;
    loop {
        let at = memchr(b'=', rest.as_bytes()).ok_or_else(syntax_error)?;
        let (name, value) = (&rest[..at], &rest[at + 1..]);
        let slot = match name.trim() {
            "PartitionKey" => &mut partition_key,
            "RowKey" => &mut row_key,
            _ => return Err(syntax_error()),
        };
        let (key, after) = quoted(value.trim_start())?;
        // A slash in an address is a mistake of the address, not of the key.
        if slot.is_some() || memchr2(b'/', b'\\', key.as_bytes()).is_some() {
            return Err(syntax_error());
        }
        *slot = Some(key);
        let after = after.trim_start();
        if after.is_empty() {
            break;
        }
        rest = after.strip_prefix(',').ok_or_else(syntax_error)?;
    }
    match (partition_key, row_key) {
        (Some(partition_key), Some(row_key)) => {
            Ok(EntityAddress { table: table.to_owned(), partition_key, row_key })
        }
        _ => Err(syntax_error()),
    }
}

/// The text in quotes at the start, and what follows.
fn quoted(text: &str) -> Result<(String, &str), ApiError> {
    let body = text.strip_prefix('\'').ok_or_else(syntax_error)?;
    let mut out = String::new();
    let mut rest = body;
    loop {
        let at = memchr(b'\'', rest.as_bytes()).ok_or_else(syntax_error)?;
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix('\'') {
            Some(after) => {
                out.push('\'');
                rest = after;
            }
            None => return Ok((out, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entity(table: &str, partition_key: &str, row_key: &str) -> TableResource {
        TableResource::Entity(EntityAddress {
            table: table.to_owned(),
            partition_key: partition_key.to_owned(),
            row_key: row_key.to_owned(),
        })
    }

    #[test]
    fn every_form() {
        let parse = |path| TableResource::parse(path).expect(path);
        assert_eq!(parse(""), TableResource::Service);
        assert_eq!(parse("/"), TableResource::Service);
        assert_eq!(parse("/Tables"), TableResource::Tables);
        assert_eq!(parse("/Tables()"), TableResource::Tables);
        assert_eq!(parse("/Tables('People')"), TableResource::Table("People".into()));
        assert_eq!(parse("/Tables(%27People%27)"), TableResource::Table("People".into()));
        assert_eq!(parse("/People"), TableResource::Entities("People".into()));
        assert_eq!(parse("/People()"), TableResource::Entities("People".into()));
        assert_eq!(parse("/$batch"), TableResource::Batch);
        assert_eq!(parse("/%24batch"), TableResource::Batch);
        let expected = entity("People", "p'1", "r 1");
        assert_eq!(parse("/People(PartitionKey='p%27%271',RowKey='r%201')"), expected);
        assert_eq!(parse("/People(PartitionKey='p''1', RowKey='r%201')"), expected);
        assert_eq!(parse("/People(RowKey='r%201',PartitionKey='p''1')"), expected);
        assert_eq!(parse("/People(PartitionKey='',RowKey='')"), entity("People", "", ""));
        assert_eq!(parse("/T(PartitionKey='a)b,=(',RowKey='+%2B')"), entity("T", "a)b,=(", "++"));
    }

    #[test]
    fn a_slash_is_no_part_of_a_name() {
        for path in ["/a//", "/a//(PartitionKey='p',RowKey='r')", "/a//()", "/a//b"] {
            let refused = TableResource::parse(path).map_err(|error| error.code);
            assert_eq!(refused, Err(ErrorCode::InvalidResourceName), "{path}");
        }
    }

    #[test]
    fn what_is_not_an_address() {
        for path in [
            "/People(",
            "/People('x')",
            "/People(PartitionKey='a')",
            "/People(PartitionKey='a',PartitionKey='b')",
            "/People(PartitionKey='a',RowKey='b',Other='c')",
            "/People(PartitionKey='a',RowKey='b'",
            "/People(PartitionKey='a',RowKey=b)",
            "/People(PartitionKey='a/b',RowKey='b')",
            "/People(PartitionKey='a'RowKey='b')",
            "/Tables('a'b)",
            "/a\\b",
            "//a",
            "/()",
            "/%ff",
        ] {
            assert!(TableResource::parse(path).is_err(), "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_resource_or_refused(path in any::<String>()) {
            let _ = TableResource::parse(&path);
        }

        #[test]
        fn anything_in_parentheses_too(inside in "[PartionKeyRw'=, ()%0-9a-f]{0,40}") {
            let _ = TableResource::parse(&format!("/T({inside})"));
        }

        #[test]
        fn keys_come_back(partition_key in "[^/\\\\]{0,20}", row_key in "[^/\\\\]{0,20}") {
            let encode = |key: &str| {
                percent_encoding::utf8_percent_encode(&key.replace('\'', "''"), percent_encoding::NON_ALPHANUMERIC).to_string()
            };
            let path = format!("/T(PartitionKey='{}',RowKey='{}')", encode(&partition_key), encode(&row_key));
            prop_assert_eq!(TableResource::parse(&path), Ok(entity("T", &partition_key, &row_key)));
        }
    }
}
