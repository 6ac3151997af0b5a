//! The end of a run before its time: Ctrl-C, or an error.

use tokio::sync::watch;

/// Ends the run.
#[derive(Debug)]
pub struct StopSender {
    sender: watch::Sender<bool>,
}

/// Learns that the run is to end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Stop {
    receiver: watch::Receiver<bool>,
}

/// Both ends.
pub fn stop_channel() -> (StopSender, Stop) {
    let (sender, receiver) = watch::channel(false);
    (StopSender { sender }, Stop { receiver })
}

impl StopSender {
    /// Ends the run: what is under way is waited for a moment, then it is cleaned up.
    pub fn stop(&self) {
        self.sender.send_replace(true);
    }
}

impl Stop {
    pub(crate) fn is_set(&self) -> bool {
        *self.receiver.borrow()
    }

    /// Completes when the run is to end; never, if nobody can end it any more.
    pub(crate) async fn wait(&mut self) {
        if self.receiver.wait_for(|is_set| *is_set).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
