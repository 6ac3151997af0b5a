//! The home of a catalog: a log of changes, one record a change, in a place for records.

pub(crate) mod change;
pub(crate) mod collect;
pub(crate) mod entry;
pub(crate) mod floors;
#[expect(clippy::module_inception, reason = "the facade of the folder")]
pub(crate) mod home;
pub(crate) mod home_error;
pub(crate) mod keys;
pub(crate) mod load;
pub(crate) mod parts;
pub(crate) mod snapshot;
