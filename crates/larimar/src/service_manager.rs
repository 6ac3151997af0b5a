//! What a service manager learns of the server: that it serves, that it stops, that it lives. The protocol is
//! that of systemd's `sd_notify(3)`: datagrams to the socket that `NOTIFY_SOCKET` names.
//!
//! What always holds: without such a socket nothing is sent; a manager that can't be reached is a line of the
//! log, and no reason not to serve.

use base::Clock;
use sd_notify::NotifyState;
use std::convert::Infallible;

/// A sign of life is sent so many times in the time after which the manager takes the server for dead.
const SIGNS_PER_WATCHDOG_TIME: u32 = 3;

/// The services answer from here on.
pub(crate) fn note_ready() {
    notify(NotifyState::Ready);
}

/// The server has begun to stop.
pub(crate) fn note_stopping() {
    notify(NotifyState::Stopping);
}

/// Sends signs of life as often as the manager wants them (`WATCHDOG_USEC`), from the thread that accepts
/// connections: if it hangs there are none.
pub(crate) async fn keep_watchdog(clock: &dyn Clock) -> Infallible {
    let Some(watchdog_time) = sd_notify::watchdog_enabled().filter(|time| !time.is_zero()) else {
        return std::future::pending().await;
    };
    loop {
        notify(NotifyState::Watchdog);
        clock.sleep(watchdog_time / SIGNS_PER_WATCHDOG_TIME).await;
    }
}

fn notify(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "the service manager can't be reached at its NOTIFY_SOCKET");
    }
}
