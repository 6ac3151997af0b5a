//! The settings of a server that runs, as the admin side sees them: what they are, and how they are read
//! again.
//!
//! What always holds: requests to read them again wait in a short queue, and each gets an outcome; no key is
//! shown.

use crate::settings::command::ShownSetting;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Requests that wait at most; further ones wait for a place.
const REQUEST_COUNT_MAX: usize = 4;

/// What came of reading them again, or why they stay.
pub(crate) type ReloadOutcome = Result<String, String>;

/// The settings of a server that runs.
#[derive(Clone, Debug)]
pub(crate) struct SettingsControl {
    requests: mpsc::Sender<oneshot::Sender<ReloadOutcome>>,
    shown: Arc<Mutex<Arc<[ShownSetting]>>>,
}

impl SettingsControl {
    /// Of a server that runs with these; the other end takes requests.
    pub(crate) fn new(shown: Arc<[ShownSetting]>) -> (Self, mpsc::Receiver<oneshot::Sender<ReloadOutcome>>) {
        let (requests, receiver) = mpsc::channel(REQUEST_COUNT_MAX);
        (SettingsControl { requests, shown: Arc::new(Mutex::new(shown)) }, receiver)
    }

    /// All settings, with the values in force.
    pub(crate) fn shown(&self) -> Arc<[ShownSetting]> {
        self.shown.lock().clone()
    }

    /// From now on these are in force.
    pub(crate) fn note(&self, shown: Arc<[ShownSetting]>) {
        *self.shown.lock() = shown;
    }

    /// Has them read again.
    pub(crate) async fn reload(&self) -> ReloadOutcome {
        let stopping = || Err("the server is stopping".to_owned());
        let (reply, outcome) = oneshot::channel();
        if self.requests.send(reply).await.is_err() {
            return stopping();
        }
        outcome.await.unwrap_or_else(|_| stopping())
    }
}
