//! `larimar stamp list`: the stamp's streams with their extents and lengths.

use crate::Failure;
use crate::operate::words::{Column, table};
use crate::stamp_commands::opened::OpenedStamp;
use crate::stamp_commands::print_value;
use serde_json::{Value, json};
use stamp::{OwnEntry, StreamEntry};
use stamp_streams::StampSnapshot;
use std::process::ExitCode;

/// What the table shows; JSON has each extent besides.
const COLUMNS: [Column; 6] = [
    ("STREAM", "/stream"),
    ("EXTENTS", "/extent_count"),
    ("OPEN", "/open_count"),
    ("SEALED", "/sealed_bytes"),
    ("EPOCH", "/epoch"),
    ("OWNER", "/owner"),
];

/// Reads and prints it.
pub(super) async fn list(stamp: &OpenedStamp, is_json: bool) -> Result<ExitCode, Failure> {
    let snapshot = stamp.snapshot().await?;
    Ok(print_value(&facts(&stamp.name, &snapshot), is_json, |facts| table(&COLUMNS, &facts["streams"])))
}

fn facts(name: &str, snapshot: &StampSnapshot) -> Value {
    let ranges = snapshot.ranges().iter();
    let mut streams: Vec<(&str, Value)> = ranges
        .flat_map(|(id, range)| {
            let range_id = id.to_string();
            let streams = range.document.streams.values();
            streams.map(move |entry| (entry.purpose.as_str(), stream(entry, range.own, &range_id)))
        })
        .collect();
    streams.sort_by_key(|(purpose, _)| *purpose);
    let streams: Vec<Value> = streams.into_iter().map(|(_, value)| value).collect();
    json!({ "stamp": name, "revision": snapshot.revision().0, "streams": streams })
}

fn stream(entry: &StreamEntry, own: OwnEntry, range: &str) -> Value {
    let extents: Vec<Value> = entry
        .extents
        .iter()
        .map(|extent| {
            let name = extent.name.to_string();
            json!({ "extent": name, "ordinal": extent.ordinal, "length_bytes": extent.length })
        })
        .collect();
    json!({
        "stream": entry.purpose,
        "range": range,
        "owner": own.owner.map(|owner| owner.to_string()),
        "epoch": own.epoch.0,
        "extent_count": entry.extents.len(),
        "open_count": entry.extents.iter().filter(|extent| extent.length.is_none()).count(),
        "sealed_bytes": entry.extents.iter().filter_map(|extent| extent.length).sum::<u64>(),
        "extents": extents,
    })
}
