//! Traces and metrics for a collector: the OpenTelemetry protocol (OTLP 1.x) over HTTP, in its binary form
//! (<https://opentelemetry.io/docs/specs/otlp/>).
//!
//! The front end tells of each request, as it tells an access log. Of those that are sampled a span is
//! gathered; a task sends spans in batches, and the metrics of the process at regular times. What always
//! holds: requests never wait for the collector; what waits for it is bounded, and what has no place, or is
//! refused or never taken, is counted and left out; no key, signature or value is in a span, because the note
//! of a request has none.
//!
//! Without the feature `export` there are settings and counters only ([`CAN_EXPORT`]).
//!
//! | file | content |
//! |---|---|
//! | `settings.rs` | where to, how many, how often |
//! | `sampling.rs` | which requests become spans |
//! | `spans.rs` | the queue of spans, and who fills it |
//! | `span_message.rs`, `metric_message.rs` | the messages, as pure functions |
//! | `collector.rs` | one delivery, with its retries |
//! | `exporter.rs` | the task that sends |

// Without the exporter nobody takes what is gathered for it.
#![cfg_attr(not(feature = "export"), allow(dead_code))]

#[cfg(feature = "export")]
mod collector;
mod counts;
#[cfg(feature = "export")]
mod exporter;
#[cfg(feature = "export")]
mod metric_message;
mod sampling;
mod settings;
#[cfg(feature = "export")]
mod span_message;
mod spans;

pub use settings::{ExportSettings, SettingsError, headers_of};
pub use spans::SpanRecorder;

use base::Environment;
use counts::ExportCounts;
use std::sync::Arc;

/// What the exporter touches outside itself.
#[derive(Clone)]
pub struct ExportSurroundings {
    /// Clock, chance and metrics of the process.
    pub env: Environment,
    /// Makes connections to the collector.
    pub connector: Arc<dyn base::Connector>,
    /// The program's version, which spans and metrics name.
    pub version: &'static str,
    /// A name of this process that no other has, such as one drawn at its start.
    pub instance: String,
}

/// Whether this build has the exporter.
pub const CAN_EXPORT: bool = cfg!(feature = "export");

/// Begins to send, if a collector is set and [`CAN_EXPORT`]: the recorder is what the front end tells. The
/// task ends with the spawner of the environment.
///
/// # Errors
///
/// A text that says what can't be sent.
pub fn start(
    settings: &ExportSettings,
    surroundings: &ExportSurroundings,
) -> Result<Option<Arc<SpanRecorder>>, String> {
    // They are there without a collector, too: a family that comes and goes breaks alert rules.
    let counts = ExportCounts::new(&surroundings.env.metrics);
    let Some(endpoint) = settings.endpoint.clone().filter(|_| CAN_EXPORT) else { return Ok(None) };
    let recorder = Arc::new(SpanRecorder::new(settings, &surroundings.env, counts));
    #[cfg(feature = "export")]
    exporter::start(settings, endpoint, surroundings, recorder.clone())?;
    #[cfg(not(feature = "export"))]
    drop(endpoint);
    Ok(Some(recorder))
}
