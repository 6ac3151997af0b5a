//! A table grows to each of several sizes: what inserts, gets, scans, memory, space and a restart cost at the
//! larger ones beside the smallest.

use super::rows::{Change, GROUP_ROWS, TABLE, TableClient, change_all};
use super::{Stage, Verdict, wait_for_quiet};
use crate::Outcome;
use crate::client::load::{Load, RequestSource, measure};
use crate::client::shared_key::{ACCOUNT, Signer, date_now};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const TEXT_SIZE: usize = 100;
const PARTITION_ROWS: u64 = 10_000;
/// Nothing may cost so many times as much as at the smallest size.
const RATIO_MAX: f64 = 1.4;
const GET_CONNECTIONS: usize = 16;
const GET_FOR: Duration = Duration::from_secs(8);
/// Partitions that are walked over one connection, spread over the table.
const WALKED_PARTITIONS: u64 = 20;
/// What one size is left alone for at most before it is measured.
const QUIET_FOR_MAX: Duration = Duration::from_secs(120);

#[derive(clap::Args)]
pub(crate) struct ScaleArguments {
    /// Numbers of rows that a table grows to; the larger ones are compared with the first.
    #[arg(long, value_delimiter = ',', default_values_t = [2_000_000, 20_000_000, 40_000_000])]
    pub(super) scale_rows: Vec<u64>,
}

fn partition_of(row: u64) -> String {
    format!("p{:06}", row / PARTITION_ROWS)
}

/// Gets of rows all over the table, each signed.
struct RandomGets {
    address: SocketAddr,
    rows: u64,
    state: u64,
    date: String,
    dated_at: Instant,
    signer: Signer,
}

impl RequestSource for RandomGets {
    fn write_next(&mut self, _: usize, _: &[u8], out: &mut Vec<u8>) {
        if self.dated_at.elapsed() > Duration::from_secs(60) {
            (self.date, self.dated_at) = (date_now(), Instant::now());
        }
        let row = base::random::splitmix64(&mut self.state) % self.rows;
        let path = format!("/{ACCOUNT}/{TABLE}(PartitionKey='{}',RowKey='r{row:010}')", partition_of(row));
        let authorization = self.signer.authorization("GET", "", &self.date, &path);
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nx-ms-version: 2019-02-02\r\nx-ms-date: {}\r\n\
             Accept: application/json;odata=nometadata\r\nAuthorization: {authorization}\r\n\r\n",
            self.address, self.date
        );
        out.extend_from_slice(request.as_bytes());
    }
}

/// What one size costs. All but the first: the less the better.
struct Costs {
    insert_us: f64,
    /// Of rows all over the table: right after the restart, so most of their blocks are read for the first
    /// time at the larger sizes.
    far_gets: GetTimes,
    /// Of as many rows as the smallest size has, which the caches hold as well at each size.
    near_gets: GetTimes,
    scan_us: f64,
    resident_mib: f64,
    stored_bytes_per_row: f64,
    restart_ms: f64,
}

/// How long gets took, in milliseconds.
struct GetTimes {
    p50: f64,
    p99: f64,
}

