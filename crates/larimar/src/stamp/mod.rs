//! One of the processes of a stamp: it stands by until nobody serves the stamp, serves it, and stands by
//! again once its lease has ended.
//!
//! | file | content |
//! |---|---|
//! | `stores.rs` | the stores, opened, and what the driver of the stamp is given |
//! | `stand_by.rs` | joining, founding, waiting for the range, taking it |
//! | `founding.rs` | the first start of a stamp |
//! | `served_settings.rs` | whether accounts and lease are those that the stamp is served with |
//! | `former_revisions.rs` | which revisions of etcd are some minutes old |
//! | `log_ahead.rs` | the log of a stamp whose owner is silent or cut off, read before it may be taken |
//! | `load_progress.rs` | how far the loading of a stamp that was taken is |
//! | `serving.rs` | the layers over a range that was taken, until it stops or the process does |
//! | `upkeep.rs` | backups of the documents, sweeps of the object store |
//! | `turns.rs` | the turns of standing by and serving, over the same ports |
//! | `local_block_cache.rs` | the folder for blocks that were read from the object store |
//! | `process.rs` | what they have in common |
//!
//! What always holds: a port is listened on from the start to the end; whoever does not serve says so (503
//! `ServerBusy`, `/ready`); nothing is served without a lease, and no range is kept by who does not serve it.

mod former_revisions;
pub(crate) mod founding;
mod load_progress;
mod local_block_cache;
mod log_ahead;
mod process;
pub(crate) mod served_settings;
mod serving;
pub(crate) mod stand_by;
pub(crate) mod stores;
mod turns;
mod upkeep;

pub(crate) use process::Process;
pub(crate) use turns::run;
