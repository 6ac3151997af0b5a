//! What an owner knows of a log, as long as it has the range.

use crate::error::AppendError;
use parking_lot::Mutex;
use stamp::{AppendWindow, Change, ExtentName, LogProgress};
use std::collections::BTreeMap;
use tokio::sync::{Notify, oneshot};

type Acknowledged = oneshot::Sender<Result<(), AppendError>>;

/// What a log's owner knows of it.
#[derive(Default)]
pub(crate) struct LogState {
    pub(crate) window: Option<AppendWindow>,
    pub(crate) progress: LogProgress,
    /// Who waits for the part at this offset of this extent; at most a window of them.
    pub(crate) waiting: BTreeMap<(ExtentName, u64), Acknowledged>,
    /// Lengths of extents that this owner sealed, while they are not recorded: one, or two after a failure.
    pub(crate) unrecorded: Vec<Change>,
    /// Whether the tail is being closed, or must stay closed: nothing is pushed.
    pub(crate) is_closing: bool,
    /// Whether a task opens the next extent.
    pub(crate) is_tended: bool,
    /// Why the next extent could not be opened.
    pub(crate) failure: Option<String>,
}

/// The part of a log that lives as long as its range.
#[derive(Default)]
pub(crate) struct LogCore {
    pub(crate) state: Mutex<LogState>,
    pub(crate) changed: Notify,
    /// Held while the tail changes.
    pub(crate) tail: tokio::sync::Mutex<()>,
}
