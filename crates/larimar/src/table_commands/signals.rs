//! Ctrl-C and its like: the first ends the work and keeps what was done, the second ends the process.

use crate::output::error_line::print_error;
use table_tools::Stop;
use tokio::signal::unix::{SignalKind, signal};

/// Exit code of work that was stopped: what shells have for Ctrl-C.
pub(super) const EXIT_INTERRUPTED: u8 = 130;

/// Is set by the first signal. A system without signals has none to wait for.
pub(super) fn stop_at_signals() -> Stop {
    let stop = Stop::default();
    let (interrupt, terminate) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = (interrupt, terminate) else { return stop };
    let set = stop.clone();
    tokio::spawn(async move {
        for count in 0.. {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if count > 0 {
                print_error("stopped at once; the same command goes on with what was done");
                std::process::exit(EXIT_INTERRUPTED.into());
            }
            set.stop();
        }
    });
    stop
}
