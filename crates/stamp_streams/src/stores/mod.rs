//! The two stores that a stamp stands on, as traits.
//!
//! | file | content |
//! |---|---|
//! | `object_store.rs` | objects that are created if they are absent, never overwritten |
//! | `key_values.rs` | keys with revisions, transactions with compares, leases |
//! | `store_error.rs` | why a store did not do something |

pub(crate) mod key_values;
pub(crate) mod object_store;
pub(crate) mod store_error;
