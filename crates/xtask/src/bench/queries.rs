//! Queries on a large table beside the same on a small one: what a query costs follows the rows it reads, not
//! the table.
//!
//! Both tables are in one server and have partitions of the same size. Rounds alternate between them, so that
//! a slow minute of the machine hits both. Latency is that of a single connection unless more are asked for.

use super::median;
use crate::bench::measured::MeasuredServer;
use crate::client::http_client::HttpClient;
use crate::client::load::{Load, RequestSource, measure};
use crate::client::server_process::ServerProcess;
use crate::client::shared_key::{ACCOUNT, Signer, date_now};
use crate::{Outcome, workspace};
use base::random::splitmix64;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PARTITION_ROWS: u64 = 1000;
const GROUP_ROWS: u64 = 100;
const RANGE_ROWS: u64 = 100;
/// One in so many rows matches the filter on a property.
const KIND_COUNT: u64 = 100;
const REQUEST_COUNT: usize = 1024;
const WRITER_COUNT: u64 = 8;

#[derive(clap::Args)]
pub(crate) struct QueryArguments {
    /// Entities of the large table, in partitions of 1,000.
    #[arg(long, default_value_t = 1_000_000)]
    entities: u64,
    /// Entities of the small table.
    #[arg(long, default_value_t = 10_000)]
    small_entities: u64,
    /// Bytes of text in each entity.
    #[arg(long, default_value_t = 100)]
    text_size: usize,
    /// Rounds; the medians are over them.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Milliseconds measured for each query, table and round.
    #[arg(long, default_value_t = 1500)]
    milliseconds: u64,
    /// Connections, each with one request under way.
    #[arg(long, default_value_t = 1)]
    connections: usize,
    #[command(flatten)]
    server: MeasuredServer,
    /// Fail if a median on the large table is above this percentage of the small table's.
    #[arg(long)]
    percent_max: Option<f64>,
}

impl QueryArguments {
    /// A run so short that it only shows that the bench still works.
    pub(crate) fn smoke(bin: PathBuf) -> Self {
        Self {
            entities: 4000,
            small_entities: 2000,
            text_size: 100,
            rounds: 1,
            milliseconds: 100,
            connections: 1,
            server: MeasuredServer::smoke(bin),
            percent_max: None,
        }
    }
}

/// A kind of query: what it is called, how many rows it returns, and its address for a partition and a random
/// number.
struct Kind {
    name: &'static str,
    rows: u64,
    target: fn(&str, u64, u64) -> String,
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "point query",
        rows: 1,
        target: |table, partition, random| {
            let row = random % PARTITION_ROWS;
            format!("{table}(PartitionKey='p{partition:06}',RowKey='r{row:06}')")
        },
    },
    Kind {
        name: "row range of 100",
        rows: RANGE_ROWS,
        target: |table, partition, random| {
            let first = random % (PARTITION_ROWS - RANGE_ROWS);
            let end = first + RANGE_ROWS;
            format!(
                "{table}()?$filter=PartitionKey%20eq%20'p{partition:06}'%20and%20RowKey%20ge%20'r{first:06}'%20and%20RowKey%20lt%20'r{end:06}'"
            )
        },
    },
    Kind {
        name: "partition of 1,000",
        rows: PARTITION_ROWS,
        target: |table, partition, _| format!("{table}()?$filter=PartitionKey%20eq%20'p{partition:06}'"),
    },
    Kind {
        name: "property in partition",
        rows: PARTITION_ROWS / KIND_COUNT,
        target: |table, partition, random| {
            let kind = random % KIND_COUNT;
            format!("{table}()?$filter=PartitionKey%20eq%20'p{partition:06}'%20and%20Kind%20eq%20{kind}")
        },
    },
];

struct Table {
    name: &'static str,
    entities: u64,
}

pub(crate) fn run(arguments: &QueryArguments) -> Outcome<()> {
    let tables = [
        Table { name: "small", entities: arguments.small_entities },
        Table { name: "large", entities: arguments.entities },
    ];
    if tables.iter().any(|table| table.entities < PARTITION_ROWS || table.entities % PARTITION_ROWS != 0) {
        return Err(format!("a table has whole partitions of {PARTITION_ROWS} entities").into());
    }
    let programs = arguments.server.programs()?;
    let scratch = workspace::Scratch::create("bench-queries")?;
    let server = ServerProcess::start_larimar(&programs.larimar, &scratch.path().join("data"))?;
    for table in &tables {
        let started_at = Instant::now();
        fill(server.address, table, arguments.text_size)?;
        let seconds = started_at.elapsed().as_secs_f64();
        let rate = table.entities as f64 / seconds;
        println!("{}: {} entities in {seconds:.1} s, {rate:.0}/s", table.name, table.entities);
    }

    let mut random = 1;
    let mut medians = vec![[Vec::new(), Vec::new()]; KINDS.len()];
    for round in 0..arguments.rounds {
        for (kind, medians) in KINDS.iter().zip(&mut medians) {
            // Who goes first alternates.
            for index in [round % 2, (round + 1) % 2] {
                let mut requests = Queries::build(server.address, kind, &tables[index], &mut random)?;
                let load = Load {
                    address: server.address,
                    connection_count: arguments.connections,
                    warm_up_for: Duration::from_millis(200),
                    measure_for: Duration::from_millis(arguments.milliseconds),
                    expected_status: 200,
                    server_process_id: None,
                };
                let measurement = measure(&load, &mut requests)?;
                medians[index].push(measurement.latency_ns.value_at_quantile(0.5) as f64 / 1e3);
            }
        }
    }
    let shown = |table: &Table| format!("{} of {}", table.name, table.entities);
    println!(
        "\n{} connections, {} rounds, text of {} B; p50 in µs, medians over the rounds\n{:<24}{:>20}{:>20}{:>12}",
        arguments.connections,
        arguments.rounds,
        arguments.text_size,
        "",
        shown(&tables[0]),
        shown(&tables[1]),
        "large/small"
    );
    let mut slowest: f64 = 0.0;
    for (kind, [small, large]) in KINDS.iter().zip(&medians) {
        let ratios: Vec<f64> = large.iter().zip(small).map(|(large, small)| 100.0 * large / small).collect();
        let percent = median(&ratios);
        slowest = slowest.max(percent);
        println!("{:<24}{:>20.1}{:>20.1}{percent:>10.0} %", kind.name, median(small), median(large));
    }
    let status = server.terminate()?;
    if !status.success() {
        return Err(format!("the server ended with {status}").into());
    }
    match arguments.percent_max {
        Some(max) if slowest > max => Err(format!("{slowest:.0} % of the small table's latency").into()),
        _ => Ok(()),
    }
}

