//! Calls of a service over several connections.

use crate::Outcome;
use crate::client::service_client::ServiceClient;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const CONNECTION_COUNT: usize = 16;

/// One call for each number below `count`, on whichever connection is free; calls a second.
pub(super) fn call_all(
    (address, content_type): (SocketAddr, &'static str),
    count: u64,
    call: impl Fn(&mut ServiceClient, u64) -> Outcome<()> + Sync,
) -> Outcome<f64> {
    let (next, began_at) = (AtomicU64::new(0), Instant::now());
    let work = || -> Outcome<()> {
        let mut client = ServiceClient::connect(address, content_type)?;
        loop {
            match next.fetch_add(1, Ordering::Relaxed) {
                number if number < count => call(&mut client, number)?,
                _ => return Ok(()),
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CONNECTION_COUNT)
            .map(|_| scope.spawn(|| work().map_err(|error| error.to_string())))
            .collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| "a worker panicked".to_owned())?)
    })?;
    Ok(count as f64 / began_at.elapsed().as_secs_f64())
}
