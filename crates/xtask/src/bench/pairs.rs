//! Two builds of the server side by side: the same operations on both, in short slots that alternate.
//!
//! A machine's speed drifts by more than a change of code costs. What always holds: both servers run all the
//! time, each slot of one lies beside one of the other, and who is first alternates, so that drift hits both.

use super::rounds::median;
use super::{GetRequests, InsertRequests, blobs, prepare, queues};
use crate::client::content::content;
use crate::client::load::{Load, measure};
use crate::client::server_process::ServerProcess;
use crate::client::service_client::ServiceClient;
use crate::{Outcome, workspace};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const WARM_UP_FOR: Duration = Duration::from_millis(200);
const MESSAGE_SIZE_BYTES: usize = 1024;
const BLOB_SIZE_BYTES: usize = 4096;
const BLOB_COUNT: u64 = 16_384;
const GET_COUNT: usize = 2048;
const QUEUE: &str = "pairs";

#[derive(clap::Args)]
pub(crate) struct PairArguments {
    /// Only operations whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// The server before the change.
    #[arg(long)]
    old: PathBuf,
    /// The server after it.
    #[arg(long)]
    new: PathBuf,
    /// Pairs; the medians are over them.
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Slots of each server in a pair.
    #[arg(long, default_value_t = 6)]
    slots: usize,
    /// Milliseconds measured in a slot.
    #[arg(long, default_value_t = 700)]
    milliseconds: u64,
    /// Connections, each with one request under way.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Fail if an operation is slower than before by more than this percentage.
    #[arg(long)]
    slower_percent_max: Option<f64>,
}

const KINDS: [&str; 5] = ["table insert", "table get", "queue put", "blob put 4 KiB", "blob get 4 KiB"];

/// A server with a table, a queue and a container.
struct Side {
    server: ServerProcess,
    inserts: InsertRequests,
    random: u64,
    slot_count: u64,
}

impl Side {
    fn start(binary: &std::path::Path, scratch: &workspace::Scratch, name: &str) -> Outcome<Self> {
        let folder = scratch.path().join(name);
        std::fs::create_dir_all(&folder)?;
        let server = ServerProcess::start_larimar(binary, &folder.join("data"))?;
        prepare(server.address)?;
        queues::create_queue(server.queue_address.ok_or("the server has no queue service")?, QUEUE)?;
        let blob_address = server.blob_address.ok_or("the server has no blob service")?;
        ServiceClient::connect(blob_address, blobs::CONTENT_TYPE)?.expect(
            "PUT",
            blobs::CONTAINER,
            &[("restype", "container")],
            &[],
            b"",
            &[201],
        )?;
        let inserts = InsertRequests::new(server.address);
        Ok(Side { server, inserts, random: 1, slot_count: 0 })
    }

    /// Operations a second, and microseconds of the processor that one takes the server.
    fn slot(&mut self, kind: usize, arguments: &PairArguments) -> Outcome<(f64, f64)> {
        let of = |address: Option<SocketAddr>| address.ok_or("the server lacks a service");
        let paths =
            || (0..BLOB_COUNT).map(|number| format!("{:016x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        let (address, expected_status) = match kind {
            0 => (self.server.address, 204),
            1 => (self.server.address, 200),
            2 => (of(self.server.queue_address)?, 201),
            3 => (of(self.server.blob_address)?, 201),
            _ => (of(self.server.blob_address)?, 200),
        };
        let load = Load {
            address,
            connection_count: arguments.connections,
            warm_up_for: WARM_UP_FOR,
            measure_for: Duration::from_millis(arguments.milliseconds),
            expected_status,
            server_process_id: Some(self.server.id()),
        };
        let slot = self.slot_count;
        let path = |slot: u64| paths().map(move |path| format!("{slot}/{path}"));
        let measured = match kind {
            0 => measure(&load, &mut self.inserts),
            1 => {
                let count = self.inserts.sent_count.max(1);
                measure(&load, &mut GetRequests::build(address, count, &mut self.random))
            }
            2 => measure(&load, &mut queues::Messages::puts(address, QUEUE, MESSAGE_SIZE_BYTES)),
            3 => {
                let body = content(7, BLOB_SIZE_BYTES);
                measure(&load, &mut blobs::Requests::puts(address, path(slot), body))
            }
            // Those that were put first are there for certain.
            _ => {
                let last = slot.checked_sub(1).ok_or("gets of blobs need puts of blobs")?;
                measure(&load, &mut blobs::Requests::gets(address, path(last).take(GET_COUNT)))
            }
        }?;
        self.slot_count += u64::from(kind == 3);
        let server_us = measured.server_time_per_operation.map_or(0.0, |time| time.as_secs_f64() * 1e6);
        Ok((measured.operations_per_second, server_us))
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

pub(crate) fn run(arguments: &PairArguments) -> Outcome<()> {
    let scratch = workspace::Scratch::create("bench-pairs")?;
    let mut sides =
        [Side::start(&arguments.old, &scratch, "old")?, Side::start(&arguments.new, &scratch, "new")?];
    println!(
        "{} connections, {} pairs of {} slots of {} ms each",
        arguments.connections, arguments.pairs, arguments.slots, arguments.milliseconds
    );
    let mut slower = Vec::new();
    for (kind, name) in KINDS.iter().enumerate() {
        if arguments.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let (mut rates, mut times) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for pair in 0..arguments.pairs {
            let mut of_pair = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
            for slot in 0..arguments.slots {
                let first = (pair + slot) % 2;
                for side in [first, 1 - first] {
                    let (rate, server_us) = sides[side].slot(kind, arguments)?;
                    of_pair[side].0.push(rate);
                    of_pair[side].1.push(server_us);
                }
            }
            for side in [0, 1] {
                rates[side].push(mean(&of_pair[side].0));
                times[side].push(mean(&of_pair[side].1));
            }
        }
        let ratios = |of: &[Vec<f64>; 2]| -> Vec<f64> {
            of[1].iter().zip(&of[0]).map(|(new, old)| 100.0 * new / old.max(f64::MIN_POSITIVE)).collect()
        };
        let percent = median(&ratios(&rates));
        let pairs: Vec<String> = ratios(&rates).iter().map(|ratio| format!("{ratio:.1}")).collect();
        println!(
            "{name:15} old {:8.0}/s, new {:8.0}/s: {percent:5.1} % (pairs {}); processor {:.1} and {:.1} µs: {:.1} %",
            median(&rates[0]),
            median(&rates[1]),
            pairs.join(", "),
            median(&times[0]),
            median(&times[1]),
            median(&ratios(&times)),
        );
        if arguments.slower_percent_max.is_some_and(|most| percent < 100.0 - most) {
            slower.push(format!("{name} at {percent:.1} %"));
        }
    }
    for side in sides {
        let status = side.server.terminate()?;
        if !status.success() {
            return Err(format!("a server ended with {status}").into());
        }
    }
    if slower.is_empty() { Ok(()) } else { Err(format!("slower than before: {}", slower.join(", ")).into()) }
}
