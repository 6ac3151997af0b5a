//! How many requests of each kind were sent to a store, how they ended, and how long they took.
//!
//! What always holds: recording takes no lock and allocates nothing; each request that began ends as one of
//! answered, failed or abandoned.

use base::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets of latencies, in microseconds; what takes longer is in one more bucket.
pub const LATENCY_BOUNDS_US: [u64; 14] = [
    250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 125_000, 250_000, 500_000, 1_000_000,
    5_000_000,
];

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestKind {
    /// An object is created.
    Create,
    /// A piece of an object is read.
    Read,
    /// A page of names.
    List,
    /// An object is deleted.
    Delete,
    /// A transaction.
    Commit,
    /// Keys are read.
    ReadKeys,
    /// A change is waited for.
    Wait,
    /// A lease begins.
    Grant,
    /// A lease goes on.
    KeepAlive,
    /// A lease ends.
    Revoke,
    /// Former values of keys go.
    Compact,
}

impl RequestKind {
    /// All of them, in order.
    pub const ALL: [RequestKind; 11] = [
        RequestKind::Create,
        RequestKind::Read,
        RequestKind::List,
        RequestKind::Delete,
        RequestKind::Commit,
        RequestKind::ReadKeys,
        RequestKind::Wait,
        RequestKind::Grant,
        RequestKind::KeepAlive,
        RequestKind::Revoke,
        RequestKind::Compact,
    ];

    /// As a label of a metric.
    pub fn label(self) -> &'static str {
        match self {
            RequestKind::Create => "create",
            RequestKind::Read => "read",
            RequestKind::List => "list",
            RequestKind::Delete => "delete",
            RequestKind::Commit => "commit",
            RequestKind::ReadKeys => "read_keys",
            RequestKind::Wait => "wait",
            RequestKind::Grant => "grant",
            RequestKind::KeepAlive => "keep_alive",
            RequestKind::Revoke => "revoke",
            RequestKind::Compact => "compact",
        }
    }
}

#[derive(Debug, Default)]
struct OfKind {
    answered: AtomicU64,
    failed: AtomicU64,
    abandoned: AtomicU64,
    bytes: AtomicU64,
    microseconds: AtomicU64,
    buckets: [AtomicU64; LATENCY_BOUNDS_US.len() + 1],
}

/// The requests to one store.
#[derive(Debug, Default)]
pub struct RequestCounts {
    kinds: [OfKind; RequestKind::ALL.len()],
}

/// What was counted of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestReading {
    /// Ended with an answer that says what is: done, refused for a reason that the caller expects, not there.
    pub answered: u64,
    /// Ended without an answer, or with one that leaves the outcome open or is a failure.
    pub failed: u64,
    /// Given up by the caller, such as after its own time-out.
    pub abandoned: u64,
    /// Bytes of content that were sent or received.
    pub bytes: u64,
    /// Time that answered and failed ones took, in microseconds.
    pub microseconds: u64,
    /// Answered and failed ones by [`LATENCY_BOUNDS_US`].
    pub buckets: [u64; LATENCY_BOUNDS_US.len() + 1],
}

impl RequestCounts {
    /// What was counted until now.
    pub fn reading(&self, kind: RequestKind) -> RequestReading {
        let of = &self.kinds[kind as usize];
        let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
        RequestReading {
            answered: load(&of.answered),
            failed: load(&of.failed),
            abandoned: load(&of.abandoned),
            bytes: load(&of.bytes),
            microseconds: load(&of.microseconds),
            buckets: std::array::from_fn(|index| load(&of.buckets[index])),
        }
    }

    /// A request begins.
    pub(crate) fn begin(self: &Arc<Self>, kind: RequestKind, clock: &Arc<dyn Clock>) -> UnderWay {
        let began_at = clock.monotonic();
        UnderWay { counts: self.clone(), clock: clock.clone(), kind, began_at, has_ended: false }
    }
}

/// A request under way; dropped, it is abandoned.
pub(crate) struct UnderWay {
    counts: Arc<RequestCounts>,
    clock: Arc<dyn Clock>,
    kind: RequestKind,
    began_at: Duration,
    has_ended: bool,
}

impl UnderWay {
    /// It ended, with so many bytes of content.
    pub(crate) fn end(mut self, is_answered: bool, bytes: usize) {
        self.has_ended = true;
        let of = &self.counts.kinds[self.kind as usize];
        let took = self.clock.monotonic().saturating_sub(self.began_at);
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let ended = if is_answered { &of.answered } else { &of.failed };
        ended.fetch_add(1, Ordering::Relaxed);
        of.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        of.microseconds.fetch_add(took_us, Ordering::Relaxed);
        let bucket = LATENCY_BOUNDS_US.partition_point(|bound| *bound < took_us);
        of.buckets[bucket].fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if !self.has_ended {
            self.counts.kinds[self.kind as usize].abandoned.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::system::SystemClock;

    #[test]
    fn each_request_ends_in_one_of_three_ways() {
        let counts = Arc::new(RequestCounts::default());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        counts.begin(RequestKind::Create, &clock).end(true, 10);
        counts.begin(RequestKind::Create, &clock).end(false, 0);
        drop(counts.begin(RequestKind::Create, &clock));
        let reading = counts.reading(RequestKind::Create);
        assert_eq!((reading.answered, reading.failed, reading.abandoned, reading.bytes), (1, 1, 1, 10));
        assert_eq!(reading.buckets.iter().sum::<u64>(), 2);
        assert_eq!(counts.reading(RequestKind::Read), RequestReading::default());
        for (index, kind) in RequestKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index, "{}", kind.label());
        }
    }
}
