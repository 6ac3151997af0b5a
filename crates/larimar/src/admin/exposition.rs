//! Metrics as Prometheus reads them: its text format, version 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
//!
//! What always holds: all values are in base units, seconds and bytes.

use base::metrics::{Family, FamilyReading, Kind, SeriesReading, Value};
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{TEXT_FORMAT, TextEncoder};

/// The media type of the text.
pub(super) const CONTENT_TYPE: &str = TEXT_FORMAT;

/// All metrics as text. An error says what can't be shown.
pub(super) fn text_of(readings: &[FamilyReading]) -> Result<String, String> {
    // The encoder takes no family without series.
    let known = readings.iter().filter(|reading| !reading.series.is_empty());
    let families: Vec<MetricFamily> = known.map(family_of).collect();
    TextEncoder::new().encode_to_string(&families).map_err(|error| error.to_string())
}

fn family_of(reading: &FamilyReading) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(reading.family.name.to_owned());
    family.set_help(reading.family.help.to_owned());
    family.set_field_type(match reading.family.kind {
        Kind::Counter => MetricType::COUNTER,
        Kind::Gauge => MetricType::GAUGE,
        Kind::Histogram => MetricType::HISTOGRAM,
    });
    family.set_metric(reading.series.iter().map(|series| metric_of(reading.family, series)).collect());
    family
}

fn metric_of(family: &Family, series: &SeriesReading) -> Metric {
    let label = |(name, value): (&&str, &String)| {
        let mut label = LabelPair::default();
        label.set_name((*name).to_owned());
        label.set_value(value.clone());
        label
    };
    let mut metric = Metric::from_label(family.labels.iter().zip(&series.labels).map(label).collect());
    match &series.value {
        Value::Number(number) if family.kind == Kind::Gauge => {
            let mut gauge = Gauge::default();
            gauge.set_value(family.unit.shown(*number));
            metric.set_gauge(gauge);
        }
        Value::Number(number) => {
            let mut counter = Counter::default();
            counter.set_value(family.unit.shown(*number));
            metric.set_counter(counter);
        }
        Value::Histogram { cumulative, sum } => {
            let buckets = family.bounds.iter().zip(cumulative).map(|(bound, count)| {
                let mut bucket = Bucket::default();
                bucket.set_upper_bound(family.unit.shown(*bound));
                bucket.set_cumulative_count(*count);
                bucket
            });
            let mut histogram = Histogram::default();
            histogram.set_bucket(buckets.collect());
            histogram.set_sample_count(cumulative.last().copied().unwrap_or(0));
            histogram.set_sample_sum(family.unit.shown(*sum));
            metric.set_histogram(histogram);
        }
    }
    metric
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Metrics;
    use base::metrics::Unit;
    use std::time::Duration;

    static REQUESTS: Family = Family::counter("test_requests_total", Unit::Count, &["path"], "Requests.");
    static WAITED: Family = Family::counter("test_waited_seconds_total", Unit::Seconds, &[], "Waits.");
    static TOOK: Family = Family::durations("test_took_seconds", &["kind"], "How long it took.");

    #[test]
    fn figures_are_text_that_prometheus_reads() {
        let metrics = Metrics::default();
        metrics.counter(&REQUESTS, &["a\"b\\c\nd"]).add(3);
        metrics.counter(&WAITED, &[]).set_duration(Duration::from_millis(1500));
        metrics.histogram(&TOOK, &["x"]).record_duration(Duration::from_millis(3));
        let text = text_of(&metrics.read()).unwrap();
        for line in [
            "# HELP test_requests_total Requests.",
            "# TYPE test_requests_total counter",
            "test_requests_total{path=\"a\\\"b\\\\c\\nd\"} 3",
            "test_waited_seconds_total 1.5",
            "# TYPE test_took_seconds histogram",
            "test_took_seconds_bucket{kind=\"x\",le=\"0.0025\"} 0",
            "test_took_seconds_bucket{kind=\"x\",le=\"0.005\"} 1",
            "test_took_seconds_bucket{kind=\"x\",le=\"+Inf\"} 1",
            "test_took_seconds_sum{kind=\"x\"} 0.003",
            "test_took_seconds_count{kind=\"x\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
