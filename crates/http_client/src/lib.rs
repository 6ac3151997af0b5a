//! What clients of HTTP services share: endpoints, pooled connections, TLS, proxies, bodies of answers, and
//! XML of answers as small trees.
//!
//! `storage_client` and `stamp_stores` build requests, sign them and read answers; what is below that is
//! here, once.
//!
//! What always holds:
//!
//! * one exchange is one request on the wire: nothing is sent again or redirected; a request that never left
//!   an idle connection goes on a new one;
//! * waits, connections and bodies that are read whole are bounded by named settings and arguments;
//! * certificates and host names are always checked; neither a proxy's password nor a private key is printed;
//! * clock, chance, tasks and sockets are handed in ([`Surroundings`]).
//!
//! Absent: retries, signatures, what a request or an answer means.

mod body;
mod dial;
mod endpoint;
mod pool;
mod proxy;
mod settings;
mod surroundings;
mod time_out;
mod tls;
pub mod xml;

pub use body::{AnswerBody, BrokenBody};
pub use dial::{DialError, Dialer};
pub use endpoint::{Endpoint, Origin};
pub use pool::{Lease, NoAnswer, Pool, with_causes};
pub use proxy::{Proxies, Proxy};
pub use settings::ConnectionSettings;
pub use surroundings::Surroundings;
pub use time_out::within;
pub use tls::{Tls, TlsIdentity, TlsRoots};
