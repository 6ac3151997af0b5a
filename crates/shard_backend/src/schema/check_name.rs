//! Names of tables and columns.
//!
//! What always holds: a name that passes can stand in quotes in SQL and in one line of a message; no table of
//! ours or of SQLite is declared.

use crate::limits::NAME_BYTES_MAX;

/// Beginnings of the names of tables that are not an application's, whatever their case.
const RESERVED: [&str; 3] = ["larimar_", "sqlite_", "pg_"];

/// What is wrong with a name, as the end of a sentence.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(format!("a name has 1 to {NAME_BYTES_MAX} bytes"));
    }
    if name.chars().any(char::is_control) || name.trim() != name {
        return Err("a name has no control characters, and no blanks at its ends".to_owned());
    }
    Ok(())
}

/// The same of a table's name.
pub(super) fn check_table_name(name: &str) -> Result<(), String> {
    check_name(name)?;
    let lower = name.to_ascii_lowercase();
    match RESERVED.iter().find(|begin| lower.starts_with(**begin)) {
        Some(begin) => Err(format!("tables that begin with {begin} are not an application's")),
        None => Ok(()),
    }
}
