//! The formats of files of entities, and which of them this build has.

use crate::error::ToolError;

/// How entities are in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A line of JSON an entity.
    JsonLines,
    /// A line of names, a line of types, a record an entity.
    Csv,
    /// Columns, a row an entity. Only builds with the feature `parquet` have it.
    Parquet,
}

impl Format {
    /// The format that a file's name ends with.
    pub fn of_name(name: &str) -> Option<Self> {
        let ends = |ends: &[&str]| ends.iter().any(|end| name.to_ascii_lowercase().ends_with(end));
        if ends(&[".csv"]) {
            Some(Format::Csv)
        } else if ends(&[".parquet"]) {
            Some(Format::Parquet)
        } else {
            ends(&[".jsonl", ".ndjson", ".json"]).then_some(Format::JsonLines)
        }
    }

    /// Refuses a format that this build can't read and write.
    pub(crate) fn check(self) -> Result<(), ToolError> {
        if self == Format::Parquet && !cfg!(feature = "parquet") {
            let what = "this build has no Parquet; build it with cargo build --release --features parquet";
            return Err(ToolError::refused(what));
        }
        Ok(())
    }

    /// How many of a file's first bytes decide what is before a position: of Parquet all, because its end
    /// says where values are.
    pub(crate) fn bytes_before(self, position: u64, size_bytes: u64) -> u64 {
        match self {
            Format::Parquet if position > 0 => size_bytes,
            _ => position,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_the_format() {
        for (name, format) in [
            ("a.jsonl", Some(Format::JsonLines)),
            ("b/a.NDJSON", Some(Format::JsonLines)),
            ("a.csv", Some(Format::Csv)),
            ("a.parquet", Some(Format::Parquet)),
            ("a.snappy.Parquet", Some(Format::Parquet)),
            ("parquet", None),
            ("a.txt", None),
        ] {
            assert_eq!(Format::of_name(name), format, "{name}");
        }
        assert_eq!(Format::Csv.bytes_before(7, 100), 7);
        assert!(Format::Csv.check().is_ok());
        let refused = Format::Parquet.check().map_err(|error| error.to_string());
        let line = "this build has no Parquet; build it with cargo build --release --features parquet";
        assert_eq!(refused, if cfg!(feature = "parquet") { Ok(()) } else { Err(line.to_owned()) });
        assert_eq!((Format::Parquet.bytes_before(0, 100), Format::Parquet.bytes_before(7, 100)), (0, 100));
    }
}
