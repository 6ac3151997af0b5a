//! A catalog as JSON: its stored form, its export, and what people write by hand.

pub(crate) mod error;
pub(crate) mod format;
pub(crate) mod read;
pub(crate) mod value_json;
pub(crate) mod write;
