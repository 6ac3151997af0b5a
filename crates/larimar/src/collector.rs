//! Traces and metrics on their way to a collector: starts what the crate `otlp` sends.

use crate::arguments::VERSION;
use crate::configuration::Configuration;
use crate::serve_error::ServeError;
use base::Environment;
use base::connector::SystemConnector;
use otlp::{ExportSurroundings, SpanRecorder};
use std::sync::Arc;

/// What notes of requests go to, if there is a collector.
pub(crate) fn start(
    configuration: &Configuration,
    env: &Environment,
) -> Result<Option<Arc<SpanRecorder>>, ServeError> {
    let surroundings = ExportSurroundings {
        env: env.clone(),
        connector: Arc::new(SystemConnector),
        version: VERSION,
        instance: format!("{:016x}", env.random.next_u64()),
    };
    let recorder = otlp::start(&configuration.process.export, &surroundings);
    recorder.map_err(ServeError::Collector)
}
