//! Shards that are the tables of a storage account: the live service, Larimar, or another that speaks the
//! protocol.
//!
//! | file | content |
//! |---|---|
//! | `key_text.rs` | keys as texts in the same order |
//! | `entity.rs` | a row as an entity, and back |
//! | `filters.rs` | which entities a scan asks for |
//! | `claims.rs` | claims, in the table of the shard's copy |
//! | `rights.rs` | by what a write is signed, and until when |
//! | `groups.rs` | changes in groups of one partition |
//! | `submit.rs` | one group, sent |
//! | `table_backend.rs` | the backend |

mod claims;
pub(crate) mod entity;
mod filters;
mod groups;
mod key_text;
mod rights;
mod submit;
pub(crate) mod table_backend;
