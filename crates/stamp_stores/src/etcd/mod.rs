//! Keys in etcd, 3.4 or newer, over its JSON gateway.
//!
//! | file | content |
//! |---|---|
//! | `settings.rs` | what can be set, each with its default |
//! | `open.rs` | a store from its URLs |
//! | `json.rs` | requests and answers as JSON: pure |
//! | `errors.rs` | what an answer with an error says: pure |
//! | `members.rs` | several endpoints: which one is next, and one request to them |
//! | `login.rs` | user, password and token |
//! | `keys.rs` | transactions, reads and leases |
//! | `watch.rs` | waiting for a change |

pub(crate) mod errors;
pub(crate) mod json;
pub(crate) mod keys;
pub(crate) mod login;
pub(crate) mod members;
pub(crate) mod open;
pub(crate) mod settings;
pub(crate) mod watch;
