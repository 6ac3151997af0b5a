//! The stores of a stamp of several processes, for real: what [`stamp_streams::ObjectStore`] and
//! [`stamp_streams::KeyValues`] ask for, over S3, a shared folder, memory, and etcd.
//!
//! | folder | content |
//! |---|---|
//! | `objects/` | URLs of object stores; objects in memory and in a folder |
//! | `s3/` | objects in a bucket: signatures, requests, answers, the checks of a first start |
//! | `credentials/` | where a bucket's credentials come from, and when they are renewed |
//! | `etcd/` | keys over etcd's JSON gateway |
//! | `requests/` | what is sent to a store, counted by kind |
//!
//! Start at [`open_object_store`] and [`open_key_values`].
//!
//! What always holds:
//!
//! * an object is never overwritten, and *created* is answered by the request that made it only;
//! * what may have been done is answered as unknown; nothing that changes something is sent again by itself,
//!   unless its refusal proves that nothing was done;
//! * every wait, connection, queue and body has a named bound;
//! * credentials are in no error, no log and no `Debug`;
//! * clock, chance, tasks, sockets, files and the environment's variables are handed in
//!   ([`StoreSurroundings`]).
//!
//! Absent: what objects and keys mean; retries, which `stamp_streams` makes; settings' flags.

mod credentials;
mod error;
mod etcd;
mod exchange;
mod objects;
mod requests;
mod s3;
mod secret;
mod surroundings;

pub use error::OpenError;
pub use etcd::open::{OpenedKeyValues, open_key_values};
pub use etcd::settings::KeyValueSettings;
pub use objects::open::{OpenedObjectStore, open_object_store};
pub use objects::settings::ObjectStoreSettings;
pub use requests::counts::{LATENCY_BOUNDS_US, RequestCounts, RequestKind, RequestReading};
pub use secret::Secret;
pub use surroundings::StoreSurroundings;
