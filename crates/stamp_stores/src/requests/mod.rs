//! What is sent to a store, counted by kind.
//!
//! | file | content |
//! |---|---|
//! | `counts.rs` | the numbers, and how they are read |
//! | `counted_objects.rs` | an object store whose requests are counted |
//! | `counted_keys.rs` | the same of a metadata store |

pub(crate) mod counted_keys;
pub(crate) mod counted_objects;
pub(crate) mod counts;
