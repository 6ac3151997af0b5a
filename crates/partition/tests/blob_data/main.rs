//! Blob data: bytes that rows name, and collections of what no row names.
//!
//! What always holds: bytes that a row names are there, and space of the others comes back.

mod blob_data;
mod idle_collections;
