//! The handle of a log; what it does is in `log`.

use crate::extents::log_core::LogCore;
use crate::range::owned_range::OwnedRange;
use stamp::StreamId;
use std::sync::Arc;

/// A log in the hands of its owner. Cheap to clone.
#[derive(Clone)]
pub struct Log {
    pub(crate) range: Arc<OwnedRange>,
    pub(crate) core: Arc<LogCore>,
    pub(crate) stream: StreamId,
}
