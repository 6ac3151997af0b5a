//! What is known of the connection that a request came on.
//!
//! Signatures may be bound to addresses and to encryption, and memory is shared out by addresses.

use std::net::IpAddr;

/// What is known of the connection that a request came on.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionInfo {
    /// The client's address.
    pub peer: Option<IpAddr>,
    /// Whether the connection is encrypted.
    pub encrypted: bool,
}
