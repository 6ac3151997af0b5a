//! What is on the wire, below the services: connections, TLS, proxies, signatures, texts in addresses, XML.

pub(crate) mod address_text;
pub(crate) mod answer_reader;
pub(crate) mod header_text;
pub(crate) mod keep_alive;
pub(crate) mod shared_key;
