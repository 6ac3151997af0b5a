//! What an owner knows of a log, as long as it has the range.

use crate::error::{AppendError, StampError};
use crate::extents::part_gather::PartGather;
use parking_lot::Mutex;
use stamp::{AppendWindow, Change, ExtentName, LogProgress};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use tokio::sync::{Notify, oneshot};

type Acknowledged = oneshot::Sender<Result<(), AppendError>>;

/// Why a log has no extent that takes appends.
#[derive(Clone, Debug)]
pub(crate) struct TailFailure {
    pub(crate) why: String,
    /// The document has no room for another one.
    pub(crate) is_full: bool,
}

impl From<String> for TailFailure {
    fn from(why: String) -> Self {
        TailFailure { why, is_full: false }
    }
}

impl From<StampError> for TailFailure {
    fn from(error: StampError) -> Self {
        TailFailure { why: error.to_string(), is_full: matches!(error, StampError::Full(..)) }
    }
}

/// What a log's owner knows of it.
#[derive(Default)]
pub(crate) struct LogState {
    pub(crate) window: Option<AppendWindow>,
    pub(crate) progress: LogProgress,
    /// Who waits for the part at this offset of this extent; at most a window of them.
    pub(crate) waiting: BTreeMap<(ExtentName, u64), Acknowledged>,
    /// Parts that wait for the others of their bundle, while an extent is open whose parts are bundled.
    pub(crate) gather: Option<PartGather>,
    /// Lengths of extents that this owner sealed, while they are not recorded: one, or two after a failure.
    pub(crate) unrecorded: Vec<Change>,
    /// Whether the tail is being closed, or must stay closed: nothing is pushed.
    pub(crate) is_closing: bool,
    /// Whether a task opens the next extent.
    pub(crate) is_tended: bool,
    /// Why the next extent could not be opened.
    pub(crate) failure: Option<TailFailure>,
}

/// The part of a log that lives as long as its range.
#[derive(Default)]
pub(crate) struct LogCore {
    pub(crate) state: Mutex<LogState>,
    pub(crate) changed: Notify,
    /// Held while the tail changes.
    pub(crate) tail: tokio::sync::Mutex<()>,
    /// Parts that its open extent takes.
    pub(crate) parts_max: AtomicUsize,
}
