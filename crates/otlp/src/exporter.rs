//! The task that sends what gathers.
//!
//! What always holds: one delivery at a time; spans of a delivery that failed are lost and counted, so that
//! those of now are sent once the collector is back; the log says once that it is away, and once that it is
//! back.

use crate::collector::Collector;
use crate::metric_message::{Span as Counted, metrics_of};
use crate::settings::ExportSettings;
use crate::span_message::{Process, traces_of};
use crate::spans::{BATCH_SPANS_MAX, SpanRecorder, WAITING_SPANS_MAX};
use crate::{ExportSurroundings, counts::DeliveryCounts};
use base::{Clock, Metrics, Ticks};
use bytes::Bytes;
use http_client::{Endpoint, Surroundings};
use prost::Message;
use std::sync::Arc;
use std::time::Duration;

/// Spans wait for so long at most until a delivery begins.
const SPANS_EVERY: Duration = Duration::from_secs(1);

/// Starts the task, on one of the workers: connections need their timers and sockets.
pub(crate) fn start(
    settings: &ExportSettings,
    endpoint: Endpoint,
    surroundings: &ExportSurroundings,
    recorder: Arc<SpanRecorder>,
) -> Result<(), String> {
    let ExportSurroundings { env, connector, version, instance } = surroundings;
    let outside = Surroundings {
        clock: env.clock.clone(),
        random: env.random.clone(),
        spawner: env.spawner.clone(),
        connector: connector.clone(),
    };
    let exporter = Exporter {
        collector: Collector::new(settings, endpoint, outside)?,
        process: Process { version, instance: instance.clone() },
        recorder,
        metrics: env.metrics.clone(),
        clock: env.clock.clone(),
        began_at: env.clock.now(),
        metrics_every: settings.metrics_every,
        is_away: false,
    };
    env.spawner.spawn("traces and metrics", Box::pin(exporter.run()));
    Ok(())
}

struct Exporter {
    collector: Collector,
    process: Process,
    recorder: Arc<SpanRecorder>,
    metrics: Metrics,
    clock: Arc<dyn Clock>,
    began_at: Ticks,
    metrics_every: Duration,
    /// Whether the last delivery failed.
    is_away: bool,
}

impl Exporter {
    async fn run(mut self) {
        let mut metrics_at = self.clock.monotonic().saturating_add(self.metrics_every);
        loop {
            let tick = self.clock.sleep(SPANS_EVERY);
            tokio::select! {
                () = tick => {}
                () = self.recorder.filled.notified() => {}
            }
            // Asked before they are sent: what came before the end is among them.
            let is_closing = self.recorder.is_closing();
            self.send_spans().await;
            if is_closing {
                if !self.metrics_every.is_zero() {
                    self.send_metrics().await;
                }
                self.recorder.sent_all.notify_one();
                return;
            }
            let now = self.clock.monotonic();
            if !self.metrics_every.is_zero() && now >= metrics_at {
                // After a long delivery the next one is not at once.
                metrics_at = now.saturating_add(self.metrics_every);
                self.send_metrics().await;
            }
        }
    }

    /// Sends what waits, until a batch is not full: at most as many as wait at once, so that metrics have
    /// their turn however many come.
    async fn send_spans(&mut self) {
        for _ in 0..WAITING_SPANS_MAX / BATCH_SPANS_MAX {
            let spans = self.recorder.take_batch();
            if spans.is_empty() {
                return;
            }
            // A message takes a worker as long as some tens of requests do: those that wait go first.
            tokio::task::yield_now().await;
            let message = traces_of(&self.process, &spans).encode_to_vec();
            let is_taken = self.deliver("traces", message.into()).await;
            let counts = &self.recorder.counts;
            let counter = if is_taken { &counts.sent_spans } else { &counts.lost_spans };
            counter.add(spans.len() as u64);
            if spans.len() < BATCH_SPANS_MAX || !is_taken {
                return;
            }
        }
    }

    async fn send_metrics(&mut self) {
        let nanoseconds = |at: Ticks| u64::try_from(at.since_unix().as_nanos()).unwrap_or(u64::MAX);
        let counted = Counted { from_ns: nanoseconds(self.began_at), to_ns: nanoseconds(self.clock.now()) };
        for request in metrics_of(&self.process, &self.metrics.read(), counted) {
            if !self.deliver("metrics", request.encode_to_vec().into()).await {
                return;
            }
        }
    }

    /// Whether the collector took it.
    async fn deliver(&mut self, signal: &'static str, message: Bytes) -> bool {
        let delivered = self.collector.deliver(signal, message).await;
        let counts: &DeliveryCounts = match signal {
            "traces" => &self.recorder.counts.traces,
            _ => &self.recorder.counts.metrics,
        };
        match &delivered {
            Ok(()) => counts.taken.increment(),
            Err(_) => counts.failed.increment(),
        }
        match (&delivered, self.is_away) {
            (Err(error), false) => {
                let collector = self.collector.url();
                tracing::warn!(%collector, %signal, %error, "traces and metrics can't be sent; spans of now are lost until they can");
            }
            (Ok(()), true) => {
                tracing::info!(collector = %self.collector.url(), "traces and metrics are sent again")
            }
            _ => {}
        }
        self.is_away = delivered.is_err();
        delivered.is_ok()
    }
}
