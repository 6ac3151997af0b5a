//! Work that may wait for a disk or a name server, apart from the thread that accepts connections: what waits
//! there holds up every client, and the watchdog's signs of life.

use std::panic::resume_unwind;

/// Does the work on a thread of its own. A program that stops does not wait for it (`serve`).
pub(crate) async fn run_apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime ends, and nobody waits any more.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_works_apart_holds_up_nothing() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let (sender, receiver) = std::sync::mpsc::channel();
        let done = runtime.block_on(async {
            let work = run_apart(move || receiver.recv());
            tokio::join!(work, async move { sender.send(7) }).0
        });
        assert_eq!(done, Ok(7));
    }
}
