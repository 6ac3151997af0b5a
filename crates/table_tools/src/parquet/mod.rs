//! Entities as a Parquet file: a column for each property and type, a row an entity.
//!
//! ```text
//! PartitionKey  RowKey  Name   Price@Int32  Price@Double
//! p             r       Ada    7            null          { … "Name":"Ada","Price":7}
//! p             s       null   null         NaN           { … "Price@odata.type":"Edm.Double","Price":"NaN"}
//! ```
//!
//! | type | Parquet |
//! |---|---|
//! | `Edm.String` | BYTE_ARRAY, STRING |
//! | `Edm.Boolean`, `Int32`, `Int64`, `Double` | BOOLEAN, INT32, INT64, DOUBLE |
//! | `Edm.DateTime` | INT64: ticks of 100 ns since 1601, which no timestamp of Parquet holds |
//! | `Edm.Guid` | FIXED_LEN_BYTE_ARRAY(16), UUID |
//! | `Edm.Binary` | BYTE_ARRAY |
//!
//! A property with one type has the column of its name; with several it has one for each, with the type
//! behind an `@`, which no property's name has, and so has a DateTime. An absent property is null. The file's
//! metadata say
//!
//! ```text
//! larimar.columns      {"PartitionKey":"Edm.String", … }    the type of each column
//! larimar.checksums    [[END, "CRC"], … ]                   where a row group ends, its CRC-64/NVME
//! ```
//!
//! and the metadata have a checksum themselves, where readers do not look:
//!
//! ```text
//! "PAR1"  row groups  "larimar\0"  CRC-64/NVME of all behind it: u64  metadata  their size: u32  "PAR1"
//! ```
//!
//! What always holds: a file that this program has written is read back as the same entities, or refused;
//! memory is a row group, as values when it is written, as bytes of the file when it is read.

mod column;
mod layout;
mod pages;
mod part;
pub(crate) mod read;
mod value;
pub(crate) mod write;

#[cfg(test)]
mod tests;

/// The type of each column, in the file's metadata.
const COLUMNS_KEY: &str = "larimar.columns";
/// The checksum of each row group, in the file's metadata.
const CHECKSUMS_KEY: &str = "larimar.checksums";
/// What the file says that it was made by begins so.
const CREATED_BY: &str = "larimar version ";
/// The keys' columns.
const KEYS: [&str; 2] = ["PartitionKey", "RowKey"];

/// Before the checksum of the file's end.
const END_MAGIC: &[u8; 8] = b"larimar\0";
/// Bytes of both.
const END_CHECK_SIZE_BYTES: u64 = 16;

/// Where the bytes of a row group end, and their checksum in hexadecimal digits.
type GroupChecksum = (u64, String);
