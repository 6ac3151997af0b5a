//! Values of columns and rows.

pub(crate) mod column_kind;
pub(crate) mod row;
#[allow(clippy::module_inception)] // The file of the type is named as the type is.
pub(crate) mod value;
