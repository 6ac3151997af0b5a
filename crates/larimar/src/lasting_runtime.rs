//! The runtime of a command that opens the layers without serving them.

use std::io;
use std::mem::ManuallyDrop;
use tokio::runtime::Builder;

/// Runs the command. Its runtime stays until the process ends: threads of the layers may still be at their
/// last step when the command has failed, and a timer whose runtime is gone panics.
pub(crate) fn run_to_the_end<T>(mut runtime: Builder, command: impl Future<Output = T>) -> io::Result<T> {
    Ok(ManuallyDrop::new(runtime.enable_all().build()?).block_on(command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Clock, Spawner};
    use std::sync::Arc;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn a_thread_that_outlives_the_command_still_has_its_timers() {
        let (go_on, goes_on) = mpsc::channel::<()>();
        let (finished, ended) = mpsc::channel();
        run_to_the_end(Builder::new_current_thread(), async {
            let clock = base::system::SystemClock::new();
            let task = async move {
                // The timer is made while the command runs, and asked when it has ended.
                let sleep = clock.sleep(Duration::ZERO);
                goes_on.recv().expect("a sender");
                tokio::select! {
                    biased;
                    () = sleep => {}
                    () = std::future::ready(()) => {}
                }
                finished.send(()).expect("a receiver");
            };
            let spawner: Arc<dyn Spawner> = Arc::new(base::system::TokioSpawner::current());
            spawner.spawn_background("late", Box::pin(task)).expect("a thread");
        })
        .expect("a runtime");
        go_on.send(()).expect("a thread");
        ended.recv_timeout(Duration::from_secs(30)).expect("the thread ended with a panic");
    }
}