pub(super) fn run(stage: &mut Stage<'_>) -> Outcome<Vec<Verdict>> {
    let sizes = stage.arguments.size.scale.scale_rows.clone();
    TableClient::connect(stage.server.address)?.create_table()?;
    let empty_mib = stage.empty_mib()?;
    let (mut from, mut all) = (0, Vec::new());
    for rows in sizes {
        let put = Change::Insert { text_size: TEXT_SIZE };
        let rate = change_all(stage.server.address, partition_of, from..rows, put)?;
        from = rows;
        wait_for_quiet(stage, QUIET_FOR_MAX)?;
        let near = all.first().map_or(rows, |(smallest, _)| *smallest);
        let costs = costs_at(stage, (rows, near), 1e6 / rate, empty_mib)?;
        println!(
            "  {rows} rows: {rate:.0} inserts/s, get p50 {:.3} and p99 {:.3} ms, of {near} rows {:.3} and {:.3} ms, scan {:.2} µs \
             a row, {:.0} MiB resident, {:.0} bytes stored a row, restart {:.0} ms",
            costs.far_gets.p50,
            costs.far_gets.p99,
            costs.near_gets.p50,
            costs.near_gets.p99,
            costs.scan_us,
            costs.resident_mib,
            costs.stored_bytes_per_row,
            costs.restart_ms
        );
        all.push((rows, costs));
    }
    let Some(((_, first), larger)) = all.split_first() else { return Ok(Vec::new()) };
    let mut verdicts = Vec::new();
    for (rows, costs) in larger {
        for (what, one, of_first, unit) in [
            ("an insert", costs.insert_us, first.insert_us, "µs"),
            ("half of the gets all over", costs.far_gets.p50, first.far_gets.p50, "ms"),
            ("99 of 100 gets all over", costs.far_gets.p99, first.far_gets.p99, "ms"),
            ("half of the gets of as many rows", costs.near_gets.p50, first.near_gets.p50, "ms"),
            ("99 of 100 gets of as many rows", costs.near_gets.p99, first.near_gets.p99, "ms"),
            ("a scanned row", costs.scan_us, first.scan_us, "µs"),
            ("a stored row", costs.stored_bytes_per_row, first.stored_bytes_per_row, "bytes"),
            ("a restart", costs.restart_ms, first.restart_ms, "ms"),
        ] {
            verdicts.push(Verdict::at_most(
                &format!("{what} at {rows} rows"),
                one,
                of_first * RATIO_MAX,
                unit,
            ));
        }
    }
    Ok(verdicts)
}

/// Gets of random rows among the first `rows`.
fn get_times(address: SocketAddr, rows: u64) -> Outcome<GetTimes> {
    let (date, dated_at) = (date_now(), Instant::now());
    let mut gets = RandomGets { address, rows, state: 1, date, dated_at, signer: Signer::new() };
    let load = Load {
        address,
        connection_count: GET_CONNECTIONS,
        warm_up_for: GET_FOR / 2,
        measure_for: GET_FOR,
        expected_status: 200,
        server_process_id: None,
    };
    let measured = measure(&load, &mut gets)?;
    let quantile = |of| measured.latency_ns.value_at_quantile(of) as f64 / 1e6;
    Ok(GetTimes { p50: quantile(0.5), p99: quantile(0.99) })
}

fn costs_at(
    stage: &mut Stage<'_>,
    (rows, near): (u64, u64),
    insert_us: f64,
    empty_mib: f64,
) -> Outcome<Costs> {
    let stored_mib = stage.stored_mib()? - empty_mib;
    let restart_ms = stage.restart()?.as_secs_f64() * 1e3;
    let address = stage.server.address;
    let far_gets = get_times(address, rows)?;
    let near_gets = get_times(address, near)?;
    let partitions = rows.div_ceil(PARTITION_ROWS);
    let step = (partitions / WALKED_PARTITIONS).max(1);
    let mut client = TableClient::connect(address)?;
    let (mut walked, walk_at) = (0, Instant::now());
    for partition in (0..partitions).step_by(step as usize) {
        walked += client.count(&partition_of(partition * PARTITION_ROWS))?;
    }
    let scan_us = walk_at.elapsed().as_secs_f64() * 1e6 / walked.max(1) as f64;
    let expected: u64 = (0..partitions)
        .step_by(step as usize)
        .map(|partition| PARTITION_ROWS.min(rows - partition * PARTITION_ROWS))
        .sum();
    if walked != expected {
        return Err(format!("{walked} of {expected} rows were walked").into());
    }
    Ok(Costs {
        insert_us,
        far_gets,
        near_gets,
        scan_us,
        resident_mib: stage.resident_mib()?,
        stored_bytes_per_row: stored_mib * f64::from(1 << 20) / rows as f64,
        restart_ms,
    })
}

/// A group's rows are in one partition.
const _: () = assert!(PARTITION_ROWS.is_multiple_of(GROUP_ROWS));
