//! Spans on their way from the workers to the task that sends them.
//!
//! What always holds: the queue is bounded; a span that has no place is counted and left out; a request that
//! is not sampled costs a draw.

use crate::counts::ExportCounts;
use crate::sampling::{Sampled, sample, threshold};
use crate::settings::ExportSettings;
use base::{Clock, Environment, Random};
use front_end::{Access, AccessLog, AccessedRows, Phases};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Spans that wait at most: some megabytes.
pub(crate) const WAITING_SPANS_MAX: usize = 8192;
/// Spans of a delivery, at most; with so many one begins at once.
pub(crate) const BATCH_SPANS_MAX: usize = 256;
/// How long a process that ends waits for its collector.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);

/// A request as a span, with texts of its own: its many fields are in one, because it is only filled once and
/// written once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) sampled: Sampled,
    pub(crate) id: [u8; 8],
    /// Nanoseconds since 1970.
    pub(crate) began_at_ns: u64,
    pub(crate) phases: Phases,
    pub(crate) request_id: String,
    pub(crate) client_id: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) account: Option<String>,
    pub(crate) container: Option<String>,
    pub(crate) service: &'static str,
    pub(crate) operation: &'static str,
    pub(crate) key_class: &'static str,
    pub(crate) status: u16,
    pub(crate) error_code: Option<&'static str>,
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: u64,
    pub(crate) rows: Option<AccessedRows>,
}

/// Who gathers spans. The front end tells it of each request.
pub struct SpanRecorder {
    threshold: u64,
    random: Arc<dyn Random>,
    waiting: Mutex<Vec<Span>>,
    /// Notified when there is a batch.
    pub(crate) filled: Notify,
    /// Whether there are no more requests.
    is_closing: AtomicBool,
    /// Notified when all that waited was sent, or lost, after that.
    pub(crate) sent_all: Notify,
    pub(crate) counts: ExportCounts,
}

impl fmt::Debug for SpanRecorder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SpanRecorder").field("waiting", &self.waiting.lock().len()).finish_non_exhaustive()
    }
}

impl SpanRecorder {
    pub(crate) fn new(settings: &ExportSettings, env: &Environment, counts: ExportCounts) -> Self {
        SpanRecorder {
            threshold: threshold(settings.share),
            random: env.random.clone(),
            waiting: Mutex::default(),
            filled: Notify::new(),
            is_closing: AtomicBool::new(false),
            sent_all: Notify::new(),
            counts,
        }
    }

    /// Sends what waits, and the metrics once more, when there are no more requests: for two seconds at most,
    /// so that a collector that is away does not keep the process.
    pub async fn close(&self, clock: &dyn Clock) {
        self.is_closing.store(true, Ordering::Release);
        self.filled.notify_one();
        tokio::select! {
            () = self.sent_all.notified() => {}
            () = clock.sleep(CLOSED_WITHIN) => {}
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// The oldest spans that wait, as many as a delivery takes.
    pub(crate) fn take_batch(&self) -> Vec<Span> {
        let mut waiting = self.waiting.lock();
        let count = waiting.len().min(BATCH_SPANS_MAX);
        waiting.drain(..count).collect()
    }

    fn span_of(&self, access: &Access<'_>, sampled: Sampled) -> Span {
        let Access { at, request, target, outcome, phases } = access;
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Span {
            sampled,
            id: self.random.next_u64().max(1).to_be_bytes(),
            began_at_ns: u64::try_from(at.since_unix().as_nanos()).unwrap_or(u64::MAX),
            phases: *phases,
            request_id: request.id.to_owned(),
            client_id: owned(request.client_id),
            agent: owned(request.agent),
            account: owned(target.account),
            container: owned(target.container),
            service: target.service,
            operation: target.operation,
            key_class: target.key_class,
            status: outcome.status,
            error_code: outcome.error_code,
            request_bytes: outcome.request_bytes,
            response_bytes: outcome.response_bytes,
            rows: outcome.rows,
        }
    }
}

impl AccessLog for SpanRecorder {
    fn note(&self, access: &Access<'_>) {
        let Some(sampled) = sample(access.request.trace, self.threshold, || self.random.next_u64()) else {
            return;
        };
        let span = self.span_of(access, sampled);
        let mut waiting = self.waiting.lock();
        if waiting.len() >= WAITING_SPANS_MAX {
            drop(waiting);
            self.counts.lost_spans.increment();
            return;
        }
        waiting.push(span);
        if waiting.len() >= BATCH_SPANS_MAX {
            drop(waiting);
            self.filled.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Ticks;
    use base::memory_disk::MemoryDisk;
    use front_end::{AccessOutcome, AccessTarget, AccessedRequest, TraceContext};
    use http_client::Proxies;

    fn note(recorder: &SpanRecorder, number: u8, is_sampled: bool) {
        let trace = TraceContext { trace_id: [number; 16], parent_id: [1; 8], is_sampled };
        recorder.note(&Access {
            at: Ticks(0),
            request: AccessedRequest { id: "i", client_id: None, agent: None, trace: Some(trace) },
            target: AccessTarget {
                account: None,
                service: "blob",
                operation: "GetBlob",
                container: None,
                key_class: "point",
            },
            outcome: AccessOutcome {
                status: 200,
                error_code: None,
                request_bytes: 0,
                response_bytes: 0,
                rows: None,
            },
            phases: Phases::default(),
        });
    }

    #[tokio::test]
    async fn what_waits_is_bounded_and_what_is_too_much_is_counted() {
        let env = base::system::environment_on(Arc::new(MemoryDisk::new()));
        let settings = ExportSettings {
            endpoint: None,
            headers: Vec::new(),
            share: 1.0,
            metrics_every: Duration::ZERO,
            proxies: Proxies::none(),
        };
        let recorder = SpanRecorder::new(&settings, &env, ExportCounts::new(&env.metrics));
        note(&recorder, 1, false);
        assert_eq!(recorder.take_batch(), []);
        for _ in 0..WAITING_SPANS_MAX {
            note(&recorder, 2, true);
        }
        let lost = || format!("{:?}", recorder.counts.lost_spans);
        let before = lost();
        note(&recorder, 3, true);
        assert_ne!(lost(), before);
        let batch = recorder.take_batch();
        assert_eq!((batch.len(), batch[0].sampled.trace_id), (BATCH_SPANS_MAX, [2; 16]));
        // There is a place again.
        note(&recorder, 4, true);
        let mut last = Vec::new();
        while let batch @ [_, ..] = &recorder.take_batch()[..] {
            last = batch.to_vec();
        }
        assert_eq!(last.last().map(|span| span.sampled.trace_id), Some([4; 16]));
    }
}
