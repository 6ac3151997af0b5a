//! Blobs and their containers.

pub(crate) mod blob_client;
pub(crate) mod container_client;
pub(crate) mod download;
pub(crate) mod kinds;
pub(crate) mod list;
pub(crate) mod properties;
pub(crate) mod upload;
