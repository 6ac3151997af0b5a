//! Flags of traces and metrics that are sent to a collector.

use clap::Args;
use http_client::Endpoint;

/// Where traces and metrics go.
#[derive(Debug, Args)]
pub(crate) struct CollectorArguments {
    /// Traces of requests and metrics go to the OpenTelemetry collector at this URL, such as
    /// http://127.0.0.1:4318, by OTLP over HTTP. Headers: OTEL_EXPORTER_OTLP_HEADERS
    #[arg(long, value_name = "URL", value_parser = Endpoint::parse)]
    pub(crate) otlp: Option<Endpoint>,

    /// Of requests whose client does not say (traceparent) if they are traced, one in so many is; 0: none
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    pub(crate) otlp_one_in: u64,

    /// Metrics are sent every so many seconds; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) otlp_metrics_every: u64,
}