/// Writes a table in groups, and looks that its last partition is whole.
fn fill(address: SocketAddr, table: &Table, text_size: usize) -> Outcome<()> {
    let mut client = HttpClient::connect(address, Signer::new())?;
    let body = format!("{{\"TableName\":\"{}\"}}", table.name);
    let created = client.send("POST", "Tables", &[], body.as_bytes())?;
    if created.status != 201 {
        return Err(format!("create table: {} {}", created.status, created.text()).into());
    }
    let next_group = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITER_COUNT)
            .map(|_| scope.spawn(|| write_groups(address, table, text_size, &next_group)))
            .collect();
        writers.into_iter().try_for_each(|writer| writer.join().map_err(|_| "a writer panicked")?)
    })
}

fn write_groups(address: SocketAddr, table: &Table, text_size: usize, next: &AtomicU64) -> Outcome<()> {
    let mut client = HttpClient::connect(address, Signer::new())?;
    let mut random = 7;
    let text: String =
        (0..text_size).map(|_| char::from(b'a' + (splitmix64(&mut random) % 26) as u8)).collect();
    loop {
        let group = next.fetch_add(1, Ordering::Relaxed);
        if group >= table.entities / GROUP_ROWS {
            return Ok(());
        }
        // Groups of all partitions in turn, so that partitions grow beside each other as they do in life.
        let partitions = table.entities / PARTITION_ROWS;
        let (partition, part) = (group % partitions, group / partitions);
        let mut body = String::from("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n");
        for row in part * GROUP_ROWS..(part + 1) * GROUP_ROWS {
            let kind = row % KIND_COUNT;
            body.push_str(&format!(
                "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 POST {}/{} HTTP/1.1\r\nContent-Type: application/json\r\nPrefer: return-no-content\r\n\r\n\
                 {{\"PartitionKey\":\"p{partition:06}\",\"RowKey\":\"r{row:06}\",\"Kind\":{kind},\"Text\":\"{text}\"}}\r\n",
                client.base_url(),
                table.name,
            ));
        }
        body.push_str("--c--\r\n--b--\r\n");
        let answer = client.send_as("multipart/mixed; boundary=b", "POST", "$batch", &[], body.as_bytes())?;
        if answer.status != 202 || answer.text().contains("odata.error") {
            return Err(format!("group: {} {}", answer.status, answer.text()).into());
        }
    }
}

/// Ready-made queries: a signature covers a point's keys, and none of a filter.
struct Queries {
    requests: Vec<Vec<u8>>,
    next: usize,
}

impl Queries {
    fn build(address: SocketAddr, kind: &Kind, table: &Table, random: &mut u64) -> Outcome<Self> {
        let (signer, date) = (Signer::new(), date_now());
        let partitions = table.entities / PARTITION_ROWS;
        let mut target = || (kind.target)(table.name, splitmix64(random) % partitions, splitmix64(random));
        check(address, kind, &target())?;
        let requests = (0..REQUEST_COUNT).map(|_| {
            let target = format!("/{ACCOUNT}/{}", target());
            let path = target.split('?').next().unwrap_or_default();
            let authorization = signer.authorization("GET", "", &date, path);
            format!(
                "GET {target} HTTP/1.1\r\nHost: {address}\r\nAccept: application/json;odata=nometadata\r\n\
                 DataServiceVersion: 3.0\r\nx-ms-version: 2019-02-02\r\nx-ms-date: {date}\r\n\
                 Authorization: {authorization}\r\n\r\n"
            )
            .into_bytes()
        });
        Ok(Self { requests: requests.collect(), next: 0 })
    }
}

/// A query that finds other rows than it should would be measured in vain.
fn check(address: SocketAddr, kind: &Kind, target: &str) -> Outcome<()> {
    let answer = HttpClient::connect(address, Signer::new())?.send("GET", target, &[], b"")?;
    let body: serde_json::Value = serde_json::from_slice(&answer.body)?;
    let rows = body["value"].as_array().map_or(1, Vec::len) as u64;
    if answer.status != 200 || rows != kind.rows {
        return Err(format!("{target}: {} with {rows} rows instead of {}", answer.status, kind.rows).into());
    }
    Ok(())
}

impl RequestSource for Queries {
    fn write_next(&mut self, _: usize, _: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.requests[self.next]);
        self.next = (self.next + 1) % self.requests.len();
    }
}
