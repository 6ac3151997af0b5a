//! What a stamp must have before a fault: so many ranges, and so much of its log not yet in checkpoints.
//!
//! What always holds: both are asked of the process that serves, while all clients run; ranges come first,
//! since a range that is split writes a checkpoint. What is not reached in time is an error that says what
//! was.

use super::cluster::Cluster;
use super::etcd::{plain_request, request_with_token};
use super::measured::{Demand, Measured};
use crate::Outcome;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// A range is split by the admin side at most this often: by itself the server splits large ones, too.
const SPLIT_INTERVAL: Duration = Duration::from_secs(2);
/// Waits until the process that serves has what there must be; `fills` lets the writers write much meanwhile.
pub(super) fn prepare(cluster: &mut Cluster, demand: Demand, fills: &AtomicBool) -> Outcome<Measured> {
    let (started_at, mut split_at) = (Instant::now(), None::<Instant>);
    let mut last = String::new();
    let outcome = loop {
        let measured = measure(cluster);
        if let Ok(measured) = measured.as_ref().copied().map(|(_, measured)| measured)
            && measured.meets(demand)
        {
            break Ok(measured);
        }
        let there = match &measured {
            Ok((_, measured)) => measured.to_string(),
            Err(error) => error.to_string(),
        };
        if started_at.elapsed() > demand.within {
            let wanted = Measured { ranges: demand.ranges, log_bytes: demand.log_bytes };
            let why = "is not there before the fault";
            break Err(format!("{wanted} {why} within {:?}, but {there}{last}", demand.within).into());
        }
        fills.store(true, Ordering::SeqCst);
        if let Ok((index, measured)) = measured
            && measured.ranges < demand.ranges
            && split_at.is_none_or(|at| at.elapsed() >= SPLIT_INTERVAL)
        {
            let split = split_largest(cluster, index).unwrap_or_else(|error| error.to_string());
            last = format!("; the last split: {split}");
            split_at = Some(Instant::now());
        }
        std::thread::sleep(LOOK_INTERVAL);
    };
    fills.store(false, Ordering::SeqCst);
    outcome
}

/// The process that serves, and what it has.
fn measure(cluster: &mut Cluster) -> Outcome<(usize, Measured)> {
    let index = cluster.serving().ok_or("no process serves")?;
    let answer = plain_request(cluster.processes[index].admin, "GET", "/metrics", "")?;
    match answer.status {
        200 => Ok((index, Measured::of(&answer.text()))),
        status => Err(format!("GET /metrics: {status} {}", answer.text()).into()),
    }
}

/// Splits the largest range of rows, and answers what came of it.
fn split_largest(cluster: &Cluster, index: usize) -> Outcome<String> {
    let process = &cluster.processes[index];
    let token = process.token("operate")?;
    let ask = |verb, path, body: &str| request_with_token(process.admin, verb, path, body, Some(&token));
    let ranges: serde_json::Value = serde_json::from_slice(&ask("GET", "/api/v1/ranges", "")?.body)?;
    let size = |range: &&serde_json::Value| {
        let bytes = |name| range["served"][name].as_u64().unwrap_or(0);
        bytes("size_bytes") + bytes("memory_table_bytes")
    };
    let of_rows = ranges["ranges"].as_array().into_iter().flatten();
    let largest = of_rows.filter(|range| range["table"] == "entity").max_by_key(size);
    let range = largest.ok_or("the admin side names no range of rows")?["range"].clone();
    let body = serde_json::json!({ "table": "entity", "range": range }).to_string();
    let answer = ask("POST", "/api/v1/split", &body)?;
    Ok(format!("{} {}", answer.status, answer.text()))
}
