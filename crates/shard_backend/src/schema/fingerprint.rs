//! The fingerprint of a declared schema: the same for the same tables, whatever the order and layout of its
//! file.
//!
//! It is the SHA-256 of the schema's canonical form, in UTF-8, written as `v1-` and 64 hexadecimal digits.
//! Version 1 of the canonical form, a line each, ended by a line feed; `NAME` is a name's count of bytes, a
//! colon, and the name:
//!
//! ```text
//! larimar-schema 1
//! map NAME
//! sharded NAME key NAME… primary NAME…     for each table, in the order of the names' bytes
//! reference NAME primary NAME…
//! column NAME KIND                         for each column of the table before, in the same order
//! column NAME KIND null                    if it may be NULL
//! ```
//!
//! What always holds: two schemas have one canonical form exactly if they are equal, because a name's count
//! shows where it ends.

use super::schema::Schema;
use super::table::TableSchema;
use sha2::{Digest, Sha256};
use std::fmt;
use std::fmt::Write;

/// A schema's fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The version of the canonical form.
    pub const VERSION: u32 = 1;

    /// Reads a fingerprint of this version.
    pub fn parse(text: &str) -> Option<Self> {
        let (version, digits) = text.split_once('-')?;
        let digits = digits.as_bytes();
        if version != format!("v{}", Self::VERSION) || digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = base::guid::hex_digit(pair[0])? << 4 | base::guid::hex_digit(pair[1])?;
        }
        Some(Fingerprint(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "v{}-", Self::VERSION)?;
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl Schema {
    /// Its fingerprint.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint(Sha256::digest(self.canonical_form()).into())
    }

    /// The text that is hashed.
    pub fn canonical_form(&self) -> String {
        let mut text = format!("larimar-schema {}\nmap", Fingerprint::VERSION);
        push_name(self.map.as_str(), &mut text);
        text.push('\n');
        for table in self.tables() {
            push_table(table, &mut text);
        }
        text
    }
}

fn push_table(table: &TableSchema, text: &mut String) {
    text.push_str(if table.is_sharded() { "sharded" } else { "reference" });
    push_name(table.name(), text);
    if table.is_sharded() {
        text.push_str(" key");
        table.shard_key().iter().for_each(|index| push_name(&table.columns[*index].name, text));
    }
    text.push_str(" primary");
    table.primary_key().iter().for_each(|index| push_name(&table.columns[*index].name, text));
    text.push('\n');
    for column in table.columns() {
        text.push_str("column");
        push_name(&column.name, text);
        text.push(' ');
        text.push_str(column.kind.name());
        text.push_str(if column.is_nullable { " null\n" } else { "\n" });
    }
}

fn push_name(name: &str, text: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(text, " {}:{name}", name.len());
}
