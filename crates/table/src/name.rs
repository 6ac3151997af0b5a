//! Rules for table names, property names and keys: which violation gives which error.
//!
//! What always holds: nothing is stored under a name or key that this file refuses, and each check is one
//! pass.

use crate::edm::utf16_len;
use crate::error::{KeyColumn, TableError};
use crate::limits::{KEY_UNITS_MAX, PROPERTY_NAME_UNITS_MAX, TABLE_NAME_LEN_MAX, TABLE_NAME_LEN_MIN};

/// A name that the address space of the service itself uses.
const RESERVED_TABLE_NAME: &str = "tables";

/// Checks a table name: a letter, then letters and digits, 3 to 63 in all, and not `tables`.
pub fn check_table_name(name: &str) -> Result<(), TableError> {
    let starts_with_letter = name.bytes().next().is_none_or(|byte| byte.is_ascii_alphabetic());
    if !starts_with_letter || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(TableError::TableNameCharacters(name.to_owned()));
    }
    if !(TABLE_NAME_LEN_MIN..=TABLE_NAME_LEN_MAX).contains(&name.len()) {
        return Err(TableError::TableNameLength(name.to_owned()));
    }
    if name.eq_ignore_ascii_case(RESERVED_TABLE_NAME) {
        return Err(TableError::TableNameReserved(name.to_owned()));
    }
    Ok(())
}

/// Checks a PartitionKey or a RowKey and counts its UTF-16 units. `/`, `\`, `#`, `?` and control characters
/// (U+0000 to U+001F, U+007F to U+009F) are refused.
pub(crate) fn check_key(key: KeyColumn, value: &str) -> Result<usize, TableError> {
    let units = utf16_len(value.as_bytes());
    if units > KEY_UNITS_MAX {
        return Err(TableError::KeyTooLong(key));
    }
    let mut before = 0;
    for byte in value.bytes() {
        // U+0080 to U+009F are C2 80 to C2 9F in UTF-8.
        let second_control = before == 0xc2 && byte < 0xa0;
        if byte < 0x20 || matches!(byte, b'/' | b'\\' | b'#' | b'?' | 0x7f) || second_control {
            let value = value.to_owned();
            return Err(TableError::KeyCharacters { key, value });
        }
        before = byte;
    }
    Ok(units)
}

/// Checks the name of an own property and counts its UTF-16 units. It must be an identifier: a letter or `_`,
/// then letters, digits, `_`. ASCII is checked exactly; beyond it, where identifiers depend on the version of
/// Unicode, all but spaces, controls, general punctuation and what XML can't carry is accepted after the
/// first character.
pub fn check_property_name(name: &str) -> Result<usize, TableError> {
    let units = utf16_len(name.as_bytes());
    if units > PROPERTY_NAME_UNITS_MAX {
        return Err(TableError::PropertyNameTooLong);
    }
    let mut characters = name.chars();
    let fits = characters.next().is_some_and(starts_identifier) && characters.all(continues_identifier);
    if !fits || matches!(name, "PartitionKey" | "RowKey" | "Timestamp") {
        return Err(TableError::PropertyNameInvalid(name.to_owned()));
    }
    Ok(units)
}

/// Whether an identifier may start with `character`.
pub(crate) fn starts_identifier(character: char) -> bool {
    character.is_ascii_alphabetic()
        || character == '_'
        || (!character.is_ascii() && character.is_alphabetic())
}

/// Whether an identifier may contain `character` after the first one.
pub(crate) fn continues_identifier(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphanumeric() || character == '_';
    }
    let joins = matches!(character, '\u{200c}' | '\u{200d}' | '\u{203f}' | '\u{2040}' | '\u{2054}');
    let punctuation = matches!(character, '\u{2000}'..='\u{206f}') && !joins;
    let not_xml = matches!(character, '\u{fffe}' | '\u{ffff}');
    !(punctuation || not_xml || character.is_whitespace() || character.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_names() {
        for name in ["abc", "Abc1", &"a".repeat(63)] {
            assert!(check_table_name(name).is_ok(), "{name}");
        }
        for name in ["1ab", "a-b", "my_table", "aéc", "$MetricsX", "a b", "啊齄丂狛狜", "-"] {
            let error = check_table_name(name);
            assert!(matches!(error, Err(TableError::TableNameCharacters(_))), "{name}");
        }
        for name in ["", "ab", &"a".repeat(64)] {
            let error = check_table_name(name);
            assert!(matches!(error, Err(TableError::TableNameLength(_))), "{name}");
        }
        for name in ["tables", "Tables"] {
            let error = check_table_name(name);
            assert!(matches!(error, Err(TableError::TableNameReserved(_))), "{name}");
        }
    }

    #[test]
    fn keys() {
        let column = KeyColumn::RowKey;
        for (key, units) in [("", 0), ("a'b", 3), ("\u{a0}%25", 4), ("\u{1f600}", 2), ("ä", 1)] {
            assert_eq!(check_key(column, key).unwrap(), units, "{key}");
        }
        assert!(check_key(column, &"ä".repeat(1024)).is_ok());
        let long = check_key(column, &"a".repeat(1025));
        assert!(matches!(long, Err(TableError::KeyTooLong(KeyColumn::RowKey))));
        for key in ["/", "a\\", "#", "?", "\0", "\n", "\u{1f}", "\u{7f}", "\u{80}", "\u{9f}"] {
            let error = check_key(column, key);
            assert!(matches!(error, Err(TableError::KeyCharacters { .. })), "{key:?}");
        }
    }

    #[test]
    fn property_names() {
        for (name, units) in [("a", 1), ("_foo", 4), ("A1", 2), ("啊齄丂狛狜", 5), ("été", 3), ("क्षि", 4)]
        {
            assert_eq!(check_property_name(name).unwrap(), units, "{name}");
        }
        assert!(check_property_name(&"x".repeat(255)).is_ok());
        let long = check_property_name(&"x".repeat(256));
        assert!(matches!(long, Err(TableError::PropertyNameTooLong)));
        for name in ["", "1a", "a-b", "a.b", "a b", "a\u{2003}b", "a\u{ffff}", "a@b", "Timestamp", "RowKey"] {
            let error = check_property_name(name);
            assert!(matches!(error, Err(TableError::PropertyNameInvalid(_))), "{name:?}");
        }
    }
}
