//! Ranges in the hands of their owner, and how they change hands.
//!
//! | file | content |
//! |---|---|
//! | `owned_range.rs` | a range that is served: admission, why it stopped |
//! | `change.rs` | its document, changed by compare; backups on demand |
//! | `waiting_changes.rs` | changes that go together with the next transaction |
//! | `range_watch.rs` | which ranges there are, and taking one |
//! | `open.rs` | sealing and recording, before a range is read |
//! | `go_on.rs` | what follows after a range has stopped |
//! | `release.rs` | giving it up on purpose |
//! | `split.rs` | two out of one |

pub(crate) mod change;
pub(crate) mod go_on;
pub(crate) mod open;
pub(crate) mod owned_range;
pub(crate) mod range_stop;
pub(crate) mod range_watch;
pub(crate) mod release;
pub(crate) mod split;
pub(crate) mod waiting_changes;
