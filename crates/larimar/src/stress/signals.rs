//! Ctrl-C and its like: the first ends the run cleanly, the second at once.

use crate::output::error_line::print_error;
use ::stress::{Stop, stop_channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit code of a run that was stopped: what shells have for Ctrl-C.
pub(super) const EXIT_INTERRUPTED: u8 = 130;

/// Waits for signals while it lives.
pub(super) struct Interrupt {
    /// Is set by the first one.
    pub(super) stop: Stop,
    place: Arc<Mutex<Option<String>>>,
}

impl Interrupt {
    /// Waits on the current runtime. A system without signals has none to wait for.
    pub(super) fn watch() -> Self {
        let (sender, stop) = stop_channel();
        let place = Arc::new(Mutex::new(None));
        let named = place.clone();
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let mut signals: Vec<Signal> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
        tokio::spawn(async move {
            any(&mut signals).await;
            sender.stop();
            any(&mut signals).await;
            let place: Option<String> = named.lock().unwrap_or_else(PoisonError::into_inner).take();
            let place = place.map_or_else(String::new, |place| format!(": {place} stays behind"));
            print_error(&format!("stopped at once{place}"));
            std::process::exit(EXIT_INTERRUPTED.into());
        });
        Interrupt { stop, place }
    }

    /// What there is to drop again now.
    pub(super) fn may_stay_behind(&self, place: Option<String>) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }
}

/// Completes with the first signal of any kind.
async fn any(signals: &mut [Signal]) {
    std::future::poll_fn(|context| {
        match signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
}
