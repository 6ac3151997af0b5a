//! The process's metrics as the protocol's messages: the families of `docs/metrics.md` under the same names,
//! counted from the start of the process.

use crate::span_message::{Process, text};
use base::metrics::{Family, FamilyReading, Kind, SeriesReading, Unit, Value};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum,
};

/// Series of a delivery, at most, but for those of one family, which stay together.
const SERIES_MAX: usize = 4096;

/// From when to when metrics were counted, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

/// Deliveries of all metrics.
pub(crate) fn metrics_of(
    process: &Process,
    readings: &[FamilyReading],
    span: Span,
) -> Vec<ExportMetricsServiceRequest> {
    let mut deliveries: Vec<Vec<Metric>> = Vec::new();
    let mut series_count = SERIES_MAX;
    for reading in readings.iter().filter(|reading| !reading.series.is_empty()) {
        if series_count + reading.series.len() > SERIES_MAX {
            deliveries.push(Vec::new());
            series_count = 0;
        }
        series_count += reading.series.len();
        if let Some(last) = deliveries.last_mut() {
            last.push(metric(reading, span));
        }
    }
    let request = |metrics| {
        let scope_metrics = ScopeMetrics { scope: Some(process.scope()), metrics, ..ScopeMetrics::default() };
        let resource_metrics = ResourceMetrics {
            resource: Some(process.resource()),
            scope_metrics: vec![scope_metrics],
            ..ResourceMetrics::default()
        };
        ExportMetricsServiceRequest { resource_metrics: vec![resource_metrics] }
    };
    deliveries.into_iter().map(request).collect()
}

fn metric(reading: &FamilyReading, span: Span) -> Metric {
    let family = reading.family;
    let temporality = AggregationTemporality::Cumulative.into();
    let numbers = || reading.series.iter().filter_map(|series| number_point(family, series, span)).collect();
    let data = match family.kind {
        Kind::Gauge => Data::Gauge(Gauge { data_points: numbers() }),
        Kind::Counter => Data::Sum(Sum {
            data_points: numbers(),
            aggregation_temporality: temporality,
            is_monotonic: true,
        }),
        Kind::Histogram => {
            let points = reading.series.iter().filter_map(|series| histogram_point(family, series, span));
            Data::Histogram(Histogram { data_points: points.collect(), aggregation_temporality: temporality })
        }
    };
    // The units of UCUM, as the protocol asks.
    let unit = match family.unit {
        Unit::Count => "1",
        Unit::Bytes => "By",
        Unit::Seconds => "s",
    };
    Metric {
        name: family.name.to_owned(),
        description: family.help.to_owned(),
        unit: unit.to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

fn labels(family: &Family, series: &SeriesReading) -> Vec<KeyValue> {
    family.labels.iter().zip(&series.labels).map(|(name, value)| text(name, value)).collect()
}

fn number_point(family: &Family, series: &SeriesReading, span: Span) -> Option<NumberDataPoint> {
    let Value::Number(number) = &series.value else { return None };
    Some(NumberDataPoint {
        attributes: labels(family, series),
        start_time_unix_nano: if family.kind == Kind::Counter { span.from_ns } else { 0 },
        time_unix_nano: span.to_ns,
        value: Some(Number::AsDouble(family.unit.shown(*number))),
        ..NumberDataPoint::default()
    })
}

/// The protocol counts each bucket apart, and one more above the last bound.
fn histogram_point(family: &Family, series: &SeriesReading, span: Span) -> Option<HistogramDataPoint> {
    let Value::Histogram { cumulative, sum } = &series.value else { return None };
    let count = cumulative.last().copied().unwrap_or(0);
    let before = std::iter::once(0).chain(cumulative.iter().copied());
    let mut bucket_counts: Vec<u64> =
        cumulative.iter().zip(before).map(|(upto, before)| upto.saturating_sub(before)).collect();
    bucket_counts.resize(family.bounds.len() + 1, 0);
    Some(HistogramDataPoint {
        attributes: labels(family, series),
        start_time_unix_nano: span.from_ns,
        time_unix_nano: span.to_ns,
        count,
        sum: Some(family.unit.shown(*sum)),
        bucket_counts,
        explicit_bounds: family.bounds.iter().map(|bound| family.unit.shown(*bound)).collect(),
        ..HistogramDataPoint::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Metrics;
    use std::time::Duration;

    static DONE: Family = Family::counter("t_done_total", Unit::Bytes, &["kind"], "Done.");
    static LEVEL: Family = Family::gauge("t_level", Unit::Count, &[], "Level.");
    static TOOK: Family = Family::durations("t_took_seconds", &[], "Took.");

    const SPAN: Span = Span { from_ns: 1, to_ns: 2 };

    fn process() -> Process {
        Process { version: "1", instance: "i".to_owned() }
    }

    #[test]
    fn each_kind_is_what_the_protocol_has_for_it() {
        let metrics = Metrics::default();
        metrics.counter(&DONE, &["a"]).add(3);
        metrics.gauge(&LEVEL, &[]).set(5);
        let took = metrics.histogram(&TOOK, &[]);
        took.record_duration(Duration::from_micros(100));
        took.record_duration(Duration::from_millis(2));
        took.record_duration(Duration::from_secs(3600));
        let requests = metrics_of(&process(), &metrics.read(), SPAN);
        let found = &requests[0].resource_metrics[0].scope_metrics[0].metrics;
        let of = |name: &str| found.iter().find(|metric| metric.name == name).expect("a metric");
        let Some(Data::Sum(sum)) = &of("t_done_total").data else { panic!("no sum") };
        assert!(sum.is_monotonic && sum.aggregation_temporality() == AggregationTemporality::Cumulative);
        assert_eq!(sum.data_points[0].value, Some(Number::AsDouble(3.0)));
        assert_eq!(sum.data_points[0].attributes, [text("kind", "a")]);
        assert_eq!((of("t_done_total").unit.as_str(), of("t_took_seconds").unit.as_str()), ("By", "s"));
        let Some(Data::Gauge(gauge)) = &of("t_level").data else { panic!("no gauge") };
        assert_eq!((gauge.data_points[0].start_time_unix_nano, gauge.data_points[0].time_unix_nano), (0, 2));
        let Some(Data::Histogram(histogram)) = &of("t_took_seconds").data else { panic!("no histogram") };
        let point = &histogram.data_points[0];
        assert_eq!((point.count, point.bucket_counts.iter().sum::<u64>()), (3, 3));
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
        assert_eq!((point.bucket_counts[0], point.explicit_bounds[0]), (1, 0.0001));
        assert_eq!(point.bucket_counts.last(), Some(&1), "an hour is above all bounds");
        assert!((point.sum.expect("a sum") - 3600.0021).abs() < 1e-6);
    }

    #[test]
    fn a_delivery_has_a_bound() {
        let family = |count: usize| {
            let series =
                (0..count).map(|at| SeriesReading { labels: vec![at.to_string()], value: Value::Number(1) });
            FamilyReading { family: &DONE, series: series.collect() }
        };
        let readings = [family(3000), family(1096), family(1), family(9000), family(0)];
        let counts: Vec<usize> = metrics_of(&process(), &readings, SPAN)
            .iter()
            .map(|request| request.resource_metrics[0].scope_metrics[0].metrics.len())
            .collect();
        assert_eq!(counts, [2, 1, 1]);
        assert!(metrics_of(&process(), &[], SPAN).is_empty());
    }
}
