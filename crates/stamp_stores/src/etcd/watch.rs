//! Waiting for a change below a prefix: one watch that all waiters of a process share.
//!
//! What always holds: a waiter returns after a bounded time; a watch that was compacted away counts as a
//! change, and the next one begins where its waiter's knowledge ends; a watch that is silent for long begins
//! anew at another member, because one that is cut off from the others would be silent for ever.

use crate::etcd::errors::{AskError, EtcdError};
use crate::etcd::json::{WatchLine, watch_line, watch_request};
use crate::etcd::members::Members;
use base::Clock;
use bytes::BytesMut;
use http_client::{AnswerBody, within};
use stamp::Revision;
use stamp_streams::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;

/// How long a watch may be silent. Processes of a stamp write a beat each third of their lease.
pub(crate) const SILENCE_FOR: Duration = Duration::from_secs(30);
/// How long a wait that fails takes at least: whoever waits tries again at once.
const ERROR_PAUSE: Duration = Duration::from_millis(250);
/// Bytes of one line of a watch, at most: etcd sends pieces of 1.5 MiB, in base64.
const LINE_SIZE_BYTES_MAX: usize = 8 << 20;

/// The one watch of a process.
pub(crate) struct SharedWatch {
    /// The newest change that was seen.
    seen: AtomicU64,
    /// The waiter that has this reads one line for all; the one that has waited longest is next.
    open: Mutex<Option<OpenWatch>>,
}

struct OpenWatch {
    body: AnswerBody,
    /// What came of the next line.
    line: BytesMut,
}

impl SharedWatch {
    pub(crate) fn new() -> Self {
        SharedWatch { seen: AtomicU64::new(0), open: Mutex::default() }
    }

    /// Waits for a change above `after`, at most `wait_for`.
    pub(crate) async fn wait(
        &self,
        members: &Members,
        base: &str,
        clock: &Arc<dyn Clock>,
        after: Revision,
        wait_for: Duration,
    ) -> Result<(), StoreError> {
        let waiting = async {
            loop {
                let mut open = self.open.lock().await;
                // While this waited for its turn another may have seen what this waits for.
                if self.seen.load(Ordering::Relaxed) > after.0 {
                    return Ok(());
                }
                self.read(&mut open, members, base, after).await?;
            }
        };
        let ended = within(&**clock, wait_for, waiting).await.unwrap_or(Ok(()));
        if ended.is_err() {
            clock.sleep(ERROR_PAUSE.min(wait_for)).await;
        }
        ended
    }

    /// Reads one line, and opens the watch for it if there is none. Dropped, it loses nothing.
    async fn read(
        &self,
        open: &mut Option<OpenWatch>,
        members: &Members,
        base: &str,
        after: Revision,
    ) -> Result<(), StoreError> {
        let watch = match open {
            Some(watch) => watch,
            None => {
                let request = watch_request(base, Revision(after.0 + 1));
                let opened = members.open("/v3/watch", &request).await.map_err(|error| match error {
                    AskError::Nothing(EtcdError::Refused(what)) => StoreError::Refused(what),
                    error => StoreError::Unavailable(error.shown()),
                })?;
                open.insert(OpenWatch { body: opened.body, line: BytesMut::new() })
            }
        };
        match watch.next_line().await {
            Ok(WatchLine::Alive) => Ok(()),
            Ok(WatchLine::Changed(revision)) => {
                self.saw(revision);
                Ok(())
            }
            Ok(WatchLine::Compacted(revision)) => {
                *open = None;
                self.saw(Revision(revision.0.max(after.0 + 1)));
                Ok(())
            }
            Ok(WatchLine::Ended(why)) | Err(why) => {
                *open = None;
                members.skip_first();
                Err(StoreError::Unavailable(format!("the watch ends: {why}")))
            }
        }
    }

    fn saw(&self, revision: Revision) {
        self.seen.fetch_max(revision.0, Ordering::Relaxed);
    }
}

impl OpenWatch {
    async fn next_line(&mut self) -> Result<WatchLine, String> {
        loop {
            if let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
                let line = self.line.split_to(end + 1);
                if line.len() > 1 {
                    return watch_line(&line);
                }
                continue;
            }
            if self.line.len() > LINE_SIZE_BYTES_MAX {
                return Err("a line of it is too long".to_owned());
            }
            match self.body.part().await {
                Ok(Some(part)) => self.line.extend_from_slice(&part),
                Ok(None) => return Err("it was closed".to_owned()),
                Err(error) => return Err(error.what),
            }
        }
    }
}
