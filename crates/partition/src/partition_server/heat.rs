//! Which keys of the ranges of this process are hot: what their sketches say, and whether writes go to an end
//! of their range.
//!
//! What always holds: of rows no more is read than to tell whether a key is the outermost one.

use super::server::PartitionServer;
use crate::heat::ends::RangeEnd;
use crate::heat::range_heat::Noted;
use crate::heat::window::{HeatQuery, HeatReport, NotedRange, buckets_of, columns_of, reports_of};
use crate::key::{KeyRange, Span};
use crate::operation::{OBJECT_TABLES, ObjectTable, RowRef, Scan, Visit};
use crate::range_partition::{RangePartition, WalkEnd};
use bytes::Bytes;
use std::sync::Arc;

/// Rows beyond the outermost sampled key that are still an end, for each request that one stands for: those
/// that were written since.
const ROWS_BEYOND_A_SAMPLE: u64 = 16;
/// So many in any case; and no more, whatever a sample stands for.
const ROWS_BEYOND_MIN: u64 = 1024;
const ROWS_BEYOND_MAX: u64 = 65_536;

impl PartitionServer {
    /// See `Partitions`.
    pub(crate) async fn heat(&self, query: &HeatQuery) -> HeatReport {
        let sampled_one_in = self.shared.settings.heat_sample_one_in;
        if sampled_one_in == 0 {
            return HeatReport::default();
        }
        let clock = &*self.shared.clock;
        let (now, wall) = (clock.monotonic(), clock.now());
        let buckets = buckets_of(query.window, now);
        let (mut ranges, mut noted, mut unknown_ranges) = (Vec::new(), Vec::new(), 0);
        let tables = [ObjectTable::PartitionMap].into_iter().chain(OBJECT_TABLES);
        for table in tables.filter(|table| query.table.is_none_or(|wanted| wanted == *table)) {
            for range in self.ranges(table) {
                if query.range.is_some_and(|id| id != range.id()) {
                    continue;
                }
                unknown_ranges += u64::from(range.load.heat.has_no_place());
                if let Some(found) = range.load.heat.noted(buckets.start)
                    && !found.buckets.is_empty()
                {
                    noted.push(NotedRange { table, id: range.id(), noted: found });
                    ranges.push(range);
                }
            }
        }
        let since = noted.iter().map(|range| range.noted.since).min().unwrap_or(now);
        let mut reports = reports_of(&noted, &buckets, query.rows_max, now);
        let rows_beyond_max = (sampled_one_in * ROWS_BEYOND_A_SAMPLE).clamp(ROWS_BEYOND_MIN, ROWS_BEYOND_MAX);
        for ((range, NotedRange { noted, .. }), report) in ranges.iter().zip(&noted).zip(&mut reports) {
            report.writes_go_to = outermost(range, noted, rows_beyond_max).await;
        }
        let columns = columns_of(&buckets, since, (now, wall));
        let sketch_bytes = noted.iter().map(|range| range.noted.size_bytes).sum();
        HeatReport { sampled_one_in, columns, ranges: reports, sketch_bytes, unknown_ranges }
    }
}

/// The end that nearly all writes go to, if hardly any row lies beyond them: others may be there since before
/// anything was noted.
async fn outermost(range: &Arc<RangePartition>, noted: &Noted, rows_beyond_max: u64) -> Option<RangeEnd> {
    let (end, key) = noted.end.as_ref()?;
    let KeyRange { start, end: last } = range.range().clone();
    let key = Bytes::copy_from_slice(key);
    let beyond = match end {
        RangeEnd::Last => KeyRange { start: key, end: last },
        RangeEnd::First => KeyRange { start, end: Some(key) },
    };
    let mut few = FewRows { left: rows_beyond_max };
    // Where rows don't read nothing is said.
    match range.scan(&[Span::Range(beyond)], &mut few).await {
        Ok(WalkEnd::Through { .. }) => Some(*end),
        Ok(WalkEnd::Stopped(_)) | Err(_) => None,
    }
}

/// Finds out whether there are few rows, deleted ones included.
struct FewRows {
    left: u64,
}

impl Scan for FewRows {
    fn visit(&mut self, _: RowRef<'_>) -> Visit {
        self.pass_over(1)
    }

    fn needs_overflow(&self) -> bool {
        false
    }

    fn pass_over(&mut self, unseen: u64) -> Visit {
        self.left = self.left.saturating_sub(unseen);
        if self.left > 0 { Visit::Continue } else { Visit::StopBefore }
    }
}
