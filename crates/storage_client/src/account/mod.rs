//! Which account: where its services are, and what opens it.

pub(crate) mod connection_string;
pub(crate) mod credentials;
pub(crate) mod endpoint;
pub(crate) mod table_sas;
