//! A bound on the time of a future, by the clock that is handed in.

use base::Clock;
use futures_util::future::{Either, select};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// What the future gives, unless `span` passes first.
pub async fn within<T>(clock: &dyn Clock, span: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    // Most are ready: they need no timer.
    if let Poll::Ready(output) = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
        return Some(output);
    }
    match select(future, clock.sleep(span)).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(_) => None,
    }
}
