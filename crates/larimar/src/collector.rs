//! Traces and metrics on their way to a collector: starts what the crate `otlp` sends.

use crate::arguments::VERSION;
use crate::configuration::Configuration;
use crate::serve_error::ServeError;
use base::Environment;
use base::connector::SystemConnector;
use front_end::AccessLog;
use otlp::ExportSurroundings;
use std::sync::Arc;

/// What notes of requests go to, if there is a collector.
pub(crate) fn start(
    configuration: &Configuration,
    env: &Environment,
) -> Result<Option<Arc<dyn AccessLog>>, ServeError> {
    let surroundings = ExportSurroundings {
        env: env.clone(),
        connector: Arc::new(SystemConnector),
        version: VERSION,
        instance: format!("{:016x}", env.random.next_u64()),
    };
    let recorder = otlp::start(&configuration.process.export, &surroundings);
    let recorder = recorder.map_err(ServeError::Collector)?;
    Ok(recorder.map(|recorder| recorder as Arc<dyn AccessLog>))
}
