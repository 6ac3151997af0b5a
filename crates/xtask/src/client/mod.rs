//! Talks to a server as users do: processes, requests, signatures, and loads made of them.

pub(crate) mod content;
pub(crate) mod http_client;
pub(crate) mod load;
pub(crate) mod peer_emulator;
pub(crate) mod server_process;
pub(crate) mod service_client;
pub(crate) mod shared_key;
