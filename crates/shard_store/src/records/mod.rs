//! Where a catalog's home keeps its texts: one small trait, and what implements it.

pub(crate) mod file;
pub(crate) mod file_lines;
pub(crate) mod memory;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[expect(clippy::module_inception, reason = "the trait of the folder")]
pub(crate) mod records;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
pub(crate) mod table;
