//! Metrics of a process of a stamp: what it serves, how long it may, and what it sends to the stores.
//!
//! What always holds: they are read when somebody asks for them; a process on a data folder shows zeros.

use base::metrics::Unit::{Bytes, Count, Seconds};
use base::metrics::{Family, Kind, Metrics};
use parking_lot::Mutex;
use stamp_stores::{LATENCY_BOUNDS_US, RequestCounts, RequestKind, RequestReading};
use stamp_streams::{BlockCache, CacheReading, Life, OwnedRange};
use std::sync::Arc;

static SERVING: Family = Family::gauge(
    "larimar_stamp_serving",
    Count,
    &[],
    "1 while this process serves its stamp; 0 on a stand-by, and without a stamp.",
);
static EPOCH: Family = Family::gauge(
    "larimar_stamp_epoch",
    Count,
    &[],
    "How often the stamp has changed hands, while this process serves it.",
);
static LEASE_LEFT: Family = Family::gauge(
    "larimar_stamp_lease_left_seconds",
    Seconds,
    &[],
    "How long this process may still answer, unless the next beat prolongs it.",
);
static EXTENTS: Family =
    Family::gauge("larimar_stamp_extents", Count, &[], "Extents that the stamp's document names.");
static DOCUMENT_MISSING: Family = Family::gauge(
    "larimar_stamp_document_missing_bytes",
    Bytes,
    &[],
    "By how much the stamp's document is in its reserve: until so much is deleted from it, writes are refused.",
);
static REQUESTS: Family = Family::counter(
    "larimar_store_requests_total",
    Count,
    &["store", "kind", "outcome"],
    "Requests to a stamp's object store and to etcd: answered, failed, or abandoned by this process.",
);
static CONTENT: Family = Family::counter(
    "larimar_store_content_bytes_total",
    Bytes,
    &["store", "kind"],
    "Bytes of content in them, sent or received.",
);
static TOOK: Family = Family {
    name: "larimar_store_request_seconds",
    kind: Kind::Histogram,
    unit: Seconds,
    help: "How long answered and failed ones took.",
    labels: &["store", "kind"],
    bounds: &LATENCY_BOUNDS_US,
};

static CACHE_READS: Family = Family::counter(
    "larimar_stamp_cache_reads_total",
    Count,
    &["outcome"],
    "Reads of single blocks that the folder of --cache was asked for: hits, misses, and blocks in it that could not be \
     read or were damaged. Those are misses, too.",
);
static CACHE_NOT_KEPT: Family = Family::counter(
    "larimar_stamp_cache_not_kept_total",
    Count,
    &[],
    "Blocks that were not kept there: its disk was slow, full or failed.",
);
static CACHE_SIZE: Family =
    Family::gauge("larimar_stamp_cache_bytes", Bytes, &[], "Bytes that the folder of --cache has.");
static CACHE_BLOCKS: Family = Family::gauge("larimar_stamp_cache_blocks", Count, &[], "Blocks that it has.");

/// The kinds of requests to the object store; the others are etcd's.
const OBJECT_KINDS: [RequestKind; 4] =
    [RequestKind::Create, RequestKind::Read, RequestKind::List, RequestKind::Delete];

/// Where the metrics of a process of a stamp come from.
pub(crate) struct StampSource {
    pub(crate) objects: Arc<RequestCounts>,
    pub(crate) keys: Arc<RequestCounts>,
    /// Blocks on its disk, if it keeps any.
    pub(crate) cache: Option<Arc<BlockCache>>,
    /// What it serves, if it does.
    held: Mutex<Option<(Arc<OwnedRange>, Arc<Life>)>>,
}

impl StampSource {
    /// Of a process that serves nothing yet.
    pub(crate) fn new(
        objects: Arc<RequestCounts>,
        keys: Arc<RequestCounts>,
        cache: Option<Arc<BlockCache>>,
    ) -> Arc<Self> {
        Arc::new(StampSource { objects, keys, cache, held: Mutex::default() })
    }

    /// From now on this is served, or nothing.
    pub(crate) fn note_held(&self, held: Option<(Arc<OwnedRange>, Arc<Life>)>) {
        *self.held.lock() = held;
    }
}

/// Brings the metrics up to date.
pub(super) fn sample(into: &Metrics, source: Option<&StampSource>) {
    let held = source.and_then(|source| source.held.lock().clone());
    let document = held.as_ref().map(|(range, _)| range.document());
    into.gauge(&SERVING, &[]).set(u64::from(held.is_some()));
    into.gauge(&EPOCH, &[]).set(held.as_ref().map_or(0, |(range, _)| range.owner().epoch.0));
    let missing = held.as_ref().map_or(0, |(range, _)| range.missing_document_bytes());
    into.gauge(&DOCUMENT_MISSING, &[]).set(missing);
    into.gauge(&LEASE_LEFT, &[]).set_duration(held.map(|(_, life)| life.lease_left()).unwrap_or_default());
    into.gauge(&EXTENTS, &[]).set(document.map_or(0, |document| document.extents().len() as u64));
    let cache = source.and_then(|source| source.cache.as_ref()).map(|cache| cache.reading());
    sample_cache(into, &cache.unwrap_or_default());
    let Some(source) = source else {
        // The families are there all the same.
        return sample_kind(into, "object", RequestKind::Create, &RequestReading::default());
    };
    for kind in RequestKind::ALL {
        let (store, counts) = match OBJECT_KINDS.contains(&kind) {
            true => ("object", &source.objects),
            false => ("metadata", &source.keys),
        };
        sample_kind(into, store, kind, &counts.reading(kind));
    }
}

fn sample_cache(into: &Metrics, reading: &CacheReading) {
    let reads = [("hit", reading.hits), ("miss", reading.misses), ("damaged", reading.damaged)];
    for (outcome, count) in reads {
        into.counter(&CACHE_READS, &[outcome]).set(count);
    }
    into.counter(&CACHE_NOT_KEPT, &[]).set(reading.not_kept);
    into.gauge(&CACHE_SIZE, &[]).set(reading.size_bytes);
    into.gauge(&CACHE_BLOCKS, &[]).set(reading.blocks);
}

fn sample_kind(into: &Metrics, store: &str, kind: RequestKind, reading: &RequestReading) {
    let kind = kind.label();
    for (outcome, count) in
        [("answered", reading.answered), ("failed", reading.failed), ("abandoned", reading.abandoned)]
    {
        into.counter(&REQUESTS, &[store, kind, outcome]).set(count);
    }
    into.counter(&CONTENT, &[store, kind]).set(reading.bytes);
    into.histogram(&TOOK, &[store, kind]).set(&reading.buckets, reading.microseconds);
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::metrics::Value;

    #[test]
    fn requests_to_both_stores_are_shown_by_kind() {
        let metrics = Metrics::default();
        sample(&metrics, None);
        let families = metrics.read().len();
        let source = StampSource::new(Arc::default(), Arc::default(), None);
        sample(&metrics, Some(&source));
        let read = metrics.read();
        assert_eq!((families, read.len()), (12, 12));
        let requests = read.iter().find(|family| family.family.name == REQUESTS.name).unwrap();
        assert_eq!(requests.series.len(), 3 * RequestKind::ALL.len());
        let stores: Vec<&str> = requests.series.iter().map(|series| series.labels[0].as_str()).collect();
        assert_eq!(stores.iter().filter(|store| **store == "object").count(), 3 * OBJECT_KINDS.len());
        let serving = read.iter().find(|family| family.family.name == SERVING.name).unwrap();
        assert_eq!(serving.series[0].value, Value::Number(0));
    }
}
