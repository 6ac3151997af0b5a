//! Declared schemas: from TOML, their fingerprint, and what databases have instead.

pub(crate) mod check_name;
pub(crate) mod drift;
pub(crate) mod fingerprint;
pub(crate) mod parse;
#[allow(clippy::module_inception)] // The file of the type is named as the type is.
pub(crate) mod schema;
pub(crate) mod table;
