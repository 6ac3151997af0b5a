//! Where a map's home is, as it is typed.
//!
//! What always holds: an address has no password; it comes from the environment or a file.

use shard_map::has_password;
use std::fmt;
use std::path::PathBuf;

/// A place for a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HomeAddress {
    /// A file of lines.
    File(PathBuf),
    /// A SQLite database.
    Sqlite(PathBuf),
    /// A Postgres database: the URL as typed.
    Postgres(String),
    /// A table of a storage account, whose connection string is given apart from the command line.
    Table(String),
}

/// A text that is no place for a home.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HomeAddressError {
    /// It begins with nothing known.
    #[error(
        "{0:?} is no home of a map; write file:PATH, sqlite:PATH, postgres://USER@HOST/DATABASE or table:NAME"
    )]
    Unknown(String),
    /// Nothing follows.
    #[error("{0} needs a name behind the colon")]
    Empty(&'static str),
    /// It has a password.
    #[error(
        "the home has a password, which other users of the machine see; set PGPASSWORD or PGPASSFILE instead"
    )]
    Password,
}

impl HomeAddress {
    /// Reads what was typed.
    pub fn parse(text: &str) -> Result<Self, HomeAddressError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return match has_password(text) || text.to_ascii_lowercase().contains("password=") {
                true => Err(HomeAddressError::Password),
                false => Ok(HomeAddress::Postgres(text.to_owned())),
            };
        }
        match text.split_once(':') {
            Some(("file", "")) => Err(HomeAddressError::Empty("file:")),
            Some(("sqlite", "")) => Err(HomeAddressError::Empty("sqlite:")),
            Some(("table", "")) => Err(HomeAddressError::Empty("table:")),
            Some(("file", path)) => Ok(HomeAddress::File(path.into())),
            Some(("sqlite", path)) => Ok(HomeAddress::Sqlite(path.into())),
            Some(("table", name)) => Ok(HomeAddress::Table(name.to_owned())),
            // What was typed may have a secret, and is not repeated then.
            _ if text.contains('=') || has_password(text) => Err(HomeAddressError::Unknown("…".to_owned())),
            _ => Err(HomeAddressError::Unknown(text.chars().take(60).collect())),
        }
    }
}

impl fmt::Display for HomeAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HomeAddress::File(path) => write!(out, "file:{}", path.display()),
            HomeAddress::Sqlite(path) => write!(out, "sqlite:{}", path.display()),
            HomeAddress::Postgres(url) => out.write_str(url),
            HomeAddress::Table(name) => write!(out, "table:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_read_and_passwords_refused() {
        for (text, expected) in [
            ("file:/srv/map", Ok(HomeAddress::File("/srv/map".into()))),
            ("sqlite:map.db", Ok(HomeAddress::Sqlite("map.db".into()))),
            ("table:shards", Ok(HomeAddress::Table("shards".to_owned()))),
            ("postgres://app@db/x", Ok(HomeAddress::Postgres("postgres://app@db/x".to_owned()))),
            ("postgres://app:pw@db/x", Err(HomeAddressError::Password)),
            ("postgres://app:p/w@db/x", Err(HomeAddressError::Password)),
            ("postgres://app:p?w@db/x", Err(HomeAddressError::Password)),
            ("postgres://app:p#w@db/x", Err(HomeAddressError::Password)),
            ("postgresql://db/x?user=a&Password=pw", Err(HomeAddressError::Password)),
            ("file:", Err(HomeAddressError::Empty("file:"))),
            ("mysql://db", Err(HomeAddressError::Unknown("mysql://db".to_owned()))),
            ("mysql://app:SECRET@db", Err(HomeAddressError::Unknown("…".to_owned()))),
            ("AccountName=a;AccountKey=SECRET", Err(HomeAddressError::Unknown("…".to_owned()))),
        ] {
            assert_eq!(HomeAddress::parse(text), expected, "{text}");
        }
    }
}
