//! What an operator looks at.
//!
//! What always holds: nothing is changed and no secret is shown.

use super::{Api, Call};
use crate::admin::process::ProcessMetrics;
use crate::admin::readiness::Layers;
use crate::admin::route::Answer;
use crate::admin::sampled::{ENDLESS_BYTES, TABLES_BY_NAME};
use crate::settings::setting::Change;
use base::metrics::Value as MetricValue;
use partition::{RangeDetails, ServedRange};
use serde_json::{Value, json};

/// The layers, unless the server is about to stop.
pub(super) fn layers(call: Call<'_>) -> Result<Layers, Answer> {
    call.readiness.layers().ok_or_else(|| Answer::error(503, "not_ready", "the server is stopping"))
}

/// The sum over all series of a family that is recorded elsewhere.
fn sum_of(call: Call<'_>, family: &str) -> u64 {
    let families = call.metrics.read();
    let series =
        families.into_iter().filter(|found| found.family.name == family).flat_map(|found| found.series);
    series.map(|series| if let MetricValue::Number(number) = series.value { number } else { 0 }).sum()
}

/// All ranges with their tables' names.
async fn all_ranges(call: Call<'_>) -> Result<Vec<(&'static str, RangeDetails)>, Answer> {
    let layers = layers(call)?;
    let mut all = Vec::new();
    for (table, name) in TABLES_BY_NAME {
        all.extend(layers.partitions.range_details(table).await.into_iter().map(|range| (name, range)));
    }
    Ok(all)
}

/// `GET /ranges`.
pub(super) async fn ranges(call: Call<'_>) -> Result<Answer, Answer> {
    let served = |range: &ServedRange| {
        json!({
            "epoch": range.epoch,
            "size_bytes": range.size_bytes,
            "memory_table_bytes": range.memory_table_bytes,
            "checkpoints": range.checkpoints,
            "compacting_bytes": range.compacting_bytes,
            "requests_per_second": range.requests_per_second,
        })
    };
    let of_range = |(table, range): &(&str, RangeDetails)| {
        json!({
            "table": table,
            "range": range.id,
            "start": range.start,
            "end": range.end,
            "damage": range.damage,
            "served": range.served.as_ref().map(served),
        })
    };
    let ranges: Vec<Value> = all_ranges(call).await?.iter().map(of_range).collect();
    Ok(Answer::json(200, &json!({ "ranges": ranges })))
}

/// `GET /loads`: the hottest first.
pub(super) async fn loads(call: Call<'_>) -> Result<Answer, Answer> {
    let ranges = all_ranges(call).await?;
    let mut served: Vec<(&str, u64, ServedRange)> =
        ranges.into_iter().filter_map(|(table, range)| Some((table, range.id, range.served?))).collect();
    served.sort_by_key(|(_, _, range)| std::cmp::Reverse((range.requests_per_second, range.requests)));
    let of_range = |(table, id, range): &(&str, u64, ServedRange)| {
        json!({
            "table": table,
            "range": id,
            "requests_per_second": range.requests_per_second,
            "requests": range.requests,
            "at_end_percent": range.at_end_percent,
            "serial_section_seconds": range.serial_section_held_for.as_secs_f64(),
        })
    };
    let loads: Vec<Value> = served.iter().map(of_range).collect();
    Ok(Answer::json(200, &json!({ "loads": loads })))
}

impl Api {
    /// `GET /status`.
    pub(super) async fn status(&self, call: Call<'_>) -> Result<Answer, Answer> {
        let Layers { streams, partitions, disk } = layers(call)?;
        let shown = |bytes: Option<u64>| bytes.filter(|bytes| *bytes < ENDLESS_BYTES);
        let statistics = partitions.statistics();
        let reason = call.readiness.reason();
        let ranges: usize = TABLES_BY_NAME.iter().map(|(table, _)| partitions.ranges(*table).len()).sum();
        let uptime = self.clock.monotonic().saturating_sub(self.began_at);
        Ok(Answer::json(
            200,
            &json!({
                "version": call.version,
                "storage": self.storage,
                "uptime_seconds": uptime.as_secs(),
                "ready": reason.is_none(),
                "reason": reason,
                "limit": call.readiness.limit(),
                "draining": call.readiness.is_held_out(),
                "connections": sum_of(call, "larimar_connections"),
                "requests_in_flight": sum_of(call, "larimar_requests_in_flight"),
                "ranges": ranges,
                "damaged_ranges": statistics.damaged_ranges,
                "range_splits": statistics.range_splits,
                "range_merges": statistics.range_merges,
                "flushes": statistics.flushes,
                "compactions": statistics.compactions,
                "memory": {
                    "budget_bytes": partitions.memory_budget_size_bytes(),
                    "tables_bytes": statistics.memory.table_size_bytes,
                    "cache_bytes": statistics.cache.size_bytes,
                    "process_bytes": ProcessMetrics::read().resident_bytes,
                },
                "disk": {
                    "full": streams.is_scarce(),
                    "missing_bytes": streams.missing_bytes(),
                    "reserve_bytes": streams.kept_back_bytes(),
                    "free_bytes": shown(disk.free_bytes().await.ok()),
                    "total_bytes": shown(disk.total_bytes().await.ok()),
                },
            }),
        ))
    }

    /// `GET /slow`: the latest first.
    pub(super) fn slow(&self) -> Answer {
        let lines = self.slow.lines();
        let slow: Vec<Value> = lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Answer::json(200, &json!({ "slow": slow }))
    }

    /// `GET /log-level`.
    pub(super) fn log_level(&self) -> Answer {
        Answer::json(200, &json!({ "levels": self.log.levels() }))
    }

    /// `GET /simulate`.
    pub(super) fn simulated(&self) -> Answer {
        let given = self.simulation.as_ref().map(|simulation| simulation.given());
        Answer::json(200, &json!({ "simulating": given }))
    }

    /// `GET /settings`.
    pub(super) fn settings(&self) -> Answer {
        let settings = self.settings.shown();
        let of_setting = |setting: &crate::settings::command::ShownSetting| {
            json!({
                "key": setting.key,
                "value": setting.value,
                "origin": setting.origin,
                "at_run_time": setting.change == Change::AtRunTime,
            })
        };
        let settings: Vec<Value> = settings.iter().map(of_setting).collect();
        Answer::json(200, &json!({ "settings": settings }))
    }
}
